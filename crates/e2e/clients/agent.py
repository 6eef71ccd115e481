"""An agent as people write one on the Python SDK: it reads the `url` of a server and nothing else, calls a tool
without listing any, connects only when it needs a server, and needs a variable of its user's.

`agent.py CONFIG… PROMPT` is a command; `agent.py acp` speaks the Agent Client Protocol. What it does is in the prompt:
`use SERVER` calls `echo` there, `greet SERVER` does so with the user's greeting, anything else is answered without a
call."""

import asyncio
import json
import os
import stat
import sys

import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def echo(url, text):
    async with Client(streamable_http_client(url)) as client:
        params = types.CallToolRequestParams(name="echo", arguments={"text": text})
        result = await client.session.send_request(types.CallToolRequest(params=params), types.CallToolResult)
        return result.content[0].text


async def work(prompt, urls, allowed=lambda: True):
    word, _, server = prompt.partition(" ")
    if word not in ("use", "greet"):
        return "no server was needed"
    text = os.environ["AGENT_GREETING"] if word == "greet" else "hello"
    if not allowed():
        return "it was not allowed"
    return f"echo said {await echo(urls[server], text)}, token {os.environ.get('AGENT_TOKEN')}"


def command(files, prompt):
    urls = {}
    for file in files:
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600, "others can read the file"
        with open(file) as opened:
            urls.update({name: server["url"] for name, server in json.load(opened)["mcpServers"].items()})
    print(asyncio.run(work(prompt, urls)))


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def allowed():
    call = {"toolCallId": "1", "title": "echo", "kind": "other"}
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"optionId": "n", "name": "No", "kind": "reject_once"}]
    send(id="ask", method="session/request_permission", params={"sessionId": "s", "toolCall": call, "options": options})
    return json.loads(sys.stdin.readline())["result"]["outcome"].get("optionId") == "y"


def acp():
    urls = {}
    while line := sys.stdin.readline():
        message = json.loads(line)
        method, params = message.get("method"), message.get("params")
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"http": True}},
                      "agentInfo": {"name": "agent.py", "version": "1.2.3"}}
        elif method == "session/new":
            urls = {server["name"]: server["url"] for server in params["mcpServers"]}
            result = {"sessionId": "s"}
        else:
            text = asyncio.run(work(params["prompt"][0]["text"], urls, allowed))
            update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
            send(method="session/update", params={"sessionId": "s", "update": update})
            result = {"stopReason": "end_turn"}
        send(id=message["id"], result=result)


if sys.argv[1] == "acp":
    acp()
else:
    command(sys.argv[1:-1], sys.argv[-1])
