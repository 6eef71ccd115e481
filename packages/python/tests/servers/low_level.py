"""A server on the low-level class of the installed SDK."""

import anyio
import mcp.server.stdio
from mcp.server.lowlevel import Server

from mcp_evals import add_evals, execution

EVALS = [execution("echoes", "echo", {"text": "hello"}, content="hello")]
server = Server("low-level")
add_evals(server, EVALS)


async def main() -> None:
    async with mcp.server.stdio.stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
