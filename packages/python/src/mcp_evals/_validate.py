"""Validates a list of evals, and reports all problems at once.

A server's author can mend everything, so that unknown types, and unknown keys where they change
what is tested, are errors here; clients skip such evals with a notice.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._types import LEVELS, Finding

_INPUT_KEYS: dict[str, tuple[str, ...]] = {
    "invocation": ("type", "messages"),
    "execution": ("type", "toolName", "arguments"),
    "scenario": ("type", "messages", "maxTurns"),
}
_EXPECTED_KEYS: dict[str, tuple[str, ...]] = {
    "exact-match": ("type", "toolName", "arguments", "content"),
    "llm-as-judge": ("type", "rubric"),
}
_EVAL_KEYS = ("id", "name", "description", "gradingType", "input", "expected")
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "object": (dict,),
    "list": (list,),
    "boolean": (bool,),
}
# The fields of a content block, by its type.
_BLOCKS: dict[str, dict[str, str]] = {
    "text": {"text": "string"},
    "image": {"data": "string", "mimeType": "string"},
    "audio": {"data": "string", "mimeType": "string"},
    "tool_use": {"id": "string", "name": "string", "input": "object"},
    "tool_result": {"toolUseId": "string", "content": "list"},
}


def validate(evals: Sequence[Any]) -> list[Finding]:
    """All problems of a list of evals. An eval with an error must not be shipped."""
    times = Counter(e["id"] for e in evals if isinstance(e, dict) and isinstance(e.get("id"), str))
    findings: list[Finding] = []
    for index, value in enumerate(evals):
        found = _OneEval(index, value)
        if found.id is not None and times[found.id] > 1:
            found.error("/id", f"{times[found.id]} evals have this id")
        found.check()
        findings += found.findings
    return findings


class _OneEval:
    def __init__(self, index: int, value: Any) -> None:
        self.index = index
        self.value = value
        id = value.get("id") if isinstance(value, dict) else None
        self.id = id if isinstance(id, str) else None
        self.findings: list[Finding] = []

    def error(self, path: str, text: str) -> None:
        self.findings.append(Finding(self.index, self.id, path, "error", text))

    def warn(self, path: str, text: str) -> None:
        self.findings.append(Finding(self.index, self.id, path, "warning", text))

    def check(self) -> None:
        if not isinstance(self.value, dict):
            return self.error("", "must be an object")
        before = len(self.findings)
        self._only_json(self.value, "")
        if len(self.findings) > before:
            return None
        self._field(self.value, "id", "string")
        self._field(self.value, "name", "string")
        self._field(self.value, "description", "string", required=False)
        self._unknown(self.value, _EVAL_KEYS, "", self.warn)
        if self.id is not None and not self.id.strip():
            self.error("/id", "is empty, so the eval can't be selected")
        if "grading" in self.value:
            self.error("/grading", "unknown key `grading`, which may change what is tested")
        level = self._input(self._field(self.value, "input", "object"))
        grading = self._field(self.value, "gradingType", "string")
        if grading is not None and grading not in _EXPECTED_KEYS:
            self.error("/gradingType", f"unknown grading type `{grading}`")
        self._expected(self._field(self.value, "expected", "object"), grading, level)
        return None

    def _only_json(self, value: Any, path: str) -> None:
        """YAML has dates and NaN, and Python objects anything: they can't go over the wire."""
        if isinstance(value, dict):
            for key, member in value.items():
                if isinstance(key, str):
                    self._only_json(member, f"{path}/{key.replace('~', '~0').replace('/', '~1')}")
                else:
                    self.error(path, f"has the key `{key!r}`, which is not a string")
        elif isinstance(value, list):
            for index, member in enumerate(value):
                self._only_json(member, f"{path}/{index}")
        elif isinstance(value, float) and not math.isfinite(value):
            self.error(path, f"is `{value}`, which JSON does not have")
        elif value is not None and not isinstance(value, (str, int, float, bool)):
            self.error(path, f"is a `{type(value).__name__}`, which JSON does not have")

    def _field(
        self, where: dict[str, Any], key: str, kind: str, path: str = "", required: bool = True
    ) -> Any:
        if key not in where:
            if required:
                self.error(f"{path}/{key}", "is missing")
            return None
        if not isinstance(where[key], _KINDS[kind]):
            article = "an" if kind == "object" else "a"
            self.error(f"{path}/{key}", f"must be {article} {kind}")
            return None
        return where[key]

    def _unknown(self, where: Mapping[str, Any], known: Iterable[str], path: str, tell: Any) -> None:
        known = list(known)
        for key in where:
            if key in known or key in ("_meta", "grading"):
                continue
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            tell(f"{path}/{key}", f"unknown key `{key}`{hint}")

    def _input(self, given: dict[str, Any] | None) -> str | None:
        if given is None:
            return None
        level: str | None = self._field(given, "type", "string", "/input")
        if level is None:
            return None
        if level not in LEVELS:
            self.error("/input/type", f"unknown input type `{level}`")
            return None
        self._unknown(given, _INPUT_KEYS[level], "/input", self.warn)
        if level == "execution":
            self._field(given, "toolName", "string", "/input")
            self._field(given, "arguments", "object", "/input")
        else:
            self._messages(self._field(given, "messages", "list", "/input"))
        if level == "scenario" and "maxTurns" in given:
            turns = given["maxTurns"]
            whole = isinstance(turns, (int, float)) and not isinstance(turns, bool)
            if not whole or turns < 1 or turns != int(turns):
                self.error("/input/maxTurns", f"must be a whole number of at least 1, but is `{turns}`")
        return level

    def _messages(self, messages: list[Any] | None) -> None:
        if messages is None:
            return
        if not messages:
            self.error("/input/messages", "is empty, so there is no conversation to start from")
        for index, message in enumerate(messages):
            path = f"/input/messages/{index}"
            if not isinstance(message, dict):
                self.error(path, "must be an object")
                continue
            if message.get("role") not in ("user", "assistant"):
                self.error(f"{path}/role", "must be `user` or `assistant`")
            content = message.get("content")
            for block in content if isinstance(content, list) else [content]:
                self._block(block, f"{path}/content")

    def _block(self, block: Any, path: str) -> None:
        if not isinstance(block, dict):
            return self.error(path, "must be a content block or a list of them")
        kind = block.get("type")
        if not isinstance(kind, str) or kind not in _BLOCKS:
            return self.error(path, f"unknown content type `{kind}`")
        for key, type_name in _BLOCKS[kind].items():
            self._field(block, key, type_name, path)
        if kind == "text" and str(block.get("text")).lstrip().startswith("TODO"):
            self.warn(path, "still says TODO: write what a user would say")
        return None

    def _expected(self, expected: dict[str, Any] | None, grading: str | None, level: str | None) -> None:
        if expected is None:
            return
        kind = self._field(expected, "type", "string", "/expected")
        if kind is None:
            return
        if grading is not None and kind != grading:
            self.error("/expected/type", f"is `{kind}`, but `gradingType` is `{grading}`")
        if kind not in _EXPECTED_KEYS:
            return
        self._unknown(expected, _EXPECTED_KEYS[kind], "/expected", self.error)
        if kind == "llm-as-judge":
            self._rubric(self._field(expected, "rubric", "string", "/expected"))
            return
        self._field(expected, "toolName", "string", "/expected", required=False)
        self._field(expected, "arguments", "object", "/expected", required=False)
        self._exact(expected, level)

    def _rubric(self, rubric: str | None) -> None:
        if rubric is None:
            return
        if not rubric.strip():
            self.error("/expected/rubric", "is empty, so the judge has no criterion")
        elif rubric.lstrip().startswith("TODO"):
            self.warn("/expected/rubric", "still says TODO: write what the judge looks for")

    def _exact(self, expected: dict[str, Any], level: str | None) -> None:
        if level == "scenario":
            self.error(
                "/expected/type", "a scenario can't be graded by `exact-match`: every run is different"
            )
        elif level == "invocation":
            if "toolName" not in expected and "arguments" not in expected:
                self.error(
                    "/expected",
                    "has neither `toolName` nor `arguments`, so any call would pass; "
                    "to forbid calls, use `llm-as-judge`",
                )
            self._no_effect(expected, ("content",), "invocation")
        elif level == "execution":
            if "content" not in expected:
                self.error("/expected", "has no `content`, so any result would pass")
            self._no_effect(expected, ("toolName", "arguments"), "execution")

    def _no_effect(self, expected: dict[str, Any], keys: Iterable[str], level: str) -> None:
        for key in keys:
            if key in expected:
                self.warn(f"/expected/{key}", f"has no effect in an {level} eval")
