"""Stands in for a server: it lists the tools of a file, and says "ok" to every call."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    TOOLS = json.load(file)["tools"]


def answer(method):
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "standin", "version": "1"},
        }
    return {
        "tools/list": {"tools": TOOLS},
        "resources/list": {"resources": []},
        "resources/templates/list": {"resourceTemplates": []},
        "prompts/list": {"prompts": []},
        "tools/call": {"content": [{"type": "text", "text": "ok"}]},
        "ping": {},
    }.get(method)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    result = answer(message["method"])
    if result is None:
        reply["error"] = {"code": -32601, "message": "method not found"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
