// Numbers for users. Sizes are in powers of 1000, as in memray.

export const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/**
 * @param {number} value in bytes
 * @returns {string} three significant digits: `8.00 MB`
 */
export function bytes(value) {
  let unit = 0;
  let scaled = value;
  // 999.5 would be rounded to 1000 of its unit.
  while (scaled >= 999.5 && unit < UNITS.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
  return `${scaled.toFixed(digits)}\u00a0${UNITS[unit]}`;
}

/**
 * @param {number} value
 * @returns {string} all digits in groups: `18,400`
 */
export function count(value) {
  return value.toLocaleString("en-US");
}

/**
 * @param {number} value in the unit of `by`
 * @param {"bytes" | "count"} by
 * @returns {string}
 */
export function amount(value, by) {
  return by === "bytes" ? bytes(value) : count(value);
}

/**
 * @param {number} number
 * @param {string} noun in the singular
 * @returns {string} `1 block`, `2 blocks`
 */
export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/**
 * @param {number} part
 * @param {number} whole
 * @returns {string} `12.3 %`; more than 0 is never written as 0
 */
export function percent(part, whole) {
  if (whole <= 0) {
    return "0 %";
  }
  const share = (100 * part) / whole;
  if (part > 0 && share < 0.1) {
    return "<0.1 %";
  }
  if (part < whole && share >= 99.95) {
    return ">99.9 %";
  }
  return `${share >= 99.95 ? "100" : share.toFixed(1)} %`;
}

/**
 * @param {number} ms
 * @returns {string} the two largest units: `3 min 4 s`
 */
export function duration(ms) {
  if (ms < 1000) {
    return `${Math.round(ms)} ms`;
  }
  const seconds = ms / 1000;
  if (seconds < 59.95) {
    return `${seconds.toFixed(1)} s`;
  }
  const whole = Math.round(seconds);
  const parts = [
    [Math.floor(whole / 86400), "d"],
    [Math.floor(whole / 3600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([value]) => value !== 0);
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value !== 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(" ");
}

/**
 * @param {number} ms since the Unix epoch
 * @returns {string} local time: `2026-11-21 09:12:17`
 */
export function clock(ms) {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) {
    return "unknown";
  }
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/**
 * @param {string[]} parts without capitals and full stops
 * @param {string} opening which begins the sentence
 * @returns {string} one sentence; empty where there is nothing to say
 */
export function sentence(parts, opening = "") {
  const text = `${opening}${parts.join("; ")}`.replace(/(\d) (?=%|[kMGTPE]?B\b)/g, "$1\u00a0");
  return parts.length === 0 ? "" : `${text[0].toUpperCase()}${text.slice(1)}.`;
}
