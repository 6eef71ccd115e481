// Writes the trials of a run as results of Allure and as input of `test_trials.py`: the same names, outcomes, durations
// and reasons, and a step or a line for each event. Peers get the first 120 characters of each event; the report of
// Proctor has all of them.

import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";

const [run, out] = process.argv.slice(2);
const results = path.join(out, "allure-results");
fs.rmSync(results, { recursive: true, force: true });
fs.mkdirSync(results, { recursive: true });

const STATUS = { passed: "passed", failed: "failed", errored: "broken", "timed-out": "broken", timedOut: "broken" };
const lines = [];
const files = fs.readdirSync(path.join(run, "trials")).sort();
for (const [number, file] of files.entries()) {
  const events = fs.readFileSync(path.join(run, "trials", file), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
  const texts = events.map((event) => `${event.kind || event.event || ""} ${JSON.stringify(event)}`.slice(0, 120));
  const [, name, agent, repeat] = /^(.*?)\.(.*)\.(\d+)-/.exec(file);
  const ended = JSON.stringify(events.at(-1));
  const outcome = /"outcome":"([\w-]+)"/.exec(ended)[1];
  const reason = /"reason":"((?:[^"\\]|\\.)*)"/.exec(ended)?.[1] || "";
  const micros = events.at(-1).at - events[0].at;
  const start = 1_763_213_780_000 + number * 10;
  const status = STATUS[outcome] || "skipped";
  const uuid = crypto.createHash("md5").update(file).digest("hex");
  fs.writeFileSync(path.join(results, `${uuid}-result.json`), JSON.stringify({
    uuid, historyId: uuid, name: `${name} ${agent} ${repeat}`, fullName: `${name}/${agent}/${repeat}`, status,
    statusDetails: reason ? { message: reason } : {}, stage: "finished", start, stop: start + Math.round(micros / 1000),
    labels: [{ name: "suite", value: name }, { name: "parentSuite", value: agent }],
    steps: texts.map((text) => ({ name: text, status: "passed", stage: "finished", start, stop: start + 1 })),
  }));
  lines.push(JSON.stringify({ name: `${name}-${agent}-${repeat}`, outcome: status, reason, texts }));
}
fs.writeFileSync(path.join(out, "trials.jsonl"), `${lines.join("\n")}\n`);
console.log(`${files.length} trials`);
