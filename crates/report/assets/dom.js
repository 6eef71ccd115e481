// Builds the page. Text from a record only becomes text nodes: nothing here turns text into markup, and the page's
// policy (`require-trusted-types-for 'script'`) makes `innerHTML` throw.

/** @typedef {Node | string | number | boolean | null | undefined | Child[]} Child */

const SVG = "http://www.w3.org/2000/svg";

/** Attributes that run or load something. */
const FORBIDDEN = /^(on|src|srcdoc|style|action|formaction|data$|background|xlink)/i;

/** Characters that are invisible or change how others are shown, as in `core::printable`; line feeds and tabs stay. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** The text with hidden characters as escapes. @param {string} text */
function printable(text) {
  return text.replace(HIDDEN, (c) => `\\u{${/** @type {number} */ (c.codePointAt(0)).toString(16)}}`);
}

/**
 * @param {Element} element
 * @param {Record<string, any>} props
 * @param {Child[]} children
 */
function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "href" && !String(value).startsWith("#")) throw new Error("links stay in the page");
    else if (FORBIDDEN.test(name)) throw new Error(`attribute ${name}`);
    else element.setAttribute(name, value === true ? "" : printable(String(value)));
  }
  put(element, children);
  return element;
}

/** @param {Node} parent @param {Child[]} children */
function put(parent, children) {
  for (const child of children) {
    if (child === false || child === true || child === null || child === undefined) continue;
    if (Array.isArray(child)) put(parent, child);
    else parent.appendChild(child instanceof Node ? child : document.createTextNode(printable(String(child))));
  }
}

/** Creates an HTML element. @param {string} tag @param {Record<string, any>} [props] @param {...Child} children */
function h(tag, props = {}, ...children) {
  return /** @type {HTMLElement} */ (fill(document.createElement(tag), props, children));
}

/** Creates an SVG element. @param {string} tag @param {Record<string, any>} [props] @param {...Child} children */
function svg(tag, props = {}, ...children) {
  return /** @type {SVGElement} */ (fill(document.createElementNS(SVG, tag), props, children));
}

/** A section with its heading. @param {string} title @param {...Child} children */
function section(title, ...children) {
  const id = `h-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), children);
}

/** A label such as `failed`. @param {string} word @param {string} [text] */
function tag(word, text) {
  return h("span", { class: `tag ${word}` }, text || word);
}

/** A block of text that scrolls by itself. @param {string} label @param {...Child} children */
function block(label, ...children) {
  return h("pre", { tabindex: 0, role: "region", "aria-label": label }, children);
}

/**
 * A table. Its first row names the columns; a cell that starts a row is its header. On a phone, a row is a block in which
 * each cell has its column's name. The roles stay the same there, which `display` would change.
 * @param {string} caption @param {string[]} columns @param {Child[][]} rows @param {{look?: string, numbers?: number[]}} [options]
 */
function table(caption, columns, rows, { look = "", numbers = [] } = {}) {
  const numeric = (/** @type {number} */ i) => (numbers.includes(i) ? "num" : null);
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", { class: look, role: "table" }, h("caption", { class: "unseen" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map((name, i) => h("th", { scope: "col", role: "columnheader", class: numeric(i) }, name)))),
      h("tbody", { role: "rowgroup" }, rows.map((row) => h("tr", { role: "row" }, row.map((cell, i) =>
        i === 0 ? h("th", { scope: "row", role: "rowheader" }, cell) :
          h("td", { role: "cell", class: [numeric(i), cell === "–" && "none"].filter(Boolean).join(" ") || null, "data-column": columns[i] }, h("div", {}, cell))))))));
}
