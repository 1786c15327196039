// The sums of each function, with its callees and alone. Recursion counts once.

/** @typedef {import("./call_tree.js").CallTree} CallTree */

/**
 * @typedef {object} FunctionSums
 * @property {number} name its string
 * @property {number} frame one of its frames: the one that holds most
 * @property {number} total with what it calls
 * @property {number} self
 */

/**
 * @param {CallTree} tree
 * @param {number} measure
 * @returns {FunctionSums[]} largest first
 */
export function functionSums(tree, measure) {
  const { frames, strings } = tree.profile;
  const totals = tree.totalColumn(measure);
  const owns = tree.ownColumn(measure);
  const total = new Float64Array(strings.length);
  const self = new Float64Array(strings.length);
  const frame = new Int32Array(strings.length).fill(-1);
  const most = new Float64Array(strings.length);
  // End of the outermost open call of each function: a call inside it is part of it.
  const openUntil = new Int32Array(strings.length);
  for (let node = 1; node < tree.size; node += 1) {
    const name = frames.function[tree.frame[node]];
    self[name] += owns[node];
    if (totals[node] > most[name]) {
      most[name] = totals[node];
      frame[name] = tree.frame[node];
    }
    if (node >= openUntil[name]) {
      total[name] += totals[node];
      openUntil[name] = tree.end[node];
    }
  }
  /** @type {FunctionSums[]} */
  const found = [];
  for (let name = 0; name < total.length; name += 1) {
    if (total[name] > 0) {
      found.push({ name, frame: frame[name], total: total[name], self: self[name] });
    }
  }
  return found.sort((a, b) => b.total - a.total || b.self - a.self || a.name - b.name);
}

/**
 * @param {CallTree} tree
 * @param {number} name the string of a function
 * @returns {number[]} its outermost calls
 */
export function outermostCalls(tree, name) {
  const { frames } = tree.profile;
  const found = [];
  let node = 1;
  while (node < tree.size) {
    if (frames.function[tree.frame[node]] === name) {
      found.push(node);
      node = tree.end[node];
    } else {
      node += 1;
    }
  }
  return found;
}
