// The results of selection rows: how well models choose tools, and which tools they confuse.

/** How many rows and columns a matrix shows. */
const MATRIX_SIDE = 40;

/** A section for each agent that did selection rows. @param {Run} run */
function selections(run) {
  const all = run.data.selection || [];
  return all.map((one) => section(all.length > 1 ? `Selection by ${one.agent}` : "Selection",
    h("p", { class: "facts" }, [counted(one.trials, "trial"), one.rate && one.rate.text].filter(Boolean).join(" · ")),
    table(`Tools chosen by ${one.agent}, those with the most mistakes first`, ["tool", "right", "chosen wrongly", "missed", "precision", "recall"],
      one.tools.slice(0, 500).map((tool) => [h("code", {}, tool.name), count(tool.hits), count(tool.falseHits), count(tool.misses),
        tool.precision, tool.recall]), { look: "narrow", numbers: [1, 2, 3, 4, 5] }),
    matrix(one),
    one.notes.length > 0 && h("ul", {}, one.notes.map((note) => h("li", {}, sentence(note))))));
}

/** The confusion matrix: a row for each expected tool, a column for each chosen one. @param {SelectionRows} one */
function matrix(one) {
  // A large matrix shows the tools that are part of a mistake; the others have only a diagonal.
  const confused = new Set(one.confusion.filter(([expected, chosen]) => expected !== chosen).flatMap(([expected, chosen]) => [expected, chosen]));
  const every = one.choices.map((_, i) => i);
  const shown = (every.length > MATRIX_SIDE ? every.filter((i) => confused.has(i)) : every).slice(0, MATRIX_SIDE);
  if (shown.length === 0) return h("p", { class: "hint" }, "No tool was chosen in place of another.");
  const left = one.choices.length - shown.length;
  const counts = new Map(one.confusion.map(([expected, chosen, n]) => [`${expected},${chosen}`, n]));
  const cell = (/** @type {number} */ expected, /** @type {number} */ chosen) => {
    const n = counts.get(`${expected},${chosen}`) || 0;
    if (n === 0) return "";
    return h("span", { class: expected === chosen ? "hit" : "miss" }, count(n));
  };
  // No trial expects an invented name, so it has a column only.
  const expected = new Set(one.confusion.map(([wanted]) => wanted));
  const rows = shown.filter((i) => expected.has(i)).map((i) => [h("code", {}, one.choices[i]), ...shown.map((chosen) => cell(i, chosen))]);
  return [h("p", { class: "hint" }, "A row is what was expected, a column what was chosen."),
    table(`Confusion matrix of ${one.agent}`, ["expected", ...shown.map((i) => one.choices[i])], rows, { look: "matrix" }),
    left > 0 && h("p", { class: "note" }, `${counted(left, "more tool")} of this run: \`proctor result convert\` writes all pairs as CSV.`)];
}
