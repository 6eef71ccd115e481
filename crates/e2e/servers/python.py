"""A small server over streamable HTTP, on whichever Python SDK is on the path: `mcp` 1.x, `mcp` 2.x or `fastmcp`.

    python python.py PACKAGE MODE PORT

PACKAGE is `mcp` or `fastmcp`. MODE is `stateful`, `stateless`, or `resumable`: stateful, with an event store, so that
`wait` can close its stream before it answers.
"""

import asyncio
import sys

from mcp.server.streamable_http import EventMessage, EventStore

package, mode, port = sys.argv[1], sys.argv[2], int(sys.argv[3])


class Events(EventStore):
    """Keeps all events in memory."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id, send_callback):
        at = int(last_event_id)
        stream = self.events[at - 1][0]
        for number, (of, message) in enumerate(self.events[at:], at + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


store = {"event_store": Events(), "retry_interval": 100} if mode == "resumable" else {}
stateless = mode == "stateless"
if package == "fastmcp":
    from fastmcp import Context, FastMCP

    server = FastMCP("small")
    app = lambda: server.http_app(stateless_http=stateless, **store)
else:
    try:
        from mcp.server.mcpserver import Context, MCPServer

        server = MCPServer("small")
        app = lambda: server.streamable_http_app(stateless_http=stateless, **store)
    except ImportError:
        from mcp.server.fastmcp import Context, FastMCP

        server = FastMCP("small", stateless_http=stateless, **store)
        app = server.streamable_http_app


@server.tool()
def add(a: int, b: int) -> str:
    return f"{a} and {b} is {a + b}"


@server.tool()
async def wait(ctx: Context) -> str:
    await ctx.close_sse_stream()
    await asyncio.sleep(0.3)
    return "worth the wait"


@server.tool()
async def announce(ctx: Context) -> str:
    """Speaks unasked, closes the stream for that, and speaks again."""
    await ctx.session.send_tool_list_changed()
    await asyncio.sleep(0.1)
    await ctx.close_standalone_sse_stream()
    await ctx.session.send_prompt_list_changed()
    await asyncio.sleep(0.5)
    return "announced"


import uvicorn

uvicorn.run(app(), host="127.0.0.1", port=port, log_level="warning")
