// One trial: what happened when, and what decides its verdict.

/** @param {Run} run @param {number} i @param {string | undefined} target @param {string} found words that are searched */
async function trialPage(run, i, target, found) {
  const { trials } = run.data;
  const one = run.case(i);
  const head = [
    h("nav", { class: "crumbs", "aria-label": "Place" }, h("a", { href: "#/" }, run.data.run.name), " › ",
      h("a", { href: run.caseLink(one) }, one.name), " › ", `${run.agent(i).short}, trial ${trials.repeat[i]} of ${one.runs}`),
    h("h1", {}, tag(run.outcome(i)), " ", one.name)];
  let details;
  try {
    details = await app.source.trial(i);
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    return h("main", { id: "main" }, head, reasonLine(run.blame(i), run.text("reason", i)),
      h("p", { class: "lead" }, error.message),
      trials.attempts[i] > 0 && h("p", {}, "To see it: ", h("code", {}, `proctor view ${quoted(run.data.run.folder)}`)));
  }
  return h("main", { id: "main", class: "trial-page" }, head,
    details.reason ? reasonLine(details.blame || "", reasonText(details.reason, (seq) => run.link(i, seq))) : reasonLine(run.blame(i), ""),
    h("p", { class: "facts" }, details.facts.join(" · "), ` · attempt ${Math.max(1, trials.attempts[i])}`),
    details.notes.map((note) => h("p", { class: "note" }, note)),
    h("p", { class: "actions" }, copyButton("Copy command", () => run.command(i) || "proctor result view"),
      copyButton("Copy as Markdown", () => markdown(run, i, details)), neighbours(run, i)),
    lanes(details),
    h("div", { class: "columns" }, timeline(run, i, details, target, found), checksAside(run, i, details)));
}

/** @param {string} blame @param {Child} reason */
const reasonLine = (blame, reason) => (blame || reason) && h("div", { class: "lead" }, blame && h("strong", {}, `Blame: ${blame}. `), reason);

/** The trials before and after this one in its case. @param {Run} run @param {number} i */
function neighbours(run, i) {
  const all = run.cells[run.data.trials.case[i]].flat();
  const at = all.indexOf(i);
  return h("span", { class: "neighbours" },
    at > 0 && h("a", { href: run.link(all[at - 1]) }, "‹ previous trial"), " ",
    at < all.length - 1 && h("a", { href: run.link(all[at + 1]) }, "next trial ›"));
}

/** Who worked when: a lane for the model, one for each server. @param {TrialDetails} details */
function lanes(details) {
  // A call without a response has no duration, and is drawn as a mark.
  const work = details.items.filter((item) => item.micros !== undefined || item.kind === "call");
  if (work.length === 0) return null;
  const width = Math.max(260, Math.min(1150, innerWidth - 60));
  const left = 110;
  const whole = Math.max(1, details.duration);
  const x = (/** @type {number} */ at) => left + (Math.min(at, whole) / whole) * (width - left - 4);
  const isCall = (/** @type {Item} */ item) => item.kind === "call";
  const names = ["model", ...new Set(work.filter(isCall).map((item) => String(item.server)))].slice(0, 12);
  const height = names.length * 22 + 18;
  const drawn = names.map((name, lane) => {
    /** @type {Record<string, string>} */
    const paths = {};
    for (const item of work) {
      if (lane === 0 ? isCall(item) : !isCall(item) || item.server !== name) continue;
      const from = x(item.at);
      const w = Math.max(2, x(item.at + (item.micros || 0)) - from);
      const look = item.isError || item.kind === "turnFailed" ? "failed" : lane === 0 ? "model" : "call";
      // A failed one is taller, so that it can be told without its colour.
      const y = look === "failed" ? 2 : 5;
      paths[look] = (paths[look] || "") + `M${from.toFixed(1)} ${lane * 22 + y}h${w.toFixed(1)}v${22 - 2 * y}h-${w.toFixed(1)}z`;
    }
    return svg("g", {}, svg("text", { x: 0, y: lane * 22 + 15 }, clip(printable(name), 13)),
      svg("path", { class: "axis", d: `M${left} ${lane * 22 + 11}H${width - 4}` }),
      Object.entries(paths).map(([look, d]) => svg("path", { class: look, d })));
  });
  const label = `When the model and the servers worked: ${details.phases.map((p) => `${p.phase} ${duration(p.micros)}`).join(", ")}`;
  return svg("svg", { class: "lanes", width, height, role: "img", "aria-label": label }, drawn,
    details.phases.map((phase) => svg("g", { class: "phase" },
      svg("path", { class: "edge", d: `M${x(phase.at).toFixed(1)} 0V${height}` }),
      (phase.micros / whole) * (width - left) > 44 && svg("text", { x: (x(phase.at) + 3).toFixed(1), y: height - 3 }, phase.phase))));
}

/**
 * The texts of an event in which readers search: what the page has of them.
 * @param {Item} item @returns {string}
 */
function textsOf(item) {
  const whole = (/** @type {RecordText | null | undefined} */ body) => (!body ? "" : typeof body === "string" ? body : `${body.head} ${body.tail}`);
  const response = item.response && typeof item.response === "object" ? item.response : {};
  return [item.name, item.tool, item.server, whole(item.text), whole(item.reason), whole(item.detail), whole(item.arguments),
    response.unread, whole(response.error?.message), whole(response.result?.text), whole(response.result?.json)].filter(Boolean).join("\n").toLowerCase();
}

/** A field that leaves the events with some words in sight. @param {TrialDetails} details @param {HTMLElement} list @param {string} words */
function findField(details, list, words) {
  const status = h("span", { class: "hint", role: "status" });
  const field = /** @type {HTMLInputElement} */ (h("input", { type: "search", id: "find", autocomplete: "off", input: () => find() }));
  const find = () => {
    const wanted = wordsOf(field.value);
    const texts = wanted.length > 0 ? details.items.map(textsOf) : [];
    let shown = 0;
    [...list.children].forEach((row, at) => {
      const fits = wanted.every((word) => (texts[at] ?? "").includes(word));
      /** @type {HTMLElement} */ (row).hidden = !fits;
      shown += Number(fits);
    });
    status.textContent = wanted.length > 0 ? `${count(shown)} of ${counted(list.children.length, "event")}` : "";
  };
  field.value = words;
  if (words) find();
  return h("form", { class: "filters find", role: "search", submit: (/** @type {Event} */ e) => e.preventDefault() },
    h("label", {}, "Find in messages ", field), status);
}

/** @param {Run} run @param {number} i @param {TrialDetails} details @param {string | undefined} target @param {string} found */
function timeline(run, i, details, target, found) {
  const list = h("ol", { class: "events" }, details.items.map((item) => h("li", {}, eventItem(run, i, details, item))));
  const rest = details.next !== null && (isServed ? laterEvents(run, i, details, list) : h("p", { class: "note" },
    `Later events, from #${details.next} on, are not on this page. To see them: `, h("code", {}, run.command(i) || "proctor result view")));
  requestAnimationFrame(() => mark(list, target));
  return h("section", { "aria-labelledby": "h-timeline" }, h("h2", { id: "h-timeline" }, "Timeline"),
    details.items.length > 1 && findField(details, list, found),
    details.items.length === 0 && h("p", { class: "hint" }, "The record has no turns and no calls."), list, rest);
}

/** Marks the event that the address names, and opens it. @param {Element} list @param {string | undefined} target */
function mark(list, target) {
  const found = target && /^\d+$/.test(target) && document.getElementById(`e${target}`);
  for (const old of document.querySelectorAll(".event.target")) old.classList.remove("target");
  if (target && !found) announce(`event ${clip(target, 20)} is not on this page`);
  if (!found || !document.contains(list)) return;
  found.classList.add("target");
  // Filled before it is scrolled to, so that all of it is in sight.
  found.dispatchEvent(new Event("proctor-open"));
  if (found instanceof HTMLDetailsElement) found.open = true;
  found.scrollIntoView({ block: found.offsetHeight < innerHeight ? "center" : "start" });
  (found.querySelector("summary") || found).focus();
}

/** @param {Run} run @param {number} i @param {TrialDetails} details @param {Item} item */
function eventItem(run, i, details, item) {
  const place = `#${item.seq} +${duration(item.at)}`;
  const took = item.micros !== undefined && h("span", { class: "took" }, ` ${duration(item.micros)}`);
  if (item.kind === "call") return callItem(item, place, took, details, run.link(i, item.seq));
  const when = h("a", { class: "when", href: run.link(i, item.seq) }, place);
  const titles = /** @type {Record<string, string>} */ ({ prompt: "Prompt", turn: item.isAnswer ? "Answer" : "Model", turnFailed: "Model failed",
    turnUnreadable: "Model", claim: "Agent's own tool", answer: "Answer", request: "Server request", unread: "Unreadable call" });
  const isBad = item.kind === "turnFailed" || item.kind === "unread" || item.status === "denied";
  /** @type {Child} */
  let text = null;
  if (item.kind === "claim") text = [h("code", {}, item.tool), ` ${item.status}`, item.detail && bodyText(item.detail)];
  else if (item.kind === "request") text = [h("code", {}, `${item.server}: ${item.method}`), bodyText(item.text), item.reply && [" → ", bodyText(item.reply)]];
  else if (item.kind === "turnUnreadable") text = "the record does not hold this turn";
  else if (item.kind === "turnFailed") text = [h("span", { class: "hint" }, `attempt ${item.attempt}: `), reasonText(item.reason)];
  else if (item.text) text = typeof item.text === "string" && item.kind === "unread" ? item.text : bodyText(item.text);
  return h("div", { id: `e${item.seq}`, tabindex: -1, class: `event ${item.kind} ${item.isAnswer ? "answer" : ""} ${isBad ? "error" : ""}` },
    h("div", {}, when, " ", h("strong", {}, titles[item.kind] || item.kind), took,
      item.input !== null && item.input !== undefined && h("span", { class: "took" }, ` · ${count(item.input)} in, ${count(item.output)} out`)),
    text, item.calls && item.calls.length > 0 && h("div", { class: "hint" }, `calls ${item.calls.join(", ")}`),
    item.problems && item.problems.map((/** @type {string} */ problem) => h("div", { class: "problem" }, problem)));
}

/** @param {Item} item @param {string} place @param {Child} took @param {TrialDetails} details @param {string} link */
function callItem(item, place, took, details, link) {
  const name = item.call === "tool" ? `${item.server}.${item.name}` : `${item.server}: ${item.call} ${item.name}`;
  const body = h("div", { class: "body" });
  const element = h("details", { id: `e${item.seq}`, class: `event call ${item.isError ? "error" : ""}`,
      toggle: () => fillCall(body, item, details, link) },
    h("summary", {}, h("span", { class: "when" }, place), " ", h("strong", {}, name), " ", h("code", {}, clip(startOf(item.arguments), 100)), took, " ",
      item.isError && tag("failed", "error"), " ",
      item.decides && item.decides.map((/** @type {string} */ check) => h("span", { class: `decides ${verdictOf(details, check)}` }, `decides ${check} `)),
      h("div", { class: "reason line" }, "→ ", clip(brief(item.response), 160))), body);
  element.addEventListener("proctor-open", () => fillCall(body, item, details, link));
  return element;
}

/** The worst verdict of the checks with this name. @param {TrialDetails} details @param {string} check */
function verdictOf(details, check) {
  const verdicts = details.checks.filter((one) => one.check === check).map((one) => one.verdict);
  return ["fail", "unknown"].find((verdict) => verdicts.includes(verdict)) || "pass";
}

/** The response of a call in a line. @param {any} response */
function brief(response) {
  if (response === "missing") return "no response";
  if (response === "empty") return "empty result";
  if (response.unread) return response.unread;
  if (response.error) return `error ${response.error.code}: ${startOf(response.error.message)}`;
  return startOf(response.result.text || response.result.json).trim().split("\n")[0];
}

/** Fills the body of a call when it is opened first. @param {HTMLElement} body @param {Item} item @param {TrialDetails} details @param {string} link */
function fillCall(body, item, details, link) {
  if (body.firstChild) return;
  /** @param {string} title @param {Child} child */
  const part = (title, child) => [h("p", { class: "label" }, title), child];
  const response = item.response;
  const raw = h("div", {});
  put(body, [
    item.arguments && part("Arguments", bodyBlock(`Arguments of event ${item.seq}`, item.arguments, true)),
    item.unreadArguments && part("Arguments", h("p", {}, item.unreadArguments)),
    response.error && part(`Error ${response.error.code}`, bodyBlock(`Error of event ${item.seq}`, response.error.message)),
    response.result && response.result.text && part("Result", bodyBlock(`Result of event ${item.seq}`, response.result.text, true)),
    response.result && response.result.json && part("Result as JSON", bodyBlock(`Result of event ${item.seq} as JSON`, response.result.json, true)),
    (response.unread || typeof response === "string") && part("Result", h("p", {}, brief(response))),
    h("p", { class: "actions" }, item.call === "tool" && typeof (item.arguments ?? "") === "string" &&
      copyButton("Copy as proctor call", () => callCommand(item, details)),
      item.arguments && copyButton("Copy arguments", () => startOf(item.arguments)), isServed && rawButton(item.seq, raw), h("a", { href: link }, `Link to event ${item.seq}`)), raw]);
}

/** The command that makes a call again. @param {Item} item @param {TrialDetails} details */
function callCommand(item, details) {
  const target = details.connections.find((connection) => connection.server === item.server)?.target || item.server;
  const call = `proctor call ${quoted(item.name)} --args ${quoted(startOf(item.arguments) || "{}")}`;
  return /^https?:/.test(target) ? `${call} --url ${quoted(target)}` : `${call} -- ${target}`;
}

/** @param {Run} run @param {number} i @param {TrialDetails} details */
function checksAside(run, i, details) {
  return h("div", { class: "aside" },
    section("Checks", details.checks.length === 0 && h("p", { class: "hint" }, "No check was evaluated."),
      h("ul", { class: "checks" }, details.checks.map((check) => h("li", {}, tag(check.verdict), " ", h("code", {}, check.check),
        check.kind && h("span", { class: "hint" }, ` ${check.step ? check.step.kind : check.kind}`),
        check.reason && h("div", { class: "reason" }, reasonText(check.reason, (seq) => run.link(i, seq))),
        check.evidence.length > 0 && h("div", { class: "evidence" }, "evidence: ", check.evidence.slice(0, 40).map((seq) =>
          [h("a", { href: run.link(i, seq), "data-evidence": "" }, `#${seq}`), " "]), check.evidence.length > 40 && `and ${check.evidence.length - 40} more`),
        check.notes.map((note) => h("div", { class: "reason" }, note, " ", quotePlace(run, i, details, note))),
        (check.details.length > 0 || check.place) && h("details", {}, h("summary", {}, "expects"),
          h("ul", {}, check.details.map((detail) => h("li", {}, detail))), check.place && h("p", { class: "hint" }, check.place)),
        check.step && check.step.output && stepOutput(check.step, check.verdict !== "pass"))))),
    details.steps.length > 0 && section("Steps", h("ul", { class: "checks" }, details.steps.map((step) => h("li", {},
      tag(step.verdict), " ", `${step.phase} ${step.id} `, h("span", { class: "hint" }, `${step.kind}, ${duration(step.micros)}`),
      step.reason && h("div", { class: "reason" }, reasonText(step.reason)), step.output && stepOutput(step, step.verdict !== "pass"))))),
    details.findings.length > 0 && section("Protocol problems", h("ul", { class: "checks" }, details.findings.slice(0, 100).map((finding) =>
      h("li", {}, h("code", {}, finding.kind), finding.count > 1 && ` ×${count(finding.count)}`, h("div", { class: "reason" }, sentence(finding.example, (seq) => run.link(i, seq))))))),
    details.connections.length > 0 && section("Servers", h("ul", { class: "checks" }, details.connections.slice(0, 50).map((connection) =>
      h("li", {}, h("strong", {}, connection.server), h("span", { class: "hint" }, ` ${connection.transport}`), h("div", { class: "reason" }, h("code", {}, connection.target)),
        connection.ended && h("div", { class: "reason" }, connection.ended),
        connection.stderr && h("details", { open: details.blame === "server" && startOf(details.reason).includes(`\`${connection.server}\``) }, h("summary", {}, "stderr"), bodyBlock(`stderr of ${connection.server}`, connection.stderr)))))),
    details.agent && section("Agent", h("div", { class: "reason" }, details.agent.command.map(quoted).join(" ")),
      details.agent.version && h("div", { class: "reason" }, details.agent.version), details.agent.ended && h("div", { class: "reason" }, details.agent.ended),
      details.agent.stderr && h("details", {}, h("summary", {}, "stderr"), bodyBlock("stderr of the agent", details.agent.stderr))));
}

/** @param {Step} step @param {boolean} open */
const stepOutput = (step, open) => h("details", { open }, h("summary", {}, `output of ${step.id}`), bodyBlock(`Output of ${step.id}`, /** @type {RecordText} */ (step.output)));

/** A link to the event that a judge quotes. @param {Run} run @param {number} i @param {TrialDetails} details @param {string} note */
function quotePlace(run, i, details, note) {
  const quote = /^quote: "([^]*)"$/.exec(note);
  if (!quote) return null;
  const item = details.items.find((one) => [one.text, one.response?.result?.text].some((body) => startOf(body).includes(quote[1])));
  return item && h("a", { href: run.link(i, item.seq), "data-evidence": "" }, `#${item.seq}`);
}

/** A trial for an issue. @param {Run} run @param {number} i @param {TrialDetails} details */
function markdown(run, i, details) {
  /** @param {string} text */
  const code = (text) => {
    const fence = "`".repeat(Math.max(2, ...[...text.matchAll(/`+/g)].map((m) => m[0].length)) + 1);
    return `${fence}\n${printable(text)}\n${fence}`;
  };
  const inline = (/** @type {string} */ text) => `\`${printable(text).replace(/[`\n]/g, " ")}\``;
  const lines = [`### ${inline(run.case(i).name)} ${run.outcome(i)} (${inline(run.label(i))})`, ""];
  if (details.reason) lines.push(code(startOf(details.reason)), "");
  for (const check of details.checks.filter((one) => one.verdict !== "pass")) {
    lines.push(`- ${check.verdict}: ${inline(check.check)} ${check.evidence.slice(0, 20).map((seq) => `event ${seq}`).join(", ")}`);
  }
  const evidence = new Set(details.checks.flatMap((check) => (check.verdict === "pass" ? [] : check.evidence)));
  for (const item of details.items.filter((one) => one.kind === "call" && evidence.has(one.seq)).slice(0, 10)) {
    lines.push("", `Event ${item.seq}:`, code(`${item.server}.${item.name} ${startOf(item.arguments)}\n→ ${clip(brief(item.response), 400)}`));
  }
  const command = run.command(i);
  if (command) lines.push("", code(command));
  return lines.join("\n");
}
