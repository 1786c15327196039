// One function between its callers and its callees: two trees that are merged from all of its calls. Node 0 of both is the
// function itself.

import { MEASURES } from "./decode.js";
import { outermostCalls } from "./functions.js";
import { Nodes } from "./nodes.js";

/** @typedef {import("./call_tree.js").CallTree} CallTree */
/** @typedef {import("./call_tree.js").Tree} Tree */

/**
 * A tree whose nodes stand for several nodes of the call tree each.
 * @implements {Tree}
 * @extends {Nodes<number[]>}
 */
class Merged extends Nodes {
  /**
   * @param {CallTree} tree
   * @param {number[]} calls
   * @param {number} frame of node 0, which is the function itself
   */
  constructor(tree, calls, frame) {
    super([frame], [-1], [0]);
    this.tree = tree;
    /** @type {number[][]} what each node stands for */
    this.at = [calls];
    /** @type {number[][]} by node and member, the call that its value is that of */
    this.call = [calls];
    /** @type {(number[] | undefined)[]} */
    this.made = [undefined];
    /** @type {Map<number, number>[]} */
    this.values = Array.from({ length: MEASURES }, () => new Map());
  }

  /**
   * @param {number} node
   * @param {number} measure
   */
  valueOf(node, measure) {
    let value = this.values[measure].get(node);
    if (value === undefined) {
      const total = this.tree.totalColumn(measure);
      value = this.call[node].reduce((sum, call) => sum + total[call], 0);
      this.values[measure].set(node, value);
    }
    return value;
  }

  /**
   * @param {number} node
   * @param {number} measure
   */
  ownOf(node, measure) {
    return this.expand(node).reduce((rest, child) => rest - this.valueOf(child, measure), this.valueOf(node, measure));
  }

  /**
   * @param {number} node
   * @param {number} measure
   * @returns {readonly number[]}
   */
  childrenOf(node, measure) {
    return this.expand(node)
      .filter((child) => this.valueOf(child, measure) > 0)
      .sort((a, b) => this.valueOf(b, measure) - this.valueOf(a, measure) || a - b);
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
  *rowsOf(node) {
    for (const call of this.call[node]) {
      yield* this.tree.rowsOf(call);
    }
  }

  /**
   * @param {number} node
   * @returns {number[]}
   */
  expand(node) {
    let children = this.made[node];
    if (children === undefined) {
      /** @type {Map<number, number>} */
      const byFrame = new Map();
      this.each(node, (at, call) => {
        const frame = this.tree.frame[at];
        let child = byFrame.get(frame);
        if (child === undefined) {
          child = this.frame.length;
          byFrame.set(frame, child);
          this.frame.push(frame);
          this.parent.push(node);
          this.depth.push(this.depth[node] + 1);
          this.at.push([]);
          this.call.push([]);
          this.made.push(undefined);
        }
        this.at[child].push(at);
        this.call[child].push(call);
      });
      children = [...byFrame.values()];
      this.made[node] = children;
    }
    return children;
  }

  /**
   * Calls `found` for each neighbour of `node`.
   * @param {number} _node
   * @param {(at: number, call: number) => void} _found
   */
  each(_node, _found) {
    throw new Error("one of the two below");
  }
}

/** What the function calls: each call's own subtree, merged. */
class Callees extends Merged {
  /**
   * @param {number} node
   * @param {(at: number, call: number) => void} found
   */
  each(node, found) {
    for (const at of this.at[node]) {
      for (let child = at + 1; child < this.tree.end[at]; child = this.tree.end[child]) {
        found(child, child);
      }
    }
  }
}

/** Who calls it: from each call up to the root, with the call's value. */
class Callers extends Merged {
  /**
   * @param {number} node
   * @param {(at: number, call: number) => void} found
   */
  each(node, found) {
    this.at[node].forEach((at, i) => {
      const parent = this.tree.parent[at];
      if (parent > 0) {
        found(parent, this.call[node][i]);
      }
    });
  }
}

/**
 * @param {CallTree} tree
 * @param {number} name the string of a function
 * @returns {{callers: import("./call_tree.js").Tree, callees: import("./call_tree.js").Tree, calls: number[]}}
 */
export function sandwich(tree, name) {
  const calls = outermostCalls(tree, name);
  const frame = calls.length > 0 ? tree.frame[calls[0]] : -1;
  return { callers: new Callers(tree, calls, frame), callees: new Callees(tree, calls, frame), calls };
}
