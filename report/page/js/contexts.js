// Contexts: on whose behalf memory was allocated. Each value of a label's key has the sums of its call sites.

import { MEASURES, measureOf } from "./decode.js";
import { eachSurvivor } from "./derive.js";
import { generationsOf, joinedGenerations } from "./generations.js";
import { addSums, ageOf, responsibleNodes } from "./sites.js";
import { addSpread, countOf, emptySpread } from "./spread.js";

/** @typedef {import("./decode.js").Head} Head */
/** @typedef {import("./spread.js").Spread} Spread */

/**
 * @typedef {object} ContextSums
 * @property {string | null} value null: without the key
 * @property {number} bytes in the present view
 * @property {number} count in the present view
 * @property {number[]} values in every view, by `measureOf`
 * @property {number} oldest milliseconds since the start of its oldest live block; -1 unknown
 * @property {number} age in milliseconds of that block; -1 unknown
 * @property {Float64Array} grown still-live bytes by generation, as `generationsOf` tells; empty where not known
 * @property {number} frame of the call site with the most in the present view
 * @property {Spread} each bytes that its requests or futures allocated; filters leave them as they are
 * @property {Spread} most bytes that each of them held at one time
 * @property {Spread} held bytes that each of them still held when it ended
 */

/**
 * @param {Head} head
 * @returns {string[]} by name, but `route` first
 */
export function keysOf({ contexts }) {
  const keys = new Set(contexts.flatMap((labels) => labels.map(([key]) => key)));
  return [...keys].sort((a, b) => Number(b === "route") - Number(a === "route") || (a < b ? -1 : 1));
}

/**
 * @param {Head} head
 * @param {string} key
 * @returns {(string | null)[]} by number of the context
 */
export function valuesOf({ contexts }, key) {
  return [null, ...contexts.map((labels) => labels.find(([known]) => known === key)?.[1] ?? null)];
}

/**
 * @param {string} key
 * @param {string | null} value
 * @returns {string} a condition, as {@link contextsWhere} takes it
 */
export function conditionOf(key, value) {
  return value === null ? key : `${key}=${value}`;
}

/**
 * @param {Head} head
 * @param {string} condition `key=value`; or a key alone for contexts without it
 * @returns {Uint8Array | null} by number of the context, 1: it holds; null: this report has no such key or value
 */
export function contextsWhere({ contexts }, condition) {
  const all = [[], ...contexts];
  const having = all.map((labels) => labels.some(([key, value]) => `${key}=${value}` === condition));
  if (having.includes(true)) {
    return Uint8Array.from(having, Number);
  }
  const known = all.map((labels) => labels.some(([key]) => key === condition));
  return known.includes(true) ? Uint8Array.from(known, (has) => (has ? 0 : 1)) : null;
}

/**
 * @param {string} key
 * @param {string | null} value
 * @returns {string} the value in words
 */
export function shownValue(key, value) {
  return value === null ? `no ${key}` : value;
}

/**
 * @param {import("./decode.js").Profile} profile
 * @param {number} frame
 * @returns {boolean} whether it stands for a context, as `views::by_context` in Rust makes them
 */
export function isContextFrame({ frames, strings }, frame) {
  const name = strings[frames.function[frame]];
  return strings[frames.file[frame]] === "" && frames.line[frame] === 0 && name.startsWith("[") && name.endsWith("]");
}

/**
 * @param {import("./call_tree.js").CallTree} tree
 * @param {string} key
 * @param {import("./decode.js").View} view
 * @param {import("./decode.js").By} by
 * @returns {ContextSums[]} of each value that has something in any view, largest in the present one first
 */
export function contextSums(tree, key, view, by) {
  const { profile } = tree;
  const { node, context, values } = profile.rows;
  const known = generationsOf(profile.head).length;
  const generations = known > 1 ? known : 0;
  const joined = joinedGenerations(profile.head);
  const weight = values[measureOf(view, by)];
  const valueOf = valuesOf(profile.head, key);
  const answers = responsibleNodes(tree);
  /** @type {Map<string | null, ContextSums & {byFrame: Map<number, number>}>} */
  const found = new Map();
  const sumsOf = (/** @type {number} */ row) => {
    const value = valueOf[context[row]] ?? null;
    let sums = found.get(value);
    if (sums === undefined) {
      const none = new Array(MEASURES).fill(0);
      const [each, most, held] = [emptySpread(), emptySpread(), emptySpread()];
      const grown = new Float64Array(generations);
      sums = { value, bytes: 0, count: 0, values: none, oldest: -1, age: -1, grown, frame: -1, byFrame: new Map(), each, most, held };
      found.set(value, sums);
    }
    return sums;
  };
  for (let row = 0; row < node.length; row += 1) {
    const sums = sumsOf(row);
    addSums(sums, profile.rows, row, view);
    if (weight[row] > 0) {
      const frame = tree.frame[answers[node[row]]];
      sums.byFrame.set(frame, (sums.byFrame.get(frame) ?? 0) + weight[row]);
    }
  }
  if (generations > 0) {
    eachSurvivor(profile, (row, generation, _, size) => {
      sumsOf(row).grown[joined[generation]] += size;
    });
  }
  addRuns(profile, valueOf, found);
  for (const sums of found.values()) {
    sums.age = ageOf(profile.head, sums.oldest);
    let most = 0;
    for (const [frame, value] of sums.byFrame) {
      if (value > most) {
        most = value;
        sums.frame = frame;
      }
    }
  }
  return [...found.values()].sort((a, b) => b[by] - a[by] || b.values[1] - a.values[1] || ((a.value ?? "") < (b.value ?? "") ? -1 : 1));
}

/**
 * Adds the runs of the contexts that rows have.
 * @param {import("./decode.js").Profile} profile
 * @param {(string | null)[]} valueOf by number of the context
 * @param {Map<string | null, ContextSums>} found
 */
function addRuns({ head, rows }, valueOf, found) {
  for (const context of new Set(rows.context)) {
    const runs = head.runs[context - 1];
    const sums = found.get(valueOf[context] ?? null);
    if (runs !== undefined && sums !== undefined) {
      addSpread(sums.each, runs.allocated_bytes);
      addSpread(sums.most, runs.most_bytes);
      addSpread(sums.held, runs.held_bytes);
    }
  }
}

/**
 * @param {ContextSums} sums
 * @returns {number} live bytes that a run has left behind on average; -1 without runs. What runs held when they ended says less: a
 *   server frees a part of it right after the response
 */
export function leftEach({ each, values }) {
  const runs = countOf(each);
  return runs > 0 ? values[measureOf("live", "bytes")] / runs : -1;
}
