"""Runs suites and shipped evals with the `proctor` binary. The pytest plugin makes tests of them.

A case counts as passed only if Proctor's summary says that it met its pass rule.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

Path_ = str | os.PathLike[str]
_RUNS = count(1)


class ProctorError(Exception):
    """Proctor could not be run, or its output is not what this package expects."""


@dataclass(frozen=True)
class Case:
    """A case of a suite, or an eval of a server."""

    id: str
    name: str
    # Why the eval can't run, if Proctor found so when it listed it.
    problem: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What came of a case: `passed`, `failed`, or `known-failure`."""

    outcome: str
    reason: str


@dataclass
class Run:
    """The result of one run of Proctor."""

    exit: int
    record: Path
    report: Path
    cases: list[dict[str, Any]] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def verdict(self, case: Case) -> Verdict:
        """The verdict on one case. Anything but a pass rule that was met is not a pass."""
        entries = [entry for entry in self.cases if entry.get("case") == case.id]
        open_entries = [entry for entry in entries if entry.get("verdict") != "met"]
        if entries and not open_entries:
            return Verdict("passed", "")
        reasons = [_reason(entry) for entry in open_entries]
        if entries and all(_is_known_failure(entry) for entry in open_entries):
            return Verdict("known-failure", "; ".join(reasons))
        reasons += [
            f"{other.get('outcome')}: {other.get('reason')}"
            for other in self.others
            if case.id.endswith(f"#{other.get('evalId')}")
        ]
        if case.problem:
            reasons.append(case.problem)
        if not entries:
            reasons.append(f"the result of Proctor (exit code {self.exit}) does not contain this case")
        return Verdict("failed", "\n".join(reasons + ([] if entries else self.notes)))

    def gate(self) -> Verdict:
        """The verdict on the whole run: Proctor's exit code."""
        if self.exit == 0:
            return Verdict("passed", "")
        text = "\n".join([f"Proctor exited with {self.exit}", *self.notes])
        return Verdict("failed", text)

    def description(self) -> str:
        """Where the evidence is, for people."""
        lines = [f"record  {self.record}"] if self.record.exists() else []
        if self.report.exists():
            lines.append(f"report  {self.report}")
        return "\n".join(lines) or "Proctor recorded nothing"


def _reason(entry: dict[str, Any]) -> str:
    agent = entry.get("agent")
    text = entry.get("reason") or "no reason was recorded"
    return f"{entry.get('verdict')} ({agent}): {text}" if agent else f"{entry.get('verdict')}: {text}"


def _is_known_failure(entry: dict[str, Any]) -> bool:
    return entry.get("verdict") == "known-failure"


def find_proctor(given: Path_ | None = None) -> str:
    """The path of the binary: `given`, the variable `PROCTOR`, or `proctor` on the PATH."""
    wanted = os.fspath(given) if given else os.environ.get("PROCTOR") or "proctor"
    found = shutil.which(wanted)
    if found is None:
        hint = "install it, or set its path with `--proctor` or the variable `PROCTOR`"
        raise ProctorError(f"`{wanted}` was not found; {hint}")
    return os.path.abspath(found)


class Target:
    """What Proctor runs. Use `Suite` or `ServerEvals`."""

    def __init__(
        self,
        *,
        yes: bool,
        consent: Path_ | None,
        model: str | None,
        judge: str | None,
        args: Sequence[str],
        cwd: Path_ | None,
        label: str,
    ) -> None:
        self.cwd = Path(cwd) if cwd is not None else None
        self._label = re.sub("[^A-Za-z0-9-]+", "-", label).strip("-") or "run"
        self._flags: list[str] = ["--yes"] if yes else []
        for flag, value in (("--consent", consent), ("--model", model), ("--judge", judge)):
            if value is not None:
                self._flags += [flag, os.fspath(value)]
        self._flags += list(args)

    def cases(self, proctor: str, folder: Path) -> list[Case]:
        """The cases, in order. An empty list is an error."""
        command = [proctor, *self._list_command()]
        done = _call(command, folder)
        if done.returncode != 0:
            raise ProctorError(f"{_shown(command)} exited with {done.returncode}\n{done.stderr.strip()}")
        cases = self._read_list(_document(done, command))
        if not cases:
            raise ProctorError(f"{_shown(command)} lists no case\n{done.stderr.strip()}")
        return cases

    def run(
        self,
        proctor: str,
        folder: Path,
        cases: Sequence[Case] | None = None,
        reports: Path | None = None,
    ) -> Run:
        """Runs the given cases, or all."""
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{self._label}-{os.getpid()}-{next(_RUNS)}"
        record = folder / ".proctor" / "runs" / name
        report = (reports or folder / ".proctor" / "reports") / f"{name}.html"
        report.parent.mkdir(parents=True, exist_ok=True)
        output = ["-q", "-o", "json", "--record", str(record), "--report", str(report)]
        command = [proctor, *self._run_command(cases, [*output, *self._flags])]
        done = _call(command, folder)
        run = Run(done.returncode, record, report)
        document = _document(done, command) if done.stdout.strip() else {}
        note = ((document.get("proctor") or {}).get("exit") or {}).get("note")
        run.notes = [text for text in (note, done.stderr.strip()) if text]
        run.others = list(document.get("others") or [])
        if (record / "run.jsonl").exists():
            command = [proctor, "result", "summary", str(record), "-o", "json"]
            done = _call(command, folder)
            run.cases = list(_document(done, command).get("cases") or [])
        return run

    def _list_command(self) -> list[str]:
        raise NotImplementedError

    def _run_command(self, cases: Sequence[Case] | None, flags: list[str]) -> list[str]:
        raise NotImplementedError

    def _read_list(self, document: dict[str, Any]) -> list[Case]:
        raise NotImplementedError


class Suite(Target):
    """The cases of an eval file, run by `proctor check`."""

    def __init__(
        self,
        path: Path_,
        *,
        labels: str | None = None,
        run: str | None = None,
        yes: bool = False,
        consent: Path_ | None = None,
        model: str | None = None,
        judge: str | None = None,
        args: Sequence[str] = (),
        cwd: Path_ | None = None,
    ) -> None:
        path = Path(path)
        super().__init__(
            yes=yes, consent=consent, model=model, judge=judge, args=args, cwd=cwd, label=path.stem
        )
        self._path = str(path)
        self._labels = ["--label-selector", labels] if labels is not None else []
        self._pattern = ["--run", run] if run is not None else []

    def _list_command(self) -> list[str]:
        return ["list", self._path, "-o", "json", *self._labels, *self._pattern]

    def _run_command(self, cases: Sequence[Case] | None, flags: list[str]) -> list[str]:
        pattern = self._pattern
        if cases is not None:
            names = "|".join(sorted({re.escape(case.name) for case in cases}))
            pattern = ["--run", f"^(?:{names})$"]
        return ["check", self._path, *self._labels, *pattern, *flags]

    def _read_list(self, document: dict[str, Any]) -> list[Case]:
        return [Case(case["id"], case["name"]) for case in document.get("cases") or []]


class ServerEvals(Target):
    """The evals that a server ships, run by `proctor evals run`.

    Execution and scenario evals call real tools, so `yes=True` or a consent file is required.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        *,
        url: str | None = None,
        level: str | None = None,
        ids: Sequence[str] | None = None,
        protocol: str | None = None,
        yes: bool = False,
        consent: Path_ | None = None,
        model: str | None = None,
        judge: str | None = None,
        args: Sequence[str] = (),
        cwd: Path_ | None = None,
    ) -> None:
        if isinstance(command, str):
            raise TypeError("`command` must be a list of words, such as `['python', 'server.py']`")
        if bool(command) == (url is not None):
            raise ValueError("pass the server's command or its `url`")
        if not yes and consent is None:
            raise ValueError("evals call real tools: pass `yes=True`, or a file as `consent`")
        super().__init__(
            yes=yes, consent=consent, model=model, judge=judge, args=args, cwd=cwd, label="evals"
        )
        self._server = ["--url", url] if url is not None else ["--", *command]
        self._filter = ["--level", level] if level is not None else []
        self._ids = list(ids) if ids is not None else None
        self._protocol = ["--protocol", protocol] if protocol is not None else []

    def _list_command(self) -> list[str]:
        return ["evals", "list", "-o", "json", *self._filter, *self._protocol, *self._server]

    def _run_command(self, cases: Sequence[Case] | None, flags: list[str]) -> list[str]:
        ids = self._ids if cases is None else sorted({case.name for case in cases})
        chosen = [word for id in ids or () for word in ("--id", id)]
        given = [*self._filter, *self._protocol, *chosen, *flags]
        return ["evals", "run", *given, *self._server]

    def _read_list(self, document: dict[str, Any]) -> list[Case]:
        cases = [case for server in document.get("servers") or [] for case in _listed(server)]
        if self._ids is None:
            return cases
        missing = set(self._ids) - {case.name for case in cases}
        if missing:
            raise ProctorError(f"the server ships no eval {', '.join(sorted(missing))}")
        return [case for case in cases if case.name in self._ids]


def _listed(server: dict[str, Any]) -> list[Case]:
    problems: dict[int, str] = {}
    for finding in server.get("findings") or []:
        if finding.get("severity") != "warning":
            index = finding.get("index", -1)
            problems[index] = "\n".join(filter(None, [problems.get(index), str(finding.get("text"))]))
    found: dict[str, Case] = {}
    for index, item in enumerate(server.get("evals") or []):
        id = item.get("id") if isinstance(item, dict) else None
        name = id if isinstance(id, str) else f"eval number {index + 1}"
        # Of two evals with one id, both are invalid: one test says so.
        found.setdefault(name, Case(f"evals/{server['server']}#{name}", name, problems.get(index)))
    return list(found.values())


def _call(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise ProctorError(f"{_shown(command)} can't be started: {error}") from error


def _document(done: subprocess.CompletedProcess[str], command: list[str]) -> dict[str, Any]:
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        text = f"{_shown(command)} exited with {done.returncode} and printed no JSON document"
        raise ProctorError(f"{text}\n{done.stderr.strip()}")
    return document


def _shown(command: Sequence[str]) -> str:
    return f"`{' '.join(['proctor', *command[1:]])}`"
