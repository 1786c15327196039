// The nodes of a tree of call stacks as columns. Each kind of tree has its own way to find values and children.

/** @template {ArrayLike<number>} Column */
export class Nodes {
  /**
   * @param {Column} frame by node; -1 where it has none
   * @param {Column} parent by node; -1 for node 0
   * @param {Column} depth by node
   */
  constructor(frame, parent, depth) {
    this.frame = frame;
    this.parent = parent;
    this.depth = depth;
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
}
