// The runs of a suite over time, for `proctor view`.

/** @typedef {{passed: number, counted: number, mean: number, low95: number, high95: number}} StoredRate */
/** @typedef {{kind: string, text: string}} Mark */
/** @typedef {{name: string, started: string, hasEnded: boolean, exit: number | null, gate: string, trials: Counts, rate: StoredRate | null,
 *   duration: number, agents: {name: string, model: string | null, median: number | null, rate: StoredRate | null}[],
 *   context: {commit: string | null, branch: string | null} | null, marks: Mark[]}} RunPoint */
/** @typedef {{run: number, passed: number, notPassed: number, open: number, rule: string}} CasePoint */
/** @typedef {{id: string, agent: string, hash: string, isReplaced: boolean, points: CasePoint[], rate: StoredRate | null,
 *   flaky: {runs: number, of: number, since: number | null, with: Mark[]} | null, slower: {before: number, now: number, with: Mark[]} | null}} CaseLine */
/** @typedef {{suite: string, runs: RunPoint[], cases: CaseLine[], moreCases: number}} SuiteHistory */

/** @param {StoredRate | null} rate */
const storedRate = (rate) => (!rate ? "no trial has a verdict" :
  `${count(rate.passed)}/${count(rate.counted)} (${Math.round(rate.mean * 100)}%, 95% CI ${Math.round(rate.low95 * 100)}–${Math.round(rate.high95 * 100)}%)`);

/** How a run ended, in a word. An unfinished run is never met. @param {RunPoint} run */
const standing = (run) => (!run.hasEnded ? "unfinished" : run.gate === "met" && run.exit !== 0 ? `met, exit ${run.exit}` : run.gate);

/** @param {string} started */
const day = (started) => started.slice(0, 16).replace("T", " ");

/** The name of a case in its id. @param {string} id */
const caseName = (id) => id.slice(id.lastIndexOf("#") + 1);

/** @param {Run} run @param {URLSearchParams} query */
async function historyPage(run, query) {
  const { suites } = /** @type {{suites: SuiteHistory[]}} */ (await served().get("/history"));
  const wanted = query.get("suite") || run.data.run.name;
  const suite = suites.find((one) => one.suite === wanted) || suites[0];
  if (!suite) return h("main", { id: "main" }, h("h1", {}, "History"), h("p", { class: "lead" }, "No run has results yet."));
  const flaky = suite.cases.filter((line) => line.flaky && !line.isReplaced);
  const slower = suite.cases.filter((line) => line.slower && !line.isReplaced);
  const latest = suite.runs[suite.runs.length - 1];
  return h("main", { id: "main" }, h("h1", {}, "History"),
    h("p", { class: "facts" }, `${suite.suite} · ${counted(suite.runs.length, "run")} · since ${day(suite.runs[0].started)}`),
    h("p", { class: "lead" }, `The latest run: ${standing(latest)}, ${storedRate(latest.rate)}. `,
      flaky.length > 0 ? `${counted(flaky.length, "case")} ${flaky.length === 1 ? "is" : "are"} flaky now.` : "No case is flaky now."),
    suites.length > 1 && h("nav", { class: "filters", "aria-label": "Suites" }, suites.map((one) =>
      h("a", { href: `#/history?suite=${encodeURIComponent(one.suite)}`, "aria-current": one === suite ? "true" : null }, clip(one.suite, 60)))),
    section("Pass rate of each run", h("p", { class: "hint" }, "A dot is the pass rate, its line the 95% interval. A cross missed its gate, a hollow dot is inconclusive or unfinished. A dashed line: server, model, suite or Proctor changed. Intervals that overlap are not a change; only Compare tests that."),
      ratePicture(suite.runs)),
    section("Flaky now", flaky.length === 0 ? h("p", {}, "No case passed and failed with the same content in the last 8 runs.") :
      h("ul", { class: "causes" }, flaky.slice(0, 50).map((line) => h("li", {}, h("a", { href: `#/case/${encodeURIComponent(line.id)}` }, caseName(line.id)), ` by ${line.agent}: ${flakySentence(suite, line)}`)))),
    slower.length > 0 && section("Slower", h("p", { class: "hint" }, "The latest run took longer than each of up to 8 runs before, and at least 1.5 times as long as usual. That is not a test: machines and models differ from day to day."),
      h("ul", { class: "causes" }, slower.slice(0, 50).map((line) => h("li", {}, h("a", { href: `#/case/${encodeURIComponent(line.id)}` }, caseName(line.id)), ` by ${line.agent}: ${slowerSentence(line)}`)))),
    section("Cases", casesTable(suite)),
    section("Runs", runsTable(suite.runs)));
}

/** @param {SuiteHistory} suite @param {CaseLine} line */
function flakySentence(suite, line) {
  if (!line.flaky) return "";
  const { runs, of, since, with: marks } = line.flaky;
  const became = since === null ? "" : `; became flaky in the run of ${day(suite.runs[since].started)}${marks.length ? `, with ${marks.map((mark) => mark.text).join(", ")}` : ""}`;
  return `${runs} of the last ${counted(of, "run")}${became}`;
}

/** @param {CaseLine} line */
function slowerSentence(line) {
  if (!line.slower) return "";
  const { before, now, with: marks } = line.slower;
  return `${duration(before)} → ${duration(now)}${marks.length ? `, with ${marks.map((mark) => mark.text).join(", ")}` : ""}`;
}

/** @param {RunPoint[]} runs */
function ratePicture(runs) {
  const shown = runs.slice(-120);
  const pitch = Math.max(7, Math.min(64, (Math.min(1100, innerWidth - 90)) / shown.length));
  const height = 130;
  const days = shown.length > 1 ? [shown[0], shown[shown.length - 1]].map((run) => run.started.slice(0, 10)) : [];
  const y = (/** @type {number} */ v) => (8 + (1 - v) * (height - 16)).toFixed(1);
  const at = (/** @type {number} */ i) => 40 + i * pitch + pitch / 2;
  let intervals = "", marks = "", met = "", missed = "", open = "";
  shown.forEach((run, i) => {
    const x = at(i);
    if (run.marks.length > 0) marks += `M${(x - pitch / 2).toFixed(1)} 0V${height}`;
    if (!run.rate) return;
    intervals += `M${x.toFixed(1)} ${y(run.rate.low95)}V${y(run.rate.high95)}`;
    const m = Number(y(run.rate.mean));
    const circle = `M${(x - 3.5).toFixed(1)} ${m}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z`;
    if (standing(run) === "met") met += circle;
    else if (run.hasEnded && run.gate === "missed") missed += `M${(x - 4).toFixed(1)} ${m - 4}l8 8m0 -8l-8 8`;
    else open += circle;
  });
  const width = 40 + shown.length * pitch + 4;
  const label = `Pass rates of the last ${counted(shown.length, "run")}: ${shown.slice(-8).map((run) => `${day(run.started)} ${run.rate ? `${Math.round(run.rate.mean * 100)}%` : "none"} ${standing(run)}`).join("; ")}`;
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Pass rates" },
    svg("svg", { class: "rates", width, height: height + 16, role: "img", "aria-label": label },
      days.length > 0 && [svg("text", { x: 40, y: height + 12 }, days[0]), width > 240 && svg("text", { x: width - 4, y: height + 12, "text-anchor": "end" }, days[1])],
      [0, 0.5, 1].map((v) => [svg("text", { x: 0, y: Number(y(v)) + 4 }, `${v * 100}%`), svg("path", { class: "axis", d: `M40 ${y(v)}H${width}` })]),
      marks && svg("path", { class: "change", d: marks }), intervals && svg("path", { class: "interval", d: intervals }),
      met && svg("path", { class: "passed", d: met }), missed && svg("path", { class: "cross", d: missed }), open && svg("path", { class: "hollow", d: open })));
}

/** @param {SuiteHistory} suite */
function casesTable(suite) {
  const shown = suite.cases.slice(0, 200);
  const more = suite.cases.length - shown.length + suite.moreCases;
  // One agent in every row says nothing.
  const withAgent = new Set(shown.map((line) => line.agent)).size > 1;
  return [h("p", { class: "hint" }, "A bar is a run: short if all trials passed, tall if all failed, hollow if some did, a dot without a verdict."),
    table("Cases over time", ["case", ...(withAgent ? ["agent"] : []), "runs, oldest first", "latest", "rate over these runs", "remarks"],
    shown.map((line) => {
      const last = line.points[line.points.length - 1];
      return [h("a", { href: `#/case/${encodeURIComponent(line.id)}` }, caseName(line.id)), ...(withAgent ? [line.agent] : []), caseStrip(suite, line),
        `${last.passed}/${last.passed + last.notPassed}${last.open ? ` (+${last.open} without a verdict)` : ""} ${last.rule}`, storedRate(line.rate),
        [line.flaky && [tag("flaky"), " "], line.slower && [tag("slower"), " "], line.isReplaced && h("span", { class: "hint" }, "earlier content ", h("code", {}, line.hash.slice(0, 8)))]];
    })), more > 0 && h("p", { class: "hint" }, `and ${count(more)} more, none of them flaky`)];
}

/** A bar for each run: short passed, tall failed, hollow differs, dot has no verdict. @param {SuiteHistory} suite @param {CaseLine} line */
function caseStrip(suite, line) {
  const word = (/** @type {CasePoint} */ p) => (p.passed + p.notPassed === 0 ? "not-run" : p.notPassed === 0 ? "passed" : p.passed === 0 ? "failed" : "errored");
  /** @type {Record<string, string>} */
  const paths = {};
  const points = line.points.slice(-40);
  points.forEach((point, i) => { paths[word(point)] = (paths[word(point)] || "") + bar(word(point), i * 6, 4, 16); });
  const label = points.slice(-12).map((p) => `${day(suite.runs[p.run].started)}: ${p.passed} of ${p.passed + p.notPassed}`).join("; ");
  return svg("svg", { class: "strip", width: points.length * 6, height: 16, role: "img", "aria-label": label },
    Object.entries(paths).map(([outcome, d]) => svg("path", { d, class: outcome })));
}

/** @param {RunPoint[]} runs */
function runsTable(runs) {
  return table("The runs, newest first", ["run", "started", "result", "pass rate", "duration", "source", "changed since the run before", "compare"],
    runs.slice().reverse().slice(0, 200).map((run) => [runLink(run.name, run.name), day(run.started), tag(standing(run).split(",")[0], standing(run)),
      storedRate(run.rate), duration(run.duration), [run.context?.branch, run.context?.commit?.slice(0, 7)].filter(Boolean).join("@"),
      run.marks.length > 0 && h("ul", { class: "notes" }, run.marks.map((mark) => h("li", {}, `${mark.kind}: ${mark.text}`))),
      run.name === served().name ? "shown" : h("a", { href: `#/diff/${encodeURIComponent(run.name)}` }, "compare")]));
}
