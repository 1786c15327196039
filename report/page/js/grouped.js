// Call stacks by context: a frame at the root for each value of a label's key, as `views::by_context` in Rust makes them.

import { keysOf, shownValue, valuesOf } from "./contexts.js";
import { NATIVE } from "./decode.js";
import { reshaped } from "./derive.js";
import { Shape } from "./shape.js";

/** @typedef {import("./decode.js").Profile} Profile */

/**
 * Adds a frame for each value of each key, which no call stack has yet.
 * @param {Profile} profile
 * @returns {{profile: Profile, frameOf: Map<string, Int32Array>}} by key: by number of the context, the frame of its value
 */
export function withContextFrames(profile) {
  const { head } = profile;
  const keys = keysOf(head);
  const strings = [...profile.strings];
  const { frames } = profile;
  /** @type {number[]} */
  const functions = [];
  /** @type {Map<string, Int32Array>} */
  const frameOf = new Map();
  for (const key of keys) {
    /** @type {Map<string | null, number>} */
    const known = new Map();
    const numbers = valuesOf(head, key).map((value) => {
      const frame = known.get(value) ?? frames.function.length + functions.length;
      if (!known.has(value)) {
        known.set(value, frame);
        functions.push(strings.length);
        strings.push(`[${shownValue(key, value)}]`);
      }
      return frame;
    });
    frameOf.set(key, Int32Array.from(numbers));
  }
  if (functions.length === 0) {
    return { profile, frameOf };
  }
  const nothing = strings.length;
  strings.push("");
  const { packages } = head;
  const [more, all] = [functions.length, packages.length];
  const longer = (/** @type {Int32Array} */ column, /** @type {ArrayLike<number>} */ added) => {
    const extended = new Int32Array(column.length + more);
    extended.set(column);
    extended.set(added, column.length);
    return extended;
  };
  const same = (/** @type {number} */ value) => new Int32Array(more).fill(value);
  return {
    profile: {
      ...profile,
      head: { ...head, packages: [...packages, ["", NATIVE]] },
      strings,
      frames: {
        function: longer(frames.function, functions),
        full: longer(frames.full, functions),
        file: longer(frames.file, same(nothing)),
        line: longer(frames.line, same(0)),
        package: longer(frames.package, same(all)),
      },
    },
    frameOf,
  };
}

/**
 * @param {Profile} profile
 * @param {Int32Array} frameOf by number of the context, the frame that its call stacks go below
 * @returns {Profile} the same rows; a call stack of several contexts becomes several
 */
export function groupedBy(profile, frameOf) {
  const { shape, rows } = profile;
  const frames = [-1];
  const parents = [-1];
  const made = (/** @type {number} */ frame, /** @type {number} */ parent) => {
    frames.push(frame);
    return parents.push(parent) - 1;
  };
  const root = (/** @type {number} */ row) => frameOf[rows.context[row]] ?? frameOf[0];
  const order = Int32Array.from(rows.node.keys()).sort((a, b) => root(a) - root(b) || a - b);
  const node = new Int32Array(order.length);
  /** The new node of each old one below the present root. */
  const below = new Int32Array(shape.size);
  /** @type {number[]} */
  let used = [];
  for (let i = 0; i < order.length; i += 1) {
    const row = order[i];
    if (i === 0 || root(row) !== root(order[i - 1])) {
      for (const old of used) {
        below[old] = 0;
      }
      below[0] = made(root(row), 0);
      used = [];
    }
    const path = [];
    let at = rows.node[row];
    for (; below[at] === 0; at = shape.parent[at]) {
      path.push(at);
    }
    let parent = below[at];
    for (const old of path.reverse()) {
      parent = made(shape.frame[old], parent);
      below[old] = parent;
      used.push(old);
    }
    node[row] = parent;
  }
  const ordered = Shape.ordered(Int32Array.from(frames), Int32Array.from(parents));
  return reshaped(profile, ordered.shape, node.map((old) => ordered.place[old]));
}
