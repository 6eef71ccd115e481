// Which page is shown.

const app = {
  /** @type {Source} */
  source: isServed ? new ServedSource() : new EmbeddedSource(),
  /** @type {Run} */
  run: /** @type {any} */ (null),
  /** The trial that is shown. @type {number | null} */
  current: null,
  /** The trials of the list that was shown last, in its order. @type {number[]} */
  rows: [],
  /** @type {VirtualList | null} */
  list: null,
  /** What was shown last, without the event in it. */
  shown: "",
  status: h("div", { class: "status", role: "status" }),
};

const NAVIGATION = /** @type {[string, string, string][]} */ ([["", "#/", "Overview"], ["cases", "#/cases", "Cases"], ["trials", "#/trials", "Trials"],
  ["coverage", "#/coverage", "Coverage"], ["servers", "#/servers", "Servers"],
  ...(isServed ? [["history", "#/history", "History"], ["diff", "#/diff", "Compare"]] : [])]);

/** Three trials, of which one failed. */
const logo = () => svg("svg", { width: 18, height: 18, "aria-hidden": "true" },
  svg("path", { class: "passed", d: `${bar("passed", 1, 4, 18)}${bar("passed", 13, 4, 18)}` }), svg("path", { class: "failed", d: bar("failed", 7, 4, 18) }));

/** @param {string} page */
function header(page) {
  return h("header", {}, h("a", { class: "skip", href: "#main", click: (/** @type {Event} */ e) => {
    e.preventDefault();
    document.getElementById("main")?.setAttribute("tabindex", "-1");
    document.getElementById("main")?.focus();
  } }, "Skip to the content"), h("a", { class: "brand", href: "#/" }, logo(), "Proctor"),
    h("nav", { "aria-label": "Pages" }, NAVIGATION.map(([name, href, title]) =>
      h("a", { href, "aria-current": name === page ? "page" : null }, title))),
    h("span", { class: "tools" },
      h("button", { type: "button", click: search }, "Search ", h("kbd", {}, "/")),
      h("button", { type: "button", click: help }, "Keys ", h("kbd", {}, "?")),
      h("button", { type: "button", click: switchTheme }, "Theme ", h("kbd", {}, "d"))));
}

/** The parts of an address. A part that can't be decoded is taken as it is. @param {string} hash */
function addressed(hash) {
  const [path, query = ""] = hash.slice(1).split("?");
  const parts = path.split("/").slice(1).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { parts, query: new URLSearchParams(query) };
}

let turn = 0;

async function show() {
  const mine = ++turn;
  const { parts, query } = addressed(location.hash);
  const [name = "", id = "", agent = "", repeat = "", seq] = parts;
  const { run } = app;
  const trial = name === "trial" ? run.find(id, agent, Number(repeat)) : -1;
  const key = name === "trial" ? `trial ${trial}` : location.hash;
  if (key === app.shown && name === "trial" && seq && document.querySelector(".trial-page")) {
    mark(document.querySelector(".events") || document.body, seq);
    return;
  }
  app.list = null;
  let page;
  if (name === "trial") page = trial < 0 ? lost("This run has no such trial") : await trialPage(run, trial, seq, query.get("find") || "");
  else if (name === "case") page = await casePage(run, id, query);
  else if (name === "cases") page = casesPage(run, query);
  else if (name === "trials") page = trialsPage(run, query);
  else if (name === "coverage") page = coveragePage(run);
  else if (name === "servers") page = serversPage(run);
  else if (isServed && name === "history") page = await historyPage(run, query);
  else if (isServed && name === "diff") page = await comparePage(id);
  else if (name === "") page = overviewPage(run);
  else page = lost("There is no such page");
  // Another page was asked for meanwhile.
  if (mine !== turn) return;
  app.current = trial < 0 ? null : trial;
  app.shown = key;
  const title = page.querySelector("h1")?.textContent || "";
  document.title = printable(`${title === run.data.run.name ? "" : `${clip(title, 80)} · `}${clip(run.data.run.name, 80)} · Proctor`);
  root().replaceChildren(header(name), ...(isServed ? [served().line] : []), page, app.status);
  if (!seq) scrollTo(0, 0);
}

/** @param {string} text */
const lost = (text) => h("main", { id: "main" }, h("h1", {}, text), h("p", {}, h("a", { href: "#/" }, "To the overview")));

const root = () => /** @type {HTMLElement} */ (document.getElementById("root"));

/** @param {unknown} error */
function failed(error) {
  const text = error instanceof Error ? error.message : String(error);
  root().replaceChildren(h("main", { id: "main" }, h("h1", {}, error instanceof Missing ? "No results" : "This report can't be shown"),
    h("p", { class: "note" }, text), isServed && otherRuns()));
}

/** Opens everything that is folded, so that it is printed. */
function unfold() {
  for (const details of document.querySelectorAll("details")) {
    details.dispatchEvent(new Event("proctor-open"));
    if (!details.open) {
      details.open = true;
      addEventListener("afterprint", () => { details.open = false; }, { once: true });
    }
  }
}

async function start() {
  const data = await app.source.overview();
  if (data.version !== PAGE_VERSION) throw new Error(`The data has version ${data.version}; this page reads version ${PAGE_VERSION}.`);
  app.run = new Run(data);
  keepTheme();
  addEventListener("hashchange", () => show().catch(failed));
  addEventListener("keydown", pressed);
  addEventListener("beforeprint", unfold);
  await show();
  performance.mark("ready");
  if (isServed) served().follow();
}

start().catch(failed);
