// Where the page gets its data: from its own file, or from the server that serves it (`proctor view`).

/** @typedef {string | {head: string, tail: string, bytes: number, sha256?: string}} RecordText */
/** @typedef {{passed: number, counted: number, mean: number, low: number, high: number, text: string}} Rate */
/** @typedef {{values: number[], median: string}} Quantiles */
/** @typedef {{passed: number, failed: number, timedOut: number, errored: number, cancelled: number, notRun: number}} Counts */
/** @typedef {{status: string, passed: number, notPassed: number, noVerdict: number, rate: Rate | null, reason: string}} Cell */
/** @typedef {{name: string, short: string, model: string | null, counts: Counts, rate: Rate | null, duration: Quantiles | null,
 *   tokens: Quantiles | null, cost: Quantiles | null, totalCost: string, alone: string[], missedAlone: string[]}} Agent */
/** @typedef {{id: string, name: string, path: string, hash: string, runs: number, rule: string, difficulty: string | null,
 *   labels: Record<string, string>, status: string, rate: Rate | null, median: number | null, tokens: number | null,
 *   cost: number | null, cells: (Cell | null)[]}} Case */
/** @typedef {{trials: number, cases: number, outcome: string, blame: string | null, check: string | null, reason: string}} Cause */
/** @typedef {{case: number[], agent: number[], repeat: number[], attempts: number[], outcome: number[], blame: (number | null)[],
 *   began: (number | null)[], duration: (number | null)[], input: (number | null)[], output: (number | null)[],
 *   cost: (number | null)[], calls: (number | null)[], check: (number | null)[], reason: (number | null)[],
 *   cause: (number | null)[], tools: (number | null)[], unmet: (number | null)[]}} Columns */
/** @typedef {{name: string, isRequired: boolean, given: number, unused: string[]}} Argument */
/** @typedef {{server: string, kind: string, name: string, isListed: boolean, calls: number, errors: number, cases: number,
 *   mean: number | null, arguments: Argument[], schemaTokens: number | null}} Use */
/** @typedef {{kind: string, count: number, example: string}} Finding */
/** @typedef {{server: string, name: string | null, version: string | null, protocol: string | null, transport: string | null,
 *   tools: number | null, resources: number | null, prompts: number | null, toolsDigest: string | null,
 *   instructions: RecordText | null, offers: {kind: string, name: string, description: RecordText | null, json: RecordText}[] | null,
 *   schemaTokens: number | null, findings: Finding[]}} Server */
/** @typedef {{answer: string, sentence: string, cases: string, trials: string, reasons: string[], exit: number,
 *   exitReason: string, isGood: boolean}} Gate */
/** @typedef {{id: string, folder: string, name: string, suite: string, kind: string, started: string, duration: number,
 *   isFinished: boolean, context: any, proctor: string, command: string[], judge: string | null, facts: string[],
 *   tokens: string, cost: string, notes: string[], notRun: string[], warnings: string[]}} RunInfo */
/** @typedef {{agent: string, trials: number, rate: Rate | null, choices: string[], confusion: [number, number, number][], notes: string[],
 *   tools: {name: string, hits: number, falseHits: number, misses: number, precision: string, recall: string}[]}} Selection */
/** @typedef {{version: number, run: RunInfo, gate: Gate, counts: Counts, rate: Rate | null, agents: Agent[], cases: Case[],
 *   worstFirst: number[], causes: Cause[], coverage: {used: Use[], sentences: string[], otherCalls: number,
 *   unreadArguments: number | null}, servers: Server[], outcomes: string[], blames: string[], strings: string[],
 *   sets: number[][], trials: Columns, selection?: Selection[]}} Overview */
/** @typedef {{seq: number, at: number, micros?: number, kind: string, [key: string]: any}} Item */
/** @typedef {{seq: number | null, phase: string, id: string, kind: string, verdict: string, reason: RecordText | null,
 *   output: RecordText | null, micros: number}} Step */
/** @typedef {{check: string, kind: string | null, verdict: string, reason: RecordText | null, details: string[], evidence: number[],
 *   notes: string[], place: string | null, step: Step | null}} Check */
/** @typedef {{version: number, file: string, outcome: string, blame: string | null, reason: RecordText | null, duration: number,
 *   facts: string[], phases: {phase: string, at: number, micros: number}[], items: Item[], next: number | null,
 *   checks: Check[], steps: Step[], findings: Finding[], connections: {server: string, transport: string, target: string,
 *   ended: string | null, stderr: RecordText | null}[], agent: {command: string[], version: string | null, ended: string | null,
 *   stderr: RecordText | null} | null, notes: string[]}} TrialDetails */
/** @typedef {{overview: () => Promise<Overview>, trial: (trial: number, from?: number) => Promise<TrialDetails>,
 *   inOrder: (trials: number[]) => number[]}} Source */

/** The version of the data that this script reads. */
const PAGE_VERSION = 1;

/** @param {string} text */
function bytesOf(text) {
  const native = /** @type {any} */ (Uint8Array).fromBase64;
  if (native) return /** @type {Uint8Array<ArrayBuffer>} */ (native.call(Uint8Array, text));
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** @param {string} text */
async function inflate(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return await new Response(stream).text();
}

/** The document is read to its end. */
function loaded() {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
}

/** The data in the page's own file. Details follow the script, and may not be there yet. @implements {Source} */
class EmbeddedSource {
  constructor() {
    /** @type {Map<number, Promise<TrialDetails[]>>} */
    this.blocks = new Map();
    /** @type {(number | null)[]} */
    this.positions = [];
    this.size = 1;
  }

  /** @returns {Promise<Overview>} */
  async overview() {
    const text = /** @type {HTMLElement} */ (document.getElementById("index")).textContent || "";
    const index = JSON.parse(await inflate(text));
    if (index.refused) throw new Missing(`${index.refused.name}: the run did not start (exit code ${index.refused.exit}). ${index.refused.message}`);
    this.positions = index.positions;
    this.size = index.blockSize;
    return index.overview;
  }

  /** @param {number} trial @returns {Promise<TrialDetails>} */
  async trial(trial) {
    const position = this.positions[trial];
    if (position === null || position === undefined) throw new Missing("This trial did not run, so it has no record.");
    const number = Math.floor(position / this.size);
    let details = this.blocks.get(number);
    if (!details) {
      if (this.blocks.size >= 8) this.blocks.delete(/** @type {number} */ (this.blocks.keys().next().value));
      details = this.read(number);
      this.blocks.set(number, details);
    }
    const found = (await details)[position % this.size];
    if (!found) throw new Missing(await this.reason());
    return found;
  }

  /** Trials in the order of the file, so that no block is read twice. @param {number[]} trials */
  inOrder(trials) {
    return trials.slice().sort((a, b) => (this.positions[a] ?? this.positions.length) - (this.positions[b] ?? this.positions.length));
  }

  /** @param {number} number @returns {Promise<TrialDetails[]>} */
  async read(number) {
    let element = document.getElementById(`d${number}`);
    if (!element) {
      await loaded();
      element = document.getElementById(`d${number}`);
    }
    if (!element) throw new Missing(await this.reason());
    const text = await inflate(element.textContent || "");
    return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  }

  /** Why details are missing. A file without its last line was cut on its way. */
  async reason() {
    await loaded();
    return document.getElementById("end") ? "Not in this file, which is limited in size." :
      "This file is incomplete: its end is missing.";
  }
}

/** Details that are not there; the message is for people. */
class Missing extends Error {}

/** The data of a server, which needs a token. @implements {Source} */
class HttpSource {
  /** @param {string} base @param {string} token */
  constructor(base, token) {
    this.base = base;
    this.token = token;
  }

  /** @param {string} path @returns {Promise<any>} */
  async get(path) {
    const response = await fetch(this.base + path, { headers: { Authorization: `Bearer ${this.token}` } });
    if (!response.ok) throw new Missing(`The server answered ${response.status} for ${path}.`);
    return await response.json();
  }

  /** @returns {Promise<Overview>} */
  overview() {
    return this.get("/overview");
  }

  /** @param {number} trial @param {number} [from] @returns {Promise<TrialDetails>} */
  trial(trial, from = 0) {
    return this.get(`/trials/${trial}?from=${from}`);
  }

  /** @param {number[]} trials */
  inOrder(trials) {
    return trials;
  }
}
