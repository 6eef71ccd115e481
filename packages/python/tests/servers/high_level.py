"""A server on the high-level class of the installed SDK: `high_level.py [--changing] [--http PORT]`."""

import sys

from mcp_evals import add_evals, execution, invocation, scenario

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server

changing = "--changing" in sys.argv
http = int(sys.argv[sys.argv.index("--http") + 1]) if "--http" in sys.argv else None
is_v1 = Server.__name__ == "FastMCP"
server = Server("small", port=http) if is_v1 and http else Server("small")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Repeats a text."""
    return text


FIRST = [
    execution("echoes", "echo", {"text": "hello"}, content="hello"),
    invocation("is-chosen", "Repeat: hello", tool="echo"),
    scenario("talks", "Say hello", rubric="It says hello."),
]
evals = add_evals(server, FIRST, page_size=1, list_changed=changing)


@server.tool(structured_output=False)
async def change() -> str:
    """Ships other evals."""
    await evals.replace([execution("changed", "echo", {"text": "x"}, content="x")])
    return "changed"


if http is None:
    server.run()
elif is_v1:
    server.run("streamable-http")
else:
    server.run("streamable-http", port=http)
