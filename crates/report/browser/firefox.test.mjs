// The report in Firefox, driven by Puppeteer: Playwright can't drive Debian's build.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import puppeteer from "puppeteer-core";

import { KINDS, PLACES, accessible, deepLink, fits, harmless, honest, keys, open, search, sideBySide, watch } from "./pages.mjs";

const VIEWS = [
  { name: "light", dark: 1, viewport: { width: 1280, height: 900 } },
  { name: "dark", dark: 0, viewport: { width: 1280, height: 900 } },
  { name: "phone", dark: 1, viewport: { width: 500, height: 800 } },
];

const browsers = new Map();

/** A browser for each theme, which is a preference of it. */
async function browserFor(dark) {
  if (!browsers.has(dark)) {
    browsers.set(dark, await puppeteer.launch({
      browser: "firefox",
      executablePath: process.env.FIREFOX || "/usr/bin/firefox-esr",
      headless: true,
      extraPrefsFirefox: { "layout.css.prefers-color-scheme.content-override": dark },
    }));
  }
  return browsers.get(dark);
}

before(() => browserFor(1));
after(async () => {
  for (const browser of browsers.values()) await browser.close();
});

async function guarded(view = VIEWS[0]) {
  const browser = await browserFor(view.dark);
  const page = await browser.newPage();
  await page.setViewport(view.viewport);
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  await page.evaluateOnNewDocument(watch);
  return { page, finish: async () => {
    problems.push(...(await page.evaluate(() => globalThis.violations || [])));
    await page.close();
    assert.deepEqual(problems, []);
  } };
}

for (const kind of KINDS) {
  for (const view of VIEWS) {
    test(`firefox: ${kind}, ${view.name}: every page is drawn, accessible and as wide as its window`, async () => {
      const { page, finish } = await guarded(view);
      for (const place of PLACES) {
        const where = `${kind} ${view.name} ${place}`;
        await open(page, kind, place);
        await accessible(page, where);
        await fits(page, where);
        if (kind === "hostile") await harmless(page);
      }
      await finish();
    });
  }
  test(`firefox: ${kind}: prints, and says what \`result show\` says`, async () => {
    const { page, finish } = await guarded();
    await honest(page, kind);
    await open(page, kind, "trial");
    const pdf = await page.pdf();
    assert.equal(Buffer.from(pdf.slice(0, 5)).toString(), "%PDF-");
    await finish();
  });
}

for (const [name, check] of Object.entries({ keys, deepLink, search, sideBySide })) {
  test(`firefox: ${name}`, async () => {
    const { page, finish } = await guarded();
    await check(page);
    await finish();
  });
}
