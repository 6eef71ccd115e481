// Reports of runs of every sort, in both browsers.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, describe, test } from "node:test";

import { WINDOWS, startChromium, startFirefox, until } from "./browsers.mjs";
import { KINDS, PAGES, PLACES, SHOTS, accessible, deepLink, fits, harmless, honest, keys, open, search, settle, sideBySide, theme, url } from "./pages.mjs";

/** A report asks for itself, and for nothing else. */
const isOwn = (/** @type {string} */ is) => /^file:\/\/[^?]*\.html$/.test(is);

for (const start of [startChromium, startFirefox]) {
  const starting = start();
  const name = start.name.slice(5).toLowerCase();
  describe(name, () => {
    after(async () => (await starting).close());
    const guarded = async (window = WINDOWS[0]) => (await starting).page({ ...window, isOwn });

    test("a request of a page without a policy is seen", async () => {
      const file = path.join(PAGES, "leaks.html");
      fs.writeFileSync(file, "<!doctype html><title>x</title><img src=http://leak.invalid/x>");
      const { page, problems, context } = await guarded();
      await page.goto(`file://${file}`);
      while (!problems.some((problem) => problem.includes("leak.invalid"))) await settle(page);
      await context.close();
    });

    for (const kind of KINDS) {
      for (const window of WINDOWS) {
        test(`${kind}, ${window.name}: every page is drawn, accessible and as wide as its window`, async () => {
          const { page, finish } = await guarded(window);
          for (const place of PLACES) {
            const where = `${kind} ${window.name} ${place}`;
            await open(page, kind, place);
            await accessible(page, where);
            await fits(page, where);
            if (kind === "hostile") await harmless(page);
            const file = `${name}-${kind}-${place.replace(/\W/g, "") || "overview"}-${window.name.replace(" ", "-")}.png`;
            await page.screenshot({ path: path.join(SHOTS, file), fullPage: kind !== "large" });
          }
          await finish();
        });
      }
      test(`${kind}: prints`, async () => {
        const { page, finish } = await guarded();
        for (const place of ["#/", "trial"]) {
          await open(page, kind, place);
          const pdf = await page.pdf({ timeout: 180_000 });
          assert.equal(Buffer.from(pdf.slice(0, 5)).toString(), "%PDF-");
          fs.writeFileSync(path.join(SHOTS, `${name}-${kind}-${place.replace(/\W/g, "") || "overview"}.pdf`), pdf);
        }
        await finish();
      });
      test(`${kind}: says what \`result show\` says`, async () => {
        const { page, finish } = await guarded();
        await honest(page, kind);
        await finish();
      });
    }

    for (const [what, check] of Object.entries({ keys, deepLink, search, sideBySide, theme })) {
      test(what, async () => {
        const { page, finish } = await guarded();
        await check(page);
        await finish();
      });
    }

    test("a printed list says what it leaves out", async () => {
      const { page, finish } = await guarded();
      await open(page, "large", "#/trials");
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      assert.deepEqual(await page.evaluate(() => [document.querySelectorAll(".list .row").length, document.querySelector(".printed").textContent]),
        [2000, "and 8,000 more rows, not printed"]);
      await finish();
    });

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
      assert.ok(await page.evaluate(() => document.querySelectorAll(".list a").length) > 5);
      await page.evaluate(() => { location.hash = "#/trial/tasks%2Fcase-0124.yaml/codex/39"; });
      await until(page, () => /incomplete/.test(document.querySelector("main").textContent));
      await finish();
    });
  });
}

describe("chromium alone", () => {
  const starting = startChromium();
  after(async () => (await starting).close());

  test("without scripts, a sentence names the command for text", async () => {
    const { page, finish } = await (await starting).page({ isOwn, options: { javaScriptEnabled: false } });
    await page.goto(url("one"));
    assert.match(await page.innerText("body"), /^This report needs JavaScript\. As text: proctor result show RUN -o markdown\.$/);
    await finish();
  });

  test("10,000 trials stay within their budgets", async () => {
    assert.ok(fs.statSync(path.join(PAGES, "large.html")).size < 25_000_000);
    const { page, finish } = await (await starting).page({ isOwn });
    const client = await page.context().newCDPSession(page);
    await client.send("Performance.enable", { timeDomain: "threadTicks" });
    const metric = async (key) => (await client.send("Performance.getMetrics")).metrics.find((one) => one.name === key).value;
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
});
