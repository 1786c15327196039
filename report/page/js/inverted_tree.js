// The call tree, leaf first: below each function stand its callers. It can have as many nodes as all stacks have frames, so
// a node's children are made only when they are needed.

import { MEASURES } from "./decode.js";
import { Nodes } from "./nodes.js";

/** @typedef {import("./call_tree.js").CallTree} CallTree */
/** @typedef {import("./call_tree.js").Tree} Tree */

/**
 * @implements {Tree}
 * @extends {Nodes<number[]>}
 */
export class InvertedTree extends Nodes {
  /** @param {CallTree} tree */
  constructor(tree) {
    super([-1], [-1], [0]);
    const { node } = tree.profile.rows;
    this.tree = tree;
    /** The profile's rows, each with its call stack; those of a node are one run. */
    this.stacks = Int32Array.from(node.keys());
    /** Per stack, the call-tree node of the frame that the deepest node made so far stands for. */
    this.cursor = node.slice();

    /** @type {number[]} */
    this.first = [0];
    /** @type {number[]} */
    this.last = [node.length];
    /** @type {number[][]} sums over a node's stacks, added up when needed; -1 before */
    this.values = Array.from({ length: MEASURES }, () => [-1]);
    /** @type {(number[] | undefined)[]} */
    this.made = [undefined];
    /** @type {Map<number, number[]>[]} */
    this.sorted = Array.from({ length: MEASURES }, () => new Map());
    /** By frame: which child of the node being expanded it is, if `seenBy` names that node. */
    this.slot = new Int32Array(tree.profile.frames.line.length);
    this.seenBy = new Int32Array(tree.profile.frames.line.length).fill(-1);
    /** Buffers for one expansion: a picture needs thousands, of few stacks each. */
    this.group = new Int32Array(node.length);
    this.before = new Int32Array(node.length);
  }

  /**
   * @param {number} node
   * @param {number} measure
   */
  valueOf(node, measure) {
    const column = this.values[measure];
    if (column[node] < 0) {
      const of = this.tree.profile.rows.values[measure];
      let sum = 0;
      for (let i = this.first[node]; i < this.last[node]; i += 1) {
        sum += of[this.stacks[i]];
      }
      column[node] = sum;
    }
    return column[node];
  }

  /**
   * @param {number} node
   * @param {number} measure
   */
  ownOf(node, measure) {
    let own = this.valueOf(node, measure);
    for (const child of this.expand(node)) {
      own -= this.valueOf(child, measure);
    }
    return own;
  }

  /**
   * @param {number} node
   * @param {number} measure
   * @returns {number[]}
   */
  childrenOf(node, measure) {
    const known = this.sorted[measure].get(node);
    if (known !== undefined) {
      return known;
    }
    const value = this.values[measure];
    const sorted = this.expand(node).filter((child) => this.valueOf(child, measure) > 0);
    if (sorted.length > 1) {
      sorted.sort((a, b) => value[b] - value[a] || a - b);
    }
    this.sorted[measure].set(node, sorted);
    return sorted;
  }

  /**
   * @param {number} node
   * @param {number} frame
   */
  childOf(node, frame) {
    return this.expand(node).find((child) => this.frame[child] === frame) ?? -1;
  }

  /**
   * @param {number} node
   * @returns {Iterable<number>}
   */
  rowsOf(node) {
    return this.stacks.subarray(this.first[node], this.last[node]);
  }

  /**
   * Makes the children of `node`: its stacks, grouped by their next frame.
   * @param {number} node
   * @returns {number[]}
   */
  expand(node) {
    const known = this.made[node];
    if (known !== undefined) {
      return known;
    }
    const { tree, stacks, cursor, slot, seenBy, group, before } = this;
    const from = this.first[node];
    const to = this.last[node];
    /** @type {number[]} */
    const children = [];
    /** @type {number[]} */
    const sizes = [];
    for (let i = from; i < to; i += 1) {
      const stack = stacks[i];
      before[i] = stack;
      if (node !== 0) {
        cursor[stack] = tree.parent[cursor[stack]];
      }
      // The stack has no further caller: it stays with `node`, after its children's runs.
      if (cursor[stack] <= 0) {
        group[i] = -1;
        continue;
      }
      const frame = tree.frame[cursor[stack]];
      if (seenBy[frame] !== node) {
        seenBy[frame] = node;
        slot[frame] = children.length;
        children.push(this.add(node, frame));
        sizes.push(0);
      }
      group[i] = slot[frame];
      sizes[slot[frame]] += 1;
    }

    let at = from;
    for (let index = 0; index < children.length; index += 1) {
      this.first[children[index]] = at;
      // From here on the position of that child's next stack.
      this.last[children[index]] = at;
      at += sizes[index];
    }
    for (let i = from; i < to; i += 1) {
      stacks[group[i] < 0 ? at++ : this.last[children[group[i]]]++] = before[i];
    }
    this.made[node] = children;
    return children;
  }

  /**
   * @param {number} parent
   * @param {number} frame
   * @returns {number} a new node with no stacks yet
   */
  add(parent, frame) {
    const node = this.frame.length;
    this.frame.push(frame);
    this.parent.push(parent);
    this.depth.push(this.depth[parent] + 1);
    this.first.push(0);
    this.last.push(0);
    this.made.push(undefined);
    for (const column of this.values) {
      column.push(-1);
    }
    return node;
  }
}
