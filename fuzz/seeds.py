"""Writes seeds for a fuzz target into a folder, from the repository's own files.
Usage: fuzz/seeds.py TARGET FOLDER
"""
import json, pathlib, sys

root = pathlib.Path(__file__).resolve().parent.parent
target, folder = sys.argv[1], pathlib.Path(sys.argv[2])


def files(*patterns, largest=12_000):
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            if path.is_file() and path.stat().st_size <= largest and "node_modules" not in path.parts:
                yield path


def put(name, content):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def suites():
    """Each file of an example as the first of a bundle, with the files around it."""
    for path in files("examples/*/*.yaml", "examples/*/tasks/**/*.yaml", "examples/*/*.json"):
        base = root / "examples" / path.relative_to(root / "examples").parts[0]
        others = [other for other in sorted(base.rglob("*.yaml")) + sorted(base.rglob("*.json")) if other != path][:11]
        bundle = "".join(f"=== {file.relative_to(base)}\n{file.read_text()}\n" for file in [path, *others] if file.stat().st_size < 8000)
        put(f"{base.name}-{path.name}", bundle[:16_000])
        put(f"{base.name}-{path.name}-alone", f"=== {path.relative_to(base)}\n{path.read_text()}")


def messages():
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "hi"}], "isError": False}}
    yield from map(json.dumps, [call, answer, [call, answer], {**call, "method": "resources/read", "params": {"uri": "a://b"}},
                                {**call, "method": "prompts/get"}, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
                                {"jsonrpc": "2.0", "id": "x", "error": {"code": -32601, "message": "no"}}])
    yield '{"method":"tools/call","method":"ping","Method":"tools/call","id":1}'
    yield '{"id":1,"method":"tools\\/call","params":{"name":"a","name":"b"}}'


def records():
    return files("crates/record/tests/records/**/*.jsonl", largest=40_000)


if target == "suite":
    suites()
elif target == "frames":
    for number, message in enumerate(messages()):
        put(f"{number}", b"\xff\x07" + f"{message}\n{message}\r\n\nhalf".encode())
        put(f"{number}-alone", b"\xff\x01" + message.encode())
        put(f"{number}-short", b"\x04\x01" + f"{message}\n".encode())
elif target == "tolerant":
    for number, message in enumerate(messages()):
        put(f"{number}", message)
        put(f"{number}-broken", message[:-1])
        put(f"{number}-utf16", message.encode("utf-16"))
elif target == "events":
    for path in records():
        put(f"{path.parent.parent.name}-{path.name}", path.read_bytes()[:16_000])
        for number, line in enumerate(path.read_bytes().splitlines(True)):
            put(f"{path.parent.parent.name}-{path.name}-{number}", line)
elif target == "fold":
    for path in records():
        lines = [event["event"] for event in map(json.loads, path.read_text().splitlines()) if "event" in event]
        put(f"{path.parent.parent.name}-{path.name}", "\n".join(map(json.dumps, lines))[:16_000])
    session = "".join(f">1{message}\n<1{message}\n" for message in messages())
    for opening in ("o1", "o5l", "o1s"):
        put(f"session-{opening}", f"{opening}\n{session}c1\n")
elif target == "matchers":
    values = ["{}", "null", '{"a":1,"b":[1,"x",null]}', '[1,2,3]', '"text"', "1e400"]
    operators = ['{"$exact":{"a":1}}', '{"$contains":"x"}', '{"$match":"^a.*b$"}', '{"$oneOf":[1,"a"]}', '{"$type":"integer"}',
                 '{"a":{"$exists":false}}', '{"$approx":{"value":1.5,"tolerance":0.1}}', '{"$min":0,"$max":3}', '{"$unordered":[1,{"$type":"string"}]}',
                 '{"$schema":{"type":"object","required":["a"]}}', '{"$not":{"a":1}}', '{"a":{"$match":"/x/i"},"b":[1,{"$not":2}]}']
    for number, matcher in enumerate(operators + values):
        for other, value in enumerate(values + ['{"a":1}', "12345678901234567890123"]):
            put(f"{number}-{other}", f"{matcher}\n{value}")
elif target == "sse":
    streams = ["data: a\n\n", "event: message\nid: 1\ndata: {\"a\":1}\n\ndata\n\n", ":comment\r\ndata:x\r\ndata: y\r\n\r\n",
               "\ufeffdata: b\r\rretry: 10\nid\n\n", "data: a\nid: \0\ndata:  two\n\n"]
    for number, stream in enumerate(streams):
        put(f"{number}", b"\x05\xff" + stream.encode())
        put(f"{number}-cut", b"\x63\x02" + stream.encode())
elif target == "redaction":
    for number, secret in enumerate(["hunter2-hunter2", "p@ss w0rd/+=\"x", "пароль-секрет", "\\u0041bcdefgh", "abc%20defgh%"]):
        text = 'a \x01 b \x02c\x03 {"k":"\x05","l":["\x06"]} \x04 Authorization: Bearer abcdef1234567890 sk-abcdefghijklmnop0123'
        put(f"{number}", f"{secret}\n{text}")
        put(f"{number}-json", f"{secret}\n" + '{"a":"\x02","b":"\x05 \x04","c":12345678}')
elif target == "templates":
    texts = ["{agent.output} {steps.a.b} {env.HOME} {{x}} {row.name}", "{{ .Prompt }}", "{{- if .AllowedToolArgs -}} {{ .AllowedToolArgs | printf \"%q\" }} {{ else }} x {{ end }}",
             "{{ with .Prompt }}{{ . | html | js | urlquery }}{{ end }}", "{{ printf \"%s %v %d\" .Prompt true 3 }}", "{{ if and (eq .Prompt \"a\") (gt (len .Prompt) 3) }}x{{end}}",
             "{{ .File }} {{ .URL }} {{ .ServerName }}__{{ .ToolName }}"]
    for number, text in enumerate(texts):
        put(f"{number}", text)
    for path in files("examples/**/agent*.yaml", "examples/**/agents/*.yaml"):
        put(f"file-{path.stem}", path.read_text())
elif target == "results":
    for path in files("crates/core/tests/results/*.json", largest=60_000):
        put(path.name, path.read_bytes())
        value = json.loads(path.read_text())
        for number, entry in enumerate(value["results"] if isinstance(value, dict) else value):
            put(f"{path.stem}-{number}", json.dumps([entry]))
            small = {key: found for key, found in entry.items() if key in ("taskName", "taskPassed", "allAssertionsPassed", "assertionResults", "timedOut", "runIndex", "totalRuns")}
            put(f"{path.stem}-{number}-small", json.dumps({"results": [small, small]}))
