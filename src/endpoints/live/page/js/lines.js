// The service's lines with the most live bytes.

import { byId, el } from "../../../../../report/page/js/dom.js";
import { bytes, count, percent } from "../../../../../report/page/js/format.js";
import { logical, segments, shortPath } from "../../../../../report/page/js/names.js";

/**
 * @typedef {{ count: number, bytes: number }} Held
 * @typedef {{ function: string, file: string, line: number, live: Held }} Line
 * @typedef {{ lines: Line[], seen: Held }} Top
 */

/** @type {Map<string, number>} live bytes of each line when it was first seen */
const before = new Map();
/** Largest number of remembered lines: a page that is open for a day must not grow without limit. */
const MOST_LINES = 500;

/**
 * @param {string} file
 * @returns {string} without the registry's directory, and no more than its last parts
 */
export function tail(file) {
  const short = shortPath(file, "");
  const parts = short.split("/");
  return short === file && parts.length > 4 ? `…/${parts.slice(-3).join("/")}` : short;
}

/**
 * @param {string} name of a function
 * @returns {HTMLElement} without generic arguments and closures; the whole name is its tooltip
 */
export function named(name) {
  const shown = el("code", "", logical(segments(name)).join("::"));
  shown.title = name;
  return shown;
}

/**
 * @param {Line} line
 * @returns {HTMLElement} the function, and its place below it
 */
export function place(line) {
  const at = line.line === 0 ? tail(line.file) : `${tail(line.file)}:${line.line}`;
  const where = el("span", "place", at);
  where.title = line.file;
  return el("span", "", named(line.function), where);
}

/**
 * @param {Top | null} top
 * @param {Held} live sum of everything that is live
 */
export function showLines(top, live) {
  const lead = byId("lines-lead", HTMLElement);
  const lines = top?.lines ?? [];
  byId("lines-scroll", HTMLElement).hidden = lines.length === 0;
  if (top === null) {
    before.clear();
    lead.textContent = "Shown while recording, by the line of your own code that allocated the memory.";
    return;
  }
  const share = percent(Math.min(top.seen.bytes, live.bytes), live.bytes);
  lead.textContent = `By the line of your own code; of a library, where none of yours is in the stack. From the call sites with the most live bytes: ${share} of all.`;
  if (before.size > MOST_LINES) {
    before.clear();
  }
  byId("lines", HTMLElement).replaceChildren(...lines.map(row));
}

/** @param {Line} line */
function row(line) {
  const key = `${line.function}\n${line.file}\n${line.line}`;
  const first = before.get(key) ?? line.live.bytes;
  before.set(key, first);
  const change = line.live.bytes - first;
  const sign = change > 0 ? "+" : "−";
  const changed = el("td", change > 0 ? "number up" : "number", change === 0 ? "–" : `${sign}${bytes(Math.abs(change))}`);
  changed.title = "since this page first saw it";
  return el("tr", "", el("td", "", place(line)), el("td", "number", bytes(line.live.bytes)), el("td", "number", count(line.live.count)), changed);
}
