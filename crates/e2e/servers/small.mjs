// What both TypeScript servers share: sessions, and an event store in memory.

import { randomUUID } from "node:crypto";

class Events {
  events = [];

  async storeEvent(stream, message) {
    return String(this.events.push({ stream, message }));
  }

  async replayEventsAfter(last, { send }) {
    const { stream } = this.events[Number(last) - 1];
    for (let at = Number(last); at < this.events.length; at++) {
      const { stream: of, message } = this.events[at];
      if (of === stream && message.jsonrpc) await send(String(at + 1), message);
    }
    return stream;
  }
}

/// A handler of requests, with a server for each session, or for each request.
export function serve(mode, server, Transport) {
  const sessions = new Map();
  return async (request, response) => {
    const id = request.headers["mcp-session-id"];
    let transport = sessions.get(id);
    if (!transport) {
      transport = new Transport({
        sessionIdGenerator: mode === "stateless" ? undefined : randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
        ...(mode === "resumable" ? { eventStore: new Events(), retryInterval: 100 } : {}),
      });
      await server().connect(transport);
    }
    await transport.handleRequest(request, response);
  };
}
