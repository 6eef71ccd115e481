// Both browsers with one interface: pages that are guarded, in a theme and a size.

import { chromium } from "playwright-core";
import puppeteer from "puppeteer-core";

import { problemsOf, sink, watch } from "./guard.mjs";

/** A page that takes longer hangs, however busy the machine is. */
const LONGEST = 300_000;

/** Browsers themselves ask these hosts, whatever page they show. */
const isBrowsers = (/** @type {string} */ url) => /(mozilla|firefox|google|googleapis|gvt1)\.(com|net|org)(:\d+)?([/?]|$)/.test(url);

/** A window for a report: its theme and size. */
export const WINDOWS = [
  { name: "light", theme: "light", width: 1280, height: 900 },
  { name: "dark", theme: "dark", width: 1280, height: 900 },
  { name: "phone", theme: "light", width: 390, height: 800 },
  { name: "dark phone", theme: "dark", width: 390, height: 800 },
];

/** Chromium, driven by Playwright. */
export async function startChromium() {
  const proxy = await sink();
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", timeout: LONGEST,
    args: ["--no-sandbox", "--disable-background-networking"], proxy: { server: `http://127.0.0.1:${proxy.port}`, bypass: "127.0.0.1" } });
  return { name: "chromium", close: async () => { await browser.close(); proxy.close(); }, browser,
    /** @param {{theme?: string, width?: number, height?: number, isOwn: (url: string) => boolean, options?: any}} window */
    page: async ({ theme = "light", width = 1280, height = 900, isOwn, options = {} }) => {
      const context = await browser.newContext({ colorScheme: /** @type {any} */ (theme), viewport: { width, height }, ...options });
      const page = await context.newPage();
      page.setDefaultTimeout(LONGEST);
      const { problems, finish } = problemsOf(page, isOwn, proxy, isBrowsers);
      await page.addInitScript(watch);
      return { page, early: (/** @type {() => void} */ script) => page.addInitScript(script), context, problems, finish: async () => { await finish().finally(() => context.close()); } };
    } };
}

/** Firefox, driven by Puppeteer: Playwright can't drive Debian's build. The theme is a preference of the browser. */
export async function startFirefox() {
  const proxy = await sink();
  /** @type {Map<string, any>} */
  const browsers = new Map();
  const browserFor = async (/** @type {string} */ theme) => {
    if (!browsers.has(theme)) {
      browsers.set(theme, await puppeteer.launch({ browser: "firefox", timeout: LONGEST, protocolTimeout: LONGEST, executablePath: process.env.FIREFOX || "/usr/bin/firefox-esr", headless: true,
        extraPrefsFirefox: { "layout.css.prefers-color-scheme.content-override": theme === "dark" ? 0 : 1,
          "network.proxy.type": 1, "network.proxy.http": "127.0.0.1", "network.proxy.http_port": proxy.port,
          "network.proxy.ssl": "127.0.0.1", "network.proxy.ssl_port": proxy.port, "network.proxy.no_proxies_on": "127.0.0.1" } }));
    }
    return browsers.get(theme);
  };
  return { name: "firefox", close: async () => { for (const browser of browsers.values()) await browser.close(); proxy.close(); },
    /** @param {{theme?: string, width?: number, height?: number, isOwn: (url: string) => boolean}} window */
    page: async ({ theme = "light", width = 1280, height = 900, isOwn }) => {
      const context = await (await browserFor(theme)).createBrowserContext();
      const page = await context.newPage();
      page.setDefaultTimeout(LONGEST);
      await page.setViewport({ width, height });
      const { problems, finish } = problemsOf(page, isOwn, proxy, isBrowsers);
      await page.evaluateOnNewDocument(watch);
      return { page, early: (/** @type {() => void} */ script) => page.evaluateOnNewDocument(script), context, problems, finish: async () => { await finish().finally(() => context.close()); } };
    } };
}

/** Waits until something holds in a page: both drivers have it, with other arguments. @param {any} page @param {any} holds @param {any} [value] */
export async function until(page, holds, value) {
  const from = Date.now();
  for (;;) {
    const is = await page.evaluate(holds, value).catch((/** @type {Error} */ error) => {
      // The page is being replaced.
      if (!/context|navigation|destroyed|detached|closed/i.test(error.message)) throw error;
    });
    if (is) return is;
    if (Date.now() - from > LONGEST) throw new Error(`not after minutes: ${holds} ${value ?? ""}\n${await page.evaluate(() => document.body.innerText.slice(0, 2000))}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}
