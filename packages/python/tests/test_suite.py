"""Loading, validating and paging, without a server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcp_evals import EvalSuite, InvalidEvals, InvalidParams, execution, invocation, scenario, validate
from mcp_evals.testing import find_proctor

GOOD = execution("good", "echo", {"text": "x"}, content="x")
TALK = {"role": "user", "content": {"type": "text", "text": "hello"}}


def with_(path: str, value: Any = ..., base: Any = GOOD) -> Any:
    """A copy of an eval with one value replaced, or removed."""
    copy = json.loads(json.dumps(base))
    *folders, last = path.split("/")
    where = copy
    for folder in folders:
        where = where[folder]
    if value is ...:
        del where[last]
    else:
        where[last] = value
    return copy


INVOCATION: Any = invocation("call", "hello", tool="echo")
SCENARIO: Any = scenario("talk", "hello", rubric="It greets.")

INVALID = {
    "no name": (with_("name"), "/name", "is missing"),
    "name is a number": (with_("name", 1), "/name", "must be a string"),
    "no input": (with_("input"), "/input", "is missing"),
    "unknown level": (with_("input/type", "smoke"), "/input/type", "unknown input type `smoke`"),
    "unknown grading": (with_("gradingType", "vibes"), "/gradingType", "unknown grading type"),
    "types differ": (with_("gradingType", "llm-as-judge"), "/expected/type", "but `gradingType` is"),
    "arguments are a list": (with_("input/arguments", []), "/input/arguments", "must be an object"),
    "can't fail": (with_("expected/content"), "/expected", "any result would pass"),
    "any call": (with_("expected/toolName", base=INVOCATION), "/expected", "any call would pass"),
    "no messages": (with_("input/messages", [], INVOCATION), "/input/messages", "is empty"),
    "message is a text": (with_("input/messages", ["x"], INVOCATION), "/input/messages/0", "an object"),
    "role": (
        with_("input/messages", [{**TALK, "role": "system"}], INVOCATION),
        "/input/messages/0/role",
        "must be `user` or `assistant`",
    ),
    "no turns": (with_("input/maxTurns", 0, SCENARIO), "/input/maxTurns", "at least 1"),
    "half a turn": (with_("input/maxTurns", 1.5, SCENARIO), "/input/maxTurns", "whole number"),
    "empty rubric": (with_("expected/rubric", " ", SCENARIO), "/expected/rubric", "is empty"),
    "scenario": (
        with_("expected", {"type": "exact-match"}, with_("gradingType", "exact-match", SCENARIO)),
        "/expected/type",
        "every run is different",
    ),
    "unknown key": (with_("expected/contents", []), "/expected/contents", "did you mean `content`?"),
    "grading": (with_("grading", {"not": True}), "/grading", "may change what is tested"),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_eval_is_refused(name: str) -> None:
    item, path, text = INVALID[name]
    with pytest.raises(InvalidEvals) as caught:
        EvalSuite([item])
    found = [f for f in caught.value.findings if f.severity == "error"]
    assert [f.path for f in found].count(path) == 1
    assert any(f.path == path and text in f.text for f in found)
    assert text in str(caught.value)


def test_proctor_calls_the_same_evals_invalid(tmp_path: Path) -> None:
    """The rules of this package agree with those of the binary."""
    items = []
    for index, (item, _, _) in enumerate(INVALID.values()):
        items.append({**item, "id": f"invalid-{index}"})
    items += [{**GOOD, "id": "valid-1"}, {**INVOCATION, "id": "valid-2"}, {**SCENARIO, "id": "valid-3"}]
    file = tmp_path / "evals.json"
    file.write_text(json.dumps(items))
    command = [find_proctor(), "evals", "validate", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    ours = {finding.id for finding in validate(items) if finding.severity == "error"}
    assert ours == {item["id"] for item in items if item["id"].startswith("invalid")}
    printed = done.stdout + done.stderr
    theirs = {item["id"] for item in items if f"`{item['id']}`" in printed}
    assert done.returncode == 2 and theirs == ours, printed


def test_all_problems_are_reported_at_once() -> None:
    items = [with_("name"), with_("expected/content", ...), {"id": 1}, "text"]
    with pytest.raises(InvalidEvals) as caught:
        EvalSuite(items)
    lines = str(caught.value).splitlines()
    assert "  eval `good`, `/id`: 2 evals have this id" in lines
    assert "  eval `good`, `/name`: is missing" in lines
    assert "  eval `good`, `/expected`: has no `content`, so any result would pass" in lines
    assert "  eval number 3, `/id`: must be a string" in lines
    assert "  eval number 4: must be an object" in lines


def test_warnings_are_kept() -> None:
    suite = EvalSuite([with_("expected/toolName", "echo"), with_("input/cwd", "x", INVOCATION)])
    assert [str(warning) for warning in suite.warnings] == [
        "eval `good`, `/expected/toolName`: has no effect in an execution eval",
        "eval `call`, `/input/cwd`: unknown key `cwd`",
    ]


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(InvalidEvals, match="the list of evals is empty"):
        EvalSuite([])


def test_an_eval_has_a_rubric_or_an_exact_expectation() -> None:
    with pytest.raises(ValueError, match="use one of them"):
        execution("both", "echo", content="x", rubric="It echoes.")


YAML = """
evals:
  - id: yes
    name: 2026-11-16
    gradingType: exact-match
    input: {type: execution, toolName: echo, arguments: {text: no, number: 017, hex: 0x10, none: ~}}
    expected: {type: exact-match, content: [{type: text, text: on}]}
"""


def test_yaml_means_what_it_means_to_proctor(tmp_path: Path) -> None:
    file = tmp_path / "evals.yaml"
    file.write_text(YAML)
    (item,) = EvalSuite(file).evals
    assert item["id"] == "yes" and item["name"] == "2026-11-16"
    assert item["input"]["arguments"] == {"text": "no", "number": 17, "hex": 16, "none": None}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.json", '{"cases": []}', "expected a list of evals"),
        ("a.json", "[]", "the list of evals is empty"),
        ("a.json", '[{"id": "a", "id": "b"}]', "the key `id` occurs twice"),
        ("a.json", '[{"id": NaN}]', "which JSON does not have"),
        ("a.yaml", "evals: [", "is not YAML"),
        ("a.yaml", "evals: [{id: a, id: b}]", "the key `id` occurs twice"),
        ("a.yaml", "evals: [{id: .nan}]", "which JSON does not have"),
        ("a.yaml", "evals: [{1: a}]", "which is not a string"),
        ("a.yaml", "evals: [{id: !!python/name:os.system x}]", "is not YAML"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidEvals) as caught:
        EvalSuite(tmp_path / name)
    assert problem in str(caught.value)
    assert name in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidEvals, match="can't read .*none.json"):
        EvalSuite(tmp_path / "none.json")


def many(number: int) -> list[Any]:
    return [{**(GOOD if i % 2 else INVOCATION), "id": f"e{i}"} for i in range(number)]


@pytest.mark.parametrize("level", [None, "execution", "invocation", "scenario"])
@pytest.mark.parametrize("page_size", [1, 2, 3, 7, 100])
def test_pages_hold_each_eval_once(level: str | None, page_size: int) -> None:
    suite = EvalSuite(many(7), page_size=page_size)
    found: list[str] = []
    params: dict[str, Any] = {} if level is None else {"level": level}
    while True:
        page = suite.answer(params)
        assert len(page["evals"]) <= page_size
        found += [item["id"] for item in page["evals"]]
        if "nextCursor" not in page:
            break
        params["cursor"] = page["nextCursor"]
    assert found == [e["id"] for e in suite.evals if level in (None, e["input"]["type"])]


def test_a_cursor_finds_its_eval_after_a_change() -> None:
    cursor = EvalSuite(many(4), page_size=2).answer({})["nextCursor"]
    moved = [{**GOOD, "id": "new"}, *many(4)]
    assert [e["id"] for e in EvalSuite(moved).answer({"cursor": cursor})["evals"]] == ["e2", "e3"]


def test_the_empty_cursor_is_the_beginning() -> None:
    assert EvalSuite([GOOD]).answer({"cursor": ""}) == EvalSuite([GOOD]).answer(None)


@pytest.mark.parametrize("cursor", ["x", "-", "0", "zz-0123456789abcdef", None, 3, ["a"], "f" * 99])
def test_an_unknown_cursor_is_refused(cursor: Any) -> None:
    with pytest.raises(InvalidParams):
        EvalSuite([GOOD]).answer({"cursor": cursor})
