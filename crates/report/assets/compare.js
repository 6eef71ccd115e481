// The run against an earlier one, for `proctor view`. Every number and sentence is that of `proctor result diff`.

/** @typedef {{case: string, name: string, agent: string, base: PassCounts, new: PassCounts, p: number | null, pAdjusted: number | null,
 *   isRegression: boolean, reason: string | null}} ComparedCell */
/** @typedef {{passed: number, counted: number, noVerdict: number}} PassCounts */
/** @typedef {{base: number | null, new: number | null}} Change */
/** @typedef {{answer: string, sentence: string, exit: number, base: string, new: string, compared: number, worse: ComparedCell[],
 *   better: ComparedCell[], changed: {name: string}[], added: {name: string}[], removed: {name: string}[], tokensPerTrial: Change,
 *   costUsdPerTrial: Change, medianSeconds: Change, toolTokens: Change, tools: {server: string, tool: string, change: string,
 *   description: {base: string | null, new: string | null}}[]}} ComparedRuns */

/** @param {string} base */
async function comparePage(base) {
  const { runs } = /** @type {RunList} */ (await served().get("/runs"));
  const at = runs.findIndex((run) => run.name === served().name);
  const suite = runs[at]?.suite;
  const others = runs.filter((run, i) => i !== at && (run.state === "ended" || run.state === "unfinished") && run.suite === suite);
  // Runs are listed from the newest.
  const before = runs.slice(at + 1).find((run) => others.includes(run));
  const chosen = base || before?.name || others[0]?.name;
  const choose = h("label", {}, "Base ", h("select", { id: "base", change: (/** @type {any} */ e) => { location.hash = `#/diff/${encodeURIComponent(e.target.value)}`; } },
    others.map((run) => h("option", { value: run.name, selected: run.name === chosen }, run.name))));
  const head = [h("h1", {}, "Compare"), h("p", { class: "facts" }, `${chosen || "no other run"} → ${served().name}`)];
  if (!chosen) return h("main", { id: "main" }, head, h("p", { class: "lead" }, "This suite has no other run to compare with."));
  let found;
  try {
    found = /** @type {ComparedRuns} */ (await served().get(`${served().path}/diff/${encodeURIComponent(chosen)}`));
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    return h("main", { id: "main" }, head, h("p", { class: "filters" }, choose), h("p", { class: "note" }, error.message));
  }
  const look = found.answer === "regression" ? "missed" : found.answer === "no-regression-shown" ? "good" : "";
  return h("main", { id: "main" }, head, h("p", { class: "filters" }, choose),
    h("div", { class: `verdict ${look}` }, h("p", {}, h("strong", {}, found.sentence)),
      h("p", { class: "hint" }, `${counted(found.compared, "pair")} compared, ${found.added.length} new, ${found.removed.length} removed, ${found.changed.length} changed (not compared).`)),
    cells("Worse", "Cases whose pass rate fell", found.worse), cells("Better", "Cases whose pass rate rose", found.better),
    section("Tokens, cost, duration", changes(found)),
    found.tools.length > 0 && section("Tools", h("ul", { class: "checks" }, found.tools.slice(0, 200).map((tool) => h("li", {}, h("code", {}, `${tool.server}.${tool.tool}`), ` ${tool.change}`,
      tool.description.base !== tool.description.new && h("details", {}, h("summary", {}, "descriptions"),
        h("p", { class: "label" }, "base"), block("The description in the base", tool.description.base || "(none)"),
        h("p", { class: "label" }, "new"), block("The description in this run", tool.description.new || "(none)")))))),
    names("Changed, not compared", found.changed), names("New", found.added), names("Removed", found.removed));
}

/** @param {string} title @param {string} caption @param {ComparedCell[]} rows */
function cells(title, caption, rows) {
  if (rows.length === 0) return null;
  const passed = (/** @type {PassCounts} */ c) => `${c.passed}/${c.counted}${c.noVerdict ? ` (+${c.noVerdict} without a verdict)` : ""}`;
  return section(`${title} (${rows.length})`, table(caption, ["case", "agent", "base", "this run", "p, adjusted", "why"],
    rows.slice(0, 300).map((cell) => [h("a", { href: `#/case/${encodeURIComponent(cell.case)}` }, cell.name), cell.agent, passed(cell.base),
      [passed(cell.new), " ", cell.isRegression && tag("failed", "regression")],
      cell.pAdjusted === null ? "–" : cell.pAdjusted < 0.001 ? "< 0.001" : cell.pAdjusted.toFixed(3), sentence(cell.reason || "")]), { numbers: [2, 4] }));
}

/** @param {ComparedRuns} found */
function changes(found) {
  const seconds = (/** @type {number | null} */ s) => (s === null ? "unknown" : duration(s * 1e6));
  /** @type {[string, Change, (n: number | null) => string][]} */
  const rows = [["tokens per trial", found.tokensPerTrial, (n) => (n === null ? "unknown" : count(n))],
    ["cost per trial", found.costUsdPerTrial, (n) => (n === null ? "unknown" : dollars(n))], ["median duration", found.medianSeconds, seconds],
    ["tokens of the tools' schemas", found.toolTokens, (n) => (n === null ? "unknown" : count(n))]];
  return table("What trials used", ["value", "base", "this run"], rows.map(([name, change, text]) => [name, text(change.base), text(change.new)]), { look: "narrow", numbers: [1, 2] });
}

/** @param {string} title @param {{name: string}[]} cases */
const names = (title, cases) => cases.length > 0 && section(`${title} (${cases.length})`,
  h("ul", {}, cases.slice(0, 300).map((one) => h("li", {}, one.name)), cases.length > 300 && h("li", {}, `and ${cases.length - 300} more`)));
