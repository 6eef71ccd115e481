// What both browsers are asked about every report.

import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

import { until } from "./browsers.mjs";

/** The folder with the reports, which `examples/report_pages` writes. */
export const PAGES = process.env.PROCTOR_PAGES || path.resolve("pages");
/** The folder for screenshots. */
export const SHOTS = path.join(PAGES, "shots");
fs.mkdirSync(SHOTS, { recursive: true });

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const KINDS = ["two-agents", "one", "interrupted", "killed", "hostile", "imported", "large"];

/** The places of a report that are looked at. Trials and cases are found on its own pages. */
export const PLACES = ["#/", "#/cases", "#/trials", "#/coverage", "#/servers", "case", "trial"];

/** @param {string} kind @param {string} [hash] */
export const url = (kind, hash = "") => `file://${path.join(PAGES, kind)}.html${hash}`;

/** Opens a place of a report, and waits until it is drawn. @param {any} page @param {string} kind @param {string} place */
export async function open(page, kind, place) {
  const hash = place.startsWith("#") ? place : "#/";
  await page.goto("about:blank");
  await page.goto(url(kind, hash));
  await page.waitForSelector("main h1");
  if (place === "case") await follow(page, "#/cases", ".list a.name");
  if (place === "trial") await follow(page, "#/trials?outcome=bad", ".list a.name", "#/trials");
  await settle(page);
}

/** @param {any} page */
export async function settle(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60)))));
}

/** Goes to a list and follows its first link. */
async function follow(page, hash, selector, otherwise) {
  for (const place of [hash, otherwise].filter(Boolean)) {
    await page.evaluate((to) => { location.hash = to; }, place);
    await settle(page);
    const link = await page.evaluate((at) => document.querySelector(at)?.getAttribute("href"), selector);
    if (!link) continue;
    await page.evaluate((to) => { location.hash = to; }, link);
    await settle(page);
    // A trial is drawn when its details are read. One that did not run has none.
    await page.waitForSelector("nav.crumbs");
    await settle(page);
    return;
  }
  assert.fail(`no ${selector} on ${hash}`);
}

/** Fails if axe finds a violation. @param {any} page @param {string} where */
export async function accessible(page, where) {
  // Not a script element, which the page's policy forbids.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const results = await globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] });
    return results.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 160)} ${n.failureSummary}`).join(" | ")}`);
  });
  assert.deepEqual(found, [], where);
}

/** Fails if a page is wider than the window. @param {any} page @param {string} where */
export async function fits(page, where) {
  const [page_, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(page_ <= window_, `${where}: ${page_} px in a window of ${window_} px`);
}

/** Fails if a page says more than `result show -o json`. @param {any} page @param {string} kind */
export async function honest(page, kind) {
  const file = path.join(PAGES, `${kind}.json`);
  if (!fs.existsSync(file)) return;
  const { proctor } = JSON.parse(fs.readFileSync(file, "utf8"));
  await open(page, kind, "#/");
  const [text, look] = await page.evaluate(() => [document.querySelector(".verdict").textContent, document.querySelector(".verdict").className]);
  const answer = proctor.gate.answer === "open" ? "inconclusive" : proctor.gate.answer;
  assert.ok(text.startsWith(`Gate ${answer}`), `${kind}: ${text}`);
  const isGood = proctor.gate.answer === "met" && proctor.exit.code === 0 && proctor.run.ended !== null;
  assert.equal(look, `verdict ${isGood ? "good" : answer === "missed" ? "missed" : "unsure"}`, kind);
  if (proctor.rate) assert.ok(text.includes(`${proctor.rate.passed}/${proctor.rate.counted} trials passed`), `${kind}: ${text}`);
  if (proctor.exit.code !== 0) assert.ok(text.includes(`Exit code ${proctor.exit.code}`), `${kind}: ${text}`);
  const outcomes = { passed: "passed", failed: "failed", "timed-out": "timedOut", errored: "errored", cancelled: "cancelled", "not-run": "notRun" };
  for (const [word, key] of Object.entries(outcomes)) {
    await open(page, kind, `#/trials?outcome=${word}`);
    const status = await page.evaluate(() => document.querySelector("main [role=status]").textContent);
    assert.equal(status, `${proctor.trials[key]} of ${proctor.trials.total} trial${proctor.trials.total === 1 ? "" : "s"}`, `${kind}: ${word}`);
  }
}

/** Fails if anything of a hostile run became more than text. @param {any} page */
export async function harmless(page) {
  const found = await page.evaluate(() => ({
    title: document.title.includes("pwned") && !document.title.includes("document.title"),
    elements: document.querySelectorAll("img, iframe, object, embed, link, base, body script:not([type]) ~ script:not([type])").length,
    links: [...document.querySelectorAll("[href]")].map((link) => link.getAttribute("href")).filter((href) => !href.startsWith("#")),
    handlers: [...document.querySelectorAll("*")].filter((one) => one.getAttributeNames().some((name) => name.startsWith("on"))).length,
    hidden: /[\u0000-\u0008\u001b\u202e\u200b]/.test(document.body.innerText),
    // Every row keeps its link in sight, however long the names are.
    lost: [...document.querySelectorAll(".list .row")].filter((row) => {
      const link = row.querySelector("a").getBoundingClientRect();
      return link.width < 40 || link.right > row.getBoundingClientRect().right + 1;
    }).length,
  }));
  assert.deepEqual(found, { title: false, elements: 0, links: [], handlers: 0, hidden: false, lost: 0 });
}

/** Uses a report by keyboard alone. @param {any} page */
export async function keys(page) {
  await open(page, "two-agents", "#/");
  const press = async (...all) => { for (const key of all) await page.keyboard.press(key); };
  // A trial is drawn when its details are read, which may take a moment.
  const at = (/** @type {RegExp} */ hash) => until(page, (source) => new RegExp(source).test(location.hash), hash.source);
  const focused = (/** @type {string} */ what) => until(page, (is) => (document.activeElement.id || document.activeElement.textContent) === is, what);
  const blur = () => page.evaluate(() => document.activeElement.blur());
  await press("g", "t");
  await at(/^#\/trials$/);
  await until(page, () => document.querySelector("h1").textContent === "Trials");
  await press("/");
  await focused("search");
  await page.keyboard.type("drain-node dur:>1s");
  await at(/q=drain-node\+dur/);
  const [first, second] = await until(page, () => {
    const names = [...document.querySelectorAll(".list .row a")].map((link) => link.textContent);
    return names.every((name) => name.startsWith("drain-node")) && names.length > 1 && names;
  });
  await blur();
  await press("j");
  await focused(first);
  await press("j");
  await focused(second);
  await press("k");
  await focused(first);
  await press("Enter");
  await at(/^#\/trial\/tasks%2Fdrain-node/);
  await page.waitForSelector(".trial-page");
  const here = await page.evaluate(() => location.hash);
  const place = () => page.evaluate(() => document.querySelector("nav.crumbs")?.textContent);
  const crumbs = await place();
  await press("]");
  await until(page, (is) => location.hash !== is, here);
  await until(page, (is) => document.querySelector("nav.crumbs")?.textContent !== is, crumbs);
  await press("[");
  await until(page, ([hash, text]) => location.hash === hash && document.querySelector("nav.crumbs")?.textContent === text, [here, crumbs]);
  await press("n");
  await until(page, (is) => document.querySelector("nav.crumbs")?.textContent !== is && /failed|errored|timed-out/.test(document.querySelector("h1 .tag").textContent), crumbs);
  await press("e");
  await at(/\/\d+$/);
  await until(page, () => document.querySelectorAll(".event.target").length === 1);
  await press("o");
  await focused("f-outcome");
  await blur();
  const scheme = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
  const before = await scheme();
  await press("d");
  await until(page, (is) => getComputedStyle(document.documentElement).colorScheme !== is, before);
  await press("?");
  await until(page, () => document.querySelectorAll("dialog[open]").length === 1);
  await press("Escape");
  await until(page, () => document.querySelectorAll("dialog").length === 0);
  for (const [key, hash] of [["c", "cases"], ["v", "coverage"], ["s", "servers"], ["o", ""]]) {
    await press("g", key);
    await at(new RegExp(`^#/${hash}$`));
  }
}

/** A link to an event opens and marks it. @param {any} page */
export async function deepLink(page) {
  const id = ["tasks/fix-crash-loop-1.yaml", "codex", "1", "18"].map(encodeURIComponent).join("/");
  await open(page, "two-agents", `#/trial/${id}`);
  await page.waitForSelector(".event.target");
  await settle(page);
  const event = await page.evaluate(() => {
    const target = document.querySelector(".event.target");
    const box = target.getBoundingClientRect();
    return { id: target.id, open: target.open, seen: box.top >= 0 && box.top < innerHeight, text: target.textContent };
  });
  assert.deepEqual([event.id, event.open, event.seen], ["e18", true, true]);
  // Numbers keep every digit.
  assert.match(event.text, /12345678901234567890/);
  assert.match(event.text, /decides toolsUsed/);
  await open(page, "two-agents", "#/trial/no/such/1");
  assert.match(await page.evaluate(() => document.querySelector("h1").textContent), /no such trial/);
  await open(page, "two-agents", "#/%zz/%");
  assert.match(await page.evaluate(() => document.querySelector("h1").textContent), /no such page/);
}

/** The same number of trials as the search asks for. @param {any} page */
export async function search(page) {
  const { results } = JSON.parse(fs.readFileSync(path.join(PAGES, "two-agents.json"), "utf8"));
  const total = async (query) => {
    await open(page, "two-agents", `#/trials?q=${encodeURIComponent(query)}`);
    return page.evaluate(() => Number(document.querySelector("main [role=status]").textContent.split(" ")[0]));
  };
  assert.equal(await total(""), results.length);
  assert.equal(await total("tool:delete_pod"), results.filter((one) => JSON.stringify(one).includes("delete_pod")).length);
  assert.equal(await total("blame:infra"), 3);
  assert.equal(await total("codex"), 150);
  assert.equal(await total("label:area=pods codex fix-crash-loop-1"), 5);
  assert.equal(await total("no such word"), 0);
  // Messages are read trial by trial.
  const found = results.filter((one) => JSON.stringify(one.callHistory ?? one).includes("not found")).length;
  await open(page, "two-agents", `#/trials?q=${encodeURIComponent("text:errimagepull text:1.2.33")}`);
  await until(page, () => /^300 of 300 trials$/.test(document.querySelector("main [role=status]").textContent));
  await open(page, "two-agents", `#/trials?outcome=failed&q=${encodeURIComponent("text:\"web\" text:found")}`);
  await until(page, () => /^\d+ of 300 trials$/.test(document.querySelector("main [role=status]").textContent));
  assert.ok(found > 0);
  const first = await page.evaluate(() => document.querySelector(".list a").getAttribute("href"));
  assert.match(first, /\/\d+$/, "the link leads to the event");
  await page.evaluate((to) => { location.hash = to; }, first);
  await until(page, () => document.querySelectorAll(".event.target").length === 1);
  // In a trial, events without the words are hidden.
  await page.keyboard.press("/");
  await page.keyboard.type("errimagepull");
  await until(page, () => document.querySelector(".find [role=status]").textContent.startsWith("1 of "));
  assert.equal(await page.evaluate(() => [...document.querySelectorAll(".events > li")].filter((one) => !one.hidden).length), 1);
}

/** The theme that a reader chose is there again after a reload. @param {any} page */
export async function theme(page) {
  await open(page, "one", "#/");
  const scheme = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
  await page.keyboard.press("d");
  assert.equal(await scheme(), "dark");
  await page.reload();
  await page.waitForSelector("main h1");
  assert.equal(await scheme(), "dark");
  await page.keyboard.press("d");
  assert.equal(await scheme(), "light");
}

/** The two trials of a case side by side. @param {any} page */
export async function sideBySide(page) {
  await open(page, "two-agents", `#/case/${encodeURIComponent("tasks/fix-crash-loop-1.yaml")}`);
  await page.waitForSelector("tr.first");
  const first = await page.evaluate(() => document.querySelector("tr.first").textContent);
  assert.match(first, /list_pods \{"namespace":"dev"\}/);
  assert.match(first, /first difference/);
  assert.match(first, /list_pods \{"namespace":"prod"\}/);
}
