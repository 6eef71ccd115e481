// The server that `@modelcontextprotocol/conformance` wants to see: the tools, resources and prompts that its server
// scenarios name, on the TypeScript SDK.
//
//     node server.mjs --stdio
//     node server.mjs --http        prints http://127.0.0.1:PORT/mcp

import { randomUUID } from "node:crypto";
import http from "node:http";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

const text = (text) => ({ type: "text", text });
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const resource = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const strings = (...names) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
});

const elicit = async (extra, message, requestedSchema) => {
  const request = { method: "elicitation/create", params: { message, requestedSchema } };
  return extra.sendRequest(request, types.ElicitResultSchema);
};
const completed = ({ action, content }) => [
  text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`),
];
const titled = (word, values) => values.map((value, at) => ({ const: value, title: `${word} ${at + 1}` }));

const DEFAULTS = {
  type: "object",
  properties: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
  required: [],
};
const OPTIONS = ["option1", "option2", "option3"];
const VALUES = ["value1", "value2", "value3"];
const ENUMS = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: OPTIONS },
    titledSingle: { type: "string", oneOf: titled("Option", VALUES) },
    legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["One", "Two", "Three"] },
    untitledMulti: { type: "array", items: { type: "string", enum: OPTIONS } },
    titledMulti: { type: "array", items: { anyOf: titled("Choice", VALUES) } },
  },
  required: [],
};

// Name: [what it is, what it gives, its schema].
const TOOLS = {
  test_simple_text: ["Says a text", () => [text("This is a simple text response for testing.")]],
  test_image_content: ["Shows an image", () => [image]],
  test_audio_content: ["Plays silence", () => [{ type: "audio", data: SILENCE, mimeType: "audio/wav" }]],
  test_embedded_resource: [
    "Gives a resource",
    () => [resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
  ],
  test_multiple_content_types: [
    "Gives one of each",
    () => [
      text("Multiple content types test:"),
      image,
      resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  ],
  test_tool_with_logging: [
    "Logs as it works",
    async (_, extra) => {
      for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await extra.sendNotification({ method: "notifications/message", params: { level: "info", data } });
        await pause(50);
      }
      return [text("Logged three times")];
    },
  ],
  test_error_handling: [
    "Fails",
    () => {
      throw new Error("This tool intentionally returns an error for testing");
    },
  ],
  test_tool_with_progress: [
    "Tells how far it is",
    async (_, extra) => {
      const progressToken = extra._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        const params = { progressToken, progress, total: 100 };
        if (progressToken !== undefined) {
          await extra.sendNotification({ method: "notifications/progress", params });
        }
        await pause(50);
      }
      return [text("Came to 100")];
    },
  ],
  test_sampling: [
    "Asks the client's model",
    async ({ prompt }, extra) => {
      const messages = [{ role: "user", content: text(prompt) }];
      const request = { method: "sampling/createMessage", params: { messages, maxTokens: 100 } };
      const { content } = await extra.sendRequest(request, types.CreateMessageResultSchema);
      return [text(`LLM response: ${content.text}`)];
    },
    strings("prompt"),
  ],
  test_elicitation: [
    "Asks the user",
    async ({ message }, extra) => {
      const { action, content } = await elicit(extra, message, strings("username", "email"));
      return [text(`User response: action: ${action}, content: ${JSON.stringify(content)}`)];
    },
    strings("message"),
  ],
  test_elicitation_sep1034_defaults: [
    "Asks the user, with defaults",
    async (_, extra) => completed(await elicit(extra, "Please review", DEFAULTS)),
  ],
  test_elicitation_sep1330_enums: [
    "Asks the user to choose",
    async (_, extra) => completed(await elicit(extra, "Please choose", ENUMS)),
  ],
  test_reconnection: [
    "Closes the stream of its answer, and answers",
    async (_, extra) => {
      await pause(100);
      extra.closeSSEStream?.();
      await pause(100);
      return [text("Answered after the stream was closed")];
    },
  ],
  json_schema_2020_12_tool: [
    "Tool with JSON Schema 2020-12 features",
    () => [text("It has a schema")],
    {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: { address: strings("street", "city") },
      properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
      additionalProperties: false,
    },
  ],
};

const RESOURCES = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PIXEL },
  "test://watched-resource": { mimeType: "text/plain", text: "Watch this." },
};
const TEMPLATE = /^test:\/\/template\/([^/]+)\/data$/;

// Name: [what it is, its arguments, what it says].
const PROMPTS = {
  test_simple_prompt: ["Says a text", [], () => [text("This is a simple prompt for testing.")]],
  test_prompt_with_arguments: [
    "Says its arguments",
    ["arg1", "arg2"],
    ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  ],
  test_prompt_with_embedded_resource: [
    "Gives a resource",
    ["resourceUri"],
    ({ resourceUri }) => [
      resource(resourceUri, "text/plain", "Embedded resource content for testing."),
      text("Please process the embedded resource above."),
    ],
  ],
  test_prompt_with_image: ["Shows an image", [], () => [image, text("Please analyze the image above.")]],
};

const known = (table, name, code) => {
  if (!Object.hasOwn(table, name)) throw new types.McpError(code, `there is no ${name}`);
  return table[name];
};

function serve() {
  const capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, completions: {}, logging: {} };
  const server = new Server({ name: "conformance-fixture", version: "1" }, { capabilities });
  const on = (schema, answer) => server.setRequestHandler(schema, answer);

  on(types.ListToolsRequestSchema, () => ({
    tools: Object.entries(TOOLS).map(([name, [description, , inputSchema]]) => ({
      name,
      description,
      inputSchema: inputSchema ?? { type: "object" },
    })),
  }));
  on(types.CallToolRequestSchema, async ({ params }, extra) => {
    const [, call] = known(TOOLS, params.name, types.ErrorCode.InvalidParams);
    try {
      return { content: await call(params.arguments ?? {}, extra) };
    } catch (error) {
      return { content: [text(error.message)], isError: true };
    }
  });

  on(types.ListResourcesRequestSchema, () => ({
    resources: Object.entries(RESOURCES).map(([uri, { mimeType }]) => ({
      uri,
      name: uri.slice("test://".length),
      description: "For testing",
      mimeType,
    })),
  }));
  on(types.ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" }],
  }));
  on(types.ReadResourceRequestSchema, ({ params: { uri } }) => {
    const [, id] = TEMPLATE.exec(uri) ?? [];
    if (id !== undefined) {
      const data = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
      return { contents: [{ uri, mimeType: "application/json", text: data }] };
    }
    return { contents: [{ uri, ...known(RESOURCES, uri, -32002) }] };
  });
  on(types.SubscribeRequestSchema, () => ({}));
  on(types.UnsubscribeRequestSchema, () => ({}));

  on(types.ListPromptsRequestSchema, () => ({
    prompts: Object.entries(PROMPTS).map(([name, [description, names]]) => ({
      name,
      description,
      arguments: names.map((name) => ({ name, required: true })),
    })),
  }));
  on(types.GetPromptRequestSchema, ({ params }) => {
    const [, , say] = known(PROMPTS, params.name, types.ErrorCode.InvalidParams);
    return { messages: say(params.arguments ?? {}).map((content) => ({ role: "user", content })) };
  });
  on(types.CompleteRequestSchema, () => ({ completion: { values: ["test"], total: 1, hasMore: false } }));
  on(types.SetLevelRequestSchema, () => ({}));
  return server;
}

// Events of all streams, in order: a client that comes back gets what it missed.
class Events {
  events = [];

  async storeEvent(stream, message) {
    this.events.push({ stream, message });
    return String(this.events.length - 1);
  }

  async getStreamIdForEventId(id) {
    return this.events[Number(id)]?.stream;
  }

  async replayEventsAfter(id, { send }) {
    const { stream } = this.events[Number(id)];
    for (const [at, event] of this.events.entries()) {
      // The one that opens a stream has no message in it.
      const isMissed = at > Number(id) && event.stream === stream && Object.keys(event.message).length > 0;
      if (isMissed) await send(String(at), event.message);
    }
    return stream;
  }
}

function isLocal(address) {
  return ["localhost", "127.0.0.1", "[::1]"].includes(new URL(address).hostname);
}

async function session(sessions) {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Events(),
    retryInterval: 100,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await serve().connect(transport);
  return transport;
}

// The suite names an old version in the scenario of what came with 2025-11-25, and the SDK would believe it.
function modernise(request) {
  const at = request.rawHeaders.indexOf("2025-03-26");
  if (at > 0) request.rawHeaders[at] = "2025-11-25";
}

function listen() {
  const sessions = new Map();
  const answer = async (request, response) => {
    const { host, origin } = request.headers;
    if (!isLocal(`http://${host}`) || (origin && !isLocal(origin))) {
      return response.writeHead(403).end();
    }
    modernise(request);
    const id = request.headers["mcp-session-id"];
    const transport = id ? sessions.get(id) : await session(sessions);
    if (!transport) return response.writeHead(404).end();
    return transport.handleRequest(request, response);
  };
  const server = http.createServer((request, response) => {
    answer(request, response).catch((error) => {
      process.stderr.write(`${error.stack}\n`);
      response.destroy();
    });
  });
  server.listen(0, "127.0.0.1", () => {
    process.stdout.write(`http://127.0.0.1:${server.address().port}/mcp\n`);
  });
}

if (process.argv[2] === "--stdio") {
  await serve().connect(new StdioServerTransport());
} else {
  listen();
}
