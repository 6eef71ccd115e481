// Takes the pictures of the documentation: a run in a terminal, and its report.

import fs from "node:fs";
import path from "node:path";

import { startChromium, until } from "./browsers.mjs";
import { faults, library, run, write } from "./suites.mjs";
import { temporary } from "./viewer.mjs";

const images = path.resolve(process.argv[2]);
const folder = temporary("pictures");

/** The colours of a terminal. */
const COLOURS = { 31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea", 90: "#8b949e" };

/** Output with escape sequences as HTML. @param {string} text */
function terminal(text) {
  const escaped = (/** @type {string} */ part) => part.replace(/[&<]/g, (c) => (c === "&" ? "&amp;" : "&lt;"));
  let style = "";
  return text.split(/(\x1b\[[\d;]*m)/).map((part) => {
    const codes = /^\x1b\[([\d;]*)m$/.exec(part)?.[1].split(";").map(Number);
    if (!codes) return part && `<span style="${style}">${escaped(part)}</span>`;
    for (const code of codes) {
      if (code === 0) style = "";
      else if (code === 1) style += "font-weight:700;";
      else if (code === 2) style += "opacity:.7;";
      else if (COLOURS[code] || COLOURS[code - 60]) style += `color:${COLOURS[code] || COLOURS[code - 60]};`;
    }
    return "";
  }).join("");
}

const STYLE = `body{margin:0;background:#0d1117;color:#e6edf3;font:14px/1.45 ui-monospace,"DejaVu Sans Mono",monospace}
pre{margin:0;padding:18px 22px;font:inherit;white-space:pre}.prompt{color:#7ee787}`;

const browser = await startChromium();
/** @param {string} file @param {any} window @param {(page: any) => Promise<any>} act */
async function picture(file, window, act) {
  const { page, finish } = await browser.page({ isOwn: (is) => is.startsWith("file:"), ...window, options: { deviceScaleFactor: 1.5 } });
  const clip = await act(page);
  await page.screenshot({ path: path.join(images, file), ...clip });
  await finish();
  console.log(`${file}: ${Math.round(fs.statSync(path.join(images, file)).size / 1000)} kB`);
}

library(folder);
faults(folder);
const outage = run(folder, "check", "eval.yaml", "-n", "5", "--report", "report.html");
if (outage.code !== 1) throw new Error(outage.err);
const report = `file://${path.join(folder, "report.html")}`;

for (const theme of ["light", "dark"]) {
  await picture(`report-${theme}.png`, { theme, width: 1180, height: 900 }, (page) => page.goto(report).then(() => page.waitForSelector(".list .row")).then(() => ({})));
}
await picture("trial.png", { width: 1180, height: 760 }, async (page) => {
  await page.goto(report);
  await page.evaluate(() => [...document.querySelectorAll(".causes > li")].find((one) => one.textContent.includes("borrow_book")).querySelector("a.such").click());
  await page.waitForSelector(".trial-page");
  await page.keyboard.press("e");
  await until(page, () => document.querySelector(".event.target"));
  await page.evaluate(() => scrollTo(0, 0));
  return {};
});

// A shorter run, by one agent.
const small = temporary("pictures-terminal");
library(small, ["hasty"]);
faults(small, { outage: false, crash: false });
const shown = run(small, "--color", "always", "check", "eval.yaml");
const file = path.join(small, "terminal.html");
write(small, { "terminal.html": `<!doctype html><meta charset=utf-8><title>terminal</title><style>${STYLE}</style><pre><span class=prompt>$</span> proctor check eval.yaml\n${terminal(shown.out)}</pre>` });
await picture("terminal.png", { width: 900, height: 600 }, async (page) => {
  await page.goto(`file://${file}`);
  const [width, height] = await page.evaluate(() => { const box = document.querySelector("pre"); box.style.width = "max-content"; return [box.offsetWidth, box.offsetHeight]; });
  return { clip: { x: 0, y: 0, width: Math.max(width, 780), height }, fullPage: true };
});
await browser.close();
