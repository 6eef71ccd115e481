"""The Python SDK 2.x, unchanged, in the session that `session.mjs` has. It asks for the stateless era first if it is
told `"mode": "auto"`."""

import asyncio
import json
import os
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from pydantic import BaseModel, ValidationError


def line(**said: Any) -> None:
    print(json.dumps(said), flush=True)


async def tell(step: str, act: Any) -> None:
    """What was done, and what came of it."""
    try:
        result = await act
    except MCPError as error:
        line(step=step, error={"code": error.error.code, "message": error.error.message})
    except ValidationError:
        line(step=step, error="not valid")
    else:
        line(step=step, result=plain(result))


def plain(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True) if isinstance(value, BaseModel) else value


async def sample(_context: Any, params: Any) -> types.CreateMessageResult:
    line(asked="sampling/createMessage", params={**plain(params), "_meta": None})
    content = types.TextContent(type="text", text="a model's answer")
    return types.CreateMessageResult(role="assistant", content=content, model="scripted", stop_reason="endTurn")


async def elicit(_context: Any, params: Any) -> types.ElicitResult:
    line(asked="elicitation/create", params={**plain(params), "_meta": None})
    return types.ElicitResult(action="accept", content={"name": "Ada", "check": True, "integer": 7})


class Anything(types.Result):
    model_config = {"extra": "allow"}


async def unknown(client: Client) -> Any:
    request = types.Request[Any, Any](method="proctor/unknown", params={"deep": {"a": [1, 2.5, None]}})
    return await client.session.send_request(request, Anything)


async def server(client: Client) -> Any:
    return {
        "version": client.protocol_version,
        "info": plain(client.server_info),
        "capabilities": plain(client.server_capabilities),
        "instructions": client.instructions,
    }


async def begin(client: Client) -> None:
    await tell("server", server(client))
    await tell("tools/list", client.list_tools())


async def end(client: Client) -> None:
    await tell("wrong tool", client.call_tool("no-such-tool", {}))
    await tell("unknown method", unknown(client))


async def progress(client: Client) -> Any:
    steps: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        # The last one may come with the answer, and be late.
        if progress != total:
            steps.append([progress, total, message])

    arguments = {"duration": 0.3, "steps": 3}
    result = await client.call_tool("trigger-long-running-operation", arguments, progress_callback=on_progress)
    return {"result": plain(result), "steps": steps}


async def cancelled(client: Client) -> str:
    with anyio.CancelScope() as scope:

        async def on_progress(*_: Any) -> None:
            scope.cancel()

        arguments = {"duration": 0.3, "steps": 3}
        await client.call_tool("trigger-long-running-operation", arguments, progress_callback=on_progress)
        return "answered"
    return "cancelled"


async def everything(client: Client, _task: Any) -> None:
    await begin(client)
    await tell("echo", client.call_tool("echo", {"message": "grüße, 世界 \U0001f44b \x01"}))
    await tell("sum", client.call_tool("get-sum", {"a": 0.1, "b": -12345678901}))
    await tell("structured", client.call_tool("get-structured-content", {"location": "New York"}))
    await tell("wrong arguments", client.call_tool("get-sum", {"a": "one"}))
    # The server goes on with what was cancelled for a while, but not longer than with what comes next.
    await tell("cancel", cancelled(client))
    await tell("progress", progress(client))
    await tell("sampling", client.call_tool("trigger-sampling-request", {"prompt": "say something", "maxTokens": 9}))
    await tell("elicitation", client.call_tool("trigger-elicitation-request", {}))
    await tell("resources/list", client.list_resources())
    await tell("resources/templates/list", client.list_resource_templates())
    await tell("resources/read", client.read_resource("demo://resource/static/document/features.md"))
    await tell("prompts/list", client.list_prompts())
    await tell("prompts/get", client.get_prompt("args-prompt", {"city": "Bonn"}))
    reference = types.PromptReference(name="completable-prompt")
    await tell("completion", client.complete(reference, {"name": "department", "value": "E"}))
    await tell("ping", client.send_ping())
    await tell("unknown resource", client.read_resource("demo://nowhere"))
    await tell("unknown prompt", client.get_prompt("no-such-prompt"))
    await end(client)


async def git(client: Client, task: Any) -> None:
    repository = task["repository"]
    await begin(client)
    await tell("status", client.call_tool("git_status", {"repo_path": repository}))
    await tell("log", client.call_tool("git_log", {"repo_path": repository, "max_count": 2}))
    await tell("show", client.call_tool("git_show", {"repo_path": repository, "revision": "HEAD"}))
    await tell("no repository", client.call_tool("git_status", {"repo_path": "/"}))
    await tell("wrong arguments", client.call_tool("git_log", {"repo_path": 7}))
    await end(client)


async def fixture(client: Client, _task: Any) -> None:
    await begin(client)
    await tell("echo", client.call_tool("echo", {"text": "hello"}))
    await tell("one round", client.call_tool("ask", {"kind": "elicitation"}))
    await tell("three rounds", client.call_tool("ask", {"kind": "sampling", "rounds": 3}))
    await tell("resources/read", client.read_resource("fixture://text"))
    await tell("prompts/get", client.get_prompt("greet", {"who": "you"}))
    await end(client)


SESSIONS = {"everything": everything, "git": git, "fixture": fixture}


def transport(task: Any) -> Any:
    if command := task.get("command"):
        return StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    headers = task.get("headers") or {}
    if task.get("sse"):
        return sse_client(task["url"], headers=headers)
    return streamable_http_client(task["url"], http_client=create_mcp_http_client(headers=headers))


async def main() -> None:
    task = json.loads(sys.argv[1])
    client = Client(
        transport(task),
        mode=task.get("mode", "legacy"),
        sampling_callback=sample,
        elicitation_callback=elicit,
        client_info=types.Implementation(name="python", version="1"),
    )
    async with client:
        await SESSIONS[task["session"]](client, task)


asyncio.run(main())
