// A session with a server that uses what the protocol has, told as lines of JSON. Two tellings of it are equal if
// client and server saw the same: no times, no ids.

/** What was done, and what came of it. */
async function tell(step, act) {
  let line;
  try {
    line = { step, result: await act() };
  } catch (error) {
    line = { step, error: { code: error.code ?? null, message: error.message } };
  }
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** What a server that asks its client is answered. */
export const ANSWERS = {
  "sampling/createMessage": {
    role: "assistant",
    content: { type: "text", text: "a model's answer" },
    model: "scripted",
    stopReason: "endTurn",
  },
  "elicitation/create": { action: "accept", content: { name: "Ada", check: true, integer: 7 } },
};

/** Answers a server that asks, and tells it. */
export function answer(method, params) {
  const { _meta, ...asked } = params;
  process.stdout.write(`${JSON.stringify({ asked: method, params: asked })}\n`);
  return ANSWERS[method];
}

async function begin(client) {
  await tell("server", () => client.server());
  await tell("tools/list", () => client.request("tools/list", {}));
}

// What is answered by an error comes last. The TypeScript SDK takes the stream of an error for one that broke, and comes
// back to it after a second; server-everything then repeats all that it said since, its own requests too.
async function end(client) {
  await tell("wrong tool", () => client.call("no-such-tool", {}));
  await tell("unknown method", () => client.request("proctor/unknown", { deep: { a: [1, 2.5, null] } }));
}

async function everything(client) {
  await begin(client);
  await tell("echo", () => client.call("echo", { message: "grüße, 世界 \u{1f44b} \u0001" }));
  await tell("sum", () => client.call("get-sum", { a: 0.1, b: -12345678901 }));
  await tell("structured", () => client.call("get-structured-content", { location: "New York" }));
  await tell("wrong arguments", () => client.call("get-sum", { a: "one" }));
  // The server goes on with what was cancelled for a while, but not longer than with what comes next.
  const controller = new AbortController();
  await tell("cancel", () =>
    client
      .call("trigger-long-running-operation", { duration: 0.3, steps: 3 }, {
        signal: controller.signal,
        onprogress: () => controller.abort("enough"),
      })
      // How a client says that it gave up is its own affair.
      .then(() => "answered", () => "cancelled"),
  );
  const steps = [];
  await tell("progress", async () => {
    // The last one may come with the answer, and be late.
    const onprogress = (progress) => progress.progress < progress.total && steps.push(progress);
    const result = await client.call("trigger-long-running-operation", { duration: 0.3, steps: 3 }, { onprogress });
    return { ...result, steps };
  });
  await tell("sampling", () => client.call("trigger-sampling-request", { prompt: "say something", maxTokens: 9 }));
  await tell("elicitation", () => client.call("trigger-elicitation-request", {}));
  await tell("resources/list", () => client.request("resources/list", {}));
  await tell("resources/templates/list", () => client.request("resources/templates/list", {}));
  await tell("subscribe", () => client.request("resources/subscribe", { uri: "demo://resource/dynamic/text/1" }));
  await tell("resources/read", () =>
    client.request("resources/read", { uri: "demo://resource/static/document/features.md" }),
  );
  await tell("prompts/list", () => client.request("prompts/list", {}));
  await tell("prompts/get", () => client.request("prompts/get", { name: "args-prompt", arguments: { city: "Bonn" } }));
  await tell("completion", () =>
    client.request("completion/complete", {
      ref: { type: "ref/prompt", name: "completable-prompt" },
      argument: { name: "department", value: "E" },
    }),
  );
  await tell("ping", () => client.request("ping", {}));
  await tell("unknown resource", () => client.request("resources/read", { uri: "demo://nowhere" }));
  await tell("unknown prompt", () => client.request("prompts/get", { name: "no-such-prompt" }));
  await end(client);
}

async function git(client, { repository }) {
  await begin(client);
  await tell("status", () => client.call("git_status", { repo_path: repository }));
  await tell("log", () => client.call("git_log", { repo_path: repository, max_count: 2 }));
  await tell("show", () => client.call("git_show", { repo_path: repository, revision: "HEAD" }));
  await tell("no repository", () => client.call("git_status", { repo_path: "/" }));
  await tell("wrong arguments", () => client.call("git_log", { repo_path: 7 }));
  await end(client);
}

/** Asks for input in the middle of calls: in the stateless era, by several rounds of one call. */
async function fixture(client) {
  await begin(client);
  await tell("echo", () => client.call("echo", { text: "hello" }));
  await tell("one round", () => client.call("ask", { kind: "elicitation" }));
  await tell("three rounds", () => client.call("ask", { kind: "sampling", rounds: 3 }));
  await tell("resources/read", () => client.request("resources/read", { uri: "fixture://text" }));
  await tell("prompts/get", () => client.request("prompts/get", { name: "greet", arguments: { who: "you" } }));
  await end(client);
}

const SESSIONS = { everything, git, fixture };

/** Runs the session that the first argument describes, with a client that `connect` makes of it. */
export async function run(connect) {
  const task = JSON.parse(process.argv[2]);
  const client = await connect(task);
  await SESSIONS[task.session](client, task);
  await client.close();
}
