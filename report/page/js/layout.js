// Computes the boxes. It is pure: a tree, a measure and a span go in, boxes come out.

/** @typedef {import("./call_tree.js").Tree} Tree */

/**
 * A stretch of the graph's width; the whole of it is 0 to 1.
 * @typedef {{from: number, to: number}} Span
 *
 * A row of boxes, left to right, in pixels. `more` is 0, or how many boxes too narrow to paint this one stands
 * for; its `node` is their parent then.
 * @typedef {{left: number[], right: number[], node: number[], more: number[]}} Row
 */

/** Narrower boxes are not painted one by one, in pixels. */
const NARROW = 0.7;

/**
 * @param {Tree} tree
 * @param {number} measure
 * @param {Span} span
 * @param {number} width of the graph in pixels
 * @returns {Row[]} by depth
 */
export function layout(tree, measure, span, width) {
  const whole = tree.valueOf(0, measure);
  /** @type {Row[]} */
  const rows = [];
  if (whole <= 0) {
    return rows;
  }
  const scale = width / ((span.to - span.from) * whole);
  const origin = span.from * whole;
  const add = (
    /** @type {number} */ depth,
    /** @type {number} */ left,
    /** @type {number} */ right,
    /** @type {number} */ node,
    /** @type {number} */ more,
  ) => {
    rows[depth] ??= { left: [], right: [], node: [], more: [] };
    const row = rows[depth];
    row.left.push(left);
    row.right.push(right);
    row.node.push(node);
    row.more.push(more);
  };

  // Level by level, so that every row is in order from left to right.
  let level = [{ node: 0, at: 0 }];
  for (let depth = 0; level.length > 0; depth += 1) {
    const next = [];
    for (const { node, at } of level) {
      const value = tree.valueOf(node, measure);
      add(depth, (at - origin) * scale, (at + value - origin) * scale, node, 0);
      const children = tree.childrenOf(node, measure);
      let start = at;
      for (let i = 0; i < children.length; i += 1) {
        const childValue = tree.valueOf(children[i], measure);
        if (childValue * scale < NARROW) {
          // All others are narrower still.
          addRest(depth + 1, start, node, children, i);
          break;
        }
        const right = (start + childValue - origin) * scale;
        if (right > 0 && (start - origin) * scale < width) {
          next.push({ node: children[i], at: start });
        }
        start += childValue;
      }
    }
    level = next;
  }
  return rows;

  /**
   * @param {number} depth
   * @param {number} start
   * @param {number} node
   * @param {readonly number[]} children
   * @param {number} first
   */
  function addRest(depth, start, node, children, first) {
    let rest = 0;
    for (let i = first; i < children.length; i += 1) {
      rest += tree.valueOf(children[i], measure);
    }
    const left = (start - origin) * scale;
    if (rest * scale >= NARROW && left < width && left + rest * scale > 0) {
      add(depth, left, left + rest * scale, node, children.length - first);
    }
  }
}

/**
 * @param {Tree} tree
 * @param {number} measure
 * @param {number} node
 * @returns {Span} where `node` lies; the nearest ancestor's where it has no width
 */
export function spanOf(tree, measure, node) {
  const whole = tree.valueOf(0, measure);
  let at = node;
  while (at > 0 && tree.valueOf(at, measure) <= 0) {
    at = tree.parentOf(at);
  }
  const value = tree.valueOf(at, measure);
  let from = 0;
  for (; at > 0; at = tree.parentOf(at)) {
    for (const sibling of tree.childrenOf(tree.parentOf(at), measure)) {
      if (sibling === at) {
        break;
      }
      from += tree.valueOf(sibling, measure);
    }
  }
  return whole > 0 ? { from: from / whole, to: (from + value) / whole } : { from: 0, to: 1 };
}

/**
 * @param {Row} row
 * @param {number} x in pixels
 * @returns {number} the index of the box there, or -1
 */
export function boxAt(row, x) {
  let low = 0;
  let high = row.left.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (x < row.left[middle]) {
      high = middle - 1;
    } else if (x >= row.right[middle]) {
      low = middle + 1;
    } else {
      return middle;
    }
  }
  return -1;
}
