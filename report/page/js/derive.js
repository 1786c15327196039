// The selected part of a profile: some of its rows, a range's values, some of its frames. It is a profile again, so that
// every tree and table is made from a part in the same way as from the whole.

import { measureOf } from "./decode.js";

/** @typedef {import("./decode.js").Profile} Profile */

/**
 * @typedef {object} Filter what rows must have; -1 and null: anything
 * @property {number} thread
 * @property {number} allocator
 * @property {Uint8Array | null} contexts by number of the context, 1: one of these
 * @property {Uint8Array | null} frames by frame, 1: the stack must hold one of these
 * @property {Uint8Array | null} crate by frame, 1: the stack must hold one of these as well
 */

/**
 * @param {Profile} profile
 * @param {[Float64Array, Float64Array]} columns blocks and bytes by row
 * @returns {Profile} with these as the view "range"
 */
export function withRange(profile, [count, bytes]) {
  const values = [...profile.rows.values];
  values[measureOf("range", "count")] = count;
  values[measureOf("range", "bytes")] = bytes;
  return { ...profile, rows: { ...profile.rows, values } };
}

/**
 * @param {Profile} profile
 * @param {Filter} filter
 * @returns {Profile}
 */
export function filtered(profile, { thread, allocator, contexts, frames, crate }) {
  const { rows } = profile;
  const inFrames = frames === null ? null : holding(profile, frames);
  const inCrate = crate === null ? null : holding(profile, crate);
  const kept = [];
  for (let row = 0; row < rows.node.length; row += 1) {
    if (
      (thread < 0 || rows.thread[row] === thread) &&
      (allocator < 0 || rows.allocator[row] === allocator) &&
      (contexts === null || contexts[rows.context[row]] === 1) &&
      (inFrames === null || inFrames[rows.node[row]] === 1) &&
      (inCrate === null || inCrate[rows.node[row]] === 1)
    ) {
      kept.push(row);
    }
  }
  return taken(profile, Int32Array.from(kept), rows.node);
}

/**
 * @param {Profile} profile
 * @param {Uint8Array} fold by frame, as `Shape.without` takes it
 * @param {Int32Array | null} same by frame, the frame that stands for it; null: itself
 * @param {Int32Array | null} name by frame, as `Shape.without` takes it
 * @returns {Profile} without the frames that are hidden
 */
export function foldedBy(profile, fold, same = null, name = null) {
  const allocated = new Uint8Array(profile.shape.size);
  for (const node of profile.rows.node) {
    allocated[node] = 1;
  }
  const { shape, nodeOf } = profile.shape.without(fold, allocated, same, name);
  return reshaped(
    profile,
    shape,
    profile.rows.node.map((at) => nodeOf[at]),
  );
}

/**
 * @param {Profile} profile
 * @param {import("./shape.js").Shape} shape
 * @param {Int32Array} node by row, its node in `shape`
 * @returns {Profile} with call stacks of that shape
 */
export function reshaped(profile, shape, node) {
  const order = Int32Array.from(node.keys());
  // Rows are sorted by node; most are in order already.
  if (node.some((at, row) => row > 0 && at < node[row - 1])) {
    order.sort((a, b) => node[a] - node[b] || a - b);
  }
  return { ...taken(profile, order, node), shape };
}

/**
 * Joins frames that differ only in full names: the first of them stands for all.
 * @param {Profile} profile
 * @returns {{same: Int32Array, versions: Int32Array} | null} by frame, which stands for it, and how many it stands for;
 *   null where each stands for itself
 */
export function sameByName({ frames }) {
  /** @type {Map<string, number>} */
  const known = new Map();
  const versions = new Int32Array(frames.function.length);
  const same = frames.function.map((name, frame) => {
    const key = `${name} ${frames.file[frame]} ${frames.line[frame]}`;
    const first = known.get(key) ?? frame;
    known.set(key, first);
    versions[first] += 1;
    return first;
  });
  return known.size < same.length ? { same, versions } : null;
}

/**
 * @param {Profile} profile
 * @param {boolean} plain
 * @param {Int32Array | null} same of {@link sameByName}
 * @returns {Profile} with plain names, call sites that differ in full names alone as one; or with full names
 */
export function withNames(profile, plain, same) {
  if (plain) {
    return same === null ? profile : foldedBy(profile, new Uint8Array(same.length), same);
  }
  return { ...profile, frames: { ...profile.frames, function: profile.frames.full } };
}

/**
 * @param {Profile} profile
 * @param {Int32Array} kept rows in their new order
 * @param {Int32Array} node by old row
 * @returns {Profile}
 */
function taken(profile, kept, node) {
  const { rows, source } = profile;
  const pick = (/** @type {Float64Array} */ column) => {
    const found = new Float64Array(kept.length);
    for (let i = 0; i < kept.length; i += 1) {
      found[i] = column[kept[i]];
    }
    return found;
  };
  return {
    ...profile,
    rows: {
      node: kept.map((row) => node[row]),
      thread: kept.map((row) => rows.thread[row]),
      allocator: kept.map((row) => rows.allocator[row]),
      context: kept.map((row) => rows.context[row]),
      values: rows.values.map(pick),
      oldest: pick(rows.oldest),
    },
    source: source === null ? kept : kept.map((row) => source[row]),
  };
}

/**
 * @param {Profile} profile
 * @param {Uint8Array} frames
 * @returns {Uint8Array} by node, 1: its stack holds one of `frames`
 */
function holding({ shape }, frames) {
  const found = new Uint8Array(shape.size);
  for (let node = 1; node < shape.size; node += 1) {
    found[node] = frames[shape.frame[node]] === 1 ? 1 : found[shape.parent[node]];
  }
  return found;
}

/**
 * The survivors of a part's rows.
 * @param {Profile} profile
 * @param {(row: number, generation: number, count: number, bytes: number) => void} each `row` of the part
 */
export function eachSurvivor({ rows, source, survivors }, each) {
  /** @type {Int32Array | null} */
  let rowOf = null;
  if (source !== null) {
    rowOf = new Int32Array(rows.node.length === 0 ? 0 : source.reduce((most, row) => Math.max(most, row), 0) + 1);
    rowOf.fill(-1);
    for (let row = 0; row < source.length; row += 1) {
      rowOf[source[row]] = row;
    }
  }
  for (let i = 0; i < survivors.row.length; i += 1) {
    const row = rowOf === null ? survivors.row[i] : (rowOf[survivors.row[i]] ?? -1);
    if (row >= 0) {
      each(row, survivors.generation[i], survivors.count[i], survivors.bytes[i]);
    }
  }
}
