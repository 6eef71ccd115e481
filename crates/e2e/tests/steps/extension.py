#!/usr/bin/env python3
"""An extension that does as it is told, for the tests of steps."""
import json, os, sys, time

config = {}
asked = 0
print("a banner", flush=True)
print("on stderr", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, params = message["method"], message.get("params", {})
    def say(**members):
        print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
    def answer(result):
        say(id=message["id"], result=result)
    if method == "initialize":
        config = params.get("config") or {}
        if config.get("mute"):
            sys.exit(5)
        names = ["echo", "fail", "crash", "hang", "flood", "error", "nonsense"]
        operations = {name: {"description": name, "params": {}} for name in names}
        answer({"name": "fixture", "version": "1", "protocolVersion": params["protocolVersion"],
                "operations": operations})
    elif method == "shutdown":
        if "goodbye" in config:
            open(config["goodbye"], "w").write("bye")
        answer({})
        sys.exit(0)
    elif method == "execute":
        asked += 1
        operation = params["operation"]
        say(method="log", params={"level": "info", "message": "doing " + operation, "data": {"n": asked}})
        if operation == "echo":
            answer({"success": True, "message": "done", "outputs": {
                "args": json.dumps(params["args"]), "context": json.dumps(params["context"]),
                "asked": asked, "own": os.environ.get("OWN", ""), "key": os.environ.get("OPENAI_API_KEY", "")}})
        elif operation == "fail":
            answer({"success": False, "error": "the pod is not ready"})
        elif operation == "crash":
            print("about to die", file=sys.stderr, flush=True)
            os._exit(7)
        elif operation == "hang":
            # Says that it has begun, and hangs until it may go on.
            open(params["args"]["begun"], "w").close()
            while not os.path.exists(params["args"]["go"]):
                time.sleep(0.01)
            answer({"success": True})
        elif operation == "flood":
            for n in range(20000):
                say(method="log", params={"level": "debug", "message": "x" * 500})
            sys.stdout.write("y" * 20000000 + "\n")
            answer({"success": True})
        elif operation == "error":
            say(id=message["id"], error={"code": -32000, "message": "not today"})
        elif operation == "nonsense":
            answer(["?"])
