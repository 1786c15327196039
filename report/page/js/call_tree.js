// The call tree, root first. Nodes are numbers; 0 is the empty stack, the parent of every root frame.

import { MEASURES } from "./decode.js";
import { Nodes } from "./nodes.js";

/** @typedef {import("./decode.js").Profile} Profile */

/**
 * Tree that the graph can show: {@link CallTree} or `InvertedTree`.
 * @typedef {object} Tree
 * @property {(node: number) => number} frameOf the frame; -1 for node 0
 * @property {(node: number) => number} parentOf -1 for node 0
 * @property {(node: number) => number} depthOf
 * @property {(node: number, measure: number) => number} valueOf with everything below it
 * @property {(node: number, measure: number) => number} ownOf what no child holds
 * @property {(node: number, measure: number) => readonly number[]} childrenOf largest first, without those of value 0
 * @property {(node: number, frame: number) => number} childOf the child of that frame, or -1
 * @property {(node: number) => Iterable<number>} rowsOf the profile's rows at the node and below it
 */

/**
 * @implements {Tree}
 * @extends {Nodes<Int32Array>}
 */
export class CallTree extends Nodes {
  /** @param {Profile} profile */
  constructor(profile) {
    const { size, frame, parent, depth, end } = profile.shape;
    super(frame, parent, depth);
    this.size = size;
    this.profile = profile;
    this.end = end;
    /** @type {(Float64Array | undefined)[]} */
    this.totals = new Array(MEASURES).fill(undefined);
    /** @type {(Float64Array | undefined)[]} */
    this.owns = new Array(MEASURES).fill(undefined);
    /** @type {Map<number, number[]>[]} */
    this.children = Array.from({ length: MEASURES }, () => new Map());
  }

  /**
   * @param {number} measure
   * @returns {Float64Array} by node, its own value
   */
  ownColumn(measure) {
    let column = this.owns[measure];
    if (column === undefined) {
      column = new Float64Array(this.size);
      const { node, values } = this.profile.rows;
      const value = values[measure];
      for (let i = 0; i < node.length; i += 1) {
        column[node[i]] += value[i];
      }
      this.owns[measure] = column;
    }
    return column;
  }

  /**
   * @param {number} measure
   * @returns {Float64Array} by node, its value with everything below it
   */
  totalColumn(measure) {
    let column = this.totals[measure];
    if (column === undefined) {
      column = this.ownColumn(measure).slice();
      for (let node = this.size - 1; node > 0; node -= 1) {
        column[this.parent[node]] += column[node];
      }
      this.totals[measure] = column;
    }
    return column;
  }

  /**
   * @param {number} node
   * @param {number} measure
   */
  valueOf(node, measure) {
    return this.totalColumn(measure)[node];
  }

  /**
   * @param {number} node
   * @param {number} measure
   */
  ownOf(node, measure) {
    return this.ownColumn(measure)[node];
  }

  /**
   * @param {number} node
   * @param {number} measure
   * @returns {readonly number[]}
   */
  childrenOf(node, measure) {
    const known = this.children[measure].get(node);
    if (known !== undefined) {
      return known;
    }
    const total = this.totalColumn(measure);
    const found = [];
    for (let child = node + 1; child < this.end[node]; child = this.end[child]) {
      if (total[child] > 0) {
        found.push(child);
      }
    }
    found.sort((a, b) => total[b] - total[a] || a - b);
    this.children[measure].set(node, found);
    return found;
  }

  /**
   * @param {number} node
   * @param {number} frame
   */
  childOf(node, frame) {
    for (let child = node + 1; child < this.end[node]; child = this.end[child]) {
      if (this.frame[child] === frame) {
        return child;
      }
    }
    return -1;
  }

  /**
   * @param {number} node
   * @returns {Iterable<number>}
   */
  *rowsOf(node) {
    const rows = this.profile.rows.node;
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle] < node) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    for (; low < rows.length && rows[low] < this.end[node]; low += 1) {
      yield low;
    }
  }
}

/**
 * The node that a path of frames leads to. Frames that the tree does not have there, such as folded ones, are skipped.
 * @param {Tree} tree
 * @param {number[]} frames from the tree's first level on
 * @returns {number}
 */
export function nodeAt(tree, frames) {
  let node = 0;
  for (const frame of frames) {
    const child = tree.childOf(node, frame);
    node = child < 0 ? node : child;
  }
  return node;
}

/**
 * @param {Tree} tree
 * @param {number} node
 * @returns {number[]} the nodes from below the empty stack down to `node`
 */
export function pathTo(tree, node) {
  const path = [];
  for (let at = node; at > 0; at = tree.parentOf(at)) {
    path.push(at);
  }
  return path.reverse();
}
