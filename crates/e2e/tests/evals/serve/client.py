"""The Python SDK 2.x, unchanged: tells what it sees of a server, which is a URL or a command."""

import asyncio
import json
import os
import sys
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


class Anything(types.Result):
    model_config = {"extra": "allow"}


async def main() -> None:
    first, *rest = sys.argv[1:]
    if first.startswith("http"):
        target: Any = streamable_http_client(first)
    else:
        target = StdioServerParameters(command=first, args=rest, env=dict(os.environ))
    async with Client(target, mode="auto") as client:
        request = types.Request[Any, Any](method="evals/list", params={})
        evals = await client.session.send_request(request, Anything)
        tools = await client.list_tools()
        capabilities = client.server_capabilities.model_dump(mode="json", by_alias=True, exclude_none=True)
        ids = [each["id"] for each in evals.model_dump()["evals"]]
        print(json.dumps({"capabilities": capabilities, "evals": ids, "tools": [tool.name for tool in tools.tools]}))


asyncio.run(main())
