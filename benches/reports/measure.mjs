// Opens each report from disk in the same browser, and prints what opening and scrolling cost. CPU is the time of the
// main thread, so other programs of the machine count little; wall times are upper bounds.

import fs from "node:fs";
import { chromium } from "playwright-core";

const [proctor, allure, pytest] = process.argv.slice(2);
/** The first row that a reader can use, and the list to scroll. */
const REPORTS = [
  { name: "Proctor", file: proctor, row: ".list .row", list: "#/trials" },
  { name: "Allure 3.18.0, single file", file: allure, row: "[data-testid=tree-leaf]" },
  { name: "pytest-html 4.2.0, self-contained", file: pytest, row: ".results-table-row" },
];
const FRAMES = 100;
const LONGEST = 1_200_000;

/** Waits for an element. Playwright's own way does not end in a page that is busy for long. */
async function shown(page, selector) {
  for (const from = Date.now(); Date.now() - from < LONGEST; await new Promise((done) => setTimeout(done, 100))) {
    if (await page.evaluate((at) => document.querySelector(at) !== null, selector)) return;
  }
  throw new Error(`no ${selector} after ${LONGEST / 1000} s`);
}

/** One report in a browser of its own. */
async function measured({ name, file, row, list }) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-background-networking"] });
  try {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, offline: true })).newPage();
    page.setDefaultTimeout(LONGEST);
    const asked = new Set();
    page.on("request", (request) => { if (/^https?:/.test(request.url())) asked.add(new URL(request.url()).host); });
    const client = await page.context().newCDPSession(page);
    await client.send("Performance.enable", { timeDomain: "threadTicks" });
    const metric = async (key) => (await client.send("Performance.getMetrics")).metrics.find((one) => one.name === key).value;
    const from = performance.now();
    await page.goto(`file://${file}`, { waitUntil: "commit" });
    await shown(page, row);
    const wall = (performance.now() - from) / 1000;
    const cpu = (await metric("TaskDuration")) * 1000;
    await page.waitForLoadState("load");
    const elements = await page.evaluate(() => document.querySelectorAll("*").length);
    if (list) await page.evaluate((to) => { location.hash = to; }, list);
    await shown(page, row);
    const before = await metric("TaskDuration");
    // The page itself scrolls, or the largest element in it.
    await page.evaluate((count) => new Promise((done) => {
      const tall = [...document.querySelectorAll("*")].filter((one) => one.scrollHeight > one.clientHeight + 1000 && one.clientHeight > 200);
      const target = tall.find((one) => one !== document.documentElement && one !== document.body && /auto|scroll/.test(getComputedStyle(one).overflowY)) || document.scrollingElement;
      const step = () => { target.scrollBy(0, 400); if (--count > 0) requestAnimationFrame(step); else requestAnimationFrame(done); };
      step();
    }), FRAMES);
    const frame = ((await metric("TaskDuration")) - before) * 1000 / FRAMES;
    await client.send("HeapProfiler.collectGarbage");
    const heap = (await metric("JSHeapUsedSize")) / 1e6;
    return { name, size: fs.statSync(file).size / 1e6, elements, cpu, wall, frame, heap, asked: [...asked].join(", ") || "none" };
  } finally {
    await browser.close();
  }
}

console.log("| report of 10,000 trials | file | elements | CPU until the first row | wall time | CPU per scrolled frame | JS heap | hosts asked |");
console.log("|---|---|---|---|---|---|---|---|");
for (const report of REPORTS) {
  const m = await measured(report).catch((error) => error);
  if (m instanceof Error) {
    console.log(`| ${report.name} | ${(fs.statSync(report.file).size / 1e6).toFixed(1)} MB | not measured: ${m.message.split("\n")[0]} |`);
    process.exitCode = 1;
    continue;
  }
  console.log(`| ${m.name} | ${m.size.toFixed(1)} MB | ${m.elements.toLocaleString("en")} | ${m.cpu.toFixed(0)} ms | ${m.wall.toFixed(1)} s | ${m.frame.toFixed(1)} ms | ${m.heap.toFixed(1)} MB | ${m.asked} |`);
}
