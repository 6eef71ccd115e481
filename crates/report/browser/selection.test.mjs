// A run of selection rows: the reader opens the confusion matrix and sees which tool was chosen in place of which.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { WINDOWS, startChromium, startFirefox } from "./browsers.mjs";
import { SHOTS, accessible, fits } from "./pages.mjs";
import { run, selectionRows } from "./suites.mjs";
import { temporary } from "./viewer.mjs";

const folder = temporary("selection");
let told;
before(() => {
  selectionRows(folder);
  const done = run(folder, "check", "eval.yaml", "--record", "run", "--report", "report.html");
  assert.equal(done.code, 1, done.err);
  told = JSON.parse(run(folder, "result", "show", "run", "-o", "json").out).proctor.selection;
});

/** The name of a choice on the page. */
const label = (choice) => ({ tool: choice.tool, invented: "(invented name)" })[choice.kind] ?? "(no call)";

/** The cells of the matrix of an agent that are not empty: expected, chosen, count, and whether it is a mistake. */
const cells = (agent) => {
  const all = [...document.querySelectorAll("table.matrix")];
  const table = all.find((one) => one.textContent.includes(`Confusion matrix of ${agent}`));
  const columns = [...table.querySelectorAll("thead th")].map((one) => one.textContent);
  return [...table.querySelectorAll("tbody tr")].flatMap((row) => [...row.children].slice(1).map((cell, at) => [row.children[0].textContent,
    columns[at + 1], Number(cell.textContent), Boolean(cell.querySelector(".miss"))])).filter(([, , n]) => n > 0);
};

for (const start of [startChromium, startFirefox]) {
  const name = start.name.slice(5).toLowerCase();
  describe(name, () => {
    const starting = start();
    after(async () => (await starting).close());
    for (const window of WINDOWS) {
      test(`the confusion matrix is that of \`result show\`: ${window.name}`, async () => {
        const { page, finish } = await (await starting).page({ ...window, isOwn: (is) => /^file:\/\/[^?]*\.html$/.test(is) });
        await page.goto(`file://${path.join(folder, "report.html")}`);
        await page.waitForSelector("table.matrix");
        for (const agent of ["careful", "hasty"]) {
          const { confusion } = told.find((one) => one.agent === agent);
          const expected = confusion.map(({ expected: wanted, chosen, count }) => [label(wanted), label(chosen), count, label(wanted) !== label(chosen)]);
          assert.deepEqual((await page.evaluate(cells, agent)).sort(), expected.sort(), agent);
        }
        const wrong = (await page.evaluate(cells, "hasty")).filter(([, , , isMiss]) => isMiss).map(([wanted, chosen]) => `${wanted} → ${chosen}`);
        assert.deepEqual(wrong.sort(), ["(no call) → search_books", "borrow_book → search_books", "return_book → (invented name)", "return_book → borrow_book"]);
        assert.deepEqual((await page.evaluate(cells, "careful")).filter(([, , , isMiss]) => isMiss), []);
        await accessible(page, `selection ${window.name}`);
        await fits(page, `selection ${window.name}`);
        await page.screenshot({ path: path.join(SHOTS, `${name}-selection-${window.name.replace(" ", "-")}.png`), fullPage: true });
        await finish();
      });
    }
  });
}
