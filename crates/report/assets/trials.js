// All trials as a list. Its filters are in the address, so that a filtered list can be sent.

/** @param {Record<string, string>} filters */
const trialsLink = (filters) => `#/trials?${new URLSearchParams(filters)}`;

/** How trials can be sorted, besides the order of the plan. */
const SORTS = ["duration", "tokens", "cost", "calls"];

/**
 * The conditions of a search: words, and `tool:`, `check:`, `blame:`, `label:`, `dur:>10s`.
 * @param {Run} run @param {string} text @returns {(i: number) => boolean}
 */
function searched(run, text) {
  /** @type {((i: number) => boolean)[]} */
  const tests = [];
  for (const word of wordsOf(text)) {
    const [, key, value] = /^(tool|check|blame|label|dur):(.+)$/.exec(word) || [];
    const time = key === "dur" && /^([<>]=?)?(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(value);
    if (key === "tool") tests.push((i) => run.set("tools", i).some((tool) => tool.toLowerCase().includes(value)));
    else if (key === "check") tests.push((i) => run.set("unmet", i).some((check) => check.toLowerCase().includes(value)));
    else if (key === "blame") tests.push((i) => run.blame(i) === value);
    else if (key === "label") tests.push((i) => Object.entries(run.case(i).labels).some(([k, v]) => `${k}=${v}`.toLowerCase().includes(value)));
    else if (time) {
      const limit = Number(time[2]) * { ms: 1e3, s: 1e6, m: 60e6, h: 3600e6 }[/** @type {"s"} */ (time[3] || "s")];
      const below = (time[1] || ">").startsWith("<");
      tests.push((i) => {
        const took = run.data.trials.duration[i];
        return took !== null && (below ? took <= limit : took >= limit);
      });
    } else tests.push((i) => `${run.case(i).name} ${run.agent(i).name} ${run.text("check", i)} ${run.text("reason", i)} ${Object.values(run.case(i).labels).join(" ")}`.toLowerCase().includes(word));
  }
  return (i) => tests.every((test) => test(i));
}

/** The trials that a query selects. @param {Run} run @param {URLSearchParams} query */
function chosen(run, query) {
  const { trials } = run.data;
  const fits = searched(run, query.get("q") || "");
  const outcome = query.get("outcome");
  const agent = query.get("agent");
  const cause = query.get("cause");
  const only = query.get("case");
  const rows = [];
  for (let i = 0; i < run.size; i++) {
    if (outcome && (outcome === "bad" ? !run.isBad(i) : run.outcome(i) !== outcome)) continue;
    if (agent && run.agent(i).name !== agent) continue;
    if (cause && String(trials.cause[i]) !== cause) continue;
    if (only && run.case(i).id !== only) continue;
    if (fits(i)) rows.push(i);
  }
  const sort = query.get("sort");
  /** @param {number} i @returns {number} */
  const key = (i) => (sort === "tokens" ? (trials.input[i] ?? -1) + (trials.output[i] ?? 0) :
    (sort === "cost" ? trials.cost[i] : sort === "calls" ? trials.calls[i] : trials.duration[i]) ?? -1);
  return sort && SORTS.includes(sort) ? rows.sort((a, b) => key(b) - key(a)) : rows;
}

/** @param {Run} run @param {URLSearchParams} query */
function trialsPage(run, query) {
  const { data } = run;
  let rows = chosen(run, query);
  const total = h("p", { class: "hint", role: "status" });
  const list = new VirtualList({ row: 32, label: "Trials", render: (n) => trialRow(run, rows[n]) });
  app.list = list;
  const update = () => {
    rows = chosen(run, query);
    app.rows = rows;
    total.textContent = `${count(rows.length)} of ${counted(run.size, "trial")}`;
    list.reset(rows.length);
  };
  /** @param {string} key @param {string} value */
  const set = (key, value) => {
    if (value) query.set(key, value);
    else query.delete(key);
    history.replaceState(null, "", `#/trials?${query}`);
    update();
  };
  const cause = data.causes[Number(query.get("cause") ?? -1)];
  const only = data.cases[run.caseById.get(query.get("case") || "") ?? -1];
  const page = h("main", { id: "main" }, h("h1", {}, "Trials"),
    h("p", { class: "lead" }, `${data.gate.trials}.`),
    cause && h("p", { class: "hint" }, `Only the cause: ${clip(cause.reason, 200)} `, h("a", { href: "#/trials" }, "show all trials")),
    only && h("p", { class: "hint" }, `Only the case ${clip(only.name, 80)} `, h("a", { href: "#/trials" }, "show all trials")),
    h("form", { class: "filters", role: "search", submit: (/** @type {Event} */ e) => e.preventDefault() },
      searchField(query, (text) => set("q", text)),
      chooser("outcome", "Outcome", ["bad", ...data.outcomes], query, set, ["failed or errored", ...data.outcomes]),
      data.agents.length > 1 && chooser("agent", "Agent", data.agents.map((a) => a.name), query, set),
      chooser("sort", "Sort by", SORTS, query, set, SORTS, "plan")),
    h("p", { class: "hint" }, "Words search case, agent, check, reason and labels. Also: tool:NAME, check:NAME, blame:agent, label:KEY=VALUE, dur:>10s."),
    total,
    h("div", { class: "row trial head", "aria-hidden": "true" }, h("span", {}, "outcome"), h("span", {}, "trial"),
      h("span", {}, "agent"), h("span", { class: "num" }, "time"), h("span", { class: "num" }, "cost"), h("span", {}, "why")),
    list.element);
  requestAnimationFrame(update);
  return page;
}

/** @param {Run} run @param {number} i */
function trialRow(run, i) {
  const { trials } = run.data;
  const name = run.case(i).runs > 1 ? `${run.case(i).name} #${trials.repeat[i]}` : run.case(i).name;
  const blame = run.blame(i);
  return h("div", { class: "trial" }, tag(run.outcome(i)),
    h("a", { class: "name", href: run.link(i) }, name), h("span", { class: "agent" }, run.agent(i).short),
    h("span", { class: "num" }, duration(trials.duration[i])), h("span", { class: "num" }, dollars(trials.cost[i])),
    h("span", { class: "reason" }, blame && `${blame}: `, run.text("reason", i) || run.text("check", i)));
}
