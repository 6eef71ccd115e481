// The page of `proctor view`: its token, its run, and what arrives while the run goes on.

/** @typedef {{isActive: boolean, isChecked: boolean, running: {row: number, at: number}[]}} RunStatus */
/** @typedef {{revision: number, status: RunStatus, isReset: boolean, overview?: Partial<Overview>,
 *   rows: {at: number[], columns: Record<string, any[]>}, error?: string}} Patch */
/** @typedef {{name: string, state: string, suite?: string, started?: string, gate?: string, reason?: string, rate?: StoredRate | null}} RunRow */
/** @typedef {{store: string, named: string | null, start: string | null, runs: RunRow[]}} RunList */

/** Where the token is kept. Other ports of this machine are other origins, and can't read it. */
const TOKEN = "proctor-token";

/** Whether the page is served by `proctor view`. */
const isServed = document.documentElement.dataset.source === "http";

/** Takes the token out of the address, so that nobody copies it by accident. */
function takeToken() {
  const given = /^#token=([0-9a-f]+)$/.exec(location.hash);
  if (!given) return localStorage.getItem(TOKEN) || "";
  localStorage.setItem(TOKEN, given[1]);
  history.replaceState(null, "", location.pathname + location.search);
  return given[1];
}

/** The data of a server that may change at any time. @implements {Source} */
class ServedSource extends HttpSource {
  constructor() {
    super("/api", takeToken());
    /** The name of the run that is shown. */
    this.name = new URLSearchParams(location.search).get("run") || "";
    this.revision = 0;
    /** @type {RunStatus} */
    this.status = { isActive: false, isChecked: true, running: [] };
    /** The newest data, which the page shows when the reader wants it. @type {Overview | null} */
    this.newest = null;
    /** The trials that ended since the page was drawn. @type {Set<number>} */
    this.changed = new Set();
    this.error = "";
    this.line = h("section", { class: "live", "aria-label": "State of the run" });
  }

  /** @param {string} path @returns {Promise<any>} */
  async get(path) {
    return await (await this.ask(path)).json();
  }

  /** @param {string} path @param {AbortSignal} [signal] */
  async ask(path, signal) {
    let response;
    try {
      response = await fetch(this.base + path, { headers: { Authorization: `Bearer ${this.token}` }, signal });
    } catch {
      throw new Missing("The server does not answer. Start `proctor view` again.");
    }
    if (response.ok) return response;
    const body = await response.json().catch(() => ({}));
    throw new Missing(body.error || `The server answered ${response.status}.`);
  }

  /** The path of the run. */
  get path() {
    return `/runs/${encodeURIComponent(this.name)}`;
  }

  /** @returns {Promise<Overview>} */
  async overview() {
    if (!this.name) {
      const list = /** @type {RunList} */ (await this.get("/runs"));
      this.name = list.start || "";
      if (!list.named && !location.hash) history.replaceState(null, "", "#/history");
    }
    const { revision, status, overview } = await this.get(`${this.path}/overview`);
    this.revision = revision;
    this.status = status;
    this.newest = overview;
    this.changed.clear();
    return overview;
  }

  /** @param {number} trial @param {number} [from] @returns {Promise<TrialDetails>} */
  trial(trial, from = 0) {
    return this.get(`${this.path}/trials/${trial}?from=${from}`);
  }

  /**
   * Follows the run while the page can be seen: a browser opens only a few connections to a server, and hidden tabs
   * must not take them all. A lost stream is taken up where it ended.
   */
  async follow() {
    this.draw();
    for (let wait = 1000; ; wait = Math.min(wait * 2, 15000)) {
      while (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
      const stop = new AbortController();
      document.addEventListener("visibilitychange", () => stop.abort(), { signal: stop.signal });
      try {
        await this.read(stop.signal, () => { wait = 1000; });
      } catch (error) {
        if (!stop.signal.aborted) this.error = error instanceof Error ? error.message : String(error);
        this.draw();
      }
      if (!stop.signal.aborted) await new Promise((done) => setTimeout(done, wait));
      stop.abort();
    }
  }

  /** Reads the stream to its end. @param {AbortSignal} signal @param {() => void} arrived */
  async read(signal, arrived) {
    const response = await this.ask(`${this.path}/events?from=${this.revision}`, signal);
    this.error = "";
    this.draw();
    const stream = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await stream.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const lines = text.split("\n");
      text = lines.pop() || "";
      for (const line of lines.filter(Boolean)) await this.take(JSON.parse(line));
      arrived();
    }
  }

  /** @param {Patch} patch */
  async take(patch) {
    this.error = patch.error || "";
    if (!patch.error) {
      if (patch.isReset || !this.newest) {
        app.run = new Run(await this.overview());
        await show();
      } else {
        this.revision = patch.revision;
        this.status = patch.status;
        this.newest = patched(this.newest, patch);
        const { outcomes, trials } = this.newest;
        for (const row of patch.rows.at) if (outcomes[trials.outcome[row]] !== "not-run") this.changed.add(row);
        // A reader at the top of the overview reads the result, which must not be old.
        if (isIdle()) await this.show();
      }
    }
    this.draw();
  }

  /** Takes the newest data for the next page. */
  refresh() {
    if (!this.newest || app.run.data === this.newest) return;
    this.changed.clear();
    app.run = new Run(this.newest);
    this.draw();
  }

  /** Shows the newest data. */
  async show() {
    const at = scrollY;
    this.refresh();
    app.shown = "";
    await show();
    // Lists get their height in the next frame.
    await new Promise((done) => requestAnimationFrame(done));
    scrollTo(0, at);
    this.draw();
  }

  /** The line about the run, below the navigation. It always has its place, so nothing moves. */
  draw() {
    const { isActive, isChecked, running } = this.status;
    const newest = this.newest;
    const ended = newest ? newest.trials.outcome.reduce((sum, o) => sum + (newest.outcomes[o] === "not-run" ? 0 : 1), 0) : 0;
    const total = newest ? newest.trials.outcome.length : 0;
    const state = !newest ? "" : isActive ? `Running: ${count(ended)} of ${counted(total, "trial")} ended, ${count(running.length)} under way.` :
      newest.run.isFinished ? (ended < total ? `Stopped: ${count(ended)} of ${counted(total, "trial")} ended.` : "") : `Not finished, and no process writes it: ${count(ended)} of ${counted(total, "trial")} ended.`;
    const isOld = app.run && newest !== null && app.run.data !== newest;
    const text = this.changed.size > 0 ? `${counted(this.changed.size, "new trial")}, show` : "The run has changed, show";
    this.line.replaceChildren(...[
      h("span", {}, newest && h("code", {}, newest.run.id)), state ? h("span", {}, state) : null,
      isChecked ? null : h("span", {}, "Comparing the trials with the index …"),
      this.error ? h("strong", { class: "problem", role: "alert" }, this.error) : null,
      isOld ? h("button", { type: "button", id: "show-new", click: () => this.show() }, text) : null,
    ].filter((node) => node !== null));
  }
}

/** Whether the page can be drawn again without disturbing anyone. */
function isIdle() {
  const page = addressed(location.hash).parts[0] || "";
  const at = document.activeElement;
  return page === "" && scrollY < 40 && !document.querySelector("dialog[open]") && (!at || at === document.body) &&
    String(getSelection()) === "";
}

/** The data with the rows that changed. The old data stays as it is: a page may show it. @param {Overview} data @param {Patch} patch */
function patched(data, patch) {
  const strings = data.strings.slice();
  const sets = data.sets.slice();
  const places = new Map(strings.map((text, i) => [text, i]));
  /** @param {string | null} text */
  const place = (text) => {
    if (text === null) return null;
    let at = places.get(text);
    if (at === undefined) {
      at = strings.push(text) - 1;
      places.set(text, at);
    }
    return at;
  };
  /** @param {string} column @param {any} value */
  const stored = (column, value) => {
    if (column === "check" || column === "reason") return place(value);
    if (column !== "tools" && column !== "unmet") return value;
    return value === null ? null : sets.push(value.map(place)) - 1;
  };
  const trials = /** @type {any} */ ({ ...data.trials });
  for (const [column, values] of Object.entries(patch.rows.columns)) {
    trials[column] = trials[column].slice();
    patch.rows.at.forEach((row, i) => { trials[column][row] = stored(column, values[i]); });
  }
  return /** @type {Overview} */ ({ ...data, ...patch.overview, strings, sets, trials });
}

/** The server, in a page that has one. */
const served = () => /** @type {ServedSource} */ (app.source);

/** A link to another run, which is a page of its own. @param {string} name @param {Child} text @param {string} [page] */
function runLink(name, text, page = "#/") {
  const link = h("a", {}, text);
  link.setAttribute("href", `?run=${encodeURIComponent(name)}${page}`);
  return link;
}

/** Buttons that load or save a text that the page cuts. @param {RecordText} body */
function wholeText(body) {
  if (!isServed || typeof body === "string" || !body.sha256 || !location.hash.startsWith("#/trial/")) return null;
  const { sha256 } = body;
  const place = h("div", {});
  const fetched = async () => {
    const response = await served().ask(`${served().path}/trials/${app.current}/texts/${sha256}`)
      .catch(() => served().ask(`${served().path}/blobs/${sha256}`));
    return await response.blob();
  };
  /** @param {() => Promise<void>} act */
  const acting = (act) => () => act().catch((error) => place.replaceChildren(h("p", { class: "note" }, error.message)));
  const load = async () => place.replaceChildren(block("The whole text", laidOut(await (await fetched()).text())));
  const save = async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await fetched());
    link.download = `${sha256.slice(0, 12)}.txt`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  // 5 MB in one block take seconds to draw.
  return [h("p", { class: "actions" }, body.bytes <= 1_000_000 && h("button", { type: "button", click: acting(load) }, "Load the whole text"),
    h("button", { type: "button", click: acting(save) }, "Save the whole text")), place];
}

/** @typedef {{seq: number, direction: string, bytes: number | null, base64: string}} RawMessage */

/** A button that shows the messages of a call as they were on the wire. @param {number} seq @param {HTMLElement} place */
function rawButton(seq, place) {
  const load = async () => {
    const messages = /** @type {RawMessage[]} */ (await served().get(`${served().path}/trials/${app.current}/messages/${seq}`));
    place.replaceChildren(...messages.flatMap((message) => {
      const bytes = bytesOf(message.base64);
      const size = message.bytes === null ? "not in the record" : `${counted(message.bytes, "byte")}${bytes.length < message.bytes ? `, of which the first ${count(bytes.length)}` : ""}`;
      const title = `${message.direction === "toServer" ? "To the server" : "To the client"}, event ${message.seq}: ${size}`;
      return [h("p", { class: "label" }, title), block(title, new TextDecoder().decode(bytes)),
        h("details", {}, h("summary", {}, "as bytes"), block(`${title}, as bytes`, hexDump(bytes)))];
    }));
  };
  return h("button", { type: "button", click: () => load().catch((error) => place.replaceChildren(h("p", { class: "note" }, error.message))) }, "Raw messages");
}

/** 16 bytes in a line, as numbers and as letters; of a long message, the first 16 kB. @param {Uint8Array} bytes */
function hexDump(bytes) {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, 16 * 1024); at += 16) {
    const part = [...bytes.subarray(at, at + 16)];
    const letters = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}

/** A button that adds the later events of a trial. @param {Run} run @param {number} i @param {TrialDetails} details @param {HTMLElement} list */
function laterEvents(run, i, details, list) {
  let { next } = details;
  const place = h("p", { class: "actions" });
  const draw = () => place.replaceChildren(...(next === null ? [] : [h("button", { type: "button", click: load }, `Show events from #${next} on`)]));
  const load = async () => {
    try {
      const more = await served().trial(i, next ?? 0);
      details.items.push(...more.items);
      list.append(...more.items.map((item) => h("li", {}, eventItem(run, i, more, item))));
      next = more.next;
      draw();
    } catch (error) {
      place.replaceChildren(h("span", { class: "note" }, error instanceof Error ? error.message : String(error)));
    }
  };
  draw();
  return place;
}

/** The list of runs, for a run that can't be shown. */
function otherRuns() {
  const place = h("div", {});
  served().get("/runs").then((/** @type {RunList} */ list) => place.replaceChildren(section("Runs", h("ul", {}, list.runs.map((run) =>
    h("li", {}, runLink(run.name, run.name), run.reason && h("div", { class: "reason" }, run.reason)))))), () => {});
  return place;
}
