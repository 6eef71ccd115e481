"""The adapter for servers on mcp 2.x: both protocol eras.

The SDK leaves out capabilities that a protocol version does not know, so that a middleware adds
them to the result. The key of `subscriptions/listen` is added to what the SDK's handler acknowledges.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY, InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import (
    RequestParams,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsListenRequestParams,
)
from pydantic import BaseModel, ConfigDict

from ._suite import INVALID_PARAMS, InvalidParams
from ._types import LIST_CHANGED, LISTEN_KEY, METHOD

if TYPE_CHECKING:
    from ._server import Evals

_STATELESS = "2026-07-28"


class _ListParams(RequestParams):
    """Anything: the suite reads the params as they were sent, so that `null` is refused."""

    model_config = ConfigDict(extra="allow")


class _ListChanged(BaseModel):
    method: str = LIST_CHANGED
    params: dict[str, Any] | None = None


class Adapter:
    def __init__(self, server: Any, evals: Evals) -> None:
        self._evals = evals
        # The clients to notify: connections after the handshake, and open subscriptions.
        self._connections: weakref.WeakSet[Any] = weakref.WeakSet()
        self._streams: dict[int, _ListenSession] = {}
        server.middleware.insert(0, self._middleware)
        server.add_request_handler(METHOD, _ListParams, self._list)
        if evals.list_changed:
            entry = server.get_request_handler("subscriptions/listen")
            self._inner_listen = entry.handler if entry else ListenHandler(InMemorySubscriptionBus())
            server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)

    async def _middleware(self, context: Any, call_next: Any) -> Any:
        result = await call_next(context)
        if context.method in ("initialize", "server/discover"):
            if isinstance(result, BaseModel):
                result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
            result = {**result, "capabilities": self._evals.declare(result["capabilities"])}
        elif context.method == "notifications/initialized" and self._evals.list_changed:
            self._connections.add(context.session._connection)
        return result

    async def _list(self, context: Any, _params: _ListParams) -> dict[str, Any]:
        try:
            result = self._evals.suite.answer(context.params)
        except InvalidParams as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        if context.protocol_version >= _STATELESS:
            result.update(ttlMs=0, cacheScope="private")
        return result

    async def _listen(self, context: Any, params: SubscriptionsListenRequestParams) -> Any:
        wanted = (params.notifications.model_extra or {}).get(LISTEN_KEY)
        if wanted is not True:
            return await self._inner_listen(context, params)
        session = _ListenSession(context.session, context.request_id, self._streams)
        try:
            return await self._inner_listen(replace(context, session=session), params)
        finally:
            self._streams.pop(id(session), None)

    async def announce(self) -> None:
        for connection in list(self._connections):
            await connection.notify(LIST_CHANGED, None)
        for session in list(self._streams.values()):
            try:
                await session.announce()
            except Exception:
                # A client that has gone needs no news; its handler is about to end.
                self._streams.pop(id(session), None)


class _ListenSession:
    """The session of a subscription that asked for changed evals."""

    def __init__(self, inner: Any, request_id: Any, streams: dict[int, _ListenSession]) -> None:
        self._inner = inner
        self._request_id = request_id
        self._streams = streams

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        acknowledges = isinstance(notification, SubscriptionsAcknowledgedNotification)
        if acknowledges:
            notification = notification.model_copy(deep=True)
            setattr(notification.params.notifications, LISTEN_KEY, True)
        await self._inner.send_notification(notification, related_request_id=related_request_id)
        if acknowledges:
            # Only now: the acknowledgement is the first message of a subscription.
            self._streams[id(self)] = self

    async def announce(self) -> None:
        params = {"_meta": {SUBSCRIPTION_ID_META_KEY: self._request_id}}
        changed: Any = _ListChanged(params=params)
        await self._inner.send_notification(changed, related_request_id=self._request_id)
