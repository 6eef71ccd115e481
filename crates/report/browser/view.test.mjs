// The pages of `proctor view` in both browsers: a run that is played back, one that really goes on, and a large one.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { WINDOWS, startChromium, startFirefox, until } from "./browsers.mjs";
import { PAGES, SHOTS, accessible, fits, settle } from "./pages.mjs";
import { proctor, run } from "./suites.mjs";
import { LONG, manyCases, playback, record, temporary, view, waitingCases } from "./viewer.mjs";

const line = (page) => page.evaluate(() => document.querySelector(".live")?.textContent || "");
const heading = (page, text) => until(page, (is) => document.querySelector("h1")?.textContent === is, text);
const click = (page, selector, text) => until(page, ([at, words]) => {
  const found = [...document.querySelectorAll(at)].find((one) => one.textContent.includes(words));
  found?.click();
  return Boolean(found);
}, [selector, text]);

/** A folder with two recorded runs, of which each browser gets a copy. @type {string | undefined} */
let recordedIn;
function recordings() {
  if (!recordedIn) {
    recordedIn = temporary("recorded");
    manyCases(recordedIn);
    record(recordedIn, "recorded");
    record(recordedIn, "second");
  }
  return recordedIn;
}

for (const start of [startChromium, startFirefox]) {
  const name = start.name.slice(5).toLowerCase();
  describe(`${name}: a recorded run`, () => {
    let told, player, viewer, browser;
    before(async () => {
      const folder = temporary("view");
      fs.cpSync(recordings(), folder, { recursive: true });
      const recorded = path.join(folder, "runs", "recorded");
      told = JSON.parse(run(folder, "result", "show", recorded, "-o", "json").out).proctor;
      player = playback(recorded, path.join(folder, "runs", "played"));
      player.next(20);
      viewer = await view(folder, "runs/played");
      browser = await start();
    });
    after(async () => {
      await browser?.close();
      viewer?.stop();
      player?.release();
    });

    /** A page with the token. */
    const opened = async (window = WINDOWS[0]) => {
      const all = await browser.page({ ...window, isOwn: viewer.isOwn });
      await all.page.goto(viewer.url);
      await all.page.waitForSelector("main h1");
      return all;
    };
    const shot = (page, what) => page.screenshot({ path: path.join(SHOTS, `view-${name}-${what}.png`) });

    test("the token leaves the address, and a run that goes on is never a success", async () => {
      const { page, finish } = await opened();
      assert.equal(page.url(), `${viewer.origin}/`);
      await until(page, () => /^playedRunning: 20 of 120 trials ended/.test(document.querySelector(".live").textContent));
      assert.equal(await page.evaluate(() => document.querySelectorAll(".verdict.good").length), 0);
      await finish();
    });

    test("new rows don't move what is read", async () => {
      const { page, finish } = await opened();
      // The overview at its top draws itself again.
      player.next(5);
      await until(page, () => /25 of 120/.test(document.querySelector(".live").textContent));
      assert.equal(await page.evaluate(() => document.querySelectorAll("#show-new").length), 0);
      await shot(page, "running");
      await page.goto(`${viewer.origin}/#/trials?outcome=passed`);
      await page.waitForSelector(".list .row");
      await page.evaluate(() => scrollTo(0, 150));
      const place = () => page.evaluate(() => [scrollY, document.querySelectorAll(".list .row").length, document.querySelector(".list").getBoundingClientRect().top]);
      const before = await place();
      player.next(12);
      await until(page, () => /12 new trials, show/.test(document.querySelector("#show-new")?.textContent || ""));
      assert.deepEqual(await place(), before, "the list moved");
      await shot(page, "new-trials");
      await page.click("#show-new");
      await until(page, (rows) => document.querySelectorAll(".list .row").length > rows, before[1]);
      assert.equal(await page.evaluate(() => document.querySelectorAll("#show-new").length), 0);
      await page.evaluate(() => { location.hash = "#/"; });
      player.end();
      await until(page, () => document.querySelector(".live").textContent === "played");
      await until(page, (passed) => document.querySelector(".verdict")?.textContent.includes(`${passed}/`), told.trials.passed);
      const look = await page.evaluate(() => document.querySelector(".verdict").className);
      assert.equal(/good/.test(look), told.gate.answer === "met" && told.exit.code === 0);
      await finish();
    });

    test("a cut text is loaded and saved, and messages are shown byte by byte", async () => {
      const { page, finish } = await opened();
      await page.goto(`${viewer.origin}/#/trials`);
      await page.waitForSelector(".list .row a");
      await page.evaluate(() => document.querySelector(".list .row a").click());
      await page.waitForSelector(".trial-page");
      await click(page, "button", "Load the whole text");
      await until(page, (length) => [...document.querySelectorAll("pre")].some((pre) => pre.textContent.length === length), LONG.length);
      if (name === "chromium") {
        const [download] = await Promise.all([page.waitForEvent("download"), click(page, "button", "Save the whole text")]);
        assert.equal(fs.statSync(await download.path()).size, LONG.length);
      }
      await page.evaluate(() => { document.querySelector("details.call").open = true; });
      await click(page, "details.call button", "Raw messages");
      const raw = await until(page, () => [...document.querySelectorAll("details.call pre")].map((pre) => pre.textContent).filter((text) => text.includes("jsonrpc") || text.startsWith("000000  7b")).length === 4 && document.querySelector("details.call").textContent);
      assert.match(raw, /To the server, event \d+: \d+ bytes.*"method": ?"tools\/call"/s);
      assert.match(raw, /To the client, event \d+/);
      await finish();
    });

    for (const window of WINDOWS) {
      test(`history and comparison are accessible and as wide as their window: ${window.name}`, async () => {
        const { page, finish } = await opened(window);
        for (const [what, address, title] of [["overview", "#/", told.run.name], ["history", "#/history", "History"], ["compare", "#/diff/second", "Compare"]]) {
          await page.goto(`${viewer.origin}/?run=played${address}`);
          await heading(page, title);
          assert.match(await page.evaluate(() => document.querySelector(".live").textContent), /^played/);
          await accessible(page, what);
          await fits(page, what);
          await page.screenshot({ path: path.join(SHOTS, `view-${name}-${what}-${window.name.replace(" ", "-")}.png`), fullPage: true });
        }
        await finish();
      });
    }

    test("keys and links lead to other runs, in other tabs too, but not in other browsers", async () => {
      const { context, page, finish } = await opened();
      await page.keyboard.press("g");
      await page.keyboard.press("h");
      await heading(page, "History");
      await click(page, "main table a", "recorded");
      await until(page, () => document.querySelector(".live")?.textContent.startsWith("recorded"));
      const tab = await context.newPage();
      await tab.goto(`${viewer.origin}/#/trials`);
      await heading(tab, "Trials");
      const stranger = await browser.page({ isOwn: viewer.isOwn });
      await stranger.page.goto(`${viewer.origin}/`);
      await until(stranger.page, () => /missing token/.test(document.body.textContent));
      await stranger.context.close();
      await finish();
    });
  });

  test(`${name}: a run that is stopped and resumed goes on in the same page`, async () => {
    const folder = temporary("live");
    const { go } = waitingCases(folder);
    const check = (...words) => spawn(proctor, ["check", ...words, "--parallel", "1"], { cwd: folder, stdio: "ignore" });
    const ended = (child) => new Promise((done) => child.once("exit", done));
    go(10, 12);
    let running = check("eval.yaml", "--record", "runs/real");
    while (!fs.existsSync(path.join(folder, "runs/real/index.jsonl"))) await new Promise((done) => setTimeout(done, 50));
    const viewer = await view(folder, "runs/real");
    const browser = await start();
    try {
      const { page, finish } = await browser.page({ height: 500, isOwn: viewer.isOwn });
      await page.goto(viewer.url);
      await until(page, () => /3 of 40 trials ended, 1 under way/.test(document.querySelector(".live")?.textContent || ""));
      await page.evaluate(() => { globalThis.isSamePage = true; location.hash = "#/trials"; });
      await page.waitForSelector(".list .row");
      await page.evaluate(() => scrollTo(0, 400));
      await settle(page);
      const place = () => page.evaluate(() => [scrollY, ...[...document.querySelectorAll(".list .row")].map((row) => `${row.getBoundingClientRect().top} ${row.textContent}`)]);
      const before = await place();
      go(13, 14);
      await until(page, () => document.querySelector("#show-new")?.textContent === "2 new trials, show");
      assert.deepEqual(await place(), before, "nothing moved");
      await page.click("#show-new");
      await until(page, () => [...document.querySelectorAll(".list .row .tag.passed")].length === 5);
      assert.equal((await place())[0], before[0], "the page stays where it was scrolled to");
      running.kill("SIGINT");
      assert.equal(await ended(running), 130);
      await until(page, () => /Stopped: \d of 40 trials ended/.test(document.querySelector(".live").textContent));
      await page.evaluate(() => { location.hash = "#/"; });
      await until(page, () => /Exit code 130/.test(document.querySelector(".verdict")?.textContent || ""));
      assert.equal(await page.evaluate(() => document.querySelectorAll(".verdict.good").length), 0);
      running = check("--resume", "runs/real");
      go(15, 48);
      await until(page, () => /Running: 39 of 40 trials ended/.test(document.querySelector(".live").textContent));
      go(49, 49);
      assert.equal(await ended(running), 0);
      await page.evaluate(() => { location.hash = "#/"; });
      await until(page, () => document.querySelector(".verdict.good")?.textContent.includes("40/40") && document.querySelector(".live").textContent === "real");
      assert.equal(await page.evaluate(() => globalThis.isSamePage), true, "the page was not loaded again");
      await finish();
    } finally {
      running.kill("SIGINT");
      await browser.close();
      viewer.stop();
    }
  });

  test(`${name}: a run with a long index is shown first, and compared with its trials then`, async () => {
    const viewer = await view(PAGES, "large");
    const browser = await start();
    try {
      const { page, early, finish } = await browser.page({ isOwn: viewer.isOwn });
      // The first state may be over before a driver asks for it.
      await early(() => new MutationObserver(() => {
        const isComparing = /Comparing the trials with the index/.test(document.querySelector(".live")?.textContent || "");
        if (isComparing) globalThis.first ||= document.querySelector(".verdict")?.textContent;
      }).observe(document, { subtree: true, childList: true, characterData: true }));
      await page.goto(viewer.url);
      await until(page, () => document.querySelector(".verdict") && document.querySelector(".live").textContent === "large");
      const [first, now] = await page.evaluate(() => [globalThis.first, document.querySelector(".verdict").textContent]);
      assert.equal(first, now, "index and trials agree");
      await finish();
    } finally {
      await browser.close();
      viewer.stop();
    }
  });
}
