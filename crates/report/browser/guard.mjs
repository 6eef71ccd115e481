// What fails a test in either browser: an error of the page, a violation of its policy, or a request to anywhere else.

import assert from "node:assert/strict";
import http from "node:http";

/** Notes violations of the policy before anything else runs. */
export const watch = () => {
  globalThis.violations = [];
  document.addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
};

/** A proxy that forwards nothing, and notes who asks for which host. */
export async function sink() {
  /** @type {string[]} */
  const asked = [];
  const server = http.createServer((request, response) => {
    asked.push(request.url || "");
    response.writeHead(403).end();
  });
  server.on("connect", (request, socket) => {
    asked.push(request.url || "");
    socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", () => done(null)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { port, asked, close: () => server.close() };
}

/**
 * Notes the problems of a page.
 * @param {any} page @param {(url: string) => boolean} isOwn whether a page may ask for a URL
 * @param {{asked: string[]}} proxy @param {(url: string) => boolean} isBrowsers whether the browser itself asks for it
 */
export function problemsOf(page, isOwn, proxy, isBrowsers) {
  /** @type {string[]} */
  const problems = [];
  const before = proxy.asked.length;
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => { if (["error", "warn", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`); });
  page.on("request", (request) => {
    const is = request.url().split("#")[0];
    if (!isOwn(is) && is !== "about:blank") problems.push(`request: ${is}`);
  });
  return { problems, finish: async () => {
    problems.push(...(await page.evaluate(() => globalThis.violations || [])));
    problems.push(...proxy.asked.slice(before).filter((url) => !isBrowsers(url)).map((url) => `proxy: ${url}`));
    assert.deepEqual(problems, []);
  } };
}
