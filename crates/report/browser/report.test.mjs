// The report in Chromium, driven by Playwright.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

import { KINDS, PAGES, PLACES, SHOTS, accessible, deepLink, fits, harmless, honest, keys, open, search, settle, sideBySide, url, watch } from "./pages.mjs";

const VIEWS = [
  { name: "light", colorScheme: "light", viewport: { width: 1280, height: 900 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 1280, height: 900 } },
  { name: "phone", colorScheme: "light", viewport: { width: 390, height: 800 } },
];

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox"] });
});
after(() => browser.close());

/** A page that fails the test on any error, violation of the policy, or request. */
async function guarded(options = VIEWS[0]) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  page.on("request", (request) => {
    const is = request.url().split("#")[0];
    if (!/^file:\/\/[^?]*\.html$/.test(is) && is !== "about:blank") problems.push(`request: ${is}`);
  });
  await page.addInitScript(watch);
  return { page, problems, finish: async () => {
    problems.push(...(await page.evaluate(() => globalThis.violations || [])));
    await context.close();
    assert.deepEqual(problems, []);
  } };
}

for (const kind of KINDS) {
  for (const view of VIEWS) {
    test(`${kind}, ${view.name}: every page is drawn, accessible and as wide as its window`, async () => {
      const { page, finish } = await guarded(view);
      for (const place of PLACES) {
        const where = `${kind} ${view.name} ${place}`;
        await open(page, kind, place);
        await accessible(page, where);
        await fits(page, where);
        if (kind === "hostile") await harmless(page);
        const name = place.replace(/\W/g, "") || "overview";
        await page.screenshot({ path: path.join(SHOTS, `${kind}-${name}-${view.name}.png`), fullPage: kind !== "large" });
      }
      await finish();
    });
  }
  test(`${kind}: prints`, async () => {
    const { page, finish } = await guarded();
    for (const place of ["#/", "trial"]) {
      await open(page, kind, place);
      const pdf = await page.pdf({ path: path.join(SHOTS, `${kind}-${place.replace(/\W/g, "") || "overview"}.pdf`) });
      assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
    }
    await finish();
  });
  test(`${kind}: says what \`result show\` says`, async () => {
    const { page, finish } = await guarded();
    await honest(page, kind);
    await finish();
  });
}

for (const [name, check] of Object.entries({ keys, deepLink, search, sideBySide })) {
  test(name, async () => {
    const { page, finish } = await guarded();
    await check(page);
    await finish();
  });
}

test("a run that did not start has no results", async () => {
  const { page, finish } = await guarded();
  await page.goto(url("refused"));
  await page.waitForSelector("h1");
  assert.match(await page.evaluate(() => document.querySelector("main").textContent), /No results.*did not start.*eval\.yaml/);
  await finish();
});

test("a file that was cut on its way says so", async () => {
  const text = fs.readFileSync(path.join(PAGES, "large.html"), "utf8");
  fs.writeFileSync(path.join(PAGES, "cut.html"), text.slice(0, text.length / 2));
  const { page, finish } = await guarded();
  await open(page, "cut", "#/trials?sort=calls");
  const links = await page.evaluate(() => document.querySelectorAll(".list a").length);
  assert.ok(links > 5);
  await page.evaluate(() => { location.hash = "#/trial/tasks%2Fcase-0124.yaml/codex/39"; });
  await settle(page);
  await page.waitForFunction(() => /incomplete/.test(document.querySelector("main").textContent));
  await finish();
});

test("without scripts, a sentence names the command for text", async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(url("one"));
  assert.match(await page.innerText("body"), /^This report needs JavaScript\. As text: proctor result show RUN -o markdown\.$/);
  await context.close();
});

test("10,000 trials stay within their budgets", async () => {
  assert.ok(fs.statSync(path.join(PAGES, "large.html")).size < 25_000_000);
  const { page, finish } = await guarded();
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable", { timeDomain: "threadTicks" });
  const metric = async (name) => (await client.send("Performance.getMetrics")).metrics.find((one) => one.name === name).value;
  await page.goto(url("large"), { waitUntil: "commit" });
  await page.waitForFunction(() => performance.getEntriesByName("ready").length > 0);
  const opened = (await metric("TaskDuration")) * 1000;
  await page.waitForLoadState("load");
  const elements = await page.evaluate(() => document.querySelectorAll("*").length);
  await page.evaluate(() => { location.hash = "#/trials"; });
  await settle(page);
  const from = await metric("TaskDuration");
  const frames = 100;
  await page.evaluate((count) => new Promise((done) => {
    const step = () => { scrollBy(0, 400); if (--count > 0) requestAnimationFrame(step); else requestAnimationFrame(done); };
    step();
  }), frames);
  const frame = ((await metric("TaskDuration")) - from) * 1000 / frames;
  const rows = await page.evaluate(() => document.querySelectorAll(".list .row").length);
  await open(page, "large", "trial");
  await client.send("HeapProfiler.collectGarbage");
  const heap = (await metric("JSHeapUsedSize")) / 1e6;
  console.log(`open: ${opened.toFixed(0)} ms CPU; frame: ${frame.toFixed(1)} ms CPU; ${elements} elements; ${rows} rows; heap ${heap.toFixed(1)} MB`);
  assert.ok(opened < 600, `${opened} ms to the first page`);
  assert.ok(frame < 10, `${frame} ms for a frame`);
  assert.ok(elements < 5000, `${elements} elements`);
  assert.ok(heap < 25, `${heap} MB`);
  await finish();
});
