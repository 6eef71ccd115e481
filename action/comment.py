"""Comments on the pull request: the difference to the base branch's last run, or the result if there is none.

One comment per suite: it is updated, not repeated. If GitHub refuses it, the job gets a warning and keeps its verdict.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

# GitHub refuses comments over 65,536 characters. Each part has at most 60,000 bytes.
LONGEST = 65_000


def main() -> int:
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text())
    number = (event.get("pull_request") or {}).get("number")
    if number is None:
        return 0
    text = body()
    marker = text.splitlines()[0]
    try:
        publish(f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues", number, marker, text)
    except (urllib.error.URLError, TimeoutError, ValueError, KeyError) as error:
        reason = str(error).replace("\n", " ")
        print(f"::warning::the comment was not written: {reason}; set `pull-requests: write`, or `comment: false`")
    return 0


def body() -> str:
    pack, base = os.environ["PACK"], Path(os.environ["BASE"])
    shown = proctor("result", "show", pack, "-o", "markdown").stdout
    if base.exists():
        done = proctor("result", "diff", str(base), pack, "-o", "markdown")
        # 0, 1 and 3 are answers.
        if done.returncode in (0, 1, 3) and done.stdout.startswith("<!-- proctor:"):
            # A run can fail and still be no worse than its base: the comment says both.
            both = f"{done.stdout}\n{shown}"
            return both if len(both) <= LONGEST else done.stdout
        print(f"::warning::the base branch's run can't be compared: {done.stderr.strip().splitlines()[:1]}")
    results = json.loads(Path(os.environ["RESULTS"]).read_text())
    name = str(results["proctor"]["run"]["name"]).replace("--", "-").replace(">", "")
    return f"<!-- proctor:{name} -->\n{shown}\nThe base branch has no run to compare with yet.\n"


def proctor(*args: str) -> subprocess.CompletedProcess:
    return subprocess.run([os.environ["PROCTOR"], *args], check=False, capture_output=True, text=True)


def publish(issues: str, number: int, marker: str, text: str) -> None:
    for comment in comments(f"{issues}/{number}/comments"):
        # A person may quote the marker: only a comment of a bot is replaced.
        if comment["body"].startswith(marker) and comment["user"]["type"] == "Bot":
            request("PATCH", f"{issues}/comments/{comment['id']}", {"body": text})
            return
    request("POST", f"{issues}/{number}/comments", {"body": text})


def comments(path: str) -> Iterator[dict]:
    for page in range(1, 101):
        found = request("GET", f"{path}?per_page=100&page={page}")
        yield from found
        if len(found) < 100:
            return


def request(method: str, path: str, value: object = None) -> list:
    data = None if value is None else json.dumps(value).encode()
    headers = {
        "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
        "Accept": "application/vnd.github+json",
        "Content-Type": "application/json",
        "User-Agent": "proctor-action",
    }
    url = os.environ.get("GITHUB_API_URL", "https://api.github.com") + path
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as answer:
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main())
