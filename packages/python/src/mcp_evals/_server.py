"""Adds evals to a server: finds out which SDK it is built on, and hands over to its adapter."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ._suite import DEFAULT_PAGE_SIZE, EvalSuite
from ._types import CAPABILITY, EXTENSION

Source = str | os.PathLike[str] | Iterable[Mapping[str, Any]]


class Announcer(Protocol):
    """Tells clients that the list changed."""

    async def announce(self) -> None: ...


class Evals:
    """The evals of a running server. Returned by `add_evals`."""

    def __init__(self, suite: EvalSuite, list_changed: bool) -> None:
        self.suite = suite
        self.list_changed = list_changed
        self._announcer: Announcer | None = None

    @property
    def capability(self) -> dict[str, Any]:
        """The object that the server declares."""
        return {"listChanged": True} if self.list_changed else {}

    def declare(self, capabilities: Mapping[str, Any]) -> dict[str, Any]:
        """The capabilities with evals, in all places that the specification names."""
        declared = dict(capabilities)
        declared[CAPABILITY] = self.capability
        declared["experimental"] = {**(declared.get("experimental") or {}), CAPABILITY: self.capability}
        declared["extensions"] = {**(declared.get("extensions") or {}), EXTENSION: self.capability}
        return declared

    async def replace(self, evals: Source) -> None:
        """Ships other evals, and notifies clients. Call it on the server's event loop.

        Invalid evals raise `InvalidEvals`, and the old list stays.
        """
        if not self.list_changed or self._announcer is None:
            raise RuntimeError("evals can be replaced only with `add_evals(…, list_changed=True)`")
        self.suite = EvalSuite(evals, page_size=self.suite.page_size)
        await self._announcer.announce()


def add_evals(
    server: Any,
    evals: Source,
    *,
    list_changed: bool = False,
    page_size: int = DEFAULT_PAGE_SIZE,
) -> Evals:
    """Ships `evals` (a JSON or YAML file, or a list) with a server.

    `server` is an `MCPServer` or `FastMCP` of the official SDK, a `FastMCP` of the package fastmcp,
    or a low-level `Server`. Call it before the server runs. Invalid evals raise `InvalidEvals`, with all
    problems at once. With `list_changed`, evals can be replaced while the server runs.
    """
    added = Evals(EvalSuite(evals, page_size=page_size), list_changed)
    low_level = server
    for attribute in ("_lowlevel_server", "_mcp_server"):
        low_level = getattr(low_level, attribute, low_level)
    if getattr(low_level, "_mcp_evals", None) is not None:
        raise ValueError("the server has evals already; call `add_evals` once")
    if hasattr(low_level, "middleware") and hasattr(low_level, "add_request_handler"):
        from ._sdk2 import Adapter as Adapter2

        added._announcer = Adapter2(low_level, added)
    elif hasattr(low_level, "request_handlers") and hasattr(low_level, "get_capabilities"):
        from ._sdk1 import Adapter as Adapter1

        added._announcer = Adapter1(low_level, added)
    else:
        raise TypeError(f"`{type(server).__name__}` is not a server of the `mcp` or `fastmcp` package")
    low_level._mcp_evals = added
    return added
