"""Runs `proctor check` in a job of GitHub Actions, and writes the outputs of the step.

On pull requests without secrets it runs what needs no model instead. The step itself succeeds whenever Proctor ran: the
last step of the action decides over the job, by the output `exit-code`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Exit codes of `proctor check` with which trials ran: a threshold may replace the suite's gate.
GRADED = (0, 1)
# The gates of `proctor check`, which thresholds do not replace.
GATES = ("--no-regression", "--min-pass-rate", "--min-lower-bound", "--pass-hat", "--max-errors")


def main() -> int:
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text())
    if os.environ.get("GITHUB_EVENT_NAME") == "pull_request_target":
        print("::error::this action runs code of the pull request; use `pull_request`, not `pull_request_target`")
        return 1
    eval_file = given("eval-config")
    if not eval_file:
        print("::error::the input `eval-config` is empty")
        return 1
    if has_secrets(event) or given("forks") == "all":
        outputs = check(eval_file)
    else:
        outputs = check_without_model(eval_file)
    with open(os.environ["GITHUB_OUTPUT"], "a") as file:
        for key, value in outputs.items():
            if "\n" in value:
                raise ValueError(f"the output `{key}` has several lines")
            print(f"{key}={value}", file=file)
    return 0


def given(name: str) -> str:
    return os.environ.get("INPUT_" + name.upper().replace("-", "_"), "").strip()


def has_secrets(event: dict) -> bool:
    pull_request = event.get("pull_request")
    if pull_request is None:
        return True
    # The fork may be deleted: then its repository is null.
    head = (pull_request.get("head") or {}).get("repo") or {}
    is_own = head.get("full_name") == os.environ.get("GITHUB_REPOSITORY")
    return is_own and os.environ.get("GITHUB_ACTOR") != "dependabot[bot]"


def proctor(*args: str, **options: object) -> subprocess.CompletedProcess:
    sys.stdout.flush()
    directory = given("working-directory") or "."
    return subprocess.run([os.environ["PROCTOR"], *args], cwd=directory, check=False, text=True, **options)


def check(eval_file: str) -> dict[str, str]:
    folder = Path(tempfile.mkdtemp(prefix="proctor-", dir=os.environ["RUNNER_TEMP"]))
    record = folder.with_name(folder.name + "-record")
    files = {"out": folder / "results.json", "report": folder / "report.html", "junit": folder / "junit.xml"}
    command = ["check", eval_file, "--record", str(record)]
    for flag, path in files.items():
        command += [f"--{flag}", str(path)]
    for flag, name in (
        ("--run", "task-filter"),
        ("--label-selector", "label-selector"),
        ("--output", "output-format"),
        ("--parallel", "parallel"),
    ):
        if given(name):
            command += [flag, given(name)]
    if given("verbose") == "true":
        command.append("--verbose")
    command += [line.strip() for line in given("args").splitlines() if line.strip()]
    code = proctor(*command).returncode
    outputs = {"tier": "all", "folder": str(folder)}
    is_shard = has_flag("--shard")
    if (record / "run.jsonl").exists():
        code = verified(code, record)
        outputs |= numbers(record)
        pack = folder / "run.tar.gz"
        # A part of a run is no base for pull requests.
        if not is_shard and proctor("result", "export", str(record), "--pack", str(pack)).returncode == 0:
            outputs["pack"] = str(pack)
    for key, name in (("results-file", "out"), ("report", "report")):
        outputs[key] = str(files[name]) if files[name].exists() else ""
    # A shard that ran says nothing about the gate: `proctor result merge` does.
    passed = ("" if is_shard else "true") if code == 0 else "false"
    return outputs | {"exit-code": str(code), "passed": passed}


def has_flag(*flags: str) -> bool:
    lines = [line.strip() for line in given("args").splitlines()]
    return any(line == flag or line.startswith((flag + "=", flag + " ")) for line in lines for flag in flags)


def verified(code: int, record: Path) -> int:
    """The exit code by the thresholds, if there are any and all trials have a verdict. Gates in `args` count too."""
    if code != 0 and has_flag(*GATES):
        return code
    thresholds = []
    for flag, name in (("--task", "task-pass-threshold"), ("--assertion", "assertion-pass-threshold")):
        if given(name):
            thresholds += [flag, given(name)]
    if not thresholds or code not in GRADED:
        return code
    return proctor("result", "verify", str(record), *thresholds).returncode


def numbers(record: Path) -> dict[str, str]:
    done = proctor("result", "summary", str(record), "--github-output", stdout=subprocess.PIPE)
    if done.returncode != 0:
        return {}
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def check_without_model(eval_file: str) -> dict[str, str]:
    print("This pull request has no secrets: only what needs no model runs.")
    commands = [
        ["validate", "--strict", eval_file],
        ["lint", eval_file, "--fail-on", "error", "-o", "github"],
    ]
    if given("mcp-config") and given("surface-lock"):
        commands.append(
            ["tools", "--config", given("mcp-config"), "--against", given("surface-lock"), "-o", "github"]
        )
    codes = [(command, proctor(*command).returncode) for command in commands]
    lines = ["### Proctor", "", "No trial ran: this pull request has no secrets. What needs no model:", ""]
    lines += [f"- {'passed' if code == 0 else f'failed ({code})'}: `proctor {' '.join(c)}`" for c, code in codes]
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with open(summary, "a") as file:
            file.write("\n".join(lines) + "\n")
    worst = next((code for _, code in codes if code != 0), 0)
    # Without trials there is no verdict, so `passed` is neither true nor false.
    return {"tier": "without-model", "exit-code": str(worst), "passed": "" if worst == 0 else "false"}


if __name__ == "__main__":
    sys.exit(main())
