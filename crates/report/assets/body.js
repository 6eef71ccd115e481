// Texts of a record: laid out, cut, copied.

/** JSON with line breaks. Numbers keep every digit, since nothing is parsed. @param {string} json */
function laidOut(json) {
  if (!/^\s*[[{]/.test(json)) return json;
  let depth = 0;
  let text = "";
  for (let i = 0; i < json.length; i++) {
    const c = json[i];
    if (c === '"') {
      const from = i;
      for (i++; i < json.length && json[i] !== '"'; i++) if (json[i] === "\\") i++;
      text += json.slice(from, i + 1);
    } else if ((c === "{" && json[i + 1] === "}") || (c === "[" && json[i + 1] === "]")) {
      text += c + json[++i];
    } else if (c === "{" || c === "[") text += `${c}\n${"  ".repeat(++depth)}`;
    else if (c === "}" || c === "]") text += `\n${"  ".repeat(Math.max(0, --depth))}${c}`;
    else if (c === ",") text += `,\n${"  ".repeat(depth)}`;
    else if (c === ":") text += ": ";
    else if (!/\s/.test(c)) text += c;
  }
  return text;
}

/** The beginning of a body. @param {RecordText | null | undefined} body */
const startOf = (body) => (!body ? "" : typeof body === "string" ? body : body.head);

/** A body as a block that scrolls. @param {string} label @param {RecordText} body @param {boolean} [isJson] */
function bodyBlock(label, body, isJson = false) {
  if (typeof body === "string") return block(label, isJson ? laidOut(body) : body);
  const left = body.bytes - new TextEncoder().encode(body.head + body.tail).length;
  return [block(label, body.head, h("mark", { class: "cut" }, ` … ${count(left)} bytes left out … `), body.tail),
    h("p", { class: "hint" }, `${count(body.bytes)} bytes in all`, body.sha256 && [", SHA-256 ", h("code", {}, body.sha256)], ". The record has the whole text."),
    wholeText(body)];
}

/** A body as text of the page. @param {RecordText} body */
function bodyText(body) {
  if (typeof body === "string") return h("div", { class: "text" }, body);
  return h("div", { class: "text" }, body.head, h("mark", { class: "cut" }, ` … cut: ${count(body.bytes)} bytes in all … `), body.tail, wholeText(body));
}

/** A sentence in which names are in backticks, and events may be links. @param {string} text @param {(seq: number) => string} [link] */
function sentence(text, link) {
  /** @param {string} part @returns {Child[]} */
  const linked = (part) => (!link ? [part] : part.split(/(\bevent \d+\b)/).map((word, i) =>
    (i % 2 === 1 ? h("a", { href: link(Number(word.slice(6))), "data-evidence": "" }, word) : word)));
  return text.split("`").map((part, i) => (i % 2 === 1 ? h("code", {}, part) : linked(part)));
}

/** A reason, in which names are in backticks. @param {RecordText} body @param {(seq: number) => string} [link] */
const reasonText = (body, link) => (typeof body === "string" ? sentence(body, link) : bodyText(body));

/** A button that copies a text. @param {string} name @param {() => string} text */
function copyButton(name, text) {
  const button = h("button", { type: "button", class: "copy", click: async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = name; }, 1500);
    } catch {
      // Without permission, the text is shown so that it can be copied by hand.
      const field = /** @type {HTMLTextAreaElement} */ (h("textarea", { readonly: true, rows: 6, "aria-label": name }));
      field.value = text();
      openDialog(name, field);
      field.select();
    }
  } }, name);
  return button;
}
