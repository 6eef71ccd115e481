// Suites that are run for real: their servers, agents and steps are programs, only the models are scripts.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

const debug = path.resolve(import.meta.dirname, "../../../target/debug");

/** The program under test. */
export const proctor = path.resolve(process.env.PROCTOR || path.join(debug, "proctor"));
/** Servers are found by their names, so that no path of this machine is in a report. */
process.env.PATH = `${debug}:${process.env.PATH}`;

/** Runs Proctor in a folder. @returns {{code: number | null, out: string, err: string}} */
export function run(folder, ...words) {
  const done = spawnSync(proctor, words, { cwd: folder, encoding: "utf8", maxBuffer: 1 << 30 });
  if (done.error) throw done.error;
  return { code: done.status, out: done.stdout, err: done.stderr };
}

/** Writes files, with content other than text as JSON, which is YAML. @param {string} folder @param {Record<string, any>} files */
export function write(folder, files) {
  for (const [name, content] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), typeof content === "string" ? content : JSON.stringify(content, null, 1));
  }
}

/** A task. @param {string} name @param {string} prompt @param {any} [more] */
export const task = (name, prompt, { verify = "test -d .", labels = {}, difficulty = "easy", ...spec } = {}) => ({ kind: "Task", apiVersion: "mcpchecker/v1alpha2",
  metadata: { name, difficulty, labels }, spec: { prompt: { inline: prompt }, verify: [{ script: { inline: `#!/bin/sh\n${verify}\n`, env: { ANSWER: "{agent.output}" } } }], ...spec } });

const servers = (modes) => ({ mcpServers: { library: { command: "proctor", args: ["__demo"] }, desk: { command: "fixture-server", args: modes } } });
const model = (rules) => ({ kind: "Script", rules });
const call = (tool, args) => ({ calls: [{ tool, arguments: args }] });
const rule = (prompt, results, reply) => ({ when: { prompt, results }, reply: { delay: "40ms", ...reply } });

/** What both agents do, except where `changed` says otherwise. @param {any[]} changed */
const rules = (changed = []) => [...changed,
  rule("Borrow (.+?) for", 0, call("search_books", { title: "{match.1}" })),
  rule("Borrow", 1, call("borrow_book", { id: "{result.books[0].id}", member: "grace" })),
  rule("Return", 0, call("return_book", { id: 2 })),
  rule("written by", 0, call("search_books", { author: "Le Guin" })),
  rule("Say hello", 0, call("echo", { text: "hello" })),
  { reply: { text: "Done: {result}", delay: "40ms" } }];

const agent = (name) => [`agents/${name}.yaml`, { kind: "Agent", metadata: { name }, builtin: { type: "llm-agent", model: `scripted:../models/${name}.yaml` } }];

/**
 * A library with two agents. Of the hasty one, three trials have a fault each: it passes a wrong argument to a tool,
 * the server of a tool crashes in the call, and its model is not available. One case is flaky.
 */
export function library(folder, agents = ["careful", "hasty"]) {
  const borrow = (id) => ({ toolsUsed: [{ server: "library", tool: "borrow_book", arguments: { id, member: "grace" }, isError: false }] });
  const set = (name, assertions) => ({ path: `tasks/${name}.yaml`, ...(assertions ? { assertions } : {}) });
  write(folder, {
    "eval.yaml": { kind: "Eval", metadata: { name: "library" }, config: {
      agents: agents.map((name) => ({ type: "file", path: `agents/${name}.yaml` })), mcpConfigFile: "mcp-config.yaml",
      defaultTaskLimits: { timeout: "1m" },
      taskSets: [set("borrow-solaris", borrow(3)), set("borrow-roadside-picnic", borrow(5)), set("borrow-the-dispossessed", borrow(1)), set("return-a-book"), set("find-an-author"), set("ask-the-desk", { toolsUsed: [{ server: "desk", tool: "echo" }] }),
        set("list-new-books")] } },
    "mcp-config.yaml": servers([]),
    ...Object.fromEntries([agent("careful"), agent("hasty")]),
    "models/careful.yaml": model(rules()),
    "models/hasty.yaml": model(rules()),
    "tasks/borrow-solaris.yaml": task("borrow-solaris", "Borrow Solaris for the member grace, and say for how many days.", { labels: { area: "lending" }, verify: "case \"$ANSWER\" in *14*) ;; *) echo \"14 is not in: $ANSWER\"; exit 1;; esac" }),
    "tasks/borrow-roadside-picnic.yaml": task("borrow-roadside-picnic", "Borrow Roadside Picnic for the member grace.", { labels: { area: "lending" } }),
    "tasks/borrow-the-dispossessed.yaml": task("borrow-the-dispossessed", "Borrow The Dispossessed for the member grace.", { labels: { area: "lending" }, difficulty: "medium" }),
    "tasks/return-a-book.yaml": task("return-a-book", "Return A Wizard of Earthsea.", { labels: { area: "lending" } }),
    "tasks/find-an-author.yaml": task("find-an-author", "Which books were written by Ursula K. Le Guin?", { labels: { area: "search" } }),
    "tasks/ask-the-desk.yaml": task("ask-the-desk", "Say hello to the desk.", { labels: { area: "desk" }, difficulty: "hard" }),
    "tasks/list-new-books.yaml": task("list-new-books", "Which of the books written by Le Guin are new?", { labels: { area: "search" },
      // Flaky: every third time, it fails.
      verify: `n=$(cat ${folder}/turn 2>/dev/null || echo 0); echo $((n + 1)) > ${folder}/turn; test $((n % 3)) -ne 1 || { echo "the list has no new books"; exit 1; }` }),
  });
}

/** Puts faults into the library. @param {string} folder */
export function faults(folder, { crash = true, outage = true } = {}) {
  const unavailable = { when: { prompt: "written by Ursula" }, reply: { error: { kind: "unavailable", detail: "the model is overloaded, try again later" } } };
  write(folder, {
    ...(crash ? { "mcp-config.yaml": servers(["--mode", "exit-in-call=3", "--mode", "stderr=panic: out of paper"]) } : {}),
    "models/hasty.yaml": model(rules([rule("Borrow Solaris", 1, call("borrow_book", { id: "{result.books[0].id}", member: "garce" })), ...(outage ? [unavailable] : [])])),
  });
}

/** Selection rows for the library. The hasty model confuses tools, invents one, and makes a call where none is due. @param {string} folder */
export function selectionRows(folder) {
  library(folder);
  const row = (id, prompt, expect) => ({ id, prompt, expect });
  const first = (prompt, reply) => ({ when: { prompt }, reply });
  const search = call("search_books", { title: "Solaris" });
  const borrow = call("borrow_book", { id: 3, member: "grace" });
  const giveBack = call("return_book", { id: 3 });
  write(folder, {
    "eval.yaml": { kind: "Eval", metadata: { name: "routing" }, config: {
      agents: ["careful", "hasty"].map((name) => ({ type: "file", path: `agents/${name}.yaml` })), mcpConfigFile: "mcp-config.yaml",
      taskSets: [{ selection: "routing.yaml", server: "library" }] } },
    "routing.yaml": { kind: "Selection", metadata: { name: "routing" }, spec: { rows: [
      row("find", "Do you have Solaris?", "search_books"), row("lend", "I want to take Solaris home", "borrow_book"),
      row("back", "Here is Solaris again", "return_book"), row("late", "I forgot to bring Solaris back", "return_book"),
      row("joke", "Tell me a joke", "none")] } },
    "models/careful.yaml": model([first("Do you have", search), first("take Solaris home", borrow), first("Solaris again|bring Solaris", giveBack), { reply: { text: "Ha." } }]),
    "models/hasty.yaml": model([first("Do you have", search), first("take Solaris home", search), first("Solaris again", borrow),
      first("bring Solaris", call("renew_book", { id: 3 })), { reply: search }]),
  });
}
