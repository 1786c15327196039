// The service's lines with the most live bytes.

import { byId, el } from "../../../../../report/page/js/dom.js";
import { bytes, count, percent } from "../../../../../report/page/js/format.js";
import { shownGraph } from "./facts.js";
import { refill } from "./links.js";
import { placeBlock } from "./places.js";

/**
 * @typedef {{ count: number, bytes: number }} Held
 * @typedef {import("./places.js").Place & { live: Held }} Line
 * @typedef {{ lines: Line[], seen: Held }} Top
 */

/**
 * Row of a line, which stays the same element for as long as the line is listed: so a click or the focus is not lost.
 * @typedef {object} Row
 * @property {HTMLElement} element
 * @property {HTMLElement} live
 * @property {HTMLElement} blocks
 * @property {HTMLElement} change
 */

/** @type {Map<string, number>} live bytes of each line when it was first seen */
const before = new Map();
/** Largest number of remembered lines: a page that is open for a day must not grow without limit. */
const MOST_LINES = 500;
/** @type {Map<string, Row>} of the listed lines */
let rowOfLine = new Map();
/** @type {string | null} when the session began whose lines are remembered */
let session = null;

/**
 * @param {Top | null} top
 * @param {import("./facts.js").Status} status
 */
export function showLines(top, status) {
  const { live, recording_since: since } = status;
  const graph = shownGraph(status);
  const lead = byId("lines-lead", HTMLElement);
  if (since !== null && since !== session) {
    session = since;
    before.clear();
  }
  byId("lines-heading", HTMLElement).textContent = since === null ? "What held the most at the end" : "What holds the most now";
  byId("lines-scroll", HTMLElement).hidden = (top?.lines ?? []).length === 0;
  if (top === null) {
    lead.textContent = "Shown while recording, by the line of your own code that allocated the memory.";
    return;
  }
  const share = percent(Math.min(top.seen.bytes, live.bytes), live.bytes);
  lead.textContent = `By the line of your own code; of a library, where none of yours is in the stack. From the call sites with the most live bytes: ${share} of all.`;
  if (before.size > MOST_LINES) {
    before.clear();
  }
  /** @type {Map<string, Row>} */
  const shown = new Map();
  for (const line of top.lines) {
    const key = `${graph}\n${line.function}\n${line.file}\n${line.line}`;
    const row = rowOfLine.get(key) ?? newRow(line, graph);
    update(row, line, key);
    shown.set(key, row);
  }
  rowOfLine = shown;
  const elements = [...shown.values()].map(({ element }) => element);
  const list = byId("lines", HTMLElement);
  if (elements.length !== list.children.length || elements.some((element, at) => element !== list.children[at])) {
    refill(list, elements);
  }
}

/**
 * @param {Line} line
 * @param {string} graph path of the flame graph that has it
 * @returns {Row}
 */
function newRow(line, graph) {
  const [live, blocks, change] = [el("td", "number"), el("td", "number"), el("td", "number")];
  change.title = "since this page first saw it";
  return { element: el("tr", "", el("td", "", placeBlock(line, graph)), live, blocks, change), live, blocks, change };
}

/**
 * @param {Row} row
 * @param {Line} line
 * @param {string} key
 */
function update(row, { live }, key) {
  const first = before.get(key) ?? live.bytes;
  before.set(key, first);
  const change = live.bytes - first;
  const sign = change > 0 ? "+" : "−";
  row.live.textContent = bytes(live.bytes);
  row.blocks.textContent = count(live.count);
  row.change.textContent = change === 0 ? "–" : `${sign}${bytes(Math.abs(change))}`;
  row.change.className = change > 0 ? "number up" : "number";
}
