from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

SERVERS = Path(__file__).parent / "servers"
HAS_FASTMCP = find_spec("fastmcp") is not None
IS_V1 = version("mcp").startswith("1.")
ERAS = ["handshake"] if IS_V1 else ["handshake", "stateless"]
# Only a hang takes this long.
HANG = 300.0


class Client:
    """Speaks JSON-RPC with a server, line by line."""

    def __init__(self, era: str, *command: str) -> None:
        self.era = era
        self.notifications: list[dict[str, Any]] = []
        self._id = 0
        self._process = subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._watchdog = threading.Timer(HANG, self._process.kill)
        self._watchdog.start()

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        self._watchdog.cancel()

    def send(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, **more}
        if self.era == "stateless":
            prefix = "io.modelcontextprotocol"
            meta = {
                f"{prefix}/protocolVersion": "2026-07-28",
                f"{prefix}/clientCapabilities": {},
                f"{prefix}/clientInfo": {"name": "tests", "version": "1"},
            }
            params = {**(params or {}), "_meta": meta}
        if params is not None:
            message["params"] = params
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the server closed its output"
        message: dict[str, Any] = json.loads(line)
        if "id" not in message:
            self.notifications.append(message)
        return message

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        id = self.start(method, params)
        while True:
            message = self.receive()
            if message.get("id") == id:
                return message

    def start(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._id += 1
        self.send(method, params, id=self._id)
        return self._id

    def wait_for(self, method: str) -> dict[str, Any]:
        while True:
            for message in self.notifications:
                if message["method"] == method:
                    return message
            self.receive()

    def open(self) -> dict[str, Any]:
        """The server's capabilities."""
        if self.era == "stateless":
            result = self.request("server/discover")["result"]
        else:
            params = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "tests", "version": "1"},
            }
            result = self.request("initialize", params)["result"]
            self.send("notifications/initialized")
        capabilities: dict[str, Any] = result["capabilities"]
        return capabilities


@pytest.fixture(params=ERAS)
def connect(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Starts a server of `servers/`, once for each era that the SDK speaks."""
    clients: list[Client] = []

    def start(name: str, *args: str) -> Client:
        clients.append(Client(request.param, str(SERVERS / name), *args))
        return clients[-1]

    yield start
    for client in clients:
        client.close()
