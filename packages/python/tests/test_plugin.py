"""The pytest plugin with the real binary. A green result must mean that every eval passed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_evals.testing import Case, Run, ServerEvals, find_proctor

SERVER = Path(__file__).parent / "servers" / "high_level.py"
COMMAND = [sys.executable, str(SERVER)]


def module(expression: str) -> str:
    return f"""
from mcp_evals.testing import ServerEvals, Suite
COMMAND = {COMMAND!r}
PROCTOR = {find_proctor()!r}
it = {expression}
"""


def run(pytester: pytest.Pytester, expression: str, *args: str) -> pytest.RunResult:
    pytester.makepyfile(module(expression))
    return pytester.runpytest_subprocess("-v", "-p", "no:cacheprovider", *args)


SUITE = """
kind: Eval
metadata: {name: library}
config:
  agent: {type: builtin.llm-agent, model: scripted:model.yaml}
  mcpConfigFile: mcp.yaml
  taskSets: [{path: lend.yaml}, {path: find.yaml}]
"""
TASK = """
kind: Task
apiVersion: mcpchecker/v1alpha2
metadata: {name: %s}
spec:
  prompt: {inline: Do it}
  verify: [{script: {inline: '%s'}}]
"""


# Proctor skips a script that can't fail.
PASSES = "echo done | grep -q done"


def make_suite(folder: Path, *, lend: str = PASSES, find: str = PASSES, more: str = "") -> None:
    server = {"command": find_proctor(), "args": ["__demo"]}
    (folder / "eval.yaml").write_text(SUITE + more)
    (folder / "mcp.yaml").write_text(json.dumps({"mcpServers": {"library": server}}))
    (folder / "model.yaml").write_text("kind: Script\nrules: [{reply: {text: Done.}}]\n")
    (folder / "lend.yaml").write_text(TASK % ("lend", lend))
    (folder / "find.yaml").write_text(TASK % ("find", find))


def test_each_eval_is_a_test(pytester: pytest.Pytester) -> None:
    result = run(pytester, "ServerEvals(COMMAND, level='execution', yes=True)", "--junit-xml=junit.xml")
    result.stdout.fnmatch_lines(["*::it::echoes PASSED*", "*::it::gate PASSED*"])
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    junit = (pytester.path / "junit.xml").read_text()
    assert "proctor_record" in junit and "proctor_report" in junit
    (report,) = (pytester.path / ".proctor" / "reports").glob("*.html")
    assert report.stat().st_size > 1000


def test_each_case_of_a_suite_is_a_test(pytester: pytest.Pytester) -> None:
    make_suite(pytester.path, find="echo no such book >&2; exit 1")
    result = run(pytester, "Suite('eval.yaml')")
    result.stdout.fnmatch_lines(["*::it::lend PASSED*", "*::it::find FAILED*", "*::it::gate FAILED*"])
    result.stdout.fnmatch_lines(["*missed (*", "*report *.html"])
    result.assert_outcomes(passed=1, failed=2)


def test_only_selected_cases_run(pytester: pytest.Pytester) -> None:
    make_suite(pytester.path, find="exit 1")
    result = run(pytester, "Suite('eval.yaml')", "-k", "lend or gate")
    result.assert_outcomes(passed=2, deselected=1)


def test_a_known_failure_is_expected(pytester: pytest.Pytester) -> None:
    more = "  knownFailures: [{case: find, reason: issue 7}]\n"
    make_suite(pytester.path, find="exit 1", more=more)
    result = run(pytester, "Suite('eval.yaml')")
    result.assert_outcomes(passed=2, xfailed=1)


def test_an_errored_trial_is_not_a_pass(pytester: pytest.Pytester) -> None:
    make_suite(pytester.path)
    model = "kind: Script\nrules: [{when: {prompt: never}, reply: {text: x}}]\n"
    (pytester.path / "model.yaml").write_text(model)
    result = run(pytester, "Suite('eval.yaml')")
    result.assert_outcomes(failed=3)


def test_a_missing_binary_is_an_error(pytester: pytest.Pytester) -> None:
    result = run(pytester, "ServerEvals(COMMAND, yes=True)", "--proctor", "/no/such/proctor")
    result.stdout.fnmatch_lines(["*`/no/such/proctor` was not found*"])
    assert result.ret == pytest.ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    "body",
    ["import sys; sys.exit(1)", "print('not a message')"],
    ids=["dies", "speaks no MCP"],
)
def test_a_server_that_does_not_start_is_an_error(pytester: pytest.Pytester, body: str) -> None:
    result = run(pytester, f"ServerEvals([{sys.executable!r}, '-c', {body!r}], yes=True)")
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_a_server_without_evals_is_an_error(pytester: pytest.Pytester) -> None:
    plain = "from mcp.server.lowlevel import Server\nimport anyio, mcp.server.stdio\n" + (
        "s = Server('plain')\nasync def main():\n  async with mcp.server.stdio.stdio_server() as (r, w):\n"
        "    await s.run(r, w, s.create_initialization_options())\nanyio.run(main)\n"
    )
    (pytester.path / "plain.py").write_text(plain)
    result = run(pytester, f"ServerEvals([{sys.executable!r}, 'plain.py'], yes=True)")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*lists no case*"])


def test_a_level_without_evals_is_an_error(pytester: pytest.Pytester) -> None:
    expression = "ServerEvals([PROCTOR, '__demo'], ids=['none'], yes=True)"
    result = run(pytester, expression)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ships no eval none*"])


def test_an_empty_suite_is_an_error(pytester: pytest.Pytester) -> None:
    make_suite(pytester.path)
    result = run(pytester, "Suite('eval.yaml', run='^none$')")
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_evals_that_need_a_model_fail_without_one(pytester: pytest.Pytester) -> None:
    result = run(pytester, "ServerEvals(COMMAND, level='invocation', yes=True)")
    result.assert_outcomes(failed=2)


def test_a_wrong_result_fails(pytester: pytest.Pytester) -> None:
    source = SERVER.read_text().replace("return text\n", "return text.upper()\n")
    (pytester.path / "wrong.py").write_text(source)
    result = run(pytester, f"ServerEvals([{sys.executable!r}, 'wrong.py'], level='execution', yes=True)")
    result.assert_outcomes(failed=2)


def test_a_server_that_dies_in_the_call_fails(pytester: pytest.Pytester) -> None:
    source = SERVER.read_text().replace("return text\n", "import os; os._exit(1)\n")
    (pytester.path / "dies.py").write_text(source)
    result = run(pytester, f"ServerEvals([{sys.executable!r}, 'dies.py'], level='execution', yes=True)")
    result.assert_outcomes(failed=2)


def test_an_invalid_eval_fails(pytester: pytest.Pytester) -> None:
    source = (
        SERVER.read_text()
        .replace('name="small"', "")
        .replace(
            "evals = add_evals", "import mcp_evals._suite as s; s.validate = lambda _: []\nevals = add_evals"
        )
    )
    source = source.replace('content="hello"),', "),")
    (pytester.path / "invalid.py").write_text(source)
    expression = f"ServerEvals([{sys.executable!r}, 'invalid.py'], level='execution', yes=True)"
    result = run(pytester, expression)
    result.assert_outcomes(failed=2)


def test_consent_is_explicit() -> None:
    with pytest.raises(ValueError, match="evals call real tools"):
        ServerEvals(COMMAND)


CASE = Case("evals/server#a", "a")
MET = {"case": CASE.id, "verdict": "met"}


@pytest.mark.parametrize(
    ("cases", "outcome"),
    [
        ([], "failed"),
        ([{"case": "evals/server#b", "verdict": "met"}], "failed"),
        ([{"case": CASE.id, "verdict": "inconclusive"}], "failed"),
        ([{"case": CASE.id, "verdict": "unexpected-pass"}], "failed"),
        ([{"case": CASE.id}], "failed"),
        ([MET, {"case": CASE.id, "verdict": "missed"}], "failed"),
        ([MET, {"case": CASE.id, "verdict": "known-failure"}], "known-failure"),
        ([MET], "passed"),
    ],
)
def test_only_a_met_pass_rule_passes(tmp_path: Path, cases: list[Any], outcome: str) -> None:
    result = Run(0, tmp_path, tmp_path, cases=cases)
    assert result.verdict(CASE).outcome == outcome


@pytest.mark.parametrize("exit_code", [1, 2, 3, 4, 130, -9])
def test_the_gate_needs_exit_code_0(tmp_path: Path, exit_code: int) -> None:
    assert Run(exit_code, tmp_path, tmp_path).gate().outcome == "failed"
    assert Run(0, tmp_path, tmp_path).gate().outcome == "passed"
