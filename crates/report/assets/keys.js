// The keyboard.

/** What keys do. */
const KEYS = /** @type {[string, string][]} */ ([["/", "search trials, or the messages of a trial"], ["j, k", "next, previous cause, row or event"], ["Enter", "open"],
  ["n, N", "next, previous failed trial"], ["[, ]", "previous, next trial of the case"], ["e", "next evidence"],
  ["o", "choose an outcome"], ["g o, g c, g t, g v, g s", "overview, cases, trials, coverage, servers"], ["d", "light or dark"], ["?", "this help"]]);

const PAGES = /** @type {Record<string, string>} */ ({ o: "#/", c: "#/cases", t: "#/trials", v: "#/coverage", s: "#/servers",
  ...(isServed ? { h: "#/history" } : {}) });

let pressedG = false;

/** @param {KeyboardEvent} event */
function pressed(event) {
  const at = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") ||
    at instanceof HTMLInputElement || at instanceof HTMLSelectElement || at instanceof HTMLTextAreaElement) return;
  const key = event.key;
  if (pressedG) {
    pressedG = false;
    if (PAGES[key]) location.hash = PAGES[key];
    return;
  }
  /** @type {Record<string, () => void>} */
  const actions = { "/": search, j: () => moveRow(1), k: () => moveRow(-1), n: () => nextFailure(1), N: () => nextFailure(-1),
    "]": () => nextTrial(1), "[": () => nextTrial(-1), e: nextEvidence, o: chooseOutcome, g: () => { pressedG = true; }, d: switchTheme, "?": help };
  const action = actions[key];
  if (!action) return;
  event.preventDefault();
  action();
}

/** Focuses a field of the list of trials, or of the page that has it. @param {string} id */
async function focusField(id) {
  if (!document.getElementById(id)) {
    // Unlike a new hash, this fires no event that would draw the page again and lose the focus.
    history.pushState(null, "", "#/trials");
    await show();
  }
  document.getElementById(id)?.focus();
}

const search = () => focusField(document.getElementById("find") ? "find" : "search");
const chooseOutcome = () => focusField("f-outcome");

/** @param {number} step */
function moveRow(step) {
  const active = document.activeElement;
  const list = app.list;
  if (list && list.element.isConnected) {
    const row = active?.closest(".row");
    const at = row instanceof HTMLElement && row.dataset.index !== undefined ? Number(row.dataset.index) + step : 0;
    // The causes of the overview stand above its list.
    const causes = [...document.querySelectorAll("main .causes a.such")];
    const cause = row ? at + causes.length : causes.indexOf(/** @type {Element} */ (active)) + step;
    if (cause >= causes.length && at >= 0 && at < list.count) list.reveal(row ? at : 0);
    else if (causes[cause] instanceof HTMLElement) /** @type {HTMLElement} */ (causes[cause]).focus();
    return;
  }
  const stops = [...document.querySelectorAll("main .event > summary, main .event > div > .when, main td a, main .offers summary")];
  const next = stops[Math.max(0, Math.min(stops.length - 1, stops.indexOf(/** @type {Element} */ (active)) + step))];
  if (next instanceof HTMLElement) next.focus();
}

/** @param {number} step */
function nextFailure(step) {
  const { run } = app;
  // A list that was filtered or sorted is followed in its order.
  const order = app.rows.length > 0 ? app.rows : [...Array(run.size).keys()];
  const from = app.current === null ? (step > 0 ? -1 : order.length) : order.indexOf(app.current);
  for (let at = from + step; at >= 0 && at < order.length; at += step) {
    if (run.isBad(order[at])) {
      location.hash = run.link(order[at]);
      return;
    }
  }
  announce(step > 0 ? "no later failure" : "no earlier failure");
}

/** @param {number} step */
function nextTrial(step) {
  if (app.current === null) return;
  const all = app.run.cells[app.run.data.trials.case[app.current]].flat();
  const next = all[all.indexOf(app.current) + step];
  if (next !== undefined) location.hash = app.run.link(next);
}

function nextEvidence() {
  const links = [...document.querySelectorAll("a[data-evidence]")];
  const at = links.findIndex((link) => link.getAttribute("href") === location.hash);
  const next = links[(at + 1) % links.length];
  if (next) location.hash = next.getAttribute("href") || "";
}

function switchTheme() {
  const root = document.documentElement;
  const now = root.style.getPropertyValue("color-scheme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  root.style.setProperty("color-scheme", next);
  try {
    localStorage.setItem(THEME, next);
  } catch {
    // A browser may forbid it, for files in particular: the choice is then for this page.
  }
}

/** Where the theme is kept. */
const THEME = "proctor-theme";

/** Shows the theme that the reader chose last. */
function keepTheme() {
  try {
    const kept = localStorage.getItem(THEME);
    if (kept === "light" || kept === "dark") document.documentElement.style.setProperty("color-scheme", kept);
  } catch {
    // As above.
  }
}

function help() {
  openDialog("Keys", h("dl", { class: "about" }, KEYS.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])));
}

/** @param {string} title @param {Child} content */
function openDialog(title, content) {
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-labelledby": "dialog-title", close: () => dialog.remove() },
    h("h2", { id: "dialog-title" }, title), content,
    h("button", { type: "button", click: () => dialog.close() }, "Close")));
  document.body.appendChild(dialog);
  dialog.showModal();
}

/** Tells a screen reader, and shows it for a moment. @param {string} text */
function announce(text) {
  app.status.textContent = text;
  setTimeout(() => { app.status.textContent = ""; }, 2500);
}
