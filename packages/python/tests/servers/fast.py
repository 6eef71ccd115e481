"""A server on the package fastmcp: `fast.py [--changing]`."""

import sys

from fastmcp import FastMCP

from mcp_evals import add_evals, execution

server = FastMCP("fast")
evals = add_evals(
    server,
    [execution("echoes", "echo", {"text": "hello"}, content="hello")],
    list_changed="--changing" in sys.argv,
)


@server.tool(output_schema=None)
def echo(text: str) -> str:
    """Repeats a text."""
    return text


@server.tool(output_schema=None)
async def change() -> str:
    """Ships other evals."""
    await evals.replace([execution("changed", "echo", {"text": "x"}, content="x")])
    return "changed"


server.run(show_banner=False)
