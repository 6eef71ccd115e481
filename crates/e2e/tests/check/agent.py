"""An agent that is a command: calls `echo` of every server with its prompt, and says what it was asked.

Its arguments: MCP configs with one server each, the prompt, and others that it ignores.
"""
import json, os, subprocess, sys

arguments = sys.argv[1:]
files = []
while os.path.isfile(arguments[0]):
    files.append(arguments.pop(0))
prompt = arguments[0]
for file in files:
    server = next(iter(json.load(open(file))["mcpServers"].values()))
    process = subprocess.Popen([server["command"], *server["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for message in [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
        {"id": 3, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": prompt}}},
    ]:
        process.stdin.write(json.dumps(dict(message, jsonrpc="2.0")) + "\n")
        process.stdin.flush()
        if "id" in message: process.stdout.readline()
    process.stdin.close()
    process.wait()
print("it says " + prompt + os.environ.get("MY_SETTING", ""))
