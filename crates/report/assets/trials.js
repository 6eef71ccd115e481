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
  for (const word of wordsOf(text).filter((one) => !one.startsWith("text:"))) {
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

/** The words of a search that messages must contain: `text:overloaded`. @param {URLSearchParams} query */
const messageWords = (query) => wordsOf(query.get("q") || "").filter((word) => word.startsWith("text:")).map((word) => word.slice(5)).filter(Boolean);

/** The first event that contains all words; a server has the later ones too. @param {string[]} words @param {number} i @param {TrialDetails} details */
async function eventWith(words, i, details) {
  for (let part = details; ; part = await app.source.trial(i, part.next ?? 0)) {
    const item = part.items.find((one) => {
      const text = textsOf(one);
      return words.every((word) => text.includes(word));
    });
    if (item) return item.seq;
    if (!isServed || part.next === null) return null;
  }
}

/**
 * Reads trials one after the other, and names those with an event that contains all words. Trials that have no details are
 * counted.
 * @param {number[]} trials @param {string[]} words @param {(found: number, seq: number) => void} hit
 * @param {(read: number, missing: number) => boolean} goOn
 */
async function searchMessages(trials, words, hit, goOn) {
  let missing = 0;
  for (const [n, i] of app.source.inOrder(trials).entries()) {
    try {
      const details = await app.source.trial(i);
      const seq = await eventWith(words, i, details);
      if (seq !== null) hit(i, seq);
      else if (!isServed && details.next !== null) missing++;
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      missing++;
    }
    // A pause lets the page draw and react.
    if (n % 20 === 19) await new Promise((done) => setTimeout(done));
    if (!goOn(n + 1, missing)) return;
  }
}

/** @param {Run} run @param {URLSearchParams} query */
function trialsPage(run, query) {
  const { data } = run;
  /** @type {number[]} */
  let rows = [];
  /** The event that a search of messages found in a trial. @type {Map<number, number>} */
  let found = new Map();
  let searches = 0;
  const total = h("p", { class: "hint", role: "status" });
  const list = new VirtualList({ row: () => (isPhone() ? 52 : 32), label: "Trials", render: (n) => trialRow(run, rows[n], found.get(rows[n])) });
  app.list = list;
  /** @param {number[]} shown @param {string} text */
  const present = (shown, text) => {
    rows = shown;
    app.rows = rows;
    total.textContent = text;
    list.reset(rows.length);
  };
  const update = () => {
    const mine = ++searches;
    const chosenRows = chosen(run, query);
    const words = messageWords(query);
    found = new Map();
    if (words.length === 0) {
      present(chosenRows, `${count(chosenRows.length)} of ${counted(run.size, "trial")}`);
      return;
    }
    present([], `0 of ${counted(chosenRows.length, "trial")} read`);
    /** @type {number[]} */
    const hits = [];
    searchMessages(chosenRows, words, (i, seq) => { hits.push(i); found.set(i, seq); }, (read, missing) => {
      if (mine !== searches || !list.element.isConnected) return false;
      if (read % 100 === 0 || read === chosenRows.length || hits.length > rows.length && hits.length < 50) {
        present(chosenRows.filter((i) => found.has(i)), `${count(hits.length)} of ${counted(run.size, "trial")}${read < chosenRows.length ? `; ${count(read)} of ${count(chosenRows.length)} read` : ""}` +
          (missing > 0 ? `; ${counted(missing, "trial")} can't be searched, or only in part: this page does not have all messages` : ""));
      }
      return true;
    }).catch(failed);
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
    h("p", { class: "hint" }, "Words search case, agent, check, reason and labels. Also: ", ["text:WORD", "tool:NAME", "check:NAME", "blame:agent", "label:KEY=VALUE", "dur:>10s"].map((one, i) => [i > 0 && " ", h("code", {}, one)]), ". ",
      h("code", {}, "text:"), " searches the messages of each trial in the list, as far as its page shows them."),
    total,
    h("div", { class: "row trial head", "aria-hidden": "true" }, h("span", {}, "outcome"), h("span", {}, "trial"),
      h("span", {}, "agent"), h("span", { class: "num" }, "time"), h("span", { class: "num" }, "cost"), h("span", {}, "why")),
    list.element, list.rest);
  requestAnimationFrame(update);
  return page;
}

/** @param {Run} run @param {number} i @param {number} [seq] an event to show */
function trialRow(run, i, seq) {
  const { trials } = run.data;
  const blame = run.blame(i);
  return h("div", { class: "trial" }, tag(run.outcome(i)),
    h("a", { class: "name", href: run.link(i, seq) }, h("span", {}, run.case(i).name), run.case(i).runs > 1 && h("span", { class: "number" }, `#${trials.repeat[i]}`)), h("span", { class: "agent" }, run.agent(i).short),
    h("span", { class: "num" }, duration(trials.duration[i])), h("span", { class: "num" }, dollars(trials.cost[i])),
    h("span", { class: "reason" }, blame && `${blame}: `, sentence(run.text("reason", i) || run.text("check", i))));
}
