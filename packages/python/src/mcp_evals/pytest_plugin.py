"""The pytest plugin: each `Suite` and `ServerEvals` in a test module becomes a group of tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .testing import Case, ProctorError, Run, Target, Verdict, find_proctor


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("proctor", "evals of MCP servers")
    group.addoption("--proctor", metavar="PATH", help="the proctor binary; default: $PROCTOR, or PATH")
    group.addoption(
        "--proctor-report",
        metavar="DIR",
        help="the folder for HTML reports; default: `.proctor/reports` in the folder of the tests",
    )


def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> Any:
    if isinstance(obj, Target):
        return TargetCollector.from_parent(collector, name=name, target=obj)
    return None


class ProctorFailure(Exception):
    """A case that did not pass. Its text is what pytest shows."""


class TargetCollector(pytest.Collector):
    """The tests of one `Suite` or `ServerEvals`."""

    def __init__(self, *, target: Target, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target = target
        self.folder = target.cwd or self.path.parent
        self._shared: Run | ProctorError | None = None

    def _proctor(self) -> str:
        return find_proctor(self.config.getoption("--proctor"))

    def collect(self) -> Iterator[pytest.Item]:
        try:
            cases = self.target.cases(self._proctor(), self.folder)
        except ProctorError as error:
            raise self.CollectError(str(error)) from error
        for case in cases:
            yield CaseItem.from_parent(self, name=case.name, case=case)
        yield CaseItem.from_parent(self, name="gate", case=None)

    def run_for(self, item: CaseItem) -> Run:
        """The run that `item` belongs to: one for all selected tests of this object."""
        if hasattr(self.config, "workerinput"):
            # A worker of pytest-xdist does not know which tests it will get.
            return self._run([item])
        if self._shared is None:
            mine = [other for other in self.session.items if other.parent is self]
            try:
                self._shared = self._run([one for one in mine if isinstance(one, CaseItem)])
            except ProctorError as error:
                self._shared = error
        if isinstance(self._shared, ProctorError):
            raise self._shared
        return self._shared

    def _run(self, items: list[CaseItem]) -> Run:
        cases = [item.case for item in items if item.case is not None]
        reports = self.config.getoption("--proctor-report")
        return self.target.run(
            self._proctor(),
            self.folder,
            cases or None,
            Path(reports).absolute() if reports else None,
        )


class CaseItem(pytest.Item):
    """One case, or the gate of the run."""

    def __init__(self, *, case: Case | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case

    def runtest(self) -> None:
        assert isinstance(self.parent, TargetCollector)
        run = self.parent.run_for(self)
        self.add_report_section("call", "proctor", run.description())
        self.user_properties.append(("proctor_record", str(run.record)))
        self.user_properties.append(("proctor_report", str(run.report)))
        verdict: Verdict = run.gate() if self.case is None else run.verdict(self.case)
        if verdict.outcome == "known-failure":
            pytest.xfail(verdict.reason)
        if verdict.outcome != "passed":
            raise ProctorFailure(verdict.reason)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, (ProctorFailure, ProctorError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"{self.parent.name if self.parent else ''}::{self.name}"
