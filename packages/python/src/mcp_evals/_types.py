"""The types of the wire format, and its names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

CAPABILITY = "evals"
EXTENSION = "dev.mcp-proctor/evals"
METHOD = "evals/list"
LIST_CHANGED = "notifications/evals/list_changed"
LISTEN_KEY = "evalsListChanged"

Level = Literal["invocation", "execution", "scenario"]
LEVELS: tuple[str, ...] = ("invocation", "execution", "scenario")


class _EvalOptions(TypedDict, total=False):
    description: str


class Eval(_EvalOptions):
    """One eval as it goes over the wire."""

    id: str
    name: str
    gradingType: Literal["exact-match", "llm-as-judge"]
    input: dict[str, Any]
    expected: dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """A problem of one eval. `path` is a JSON pointer into the eval."""

    index: int
    id: str | None
    path: str
    severity: Literal["error", "warning"]
    text: str

    def __str__(self) -> str:
        name = f"eval `{self.id}`" if self.id is not None else f"eval number {self.index + 1}"
        place = f", `{self.path}`" if self.path else ""
        return f"{name}{place}: {self.text}"


class InvalidEvals(ValueError):
    """Evals that a server must not ship. The text lists all problems."""

    def __init__(self, text: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(text)
        self.findings = list(findings)
