"""The adapter for servers on mcp 1.x, which speaks the handshake era only.

This SDK refuses methods that it does not know before any handler sees them. So the adapter answers
`evals/list` on the server's streams, and passes everything else on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import mcp.types
from mcp.shared.message import SessionMessage

from ._suite import INVALID_PARAMS, InvalidParams
from ._types import LIST_CHANGED, METHOD

# Without its types: this module must also pass a type check beside mcp 2.x.
types: Any = mcp.types

if TYPE_CHECKING:
    from ._server import Evals


class Adapter:
    def __init__(self, server: Any, evals: Evals) -> None:
        self._evals = evals
        # The streams of clients that have finished the handshake.
        self._clients: dict[int, Any] = {}
        self._get_capabilities = server.get_capabilities
        self._run = server.run
        server.get_capabilities = self._capabilities
        server.run = self._run_with_evals

    def _capabilities(self, *args: Any, **kwargs: Any) -> Any:
        capabilities = self._get_capabilities(*args, **kwargs)
        written = capabilities.model_dump(by_alias=True, exclude_none=True)
        return type(capabilities).model_validate(self._evals.declare(written))

    async def _run_with_evals(self, read_stream: Any, write_stream: Any, *args: Any, **kwargs: Any) -> Any:
        reader = _Reader(read_stream, write_stream, self)
        try:
            return await self._run(reader, write_stream, *args, **kwargs)
        finally:
            self._clients.pop(id(write_stream), None)

    async def take(self, message: Any, write_stream: Any) -> bool:
        """Answers a message that is about evals; says whether it was one."""
        root = getattr(getattr(message, "message", None), "root", None)
        if isinstance(root, types.JSONRPCNotification) and root.method == "notifications/initialized":
            self._clients[id(write_stream)] = write_stream
        if not isinstance(root, types.JSONRPCRequest) or root.method != METHOD:
            return False
        answer: Any
        try:
            result = self._evals.suite.answer(root.params)
            answer = types.JSONRPCResponse(jsonrpc="2.0", id=root.id, result=result)
        except InvalidParams as error:
            fault = types.ErrorData(code=INVALID_PARAMS, message=str(error))
            answer = types.JSONRPCError(jsonrpc="2.0", id=root.id, error=fault)
        await write_stream.send(SessionMessage(types.JSONRPCMessage(answer)))
        return True

    async def announce(self) -> None:
        changed = types.JSONRPCNotification(jsonrpc="2.0", method=LIST_CHANGED)
        for key, write_stream in list(self._clients.items()):
            try:
                await write_stream.send(SessionMessage(types.JSONRPCMessage(changed)))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self._clients.pop(key, None)


class _Reader:
    """A stream of messages without those about evals."""

    def __init__(self, inner: Any, write_stream: Any, adapter: Adapter) -> None:
        self._inner = inner
        self._write_stream = write_stream
        self._adapter = adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> _Reader:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *args: Any) -> Any:
        return await self._inner.__aexit__(*args)

    def __aiter__(self) -> _Reader:
        return self

    async def __anext__(self) -> Any:
        while True:
            message = await self._inner.__anext__()
            if not await self._adapter.take(message, self._write_stream):
                return message
