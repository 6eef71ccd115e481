"""The answer to `evals/list`: pages, cursors, and the level filter. Knows nothing of an SDK."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ._load import load_evals
from ._types import LEVELS, InvalidEvals
from ._validate import validate

DEFAULT_PAGE_SIZE = 100
INVALID_PARAMS = -32602


class InvalidParams(ValueError):
    """The params of `evals/list` are invalid: the JSON-RPC error -32602."""


class EvalSuite:
    """The validated evals of a server.

    `evals` is a JSON or YAML file, or a list of evals. A cursor names the last eval that was sent,
    by its index and its id, so that a client in the middle of a list misses little when evals change.
    """

    def __init__(
        self,
        evals: str | os.PathLike[str] | Iterable[Mapping[str, Any]],
        *,
        page_size: int = DEFAULT_PAGE_SIZE,
    ) -> None:
        if page_size < 1:
            raise ValueError("`page_size` must be at least 1")
        if isinstance(evals, (str, os.PathLike)):
            source = f"`{os.fspath(evals)}`: "
            items = load_evals(evals)
        else:
            source = ""
            items = [dict(item) if isinstance(item, Mapping) else item for item in evals]
        if not items:
            raise InvalidEvals(f"{source}the list of evals is empty")
        findings = validate(items)
        errors = [finding for finding in findings if finding.severity == "error"]
        if errors:
            lines = "\n".join(f"  {finding}" for finding in errors)
            raise InvalidEvals(f"{source}invalid evals:\n{lines}", findings)
        self.evals: list[dict[str, Any]] = items
        self.warnings = findings
        self.page_size = page_size

    def answer(self, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """The result of `evals/list` for the params of a request."""
        params = params or {}
        level = params.get("level")
        if "level" in params and level not in LEVELS:
            raise InvalidParams("`level` must be `invocation`, `execution` or `scenario`")
        start = self._start(params["cursor"]) if "cursor" in params else 0
        wanted = [
            (index, item)
            for index, item in enumerate(self.evals)
            if index >= start and level in (None, item["input"]["type"])
        ]
        page = wanted[: self.page_size]
        result: dict[str, Any] = {"evals": [item for _, item in page]}
        if len(wanted) > len(page):
            index, item = page[-1]
            result["nextCursor"] = f"{index:x}-{_mark(item['id'])}"
        return result

    def _start(self, cursor: Any) -> int:
        if cursor == "":
            return 0
        parts = re.fullmatch("([0-9a-f]{1,15})-([0-9a-f]{16})", cursor) if isinstance(cursor, str) else None
        if parts is None:
            raise InvalidParams(f"unknown cursor {cursor!r}")
        place, mark = int(parts[1], 16), parts[2]
        if place < len(self.evals) and _mark(self.evals[place]["id"]) == mark:
            return place + 1
        for index, item in enumerate(self.evals):
            if _mark(item["id"]) == mark:
                return index + 1
        return min(place, len(self.evals))


def _mark(id: str) -> str:
    """A short form of an id of any length: its 64-bit FNV-1a hash."""
    value = 0xCBF29CE484222325
    for byte in id.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"
