// Call sites by the service's own code. The rule is that of `views::own_sites` in Rust.

import { NATIVE, OWN, PACKAGE, measureOf } from "./decode.js";

/** @typedef {import("./call_tree.js").CallTree} CallTree */

/**
 * @typedef {object} OwnSite
 * @property {number} frame -1 for the empty stack
 * @property {boolean} own whether the frame is the service's own code
 * @property {number} bytes
 * @property {number} count
 * @property {number} oldest milliseconds since the start of its oldest live block; -1 unknown
 * @property {number[]} nodes where it stands in the call tree, most bytes first
 */

/**
 * @param {CallTree} tree
 * @param {import("./decode.js").View} view
 * @param {import("./decode.js").By} by
 * @returns {OwnSite[]} largest first
 */
export function ownSites(tree, view, by) {
  const { profile } = tree;
  const responsible = responsibleNodes(tree);
  const bytes = profile.own.values[measureOf(view, "bytes")];
  const counts = profile.own.values[measureOf(view, "count")];
  const weight = by === "bytes" ? bytes : counts;
  /** @type {Map<number, OwnSite>} */
  const sites = new Map();
  /** @type {Map<number, number>} */
  const byNode = new Map();
  profile.own.node.forEach((node, i) => {
    if (bytes[i] === 0 && counts[i] === 0) {
      return;
    }
    const at = responsible[node];
    const frame = tree.frame[at];
    let site = sites.get(frame);
    if (site === undefined) {
      const own = frame >= 0 && kindOf(profile, frame) === OWN;
      site = { frame, own, bytes: 0, count: 0, oldest: -1, nodes: [] };
      sites.set(frame, site);
    }
    site.bytes += bytes[i];
    site.count += counts[i];
    const oldest = profile.own.oldest[i];
    if (oldest >= 0 && (site.oldest < 0 || oldest < site.oldest)) {
      site.oldest = oldest;
    }
    if (!byNode.has(at)) {
      site.nodes.push(at);
    }
    byNode.set(at, (byNode.get(at) ?? 0) + weight[i]);
  });
  const size = (/** @type {number} */ node) => byNode.get(node) ?? 0;
  for (const site of sites.values()) {
    site.nodes.sort((a, b) => size(b) - size(a) || a - b);
  }
  return [...sites.values()].sort((a, b) => b[by] - a[by] || a.frame - b.frame);
}

/**
 * @param {import("./decode.js").Profile} profile
 * @param {number} frame
 * @returns {number} the kind of its package
 */
export function kindOf(profile, frame) {
  return profile.head.packages[profile.frames.package[frame]]?.[1] ?? NATIVE;
}

/**
 * @param {CallTree} tree
 * @returns {Int32Array} by node, the nearest node to the leaf that answers for it: the service's own; else a
 *   package's; else itself
 */
function responsibleNodes(tree) {
  const own = new Int32Array(tree.size);
  const dependency = new Int32Array(tree.size);
  const found = new Int32Array(tree.size);
  const { profile } = tree;
  const kinds = Uint8Array.from(profile.frames.line, (_, frame) => kindOf(profile, frame));
  for (let node = 1; node < tree.size; node += 1) {
    const kind = kinds[tree.frame[node]];
    const parent = tree.parent[node];
    own[node] = kind === OWN ? node : own[parent];
    dependency[node] = kind === PACKAGE ? node : dependency[parent];
    found[node] = own[node] || dependency[node] || node;
  }
  return found;
}
