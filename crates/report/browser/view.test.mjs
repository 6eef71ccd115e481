// The pages of `proctor view` in Chromium, while a recorded run is played back line by line.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

import { SHOTS, accessible, fits, watch } from "./pages.mjs";

const proctor = path.resolve(process.env.PROCTOR || "../../../target/debug/proctor");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "proctor-view-"));
const TRIALS = 120;
const LONG = "long answer ".repeat(4000);

/** Writes a suite of many cases, some of which fail, with a long answer. */
function suite() {
  execFileSync(proctor, ["init", folder], { stdio: "ignore" });
  fs.rmSync(path.join(folder, "tasks"), { recursive: true });
  fs.mkdirSync(path.join(folder, "tasks"));
  for (let n = 10; n < 50; n++) {
    const verify = n % 4 === 0 ? "test $(( $(date +%N | cut -c 5 ) % 2 )) = 0" : n % 7 === 0 ? "exit 1" : "test -d .";
    fs.writeFileSync(path.join(folder, `tasks/case-${n}.yaml`), JSON.stringify({ kind: "Task", apiVersion: "mcpchecker/v1alpha2",
      metadata: { name: `case-${n}` }, spec: { prompt: { inline: `case ${n}` }, verify: [{ script: { inline: verify } }] } }));
  }
  const eval_ = path.join(folder, "eval.yaml");
  fs.writeFileSync(eval_, fs.readFileSync(eval_, "utf8").replace(/ {6}assertions:[^]*$/, ""));
  fs.writeFileSync(path.join(folder, "model.yaml"), `kind: Script\nrules:\n  - when: {results: 0}\n    reply: {calls: [{tool: search_books, arguments: {author: Le}}]}\n  - reply: {text: "${LONG}"}\n`);
}

/** Records a run. */
function record(name) {
  try {
    execFileSync(proctor, ["check", "eval.yaml", "-n", "3", "--record", `runs/${name}`], { cwd: folder, stdio: "ignore" });
  } catch (error) {
    assert.equal(error.status, 1, String(error));
  }
  return path.join(folder, "runs", name);
}

/** Copies a run line by line. `next(n)` plays back n ended trials, `end()` the rest. */
function playback(from, to) {
  const run = fs.readFileSync(path.join(from, "run.jsonl"), "utf8").trimEnd().split("\n");
  const index = fs.readFileSync(path.join(from, "index.jsonl"), "utf8").trimEnd().split("\n");
  fs.mkdirSync(path.join(to, "trials"), { recursive: true });
  if (fs.existsSync(path.join(from, "blobs"))) fs.cpSync(path.join(from, "blobs"), path.join(to, "blobs"), { recursive: true });
  fs.writeFileSync(path.join(to, "run.jsonl"), run.slice(0, -1).join("\n") + "\n");
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
    fs.appendFileSync(path.join(to, "run.jsonl"), `${run.at(-1)}\n`);
    release();
  } };
}

let told, player, viewer, url, origin, browser;

before(async () => {
  suite();
  const recorded = record("recorded");
  record("second");
  told = JSON.parse(execFileSync(proctor, ["result", "show", recorded, "-o", "json"], { maxBuffer: 1 << 30 })).proctor;
  player = playback(recorded, path.join(folder, "runs", "played"));
  player.next(20);
  viewer = spawn(proctor, ["view", "runs/played"], { cwd: folder, stdio: ["ignore", "pipe", "ignore"] });
  url = (await new Promise((done) => viewer.stdout.once("data", done))).toString().trim();
  origin = url.split("/#")[0];
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  viewer?.kill("SIGINT");
  player?.release();
  fs.rmSync(folder, { recursive: true });
});

/** A page that fails the test on any error, violation of the policy, or request to another server. */
async function guarded(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`); });
  page.on("request", (request) => { if (!request.url().startsWith(`${origin}/`) && !request.url().startsWith("blob:")) problems.push(`request: ${request.url()}`); });
  await page.addInitScript(watch);
  await page.goto(url);
  await page.waitForSelector("main h1");
  return { context, page, finish: async () => {
    problems.push(...(await page.evaluate(() => globalThis.violations)));
    await context.close();
    assert.deepEqual(problems, []);
  } };
}

/** @param {any} page @param {string} address @param {string} heading */
async function go(page, address, heading) {
  await page.goto(`${origin}/?run=played${address}`);
  await page.waitForFunction((text) => document.querySelector("h1")?.textContent === text, heading);
}

const shot = (page, name, fullPage = false) => page.screenshot({ path: path.join(SHOTS, `view-${name}.png`), fullPage });

test("the token leaves the address, and a run that goes on is never a success", async () => {
  const { page, finish } = await guarded();
  assert.equal(page.url(), `${origin}/`);
  assert.match(await page.textContent(".live"), new RegExp(`Running: 20 of ${TRIALS} trials ended`));
  assert.equal(await page.locator(".verdict.good").count(), 0);
  await finish();
});

test("new rows don't move what is read, and a resumed run goes on in the same page", async () => {
  const { page, finish } = await guarded();
  // The overview at its top draws itself again.
  player.next(5);
  await page.waitForFunction(() => /25 of 120/.test(document.querySelector(".live").textContent));
  assert.equal(await page.locator("#show-new").count(), 0);
  await shot(page, "running");
  await page.goto(`${origin}/#/trials?outcome=passed`);
  await page.waitForSelector(".list .row");
  await page.evaluate(() => scrollTo(0, 150));
  const place = () => page.evaluate(() => [scrollY, document.querySelectorAll(".list .row").length, document.querySelector(".list").getBoundingClientRect().top]);
  const before = await place();
  player.next(12);
  await page.waitForFunction(() => /12 new trials, show/.test(document.querySelector("#show-new")?.textContent || ""));
  assert.deepEqual(await place(), before, "the list moved");
  await shot(page, "new-trials");
  await page.click("#show-new");
  await page.waitForFunction((rows) => document.querySelectorAll(".list .row").length > rows, before[1]);
  assert.equal(await page.locator("#show-new").count(), 0);
  // Stopped: nobody writes the run, and it has no end.
  player.release();
  await page.waitForFunction(() => /Not finished, and no process writes it: 37 of 120/.test(document.querySelector(".live").textContent));
  await page.goto(`${origin}/#/`);
  player.end();
  await page.waitForFunction(() => document.querySelector(".live").textContent === "played. ");
  await page.waitForFunction((passed) => document.querySelector(".verdict")?.textContent.includes(`${passed}/`), told.trials.passed);
  const look = await page.evaluate(() => document.querySelector(".verdict").className);
  assert.equal(/good/.test(look), told.gate.answer === "met" && told.exit.code === 0);
  await shot(page, "ended");
  await finish();
});

test("a cut text is loaded and saved", async () => {
  const { page, finish } = await guarded();
  await page.goto(`${origin}/#/trials`);
  await page.click(".list .row a");
  await page.waitForSelector(".trial-page");
  await page.click("text=Load the whole text");
  await page.waitForFunction(() => [...document.querySelectorAll("pre")].some((pre) => pre.textContent.length >= 48000));
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save the whole text")]);
  assert.equal(fs.statSync(await download.path()).size, LONG.length);
  await shot(page, "trial");
  await finish();
});

for (const colorScheme of ["light", "dark"]) {
  test(`history and comparison are accessible and fit on a phone: ${colorScheme}`, async () => {
    const { page, finish } = await guarded({ colorScheme });
    // The page's policy forbids axe-core.
    const audited = await guarded({ colorScheme, bypassCSP: true });
    await go(audited.page, "#/", told.run.name);
    await accessible(audited.page, "overview");
    for (const [name, address, heading] of [["history", "#/history", "History"], ["compare", "#/diff/second", "Compare"]]) {
      await go(audited.page, address, heading);
      await accessible(audited.page, name);
      await go(page, address, heading);
      await shot(page, `${name}-${colorScheme}`, true);
      await page.setViewportSize({ width: 390, height: 800 });
      await fits(page, name);
      await shot(page, `${name}-phone-${colorScheme}`);
      await page.setViewportSize({ width: 1280, height: 800 });
    }
    await audited.context.close();
    await finish();
  });
}

test("keys and links lead to other runs, in other tabs too, but not in other browsers", async () => {
  const { context, page, finish } = await guarded();
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "History");
  await page.click("main table >> text=recorded");
  await page.waitForFunction(() => document.querySelector(".live")?.textContent.startsWith("recorded"));
  const tab = await context.newPage();
  await tab.goto(`${origin}/#/trials`);
  await tab.waitForFunction(() => document.querySelector("h1")?.textContent === "Trials");
  const stranger = await (await browser.newContext()).newPage();
  await stranger.goto(`${origin}/`);
  await stranger.waitForSelector("text=missing token");
  await finish();
});
