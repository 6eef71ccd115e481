// One case: is it the case, the agent, or luck?

/** @param {Run} run @param {string} id @param {URLSearchParams} query */
async function casePage(run, id, query) {
  const c = run.caseById.get(id);
  if (c === undefined) return h("main", { id: "main" }, h("h1", {}, "This run has no such case"), h("p", {}, id));
  const one = run.data.cases[c];
  const labels = Object.entries(one.labels).map(([key, value]) => `${key}=${value}`);
  return h("main", { id: "main" },
    h("nav", { class: "crumbs", "aria-label": "Place" }, h("a", { href: "#/" }, run.data.run.name), " › ", h("a", { href: "#/cases" }, "cases")),
    h("h1", {}, tag(one.status), " ", one.name),
    h("p", { class: "facts" }, [one.difficulty, ...labels, `pass rule: ${one.rule}`, one.path, `hash ${one.hash.slice(0, 12)}`].filter(Boolean).join(" · ")),
    section("Agents", table("The results of each agent", ["agent", "trials", "passed", "95% CI", "status", "why"],
      run.data.agents.map((agent, a) => {
        const cell = one.cells[a];
        return [agent.short, h("span", { class: "strips" }, trialLinks(run, run.cells[c][a])),
          cell?.rate ? cell.rate.text : "no trial has a verdict", whisker(cell?.rate || null, 90), cell ? tag(cell.status) : "–", sentence(cell?.reason || "")];
      }))),
    failing(run, run.cells[c].flat()),
    await sideBySide(run, c, query));
}

/** A link for each trial. @param {Run} run @param {number[]} trials */
function trialLinks(run, trials) {
  return trials.slice(0, 100).map((i) => h("a", { class: `mark ${run.outcome(i)}`, href: run.link(i),
    "aria-label": `trial ${run.data.trials.repeat[i]} by ${run.agent(i).short}: ${run.outcome(i)}`, title: `${run.outcome(i)} ${run.text("reason", i)}` },
    String(run.data.trials.repeat[i])));
}

/** How often each check did not pass. @param {Run} run @param {number[]} trials */
function failing(run, trials) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const i of trials) for (const check of run.set("unmet", i)) counts.set(check, (counts.get(check) || 0) + 1);
  if (counts.size === 0) return null;
  const sorted = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 50);
  return section("Checks that did not pass", table("How often each check did not pass", ["check", "trials"],
    sorted.map(([check, n]) => [h("code", {}, check), count(n)]), { look: "narrow", numbers: [1] }));
}

/** Two trials of a case, call by call. @param {Run} run @param {number} c @param {URLSearchParams} query */
async function sideBySide(run, c, query) {
  const all = run.cells[c].flat().filter((i) => run.data.trials.attempts[i] > 0);
  if (all.length < 2) return null;
  const [first, second] = pair(run, all, query);
  /** @param {string} key @param {string} label @param {number} now */
  const choose = (key, label, now) => h("label", {}, label, " ", h("select", { id: `f-${key}`, change: (/** @type {Event} */ e) => {
    query.set(key, String(all[/** @type {HTMLSelectElement} */ (e.target).selectedIndex]));
    history.replaceState(null, "", `${run.caseLink(run.data.cases[c])}?${query}`);
    show().then(() => document.getElementById(`f-${key}`)?.focus());
  } }, all.slice(0, 1000).map((i) => h("option", { selected: i === now }, `${clip(run.label(i), 50)}: ${run.outcome(i)}`))));
  /** @type {Child} */
  let compared;
  try {
    const [a, b] = await Promise.all([app.source.trial(first), app.source.trial(second)]);
    compared = difference(run, [first, second], a, b);
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    compared = h("p", { class: "note" }, error.message);
  }
  return section("Side by side", h("form", { class: "filters", submit: (/** @type {Event} */ e) => e.preventDefault() },
    choose("left", "Left", first), choose("right", "Right", second)), compared);
}

/** The trials to compare: a failed one and a passed one of the same agent, unless the address names others.
 * @param {Run} run @param {number[]} all @param {URLSearchParams} query */
function pair(run, all, query) {
  const named = (/** @type {string} */ key) => all.find((i) => String(i) === query.get(key));
  const bad = all.find((i) => run.isBad(i)) ?? all[0];
  const left = named("left") ?? bad;
  const passed = all.filter((i) => i !== left && run.outcome(i) === "passed");
  const right = named("right") ?? passed.find((i) => run.agent(i) === run.agent(left)) ?? passed[0] ?? all.find((i) => i !== left) ?? all[0];
  return [left, right];
}

/** @param {Run} run @param {number[]} pair @param {TrialDetails} a @param {TrialDetails} b */
function difference(run, [left, right], a, b) {
  const calls = (/** @type {TrialDetails} */ details) => details.items.filter((item) => item.kind === "call").slice(0, 400);
  const rows = aligned(calls(a), calls(b));
  const answer = (/** @type {TrialDetails} */ details) => {
    const found = details.items.find((item) => item.kind === "answer" || item.isAnswer);
    return found ? clip(startOf(found.text), 1200) : "no answer";
  };
  const at = rows.findIndex(([x, y]) => !same(x, y));
  const cell = (/** @type {Item | null} */ item, /** @type {number} */ trial) => item ?
    [h("a", { href: run.link(trial, item.seq) }, `#${item.seq}`), " ", h("strong", {}, `${item.server}.${item.name}`), " ",
      h("code", {}, clip(startOf(item.arguments), 200)), h("div", { class: "reason" }, "→ ", clip(brief(item.response), 160))] : "–";
  const title = (/** @type {number} */ i) => `${clip(run.label(i), 80)}: ${run.outcome(i)}`;
  const lead = rows.length === 0 ? "Neither trial made a call." : at < 0 ? "Both made the same calls with the same arguments." :
    `The first difference is in call ${at + 1} of ${rows.length}.`;
  /** @type {Child[][]} */
  const body = rows.map(([x, y], i) => [String(i + 1), cell(x, left), i === at ? "≠ first difference" : same(x, y) ? "=" : "≠", cell(y, right)]);
  body.push(["answer", h("div", { class: "text" }, answer(a)), answer(a) === answer(b) ? "=" : "≠", h("div", { class: "text" }, answer(b))]);
  const element = table("Two trials, call by call", ["call", title(left), "same?", title(right)], body, { look: "side" });
  if (at >= 0) element.querySelectorAll("tbody tr")[at]?.classList.add("first");
  return [h("p", { class: "lead" }, lead), element];
}

/** Whether two calls are equal. @param {Item | null} x @param {Item | null} y */
function same(x, y) {
  return Boolean(x && y && x.server === y.server && x.name === y.name && JSON.stringify(x.arguments) === JSON.stringify(y.arguments));
}

/** The calls of two trials in pairs: the longest common subsequence by server and tool.
 * @param {Item[]} a @param {Item[]} b @returns {[Item | null, Item | null][]} */
function aligned(a, b) {
  const key = (/** @type {Item} */ item) => `${item.server}\n${item.name}`;
  const w = b.length + 1;
  const table = new Uint16Array((a.length + 1) * w);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i * w + j] = key(a[i]) === key(b[j]) ? table[(i + 1) * w + j + 1] + 1 : Math.max(table[(i + 1) * w + j], table[i * w + j + 1]);
  /** @type {[Item | null, Item | null][]} */
  const rows = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (key(a[i]) === key(b[j])) rows.push([a[i++], b[j++]]);
    else if (table[(i + 1) * w + j] >= table[i * w + j + 1]) rows.push([a[i++], null]);
    else rows.push([null, b[j++]]);
  }
  while (i < a.length) rows.push([a[i++], null]);
  while (j < b.length) rows.push([null, b[j++]]);
  return rows;
}
