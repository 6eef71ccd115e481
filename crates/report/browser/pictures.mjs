// Takes the pictures of the documentation: a run in a terminal, and its report.

import fs from "node:fs";
import path from "node:path";

import { startChromium, until } from "./browsers.mjs";
import { faults, library, run } from "./suites.mjs";
import { temporary } from "./viewer.mjs";

const images = path.resolve(process.argv[2]);
const folder = temporary("pictures");

/** The colours of a terminal. */
const COLOURS = { 31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea", 90: "#8b949e" };
/** The size of a character and a line, and the space around the text, in pixels. */
const [CHARACTER, LINE, SPACE] = [8.4, 20, 20];

/** With spaces that stay, also where two stand together. */
const escaped = (/** @type {string} */ text) => text.replace(/[&<]/g, (c) => (c === "&" ? "&amp;" : "&lt;")).replaceAll("  ", "\u00a0 ");

/** The parts of a line of output that look alike, as `[text, attributes]`. @param {string} line @param {{bold: boolean, dim: boolean, colour: string}} look */
function* parts(line, look) {
  for (const part of line.split(/(\x1b\[[\d;]*m)/)) {
    const codes = /^\x1b\[([\d;]*)m$/.exec(part)?.[1].split(";").map(Number);
    for (const code of codes ?? []) {
      if (code === 0) Object.assign(look, { bold: false, dim: false, colour: "" });
      else if (code === 1) look.bold = true;
      else if (code === 2) look.dim = true;
      else look.colour = COLOURS[code] || COLOURS[code - 60] || look.colour;
    }
    if (!codes && part) yield [part, `${look.bold ? ' font-weight="700"' : ""}${look.dim ? ' opacity=".7"' : ""}${look.colour ? ` fill="${look.colour}"` : ""}`];
  }
}

/** Output with escape sequences as an SVG. Every part has its place and length, so any monospaced font will do. @param {string} text */
function terminal(text) {
  const look = { bold: false, dim: false, colour: "" };
  let columns = 0;
  const lines = text.trimEnd().split("\n").map((line, at) => {
    let column = 0;
    const spans = [...parts(line, look)].map(([part, attributes]) => {
      const start = column + part.length - part.trimStart().length;
      column += [...part].length;
      const shown = part.trim();
      return shown && `<tspan x="${(SPACE + start * CHARACTER).toFixed(1)}" textLength="${([...shown].length * CHARACTER).toFixed(1)}"${attributes}>${escaped(shown)}</tspan>`;
    });
    columns = Math.max(columns, column);
    return `<text y="${SPACE + (at + 0.75) * LINE}">${spans.join("")}</text>`;
  });
  const [width, height] = [Math.ceil(2 * SPACE + columns * CHARACTER), 2 * SPACE + lines.length * LINE];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="a run of proctor check in a terminal">
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g fill="#e6edf3" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">
${lines.join("\n")}
</g>
</svg>
`;
}

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
const outage = run(folder, "check", "eval.yaml", "-n", "3", "--report", "report.html");
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

// The failing run of the quickstart, as a reader can repeat it.
const checkout = temporary("pictures-terminal");
fs.cpSync(path.resolve(import.meta.dirname, "../../../examples/quickstart"), path.join(checkout, "examples/quickstart"), { recursive: true });
const words = ["check", "examples/quickstart/failing.yaml", "--run", "borrow|rules"];
process.env.COLUMNS = "96";
const shown = run(checkout, "--color", "always", ...words);
if (shown.code !== 1) throw new Error(shown.err);
fs.writeFileSync(path.join(images, "terminal.svg"), terminal(`\x1b[32m$\x1b[0m proctor ${words.join(" ").replace("borrow|rules", "'borrow|rules'")}\n${shown.out}`));
console.log(`terminal.svg: ${Math.round(fs.statSync(path.join(images, "terminal.svg")).size / 1000)} kB`);
await browser.close();
