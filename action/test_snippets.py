"""Runs the commands of `docs/ci.md` for GitLab, Azure Pipelines and Jenkins on the files of the page.

Usage: `test_snippets.py FOLDER` writes the files into FOLDER. `scripts/test-action` validates them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

PAGE = Path(__file__).resolve().parent.parent / "docs" / "ci.md"
PROCTOR = Path(os.environ["PROCTOR"]).absolute()


def main(folder: Path) -> None:
    text = PAGE.read_text()
    for name, body in re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", text, re.M | re.S):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(body)
    gitlab = yaml.safe_load((folder / ".gitlab-ci.yml").read_text())
    azure = yaml.safe_load((folder / "azure-pipelines.yml").read_text())
    commands = gitlab["proctor"]["script"]
    commands += [step["script"] for step in azure["steps"] if "script" in step]
    commands += re.findall(r"^ +sh '(.*)'$", text, re.M)
    assert len(commands) == 3, commands
    run(folder, "proctor tools --config mcp.yaml --lock surface.lock.json")
    for command in commands:
        for name in ("junit.xml", "report.html"):
            (folder / name).unlink(missing_ok=True)
        run(folder, command)
        assert (folder / "junit.xml").is_file() and (folder / "report.html").is_file(), command
    print(f"{len(commands)} commands of docs/ci.md passed")


def run(folder: Path, command: str) -> None:
    env = {**os.environ, "PATH": f"{PROCTOR.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
