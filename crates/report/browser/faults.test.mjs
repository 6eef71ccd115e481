// A run with three faults, handed to someone who has not seen it: a wrong argument, a server that crashes, a model that is
// not available. The cause of each is found from the overview, by mouse and by keyboard alone, in a few steps.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { startChromium, startFirefox, until } from "./browsers.mjs";
import { settle } from "./pages.mjs";
import { faults, library, run } from "./suites.mjs";
import { temporary } from "./viewer.mjs";

const folder = temporary("faults");
before(() => {
  library(folder);
  faults(folder);
  const done = run(folder, "check", "eval.yaml", "-n", "2", "--report", "report.html");
  assert.equal(done.code, 1, done.err);
});

/** What the overview says of each fault, and what its trial shows: the values, the dying server's words, the provider's message. */
const FAULTS = [
  { says: /toolsUsed.*borrow_book|no call fits.*member/s, deciding: true, shows: [/expected "grace", found "garce"/, /"member": "garce"/] },
  { says: /server desk failed.*exited with code 3/s, deciding: false, shows: [/exited with code 3 during echo/, /panic: out of paper/, /no response/] },
  { says: /the model is overloaded/, deciding: false, shows: [/Blame: infra\./, /the model is unavailable: the model is overloaded/, /Model failed/] },
];

/** The position of a cause, as a reader finds it. */
async function causeOf(page, says) {
  const texts = await page.evaluate(() => [...document.querySelectorAll(".causes > li")].map((one) => one.innerText));
  const at = texts.findIndex((text) => says.test(text));
  assert.ok(at >= 0, `${says} in\n${texts.join("\n\n")}`);
  return at;
}

/** Fails unless a text can be read without scrolling. */
async function seen(page, text) {
  const found = await until(page, ([source]) => {
    const is = new RegExp(source);
    const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_ELEMENT);
    let place = null;
    for (let node = walker.currentNode; node; node = walker.nextNode()) if (is.test(node.textContent) && node.checkVisibility()) place = node.getBoundingClientRect();
    return place && { top: place.top, bottom: place.bottom, height: innerHeight };
  }, [text.source]);
  assert.ok(found.top >= 0 && found.top < found.height, `${text} is at ${found.top} of ${found.height} px`);
}

/** Clicks where an element is. */
async function click(page, selector, at = 0) {
  const place = await until(page, ([find, n]) => {
    const element = document.querySelectorAll(find)[n];
    element?.scrollIntoView({ block: "nearest" });
    const box = element?.getClientRects()[0];
    return box && { x: box.left + box.width / 2, y: box.top + box.height / 2 };
  }, [selector, at]);
  await page.mouse.click(place.x, place.y);
  await settle(page);
}

/** The ways to go: to the trial of a cause, to what decides it, and back. Each returns the number of steps. */
const WAYS = {
  mouse: (page) => ({
    open: async (at) => { await click(page, ".causes a.such", at); return 1; },
    decide: async () => { await click(page, ".checks a[data-evidence]"); return 1; },
    back: async () => { await click(page, "header .brand"); return 1; },
  }),
  keyboard: (page) => {
    const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); await settle(page); return keys.length; };
    return { open: (at) => press(...Array(at + 1).fill("j"), "Enter"), decide: () => press("e"), back: () => press("g", "o") };
  },
};

for (const start of [startChromium, startFirefox]) {
  describe(start.name.slice(5).toLowerCase(), () => {
    const starting = start();
    after(async () => (await starting).close());
    for (const [name, way] of Object.entries(WAYS)) {
      test(`the causes of three faults are found by ${name}`, async () => {
        const { page, finish } = await (await starting).page({ isOwn: (is) => /^file:\/\/[^?]*\.html$/.test(is) });
        await page.goto(`file://${path.join(folder, "report.html")}`);
        await page.waitForSelector(".causes");
        const { open, decide, back } = way(page);
        const steps = [];
        for (const { says, deciding, shows } of FAULTS) {
          await until(page, () => document.querySelector(".causes"));
          let count = await open(await causeOf(page, says));
          await page.waitForSelector(".trial-page");
          await seen(page, shows[0]);
          if (deciding) count += await decide();
          for (const text of shows.slice(1)) await seen(page, text);
          steps.push(count);
          await back();
        }
        console.log(`steps to each cause by ${name}: ${steps.join(", ")}`);
        assert.ok(steps.every((count) => count <= 7), `${steps}`);
        await finish();
      });
    }
  });
}
