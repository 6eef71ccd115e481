// `proctor view` with runs that are recorded, played back, or going on.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { proctor, run, task, write } from "./suites.mjs";

/** A text that a page cuts. */
export const LONG = "long answer ".repeat(4000);

/** A folder that is removed when the process ends. @param {string} name */
export function temporary(name) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), `proctor-${name}-`));
  process.on("exit", () => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const config = (tasks) => ({ kind: "Eval", metadata: { name: "viewed" }, config: { agent: { type: "builtin.llm-agent", model: "scripted:model.yaml" },
  mcpConfigFile: "mcp-config.yaml", taskSets: [{ glob: tasks }] } });
const servers = { mcpServers: { library: { command: proctor, args: ["__demo"] } } };
const search = { when: { results: 0 }, reply: { calls: [{ tool: "search_books", arguments: { author: "Le" } }] } };

/** Forty cases, some of which fail or differ, with a long answer. @param {string} folder */
export function manyCases(folder) {
  const verify = (n) => (n % 4 === 0 ? "test $(( $(date +%N | cut -c 5 ) % 2 )) = 0" : n % 7 === 0 ? "exit 1" : "test -d .");
  write(folder, { "eval.yaml": config("tasks/*.yaml"), "mcp-config.yaml": servers,
    "model.yaml": { kind: "Script", rules: [search, { reply: { text: LONG } }] },
    ...Object.fromEntries([...Array(40).keys()].map((n) => [`tasks/case-${n + 10}.yaml`, task(`case-${n + 10}`, `case ${n + 10}`, { verify: verify(n + 10) })])) });
}

/** Cases that each wait for a file of their own. @param {string} folder */
export function waitingCases(folder) {
  write(folder, { "eval.yaml": config("tasks/*.yaml"), "mcp-config.yaml": servers, "model.yaml": { kind: "Script", rules: [search, { reply: { text: "Done." } }] },
    ...Object.fromEntries([...Array(40).keys()].map((n) => [`tasks/case-${n + 10}.yaml`,
      task(`case-${n + 10}`, `case ${n + 10}`, { verify: `until [ -e ${folder}/go-${n + 10} ]; do sleep 0.05; done` })])) });
  return { go: (from, to) => { for (let n = from; n <= to; n++) fs.writeFileSync(path.join(folder, `go-${n}`), ""); } };
}

/** Records a run. @param {string} folder @param {string} name */
export function record(folder, name) {
  const done = run(folder, "check", "eval.yaml", "-n", "3", "--record", `runs/${name}`);
  assert.ok(done.code === 0 || done.code === 1, done.err);
  return path.join(folder, "runs", name);
}

/** Copies a run line by line. `next(n)` plays back n ended trials, `end()` the rest. @param {string} from @param {string} to */
export function playback(from, to) {
  const events = fs.readFileSync(path.join(from, "run.jsonl"), "utf8").trimEnd().split("\n");
  const index = fs.readFileSync(path.join(from, "index.jsonl"), "utf8").trimEnd().split("\n");
  fs.mkdirSync(path.join(to, "trials"), { recursive: true });
  if (fs.existsSync(path.join(from, "blobs"))) fs.cpSync(path.join(from, "blobs"), path.join(to, "blobs"), { recursive: true });
  fs.writeFileSync(path.join(to, "run.jsonl"), `${events.slice(0, -1).join("\n")}\n`);
  fs.writeFileSync(path.join(to, "index.jsonl"), "");
  // As a process that writes the run.
  const lock = spawn("flock", ["-x", path.join(to, "lock"), "sleep", "600"], { stdio: "ignore", detached: true });
  let at = 0;
  const line = () => {
    const text = index[at++];
    const { began, ended } = JSON.parse(text);
    if (began) {
      const whole = fs.readFileSync(path.join(from, "trials", began.file), "utf8");
      fs.writeFileSync(path.join(to, "trials", `${began.file}.part`), whole.slice(0, whole.lastIndexOf("\n", whole.length / 2) + 1));
    } else {
      fs.copyFileSync(path.join(from, "trials", ended.file), path.join(to, "trials", ended.file));
      fs.rmSync(path.join(to, "trials", `${ended.file}.part`), { force: true });
    }
    fs.appendFileSync(path.join(to, "index.jsonl"), `${text}\n`);
    return Boolean(ended);
  };
  const next = (n) => { while (n > 0 && at < index.length) if (line()) n--; };
  const release = () => { try { process.kill(-lock.pid); } catch { /* It has ended. */ } };
  return { next, release, end: () => {
    next(Infinity);
    fs.appendFileSync(path.join(to, "run.jsonl"), `${events.at(-1)}\n`);
    release();
  } };
}

/** Starts the viewer. @param {string} folder @param {string} shown */
export async function view(folder, shown) {
  const viewer = spawn(proctor, ["view", shown], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const url = (await new Promise((done) => viewer.stdout.once("data", done))).toString().trim();
  const origin = url.split("/#")[0];
  return { url, origin, isOwn: (/** @type {string} */ is) => is.startsWith(`${origin}/`) || is.startsWith("blob:"), stop: () => viewer.kill("SIGINT") };
}
