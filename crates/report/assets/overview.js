// The first page: did the run hold, and where to look?

/** @param {Run} run */
function overviewPage(run) {
  const { data } = run;
  const info = data.run;
  return h("main", { id: "main" },
    h("h1", {}, info.name),
    h("p", { class: "facts" }, info.facts.join(" · ")),
    verdict(data.gate),
    figures(run),
    info.notes.length > 0 && h("ul", { class: "notes" }, info.notes.map((note) => h("li", {}, sentence(note)))),
    data.causes.length > 0 && section("What went wrong", causes(run)),
    section("Agents and cases",
      data.cases.length > 1 && h("p", { class: "hint" }, "A column is a case, worst first. The taller it is, the more of its trials did not pass; a hollow one is inconclusive."),
      data.agents.map((agent, a) => h("div", { class: "picture" },
        h("a", { class: "who", href: trialsLink({ agent: agent.name }) }, agent.short),
        // A single column says no more than the words.
        data.cases.length > 1 && h("div", { class: "clip" }, heat(run, a)),
        h("span", { class: "what" }, agent.rate ? agent.rate.text : "no trial has a verdict",
          agent.duration && ` · median ${agent.duration.median}`, agent.cost && ` · median cost ${agent.cost.median}`,
          agent.model && !agent.short.includes(agent.model) && ` · ${agent.model}`)))),
    selections(run),
    section(`Cases (${count(data.cases.length)}), worst first`, caseList(run, data.worstFirst)),
    data.trials.case.length > 1 && distributions(run),
    (info.notRun.length > 0 || info.warnings.length > 0) && section("Warnings",
      h("ul", {}, [...info.notRun, ...info.warnings].slice(0, 200).map((text) => h("li", {}, text)))),
    about(run));
}

/** @param {Gate} gate */
function verdict(gate) {
  const look = gate.isGood ? "good" : gate.answer === "missed" ? "missed" : "unsure";
  return h("div", { class: `verdict ${look}` },
    h("p", { class: "answer" }, h("strong", {}, `Gate ${gate.sentence}.`)), h("p", {}, `${gate.cases}. ${gate.trials}.`),
    gate.exit !== 0 && h("p", {}, `Exit code ${gate.exit}: ${gate.exitReason}`),
    gate.reasons.length > 0 && h("ul", {}, gate.reasons.slice(0, 5).map((reason) => h("li", {}, sentence(reason))),
      gate.reasons.length > 5 && h("li", {}, `and ${count(gate.reasons.length - 5)} more; the list of cases has all of them`)));
}

/** The numbers of the run. Each leads to its trials. @param {Run} run */
function figures(run) {
  const { data } = run;
  /** @type {[string, string, string, string?][]} */
  const all = [];
  if (data.rate) all.push(["trials passed", `${count(data.rate.passed)}/${count(data.rate.counted)}`, /\((.*)\)/.exec(data.rate.text)?.[1] || "", "passed"]);
  data.outcomes.forEach((outcome, o) => {
    const n = data.trials.outcome.reduce((sum, at) => sum + Number(at === o), 0);
    if (outcome !== "passed" && n > 0) all.push([outcome, count(n), blames(run, o), outcome]);
  });
  all.push(["duration", duration(data.run.duration), ""], ["cost", data.run.cost, data.run.tokens && `tokens: ${data.run.tokens}`]);
  return h("dl", { class: "figures" }, all.map(([name, value, more, outcome]) => h("div", { class: outcome }, h("dt", {}, name),
    h("dd", {}, outcome ? h("a", { href: trialsLink({ outcome }) }, value) : value), more && h("dd", { class: "hint" }, more))));
}

/** Who is to blame for trials with an outcome, most often first. @param {Run} run @param {number} outcome */
function blames(run, outcome) {
  const { blames: names, trials } = run.data;
  const counts = names.map((name, b) => ({ name, n: trials.blame.reduce((/** @type {number} */ sum, at, i) => sum + Number(at === b && trials.outcome[i] === outcome), 0) }));
  const found = counts.filter(({ n }) => n > 0).sort((a, b) => b.n - a.n);
  return found.length === 0 ? "" : `blame: ${found.map(({ name, n }) => `${name} ${count(n)}`).join(", ")}`;
}

/** @param {Run} run */
function causes(run) {
  const all = run.data.causes;
  /** @type {Map<number, number>} */
  const first = new Map();
  run.data.trials.cause.forEach((cause, i) => { if (cause !== null && !first.has(cause)) first.set(cause, i); });
  const item = (/** @type {Cause} */ cause, /** @type {number} */ i) => {
    const such = first.get(i);
    return h("li", { class: cause.outcome }, h("div", { class: "cause" }, sentence(clip(cause.reason, 600))),
      h("div", { class: "hint" }, tag(cause.outcome), " ", cause.check && [h("code", {}, cause.check), " "], cause.blame && `blame: ${cause.blame} · `,
        h("a", { href: trialsLink({ cause: String(i) }) }, counted(cause.trials, "trial")), cause.cases > 1 && ` of ${count(cause.cases)} cases`,
        such !== undefined && [cause.trials > 1 ? ", first " : ": ", h("a", { class: "such", href: run.link(such) }, `${clip(run.case(such).name, 60)}, ${clip(run.label(such), 40)}`)]));
  };
  const rest = all.slice(8, 200);
  return [h("ol", { class: "causes" }, all.slice(0, 8).map(item)),
    rest.length > 0 && h("details", {}, h("summary", {}, `${counted(all.length - 8, "more cause")}`),
      h("ol", { class: "causes", start: 9 }, rest.map((cause, i) => item(cause, i + 8))))];
}

/** The cases as rows. @param {Run} run @param {number[]} order */
function caseList(run, order) {
  const { data } = run;
  const shownAgents = data.agents.slice(0, 4);
  const longest = Math.min(24, Math.max(1, ...order.map((c) => data.cases[c].runs)));
  const room = `${Math.min(260, Math.max(60, shownAgents.length * (longest * 5 + 8)))}px`;
  const list = new VirtualList({ row: () => (isPhone() ? 58 : 36), label: "Cases", render: (n) => {
    const c = order[n];
    const one = data.cases[c];
    const reason = one.cells.find((cell) => cell && cell.status === one.status)?.reason;
    return h("div", { class: "case" },
      tag(one.status), h("a", { class: "name", href: run.caseLink(one) }, h("span", {}, one.name)),
      h("span", { class: "strips" }, shownAgents.map((agent, a) => strip(run, run.cells[c][a],
        `${agent.short}: ${one.cells[a]?.rate?.text || "no trial has a verdict"}`, { pitch: 5, height: 14, most: 24 }))),
      whisker(one.rate, 90), h("span", { class: "num" }, one.rate ? `${one.rate.passed}/${one.rate.counted}` : "–"),
      h("span", { class: "num" }, duration(one.median)), h("span", { class: "num" }, compact(one.tokens)),
      h("span", { class: "num" }, dollars(one.cost)), h("span", { class: "reason" }, sentence(reason || "")));
  } });
  requestAnimationFrame(() => list.reset(order.length));
  app.list = list;
  const all = h("div", { class: "cases" }, h("div", { class: "row case head", "aria-hidden": "true" }, h("span", {}, "status"), h("span", {}, "case"),
    h("span", {}, "trials"), h("span", {}, "rate, 95% CI"),
    h("span", { class: "num" }, "passed"), h("span", { class: "num" }, "median"), h("span", { class: "num" }, "tokens"),
    h("span", { class: "num" }, "cost"), h("span", {}, "why")), list.element, list.rest);
  all.style.setProperty("--strips", room);
  return all;
}

/** @param {Run} run */
function distributions(run) {
  /** @type {[string, "duration" | "tokens" | "cost"][]} */
  const kinds = [["Duration", "duration"], ["Tokens", "tokens"], ["Cost", "cost"]];
  const pictures = kinds.map(([title, key]) => {
    const rows = run.data.agents.flatMap((agent) => {
      const q = agent[key];
      return q && q.values[4] > 0 ? [{ name: agent.short, q }] : [];
    });
    return rows.length > 0 && h("figure", {}, h("figcaption", {}, h("a", { href: trialsLink({ sort: key }) }, `${title} of a trial`)), spread(title, rows));
  });
  return pictures.some(Boolean) && section("Duration, tokens and cost",
    h("p", { class: "hint" }, "The median, the middle half, and the trials from 5 to 95%, on a logarithmic line."), pictures);
}

/** @param {Run} run */
function about(run) {
  const info = run.data.run;
  const context = info.context || {};
  /** @type {[string, Child][]} */
  const rows = [["Record", h("code", {}, info.folder)], ["Suite", h("code", {}, info.suite)], ["Started", info.started.replace(/\.\d+/, "").replace("T", " ").replace("Z", " UTC")], ["Proctor", info.proctor],
    ["Command", h("code", {}, info.command.map(quoted).join(" "))], ["Judge", info.judge], ["Commit", context.commit],
    ["Branch", context.branch], ["Pull request", context.pullRequest], ["CI job", context.jobUrl]];
  return section("About this run", h("dl", { class: "about" },
    rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}
