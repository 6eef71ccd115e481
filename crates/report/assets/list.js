// A list of which only the rows in sight exist.

/** How many rows are printed: about 60 pages. */
const PRINTED = 2000;

/** Whether the page is as narrow as in the style sheet's last rules. */
const isPhone = () => matchMedia("(max-width: 640px)").matches;

/**
 * Rows have one height. The list scrolls with the page, so that the browser's own keys, anchors and scroll bar work.
 * A short list has all its rows, and so has a printed one.
 */
class VirtualList {
  /** @param {{row: () => number, render: (index: number) => HTMLElement, label: string}} options */
  constructor({ row, render, label }) {
    /** The height of a row. */
    this.row = row();
    this.render = render;
    this.count = 0;
    /** @type {Map<number, HTMLElement>} */
    this.rows = new Map();
    this.element = h("div", { class: "list", role: "list", "aria-label": label });
    /** Says what a printed list leaves out. */
    this.rest = h("p", { class: "printed hint" });
    const listen = new AbortController();
    /** @param {boolean} all */
    const update = (all) => {
      if (this.element.isConnected) this.update(all);
      // The page has changed: this list is not needed any more.
      else if (this.wasShown) listen.abort();
    };
    this.wasShown = false;
    addEventListener("scroll", () => update(false), { passive: true, signal: listen.signal });
    addEventListener("resize", () => {
      if (row() === this.row) return update(false);
      this.row = row();
      this.reset(this.count);
    }, { signal: listen.signal });
    addEventListener("beforeprint", () => update(true), { signal: listen.signal });
  }

  /** @param {number} count */
  reset(count) {
    this.count = count;
    this.rest.textContent = count > PRINTED ? `and ${counted(count - PRINTED, "more row")}, not printed` : "";
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.element.style.setProperty("height", `${count * this.row}px`);
    if (this.element.isConnected) this.update(false);
  }

  /** Draws the rows in sight, or all. @param {boolean} all */
  update(all) {
    this.wasShown = true;
    const top = this.element.getBoundingClientRect().top;
    const first = all || this.count <= 300 ? 0 : Math.max(0, Math.floor(-top / this.row) - 8);
    const last = all ? Math.min(this.count, PRINTED) : this.count <= 300 ? this.count :
      Math.min(this.count, Math.ceil((innerHeight - top) / this.row) + 8);
    for (const [index, row] of this.rows) {
      if ((index < first || index >= last) && !row.contains(document.activeElement)) {
        row.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      if (this.rows.has(index)) continue;
      const row = this.render(index);
      row.classList.add("row");
      row.setAttribute("role", "listitem");
      row.setAttribute("aria-setsize", String(this.count));
      row.setAttribute("aria-posinset", String(index + 1));
      row.dataset.index = String(index);
      row.style.setProperty("transform", `translateY(${index * this.row}px)`);
      this.rows.set(index, row);
      // Rows stand in the order of the list, so that Tab follows it.
      let after = this.rows.get(index - 1);
      if (after && after.parentNode === this.element) after.after(row);
      else if (first === index) this.element.prepend(row);
      else this.element.appendChild(row);
    }
  }

  /** Scrolls to a row and focuses its link. @param {number} index */
  reveal(index) {
    const top = this.element.getBoundingClientRect().top + scrollY + index * this.row;
    if (top < scrollY + 60 || top > scrollY + innerHeight - 2 * this.row) scrollTo({ top: top - innerHeight / 2 });
    this.update(false);
    this.rows.get(index)?.querySelector("a")?.focus();
  }
}
