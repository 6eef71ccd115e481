// A run with what pages ask of it again and again.

class Run {
  /** @param {Overview} data */
  constructor(data) {
    this.data = data;
    this.size = data.trials.case.length;
    /** The trials of each case, by agent. @type {number[][][]} */
    this.cells = data.cases.map(() => data.agents.map(() => []));
    for (let i = 0; i < this.size; i++) this.cells[data.trials.case[i]][data.trials.agent[i]].push(i);
    /** @type {Map<string, number>} */
    this.caseById = new Map(data.cases.map((one, i) => [one.id, i]));
    /** @type {Map<string, number>} */
    this.agentByName = new Map(data.agents.map((one, i) => [one.name, i]));
  }

  /** @param {number} i */
  outcome(i) {
    return this.data.outcomes[this.data.trials.outcome[i]];
  }

  /** Whether a trial failed, timed out or errored. @param {number} i */
  isBad(i) {
    return ["failed", "timed-out", "errored"].includes(this.outcome(i));
  }

  /** @param {number} i */
  case(i) {
    return this.data.cases[this.data.trials.case[i]];
  }

  /** @param {number} i */
  agent(i) {
    return this.data.agents[this.data.trials.agent[i]];
  }

  /** @param {number} i */
  blame(i) {
    const blame = this.data.trials.blame[i];
    return blame === null ? "" : this.data.blames[blame];
  }

  /** A string of a column. @param {"check" | "reason"} column @param {number} i */
  text(column, i) {
    const at = this.data.trials[column][i];
    return at === null ? "" : this.data.strings[at];
  }

  /** The strings of a set. @param {"tools" | "unmet"} column @param {number} i */
  set(column, i) {
    const at = this.data.trials[column][i];
    return at === null ? [] : this.data.sets[at].map((text) => this.data.strings[text]);
  }

  /** The name of a trial within its case. @param {number} i */
  label(i) {
    const one = this.case(i);
    const number = one.runs > 1 ? `trial ${this.data.trials.repeat[i]}` : "";
    return [this.data.agents.length > 1 ? this.agent(i).short : "", number].filter(Boolean).join(", ") || "the trial";
  }

  /** The trial that an address names; -1 if there is none. @param {string} id @param {string} agent @param {number} repeat */
  find(id, agent, repeat) {
    const c = this.caseById.get(id);
    const a = this.agentByName.get(agent);
    if (c === undefined || a === undefined) return -1;
    return this.cells[c][a].find((i) => this.data.trials.repeat[i] === repeat) ?? -1;
  }

  /** @param {number} i @param {number} [seq] */
  link(i, seq) {
    const parts = [this.case(i).id, this.agent(i).name, this.data.trials.repeat[i]];
    if (seq !== undefined) parts.push(seq);
    return `#/trial/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
  }

  /** @param {Case} one */
  caseLink(one) {
    return `#/case/${encodeURIComponent(one.id)}`;
  }

  /** The command that shows a trial in a terminal; empty if its name is not safe to paste. @param {number} i */
  command(i) {
    const one = this.case(i);
    const agent = this.data.agents.length > 1 ? `${this.agent(i).short}/` : "";
    const number = one.runs > 1 ? ` ${this.data.trials.repeat[i]}` : "";
    const name = `${agent}${one.name}${number}`;
    const folder = this.data.run.folder;
    if (printable(name) !== name || printable(folder) !== folder || /[\n\t]/.test(name + folder)) return "";
    return `proctor result view ${quoted(folder)} ${quoted(name)}`;
  }
}
