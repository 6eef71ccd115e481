// Numbers as text. Rates and intervals come as text from Proctor.

/** A duration as Proctor writes it elsewhere. @param {number | null | undefined} micros */
function duration(micros) {
  if (micros === null || micros === undefined) return "–";
  if (micros < 1e3) return `${short(micros)}µs`;
  if (micros < 1e6) return `${short(micros / 1e3)}ms`;
  if (micros < 60e6) return `${short(micros / 1e6)}s`;
  const s = Math.floor(micros / 1e6);
  const parts = /** @type {[number, string][]} */ ([[Math.floor(s / 3600), "h"], [Math.floor((s % 3600) / 60), "m"], [s % 60, "s"]]);
  return parts.filter(([n]) => n > 0).map(([n, unit]) => `${n}${unit}`).join("");
}

/** Two digits, one of them behind the point if there is one before it. @param {number} n */
const short = (n) => (n < 10 ? n.toFixed(1).replace(".0", "") : Math.floor(n).toString());

/** @param {number | null | undefined} n */
const count = (n) => (n === null || n === undefined ? "–" : Math.round(n).toLocaleString("en"));

/** @param {number} n @param {string} noun */
const counted = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** @param {number | null | undefined} usd */
function dollars(usd) {
  if (usd === null || usd === undefined) return "–";
  if (usd === 0) return "$0";
  return usd < 0.0001 ? "<$0.0001" : `$${usd.toFixed(usd < 1 ? 4 : 2)}`;
}

/** A short number for a column: `1.2k`. @param {number | null | undefined} n */
function compact(n) {
  if (n === null || n === undefined) return "–";
  if (n < 1000) return String(Math.round(n));
  return n < 1e6 ? `${short(n / 1e3)}k` : `${short(n / 1e6)}M`;
}

/** A word that a shell takes as it is. @param {string} text */
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
