// All cases, with filters in the address.

/** @param {Run} run @param {URLSearchParams} query */
function casesPage(run, query) {
  const { data } = run;
  const words = wordsOf(query.get("q") || "");
  const status = query.get("status");
  const label = query.get("label");
  const order = data.worstFirst.filter((c) => {
    const one = data.cases[c];
    const labels = Object.entries(one.labels).map(([key, value]) => `${key}=${value}`);
    if (status && !one.cells.some((cell) => cell && cell.status === status)) return false;
    if (label && !labels.includes(label)) return false;
    const text = `${one.name} ${one.path} ${labels.join(" ")} ${one.difficulty || ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  /** @param {string} key @param {string} value */
  const set = (key, value) => {
    if (value) query.set(key, value);
    else query.delete(key);
    const focused = document.activeElement?.id;
    history.replaceState(null, "", `#/cases?${query}`);
    show().then(() => focused && document.getElementById(focused)?.focus());
  };
  const labels = [...new Set(data.cases.flatMap((one) => Object.entries(one.labels).map(([k, v]) => `${k}=${v}`)))].sort();
  return h("main", { id: "main" }, h("h1", {}, "Cases"),
    h("p", { class: "lead" }, `${data.gate.cases}.`),
    h("form", { class: "filters", role: "search", submit: (/** @type {Event} */ e) => e.preventDefault() },
      searchField(query, (text) => set("q", text)),
      chooser("status", "Status", ["missed", "inconclusive", "flaky", "passed"], query, set),
      labels.length > 0 && chooser("label", "Label", labels.slice(0, 500), query, set)),
    h("p", { class: "hint", role: "status" }, `${count(order.length)} of ${counted(data.cases.length, "case")}`),
    caseList(run, order));
}

/** @param {string} text */
const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

/** @param {URLSearchParams} query @param {(text: string) => void} change */
function searchField(query, change) {
  let timer = 0;
  const changed = (/** @type {Event} */ e) => {
    clearTimeout(timer);
    const text = /** @type {HTMLInputElement} */ (e.target).value;
    timer = setTimeout(() => change(text), 120);
  };
  const field = /** @type {HTMLInputElement} */ (h("input", { type: "search", id: "search", autocomplete: "off", input: changed }));
  // A property, not the attribute: the text stays as it was typed.
  field.value = query.get("q") || "";
  return h("label", {}, "Search ", field);
}

/**
 * @param {string} key @param {string} label @param {string[]} values @param {URLSearchParams} query
 * @param {(key: string, value: string) => void} change @param {string[]} [names] @param {string} [none]
 */
function chooser(key, label, values, query, change, names = values, none = "all") {
  const changed = (/** @type {Event} */ e) => {
    const at = /** @type {HTMLSelectElement} */ (e.target).selectedIndex - 1;
    change(key, at < 0 ? "" : values[at]);
  };
  return h("label", {}, label, " ", h("select", { id: `f-${key}`, change: changed }, h("option", { value: "" }, none),
    values.map((value, i) => h("option", { selected: query.get(key) === value }, clip(names[i], 60)))));
}
