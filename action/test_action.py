"""Executes the steps of `action.yml` with a fake event and a local server in place of GitHub's API.

Needs PyYAML, and the variable PROCTOR with the path of the binary. `scripts/test-action` runs it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
PROCTOR = os.path.abspath(os.environ["PROCTOR"])
PASSES = "echo done | grep -q done"


class Api:
    """GitHub's comments."""

    def __init__(self) -> None:
        self.comments: list[dict] = []
        self.requests: list[str] = []
        self.status = 200
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = int(re.search(r"page=(\d+)$", self.path)[1])
                self.answer(api.comments[(page - 1) * 100 : page * 100])

            def do_POST(self) -> None:
                comment = {"id": len(api.comments) + 1, "user": {"type": "Bot"}, **self.body()}
                api.comments.append(comment)
                self.answer(comment)

            def do_PATCH(self) -> None:
                id = int(self.path.rsplit("/", 1)[1])
                (comment,) = [one for one in api.comments if one["id"] == id]
                comment.update(self.body())
                self.answer(comment)

            def body(self) -> dict:
                return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

            def answer(self, value: object) -> None:
                assert self.headers["Authorization"] == "Bearer secret-token"
                api.requests.append(f"{self.command} {self.path}")
                self.send_response(api.status)
                self.end_headers()
                self.wfile.write(json.dumps(value).encode())

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


class Job:
    """One job with the action as its only step: the part of a runner that the action needs."""

    def __init__(self, folder: Path, event_name: str, event: dict, inputs: dict, caches: dict, **env: str) -> None:
        self.folder, self.caches = folder, caches
        self.temp = Path(tempfile.mkdtemp(dir=folder.parent))
        self.inputs = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()}
        self.inputs |= {"eval-config": "eval.yaml", "proctor-path": PROCTOR, "github-token": "secret-token", **inputs}
        self.github = {"event_name": event_name, "base_ref": "", "ref_name": "main", "run_id": "1", "run_attempt": "1"}
        if "pull_request" in event:
            self.github |= {"base_ref": "main", "ref_name": "7/merge"}
        (self.temp / "event.json").write_text(json.dumps(event))
        for name in ("output", "path", "summary"):
            (self.temp / name).touch()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_EVENT_NAME": event_name,
            "GITHUB_EVENT_PATH": str(self.temp / "event.json"),
            "GITHUB_REPOSITORY": "acme/server",
            "GITHUB_ACTOR": "ada",
            "GITHUB_WORKSPACE": str(folder),
            "GITHUB_PATH": str(self.temp / "path"),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary"),
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_OS": "Linux",
            "RUNNER_ARCH": "X64",
            **env,
        }
        self.steps: dict[str, dict[str, str]] = {}
        self.log = ""
        self.artifact: list[str] | None = None
        self.exit = self.run()
        self.outputs = {name: self.fill(spec["value"]) for name, spec in ACTION["outputs"].items()}
        self.summary = (self.temp / "summary").read_text()

    def run(self) -> int:
        exit_code = 0
        for step in ACTION["runs"]["steps"]:
            condition = step.get("if", "")
            if exit_code != 0 and condition != "always()":
                continue
            if condition not in ("", "always()") and not self.holds(condition):
                continue
            code = self.use(step) if "uses" in step else self.shell(step)
            exit_code = exit_code or code
        return exit_code

    def value(self, name: str) -> str:
        """The value of an expression; what is not set is empty, as on GitHub."""
        match name.split("."):
            case ["inputs", key]:
                return self.inputs[key]
            case ["github", key]:
                return self.github[key]
            case ["runner", "temp"]:
                return str(self.temp)
            case ["steps", id, "outputs", key]:
                return self.steps.get(id, {}).get(key, "")
        raise AssertionError(f"unknown expression {name}")

    def fill(self, text: str) -> str:
        return re.sub(r"\$\{\{ ([a-z0-9_.-]+) \}\}", lambda found: self.value(found[1]), str(text))

    def holds(self, condition: str) -> bool:
        def one(term: str) -> bool:
            name, operator, wanted = re.fullmatch(r"([a-z0-9_.-]+) (==|!=) '(.*)'", term).groups()
            return (self.value(name) == wanted) == (operator == "==")

        return all(one(term) for term in condition.split(" && "))

    def shell(self, step: dict) -> int:
        output = self.temp / "output"
        output.write_text("")
        env = {key: self.fill(value) for key, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            env={**self.env, **env, "GITHUB_OUTPUT": str(output)},
            capture_output=True,
            text=True,
        )
        self.log += done.stdout + done.stderr
        lines = output.read_text().splitlines()
        self.steps[step.get("id", "")] = dict(line.split("=", 1) for line in lines)
        return done.returncode

    def use(self, step: dict) -> int:
        given = {key: self.fill(value) for key, value in step["with"].items()}
        path = Path(given["path"])
        match step["uses"].split("@")[0]:
            case "actions/cache/restore":
                found = [key for key in self.caches if key.startswith(given["restore-keys"])]
                if found:
                    shutil.copytree(self.caches[found[-1]], path)
            case "actions/cache/save":
                saved = Path(tempfile.mkdtemp(dir=self.folder.parent)) / "saved"
                shutil.copytree(path, saved)
                self.caches[given["key"]] = saved
            case "actions/upload-artifact":
                self.artifact = sorted(file.name for file in path.iterdir())
            case other:
                raise AssertionError(f"unknown action {other}")
        return 0


def pull_request(repository: str | None = "acme/server") -> dict:
    repo = {"full_name": repository} if repository else None
    return {"pull_request": {"number": 7, "head": {"repo": repo}}}


class ActionTest(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name) / "checkout"
        self.folder.mkdir()
        self.api = Api()
        self.addCleanup(self.api.server.server_close)
        self.addCleanup(self.api.server.shutdown)
        self.caches: dict[str, Path] = {}
        self.suite()

    def suite(self, lend: str = PASSES, find: str = PASSES) -> None:
        for name, script in (("lend", lend), ("find", find)):
            (self.folder / f"{name}.yaml").write_text(
                f"kind: Task\napiVersion: mcpchecker/v1alpha2\nmetadata: {{name: {name}}}\n"
                f"spec:\n  prompt: {{inline: Do it}}\n  verify: [{{script: {{inline: '{script}'}}}}]\n"
            )
        self.model("{reply: {text: Done.}}")
        server = {"command": PROCTOR, "args": ["__demo"]}
        (self.folder / "mcp.yaml").write_text(json.dumps({"mcpServers": {"library": server}}))
        (self.folder / "eval.yaml").write_text(
            "kind: Eval\nmetadata: {name: library}\nconfig:\n"
            "  agent: {type: builtin.llm-agent, model: scripted:model.yaml}\n"
            "  mcpConfigFile: mcp.yaml\n  taskSets: [{path: lend.yaml}, {path: find.yaml}]\n"
        )

    def model(self, rule: str) -> None:
        (self.folder / "model.yaml").write_text(f"kind: Script\nrules: [{rule}]\n")

    def job(self, event_name: str = "push", event: dict | None = None, env: dict | None = None, **inputs: str) -> Job:
        given = {key.replace("_", "-"): value for key, value in inputs.items()}
        env = {"GITHUB_API_URL": self.api.url, **(env or {})}
        return Job(self.folder, event_name, event or {}, given, self.caches, **env)

    def on_pull_request(self, repository: str | None = "acme/server", **inputs: str) -> Job:
        return self.job("pull_request", pull_request(repository), **inputs)

    # Runs.

    def test_a_run_that_passes(self) -> None:
        job = self.job()
        self.assertEqual(job.exit, 0, job.log)
        outputs = job.outputs
        self.assertTrue(Path(outputs.pop("results-file")).is_file())
        self.assertTrue(Path(outputs.pop("report")).is_file())
        self.assertEqual(
            outputs,
            {
                "passed": "true",
                "task-pass-rate": "1.0000",
                "assertion-pass-rate": "0.0000",
                "tasks-passed": "2",
                "tasks-total": "2",
                "assertions-passed": "0",
                "assertions-total": "0",
                "exit-code": "0",
                "tier": "all",
            },
        )
        self.assertEqual(job.artifact, ["junit.xml", "report.html", "results.json", "run.tar.gz"])
        self.assertIn("2", job.summary)
        self.assertEqual(self.api.requests, [])

    def test_a_run_that_fails_has_its_report_and_annotations(self) -> None:
        self.suite(find="echo no such book >&2; exit 1")
        job = self.job()
        self.assertEqual(job.exit, 1)
        self.assertEqual(job.outputs["passed"], "false")
        self.assertEqual(job.outputs["tasks-passed"], "1")
        self.assertIn("::error", job.log)
        self.assertIn("no such book", job.summary)
        self.assertIn("report.html", job.artifact or [])

    def test_errors_are_not_a_pass(self) -> None:
        self.model("{when: {prompt: never}, reply: {text: x}}")
        for inputs in ({}, {"task_pass_threshold": "0.0", "assertion_pass_threshold": "0.0"}):
            job = self.job(**inputs)
            self.assertEqual((job.exit, job.outputs["passed"]), (3, "false"), job.log)

    def test_what_does_not_run_is_not_a_pass(self) -> None:
        for inputs, code in (
            ({"task_filter": "^none$"}, 4),
            ({"label_selector": "tier=none"}, 4),
            ({"eval_config": "none.yaml"}, 2),
            ({"eval_config": ""}, 1),
            ({"args": "--no-such-flag"}, 2),
            ({"proctor_path": "/no/such/proctor"}, 1),
            ({"proctor_path": "/bin/false"}, 1),
        ):
            with self.subTest(inputs):
                job = self.job(**inputs)
                self.assertEqual(job.exit, code, job.log)
                self.assertNotEqual(job.outputs["passed"], "true")

    def test_a_server_that_dies_is_not_a_pass(self) -> None:
        (self.folder / "mcp.yaml").write_text('{"mcpServers": {"library": {"command": "false"}}}')
        job = self.job()
        self.assertEqual((job.exit, job.outputs["passed"]), (3, "false"), job.log)

    def test_a_check_without_an_exit_code_is_not_a_pass(self) -> None:
        for fail_on_error in ("true", "false"):
            env = {"PATH": os.environ["PATH"], "EXIT_CODE": "", "FAIL_ON_ERROR": fail_on_error}
            done = subprocess.run([ROOT / "action/verdict"], env=env, capture_output=True)
            self.assertEqual(done.returncode, 1)

    def test_thresholds_replace_the_gate(self) -> None:
        self.suite(find="exit 1")
        self.assertEqual(self.job(task_pass_threshold="0.5").exit, 0)
        job = self.job(task_pass_threshold="0.6")
        self.assertEqual((job.exit, job.outputs["passed"]), (1, "false"))

    def test_thresholds_do_not_replace_gates_of_the_flags(self) -> None:
        self.suite(find="exit 1")
        job = self.job(task_pass_threshold="0.5", args="--min-pass-rate\n90%")
        self.assertEqual((job.exit, job.outputs["passed"]), (1, "false"))

    def test_a_shard_is_neither_passed_nor_a_base(self) -> None:
        self.suite(lend="exit 1", find="exit 1")
        for shard in ("--shard\n1/2", "--shard=2/2"):
            job = self.job(args=shard)
            self.assertEqual((job.exit, job.outputs["passed"]), (0, ""), job.log)
            self.assertNotIn("run.tar.gz", job.artifact or [])

    def test_a_job_can_go_on_after_a_failure(self) -> None:
        self.suite(find="exit 1")
        job = self.job(fail_on_error="false")
        self.assertEqual((job.exit, job.outputs["passed"]), (0, "false"))

    def test_flags_are_one_per_line(self) -> None:
        job = self.job(args="--runs\n2\n", output_format="json", verbose="true", parallel="2")
        self.assertEqual((job.exit, job.outputs["tasks-total"]), (0, "4"), job.log)

    # Pull requests.

    def test_a_pull_request_is_compared_with_the_base_branch(self) -> None:
        self.assertEqual(self.job().exit, 0)
        self.suite(find="echo no such book >&2; exit 1")
        job = self.on_pull_request()
        self.assertEqual(job.exit, 1)
        (comment,) = self.api.comments
        self.assertTrue(comment["body"].startswith("<!-- proctor:library -->"), comment)
        self.assertNotIn("no run to compare with", comment["body"])
        self.assertIn("gate missed", comment["body"])
        self.suite()
        self.assertEqual(self.on_pull_request().exit, 0)
        self.assertEqual(len(self.api.comments), 1)
        self.assertEqual(self.api.requests[-1], "PATCH /repos/acme/server/issues/comments/1")

    def test_without_a_base_run_the_comment_has_the_result(self) -> None:
        self.assertEqual(self.on_pull_request().exit, 0)
        (comment,) = self.api.comments
        self.assertTrue(comment["body"].startswith("<!-- proctor:library -->"))
        self.assertIn("no run to compare with", comment["body"])

    def test_comments_of_people_stay(self) -> None:
        quote = {"id": 1, "body": "<!-- proctor:library --> what is this?", "user": {"type": "User"}}
        self.api.comments += [dict(quote) for _ in range(150)]
        self.on_pull_request()
        self.assertEqual(self.api.comments[0], quote)
        self.assertEqual(len(self.api.comments), 151)

    def test_a_refused_comment_does_not_change_the_verdict(self) -> None:
        self.api.status = 403
        job = self.on_pull_request()
        self.assertEqual(job.exit, 0)
        self.assertIn("::warning::the comment was not written", job.log)
        self.suite(find="exit 1")
        self.assertEqual(self.on_pull_request().exit, 1)

    def test_comments_can_be_turned_off(self) -> None:
        self.on_pull_request(comment="false")
        self.assertEqual(self.api.requests, [])

    def test_a_pull_request_does_not_become_the_base(self) -> None:
        self.on_pull_request()
        self.assertEqual(self.caches, {})

    # Without secrets.

    def test_a_fork_runs_no_model(self) -> None:
        for job in (
            self.on_pull_request("eve/server"),
            self.on_pull_request(None),
            self.job("pull_request", pull_request(), env={"GITHUB_ACTOR": "dependabot[bot]"}),
        ):
            self.assertEqual(job.exit, 0, job.log)
            self.assertEqual((job.outputs["tier"], job.outputs["passed"]), ("without-model", ""))
            self.assertIn("No trial ran", job.summary)
            self.assertIsNone(job.artifact)
        self.assertEqual(self.api.requests, [])

    def test_a_fork_with_a_broken_suite_fails(self) -> None:
        (self.folder / "find.yaml").write_text("kind: Task\nspec: {}\n")
        job = self.on_pull_request("eve/server")
        self.assertEqual((job.exit, job.outputs["passed"]), (2, "false"), job.log)

    def test_a_fork_that_breaks_the_contract_fails(self) -> None:
        command = [PROCTOR, "tools", "--config", "mcp.yaml", "--lock", "surface.lock.json"]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
        inputs = {"mcp_config": "mcp.yaml", "surface_lock": "surface.lock.json"}
        self.assertEqual(self.on_pull_request("eve/server", **inputs).exit, 0)
        lock = (self.folder / "surface.lock.json").read_text()
        (self.folder / "surface.lock.json").write_text(lock.replace("borrow_book", "lend_book"))
        self.assertNotEqual(self.on_pull_request("eve/server", **inputs).exit, 0)

    def test_a_fork_can_run_scripted_models(self) -> None:
        job = self.on_pull_request("eve/server", forks="all", comment="false")
        self.assertEqual((job.exit, job.outputs["tier"], job.outputs["passed"]), (0, "all", "true"))

    def test_pull_request_target_is_refused(self) -> None:
        job = self.job("pull_request_target", pull_request("eve/server"))
        self.assertEqual(job.exit, 1)
        self.assertIn("use `pull_request`", job.log)

    # Installation.

    def test_the_cache_key_depends_on_the_sources(self) -> None:
        sources = self.folder / "action"
        (sources / "crates").mkdir(parents=True)
        keys = set()
        for name in ("Cargo.toml", "Cargo.lock"):
            (sources / name).touch()
        for text in ("a", "b"):
            (sources / "crates/main.rs").write_text(text)
            output = self.folder / "output"
            output.write_text("")
            env = {**os.environ, "GITHUB_ACTION_PATH": str(sources), "GITHUB_OUTPUT": str(output), "RUNNER_TEMP": "/t"}
            subprocess.run([ROOT / "action/version"], env=env, check=True)
            keys.add(output.read_text())
        self.assertEqual(len(keys), 2)


if __name__ == "__main__":
    unittest.main()
