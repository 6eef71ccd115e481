// Pictures as SVG. Each is one path per outcome, however many trials there are, and none needs its colours.

/**
 * Trials as a strip of bars: passed is short, failed is tall, timed out is broken, errored is hollow, the rest is a dot.
 * @param {Run} run @param {number[]} trials @param {string} label
 */
function strip(run, trials, label, { height = 16, pitch = 6, most = 60 } = {}) {
  const shown = trials.slice(0, most);
  /** @type {Record<string, string>} */
  const paths = {};
  const w = Math.max(1, pitch - 2);
  shown.forEach((trial, i) => {
    const outcome = run.outcome(trial);
    paths[outcome] = (paths[outcome] || "") + bar(outcome, i * pitch, w, height);
  });
  return svg("svg", { class: "strip", width: Math.max(1, shown.length * pitch), height, role: "img", "aria-label": label },
    Object.entries(paths).map(([outcome, d]) => svg("path", { d, class: outcome })));
}

/** @param {string} outcome @param {number} x @param {number} w @param {number} height */
function bar(outcome, x, w, height) {
  switch (outcome) {
    case "passed": return `M${x} ${height * 0.6}h${w}v${height * 0.4}h${-w}z`;
    case "failed": return `M${x} 0h${w}v${height}h${-w}z`;
    case "timed-out": return `M${x} 0h${w}v${height * 0.35}h${-w}zM${x} ${height * 0.6}h${w}v${height * 0.4}h${-w}z`;
    case "errored": return `M${x + 0.5} .5h${w - 1}v${height - 1}h${1 - w}z`;
    default: return `M${x} ${height - 2}h${w}v2h${-w}z`;
  }
}

/** A rate with its interval on a line from 0 to 1. The text beside it says the same. @param {Rate | null} rate */
function whisker(rate, width = 120) {
  const x = (/** @type {number} */ v) => (3 + v * (width - 6)).toFixed(1);
  return svg("svg", { class: "whisker", width, height: 14, "aria-hidden": "true" },
    svg("path", { class: "axis", d: `M3 7H${width - 3}` }),
    rate && svg("path", { class: "interval", d: `M${x(rate.low)} 7H${x(rate.high)}` }),
    rate && svg("circle", { class: "mean", cx: x(rate.mean), cy: 7, r: 3.5 }));
}

/**
 * The cases of an agent as columns, worst first: the taller, the more trials did not pass. Hollow is inconclusive.
 * @param {Run} run @param {number} agent
 */
function heat(run, agent) {
  const { cases, worstFirst, agents } = run.data;
  // Beside the agents' names, or below them on a phone.
  const width = Math.max(120, isPhone() ? innerWidth - 24 : Math.min(980, innerWidth - 220));
  const pitch = Math.max(0.5, Math.min(40, width / Math.max(1, cases.length)));
  const w = pitch > 4 ? pitch - 2 : pitch > 1.5 ? pitch - 0.5 : pitch;
  let bad = "";
  let open = "";
  let good = "";
  worstFirst.forEach((c, column) => {
    const cell = cases[c].cells[agent];
    const x = (column * pitch).toFixed(1);
    const all = cell ? cell.passed + cell.notPassed + cell.noVerdict : 0;
    if (!cell || !all) return;
    if (cell.notPassed) {
      const y = Math.max(3, (cell.notPassed / all) * 26).toFixed(1);
      bad += `M${x} 26v-${y}h${w.toFixed(1)}v${y}z`;
    } else if (cell.noVerdict) open += `M${x} 25.5v-${Math.max(4, (cell.noVerdict / all) * 25).toFixed(1)}h${w.toFixed(1)}v${Math.max(4, (cell.noVerdict / all) * 25).toFixed(1)}`;
    else good += `M${x} 26v-1.5h${w.toFixed(1)}v1.5z`;
  });
  /** @param {MouseEvent} event */
  const caseAt = (event) => {
    const box = /** @type {Element} */ (event.currentTarget).getBoundingClientRect();
    return cases[worstFirst[Math.floor((event.clientX - box.left) / pitch)]];
  };
  const title = svg("title");
  const one = agents[agent];
  const label = `${one.short}: ${one.rate ? one.rate.text : "no trial has a verdict"}`;
  return svg("svg", { class: "heat", width: Math.ceil(cases.length * pitch), height: 28, role: "img", "aria-label": label,
      click: (/** @type {MouseEvent} */ e) => { const c = caseAt(e); if (c) location.hash = run.caseLink(c); },
      mousemove: (/** @type {MouseEvent} */ e) => { const c = caseAt(e); title.textContent = c ? printable(c.name) : ""; } },
    title, svg("path", { class: "axis", d: `M0 27H${(cases.length * pitch).toFixed(1)}` }),
    good && svg("path", { class: "passed", d: good }), bad && svg("path", { class: "failed", d: bad }),
    open && svg("path", { class: "errored", d: open }));
}

/**
 * The 5, 25, 50, 75 and 95 % values of each agent on a logarithmic line.
 * @param {string} what @param {{name: string, q: Quantiles}[]} rows
 */
function spread(what, rows) {
  const width = Math.max(240, Math.min(1150, innerWidth - 60));
  const left = Math.min(160, width * 0.3);
  const right = 84;
  const least = Math.min(...rows.flatMap((row) => row.q.values.filter((v) => v > 0)));
  const floor = Number.isFinite(least) ? least : 1;
  const low = Math.log(floor * 0.8);
  const high = Math.log(Math.max(floor * 1.3, ...rows.map((row) => row.q.values[4])) * 1.2);
  const x = (/** @type {number} */ v) => (left + ((Math.log(Math.max(v, floor * 0.8)) - low) / (high - low)) * (width - left - right)).toFixed(1);
  const label = `${what}: ${rows.map((row) => `${row.name} median ${row.q.median}`).join("; ")}`;
  return svg("svg", { class: "spread", width, height: rows.length * 26 + 2, role: "img", "aria-label": label },
    rows.map((row, i) => {
      const y = i * 26 + 13;
      const [p5, p25, p50, p75, p95] = row.q.values;
      return svg("g", {}, svg("text", { x: 0, y: y + 4 }, clip(printable(row.name), Math.floor(left / 8))),
        svg("path", { class: "axis", d: `M${left} ${y}H${width - right}` }),
        svg("path", { class: "range", d: `M${x(p5)} ${y}H${x(p95)}` }),
        svg("path", { class: "middle", d: `M${x(p25)} ${y}H${x(p75)}` }),
        svg("path", { class: "median", d: `M${x(p50)} ${y - 8}v16` }),
        svg("text", { x: width - right + 8, y: y + 4 }, row.q.median));
    }));
}

/** @param {string} text @param {number} most */
const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
