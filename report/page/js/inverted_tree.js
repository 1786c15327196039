// The call tree, leaf first: below each function stand its callers. It can have as many nodes as all stacks have
// frames, so a node's children are made when somebody looks at them.

import { MEASURES } from "./decode.js";

/** @typedef {import("./call_tree.js").CallTree} CallTree */
/** @typedef {import("./call_tree.js").Tree} Tree */

/** @implements {Tree} */
export class InvertedTree {
  /** @param {CallTree} tree */
  constructor(tree) {
    const { node } = tree.profile.own;
    this.tree = tree;
    /** Stacks that allocated, as indexes into `own`; a node's are one run of them. */
    this.stacks = Int32Array.from(node.keys());
    /** Per stack, the call-tree node of the frame that the deepest node made so far stands for. */
    this.cursor = node.slice();

    /** @type {number[]} */
    this.frame = [-1];
    /** @type {number[]} */
    this.parent = [-1];
    /** @type {number[]} */
    this.depth = [0];
    /** @type {number[]} */
    this.first = [0];
    /** @type {number[]} */
    this.last = [node.length];
    /** @type {number[][]} */
    this.values = Array.from({ length: MEASURES }, (_, measure) => [tree.valueOf(0, measure)]);
    /** @type {(number[] | undefined)[]} */
    this.made = [undefined];
    /** @type {Map<number, Int32Array>[]} */
    this.sorted = Array.from({ length: MEASURES }, () => new Map());
  }

  /** @param {number} node */
  frameOf(node) {
    return this.frame[node];
  }

  /** @param {number} node */
  parentOf(node) {
    return this.parent[node];
  }

  /** @param {number} node */
  depthOf(node) {
    return this.depth[node];
  }

  /**
   * @param {number} node
   * @param {number} measure
   */
  valueOf(node, measure) {
    return this.values[measure][node];
  }

  /**
   * @param {number} node
   * @param {number} measure
   */
  ownOf(node, measure) {
    let own = this.values[measure][node];
    for (const child of this.expand(node)) {
      own -= this.values[measure][child];
    }
    return own;
  }

  /**
   * @param {number} node
   * @param {number} measure
   * @returns {Int32Array}
   */
  childrenOf(node, measure) {
    const known = this.sorted[measure].get(node);
    if (known !== undefined) {
      return known;
    }
    const value = this.values[measure];
    const found = this.expand(node).filter((child) => value[child] > 0);
    const sorted = Int32Array.from(found.sort((a, b) => value[b] - value[a] || a - b));
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
   * Makes the children of `node`: its stacks, grouped by their next frame.
   * @param {number} node
   * @returns {number[]}
   */
  expand(node) {
    const known = this.made[node];
    if (known !== undefined) {
      return known;
    }
    const { tree, stacks, cursor } = this;
    const values = tree.profile.own.values;
    const from = this.first[node];
    const to = this.last[node];
    /** @type {number[]} */
    const children = [];
    /** @type {Map<number, number>} */
    const byFrame = new Map();
    const group = new Int32Array(to - from);
    /** @type {number[]} */
    const sizes = [];
    for (let i = from; i < to; i += 1) {
      const stack = stacks[i];
      if (node !== 0) {
        cursor[stack] = tree.parent[cursor[stack]];
      }
      // The stack has no further caller: it stays with `node`, behind its children's runs.
      if (cursor[stack] <= 0) {
        group[i - from] = -1;
        continue;
      }
      const frame = tree.frame[cursor[stack]];
      let index = byFrame.get(frame);
      if (index === undefined) {
        index = children.length;
        byFrame.set(frame, index);
        children.push(this.add(node, frame));
        sizes.push(0);
      }
      group[i - from] = index;
      sizes[index] += 1;
      for (let measure = 0; measure < MEASURES; measure += 1) {
        this.values[measure][children[index]] += values[measure][stack];
      }
    }

    const next = [];
    let at = from;
    for (const [index, child] of children.entries()) {
      this.first[child] = at;
      next.push(at);
      at += sizes[index];
      this.last[child] = at;
    }
    const before = stacks.slice(from, to);
    for (const [i, stack] of before.entries()) {
      stacks[group[i] < 0 ? at++ : next[group[i]]++] = stack;
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
      column.push(0);
    }
    return node;
  }
}
