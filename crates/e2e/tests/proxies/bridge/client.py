"""A client of the official SDK for Python, which finds out by itself which era a server speaks."""

import asyncio
import json
import sys

import httpx2
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client

url, headers, what = sys.argv[1:]


async def sample(context, params):
    content = types.TextContent(type="text", text="sampled")
    return types.CreateMessageResult(role="assistant", content=content, model="m")


async def elicit(context, params):
    return types.ElicitResult(action="accept", content={"name": "elicited"})


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///rooted")])


async def main():
    said = {}
    http = httpx2.AsyncClient(headers=json.loads(headers), timeout=30)
    transport = streamable_http_client(url, http_client=http)
    callbacks = {"sampling_callback": sample, "elicitation_callback": elicit, "list_roots_callback": roots}
    async with http, Client(transport, **callbacks) as client:
        said["version"] = client.protocol_version
        said["tools"] = len((await client.list_tools()).tools)

        async def call(name, arguments=None, **more):
            try:
                result = await client.call_tool(name, arguments or {}, **more)
                return " ".join(getattr(one, "text", "") for one in result.content)
            except Exception as error:
                return f"{type(error).__name__}: {error}"

        if what == "everything":
            said["echo"] = await call("echo", {"message": "größe"})
            said["sampling"] = await call("trigger-sampling-request", {"prompt": "hi"})
            said["elicitation"] = await call("trigger-elicitation-request")
            said["roots"] = await call("get-roots-list")
            said["progress"] = []

            async def told(progress, total, message):
                said["progress"].append(progress)

            steps = {"duration": 0.4, "steps": 4}
            await call("trigger-long-running-operation", steps, progress_callback=told)
        if what == "git":
            said["echo"] = await call("git_status", {"repo_path": "."})
        if what == "fixture":
            said["echo"] = await call("echo", {"text": "größe"})
            for kind in ["elicitation", "sampling", "roots"]:
                said[kind] = await call("ask", {"kind": kind, "rounds": 2})
            try:
                async with asyncio.timeout(0.5):
                    await client.call_tool("sleep", {"ms": 60000})
            except TimeoutError:
                said["cancelled"] = "given up"
            said["after"] = await call("echo", {"text": "still there"})
        if what == "dies":
            said["died"] = await call("echo", {"text": "x"})
            said["later"] = await call("echo", {"text": "x"})
    print(json.dumps(said))


asyncio.run(main())
