// A server that is changed: it starts another one and alters what that says. `renamed TOOL` gives a tool another name,
// `other-results` changes every text in results, `broken` ends at the first call.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [mode, tool, ...command] = process.argv.slice(2);
const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });

function changed(value) {
  if (typeof value === "string") return `${value}~`;
  if (Array.isArray(value)) return value.map(changed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, value]) => [key, key === "type" ? value : changed(value)]));
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.method === "tools/call") {
    if (mode === "broken") process.exit(1);
    if (mode === "renamed" && message.params.name === tool) message.params.name = "no-such-tool";
    if (mode === "renamed" && message.params.name === `${tool}-2`) message.params.name = tool;
  }
  child.stdin.write(`${JSON.stringify(message)}\n`);
}).on("close", () => child.stdin.end());

createInterface({ input: child.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  const result = message.result ?? {};
  if (mode === "renamed") for (const listed of result.tools ?? []) if (listed.name === tool) listed.name = `${tool}-2`;
  if (mode === "other-results") {
    if (result.content) result.content = changed(result.content);
    if (result.structuredContent) result.structuredContent = changed(result.structuredContent);
  }
  process.stdout.write(`${JSON.stringify(message)}\n`);
});
child.on("exit", (code) => process.exit(code ?? 1));
