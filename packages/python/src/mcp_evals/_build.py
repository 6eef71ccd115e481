"""Functions that make evals from Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._types import Eval

Messages = str | Sequence[Mapping[str, Any]]


def text(value: str) -> dict[str, Any]:
    """A content block with text."""
    return {"type": "text", "text": value}


def execution(
    id: str,
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    content: str | Sequence[Any] | None = None,
    rubric: str | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Eval:
    """An eval that calls a tool.

    It compares the content of the result with `content` (a string means one text block), or has a
    model judge the result by `rubric`.
    """
    given = {"type": "execution", "toolName": tool, "arguments": dict(arguments or {})}
    if content is None:
        expected: dict[str, Any] = {}
    else:
        expected = {"content": [text(content)] if isinstance(content, str) else list(content)}
    return _eval(id, name, description, given, expected, rubric)


def invocation(
    id: str,
    messages: Messages,
    *,
    tool: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    rubric: str | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Eval:
    """An eval of the calls that a model makes for a prompt. It calls no tool."""
    given = {"type": "invocation", "messages": _messages(messages)}
    expected: dict[str, Any] = {}
    if tool is not None:
        expected["toolName"] = tool
    if arguments is not None:
        expected["arguments"] = dict(arguments)
    return _eval(id, name, description, given, expected, rubric)


def scenario(
    id: str,
    messages: Messages,
    *,
    rubric: str,
    max_turns: int | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Eval:
    """An eval in which a model works with the server's tools, and a judge reads the transcript."""
    given: dict[str, Any] = {"type": "scenario", "messages": _messages(messages)}
    if max_turns is not None:
        given["maxTurns"] = max_turns
    return _eval(id, name, description, given, {}, rubric)


def _messages(messages: Messages) -> list[Any]:
    if isinstance(messages, str):
        return [{"role": "user", "content": text(messages)}]
    return list(messages)


def _eval(
    id: str,
    name: str | None,
    description: str | None,
    given: dict[str, Any],
    exact: dict[str, Any],
    rubric: str | None,
) -> Eval:
    if rubric is not None and exact:
        raise ValueError(f"eval `{id}` has a rubric and an exact expectation; use one of them")
    if rubric is None:
        expected = {"type": "exact-match", **exact}
    else:
        expected = {"type": "llm-as-judge", "rubric": rubric}
    made: Eval = {
        "id": id,
        "name": name if name is not None else id,
        "gradingType": expected["type"],
        "input": given,
        "expected": expected,
    }
    if description is not None:
        made["description"] = description
    return made
