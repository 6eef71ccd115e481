// What agents used of the servers, and what the servers offer.

/** @param {Run} run */
function coveragePage(run) {
  const { used, sentences, otherCalls, unreadArguments } = run.data.coverage;
  const sorted = [...used].sort((a, b) => Number(b.calls > 0) - Number(a.calls > 0) || b.calls - a.calls);
  const withArguments = unreadArguments !== null;
  const columns = ["name", "kind", "calls", "errors", "cases", "mean time", ...(withArguments ? ["arguments never given"] : []), "tokens"];
  const rows = sorted.slice(0, 2000).map((use) => [
    [h("code", {}, use.name), h("span", { class: "hint" }, ` ${use.server}`)],
    use.isListed ? use.kind : `${use.kind}, not listed`,
    use.calls ? h("a", { href: trialsLink({ q: `tool:${use.name.toLowerCase()}` }) }, count(use.calls)) : h("span", { class: "never" }, "never"),
    use.calls ? `${count(use.errors)} (${Math.round((use.errors / use.calls) * 100)}%)` : "–", use.calls ? count(use.cases) : "–", duration(use.mean),
    ...(withArguments ? [neverGiven(use)] : []), use.schemaTokens === null ? "–" : count(use.schemaTokens)]);
  return h("main", { id: "main" }, h("h1", {}, "Coverage"),
    sentences.length === 0 && h("p", { class: "lead" }, "The record names no server."),
    sentences.map((text) => h("p", { class: "lead" }, text)),
    h("p", { class: "hint" }, "Only calls of agents count. Tokens are an estimate: a quarter of the bytes of name, description and schema."),
    otherCalls > 0 && h("p", { class: "note" }, `${counted(otherCalls, "call")} of further tools are not included.`),
    withArguments && unreadArguments > 0 && h("p", { class: "note" }, `The arguments of ${counted(unreadArguments, "call")} can't be read.`),
    rows.length > 0 && table("Tools, resources and prompts", columns, rows, { look: "uses", numbers: withArguments ? [2, 3, 4, 5, 7] : [2, 3, 4, 5, 6] }),
    sorted.length > 2000 && h("p", { class: "note" }, `and ${count(sorted.length - 2000)} more`));
}

/** @param {Use} use */
function neverGiven(use) {
  if (use.calls === 0) return "–";
  const missing = use.arguments.filter((argument) => argument.given === 0).map((argument) => argument.name);
  const values = use.arguments.filter((argument) => argument.given > 0 && argument.unused.length > 0)
    .map((argument) => `${argument.name}: ${argument.unused.slice(0, 8).join(", ")}`);
  const all = [...missing, ...values];
  return all.length === 0 ? "none" : clip(all.join(", "), 240);
}

/** @param {Run} run */
function serversPage(run) {
  const { servers } = run.data;
  const problems = servers.reduce((sum, server) => sum + server.findings.reduce((all, finding) => all + finding.count, 0), 0);
  return h("main", { id: "main" }, h("h1", {}, "Servers"),
    h("p", { class: "lead" }, `${counted(servers.length, "server")}, ${counted(problems, "protocol problem")}.`),
    servers.map((server) => section(server.server,
      h("p", { class: "facts" }, [[server.name, server.version].filter(Boolean).join(" "), server.protocol && `MCP ${server.protocol}`, server.transport,
        server.tools !== null && counted(server.tools, "tool"), server.resources !== null && counted(server.resources, "resource"),
        server.prompts !== null && counted(server.prompts, "prompt"), server.schemaTokens !== null && `tools weigh about ${count(server.schemaTokens)} tokens`,
        server.toolsDigest && `hash of the tools ${server.toolsDigest.slice(0, 12)}`].filter(Boolean).join(" · ")),
      server.findings.length > 0 && table(`Protocol problems of ${server.server}`, ["problem", "times", "such as"],
        server.findings.map((finding) => [h("code", {}, finding.kind), count(finding.count), sentence(finding.example)]), { numbers: [1] }),
      server.instructions && h("details", { class: "instructions" }, h("summary", {}, "instructions"), bodyBlock(`Instructions of ${server.server}`, server.instructions)),
      server.offers === null ? h("p", { class: "hint" }, "The record does not list what this server offers.") : offersOf(server))));
}

/** @param {Server} server */
function offersOf(server) {
  const offers = server.offers || [];
  return h("div", { class: "offers" }, offers.slice(0, 1000).map((offer) => {
    const body = h("div", { class: "body" });
    return h("details", { toggle: () => { if (!body.firstChild) put(body, [bodyBlock(`${offer.kind} ${offer.name}`, offer.json, true)]); } },
      h("summary", {}, h("code", {}, offer.name), " ", h("span", { class: "hint" }, offer.kind), " ", h("span", { class: "about-it" }, clip(startOf(offer.description).split("\n")[0], 160))),
      offer.description && h("div", { class: "text" }, bodyText(offer.description)), body);
  }), offers.length > 1000 && h("p", { class: "note" }, `and ${count(offers.length - 1000)} more`));
}
