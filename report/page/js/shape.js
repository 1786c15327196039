// The shape of the call stacks: a tree of frames in preorder, so that a subtree is one run of nodes. Node 0 is the empty
// stack, the parent of every root frame.

/** How a frame is folded: not at all, everywhere, where it did not allocate itself, or where every caller is folded. */
export const VISIBLE = 0;
export const HIDDEN = 1;
export const HIDDEN_BETWEEN = 2;
export const HIDDEN_FIRST = 3;

export class Shape {
  /** @param {number} size nodes, the empty stack included */
  constructor(size) {
    this.size = size;
    this.frame = new Int32Array(size);
    this.parent = new Int32Array(size);
    this.depth = new Int32Array(size);
    /** First node after the subtree. */
    this.end = new Int32Array(size).fill(size);
    this.frame[0] = -1;
    this.parent[0] = -1;
  }

  /**
   * @param {Int32Array} closed frames closed before each node; 0: a child of its predecessor
   * @param {Int32Array} frame of each node
   * @returns {Shape}
   */
  static of(closed, frame) {
    const shape = new Shape(frame.length + 1);
    shape.frame.set(frame, 1);
    const open = [0];
    for (let node = 1; node < shape.size; node += 1) {
      for (let left = closed[node - 1]; left > 0; left -= 1) {
        shape.end[/** @type {number} */ (open.pop())] = node;
      }
      shape.parent[node] = open[open.length - 1];
      shape.depth[node] = open.length;
      open.push(node);
    }
    return shape;
  }

  /**
   * Returns the same call stacks without some of their frames: the values of a hidden frame then belong to its nearest
   * visible caller, and stacks that have become equal are joined.
   * @param {Uint8Array} fold by frame, {@link VISIBLE} and so on
   * @param {Uint8Array} allocated by node, 1: it allocated itself
   * @param {Int32Array | null} same by frame, the frame that stands for it; null: itself
   * @param {Int32Array | null} name by frame: a frame is left out below one of the same name, unless it allocated itself;
   *   -1: never
   * @returns {{shape: Shape, nodeOf: Int32Array}} and by old node, the new one
   */
  without(fold, allocated, same = null, name = null) {
    const made = new Int32Array(this.size);
    const frames = new Int32Array(this.size);
    const parents = new Int32Array(this.size);
    frames[0] = -1;
    parents[0] = -1;
    let size = 1;
    // New nodes by parent and frame, in an open table: a `Map` takes ten times as long for a million of them.
    const mask = 2 ** Math.ceil(Math.log2(2 * this.size)) - 1;
    const slots = new Int32Array(mask + 1);
    for (let node = 1; node < this.size; node += 1) {
      const caller = made[this.parent[node]];
      const own = this.frame[node];
      const frame = same === null ? own : same[own];
      const how = fold[frame];
      const again = name !== null && caller > 0 && name[frame] >= 0 && name[frame] === name[frames[caller]];
      const between = how === HIDDEN_BETWEEN || again;
      if (how === HIDDEN || (between && allocated[node] === 0) || (how === HIDDEN_FIRST && caller === 0)) {
        made[node] = caller;
        continue;
      }
      let slot = (Math.imul(caller, 0x9e3779b1) ^ Math.imul(frame + 1, 0x85ebca6b)) >>> 7;
      for (slot &= mask; slots[slot] !== 0; slot = (slot + 1) & mask) {
        if (frames[slots[slot]] === frame && parents[slots[slot]] === caller) {
          break;
        }
      }
      if (slots[slot] === 0) {
        slots[slot] = size;
        frames[size] = frame;
        parents[size] = caller;
        size += 1;
      }
      made[node] = slots[slot];
    }
    const { shape, place } = Shape.ordered(frames.subarray(0, size), parents.subarray(0, size));
    return { shape, nodeOf: made.map((at) => place[at]) };
  }

  /**
   * @param {Int32Array} frames of nodes that stand behind their parents, but not in preorder
   * @param {Int32Array} parents
   * @returns {{shape: Shape, place: Int32Array}} and where each node went
   */
  static ordered(frames, parents) {
    const size = frames.length;
    const first = new Int32Array(size).fill(-1);
    const next = new Int32Array(size).fill(-1);
    for (let node = size - 1; node > 0; node -= 1) {
      next[node] = first[parents[node]];
      first[parents[node]] = node;
    }
    const shape = new Shape(size);
    const place = new Int32Array(size);
    let at = 0;
    let node = 0;
    // Goes down to the first child, or else to the next sibling of the nearest ancestor that has one.
    for (;;) {
      place[node] = at;
      shape.frame[at] = frames[node];
      if (node > 0) {
        shape.parent[at] = place[parents[node]];
        shape.depth[at] = shape.depth[shape.parent[at]] + 1;
      }
      at += 1;
      if (first[node] >= 0) {
        node = first[node];
        continue;
      }
      while (node > 0 && next[node] < 0) {
        shape.end[place[node]] = at;
        node = parents[node];
      }
      if (node <= 0) {
        return { shape, place };
      }
      shape.end[place[node]] = at;
      node = next[node];
    }
  }
}
