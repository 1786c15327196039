// Call sites: rows joined by the frame that they are charged to. The rule for the service's own code is that of
// `views::own_sites` in Rust.

import { MEASURES, NATIVE, OWN, PACKAGE, measureOf } from "./decode.js";
import { eachSurvivor } from "./derive.js";
import { generationsOf, joinedGenerations } from "./generations.js";

/** @typedef {import("./call_tree.js").CallTree} CallTree */
/** @typedef {import("./decode.js").View} View */
/** @typedef {import("./decode.js").By} By */

/**
 * @typedef {object} CallSite
 * @property {number} frame -1 for the empty stack
 * @property {boolean} own whether the frame is the service's own code
 * @property {number} bytes in the present view
 * @property {number} count in the present view
 * @property {number[]} values in every view, by `measureOf`
 * @property {number} oldest milliseconds since the start of its oldest live block; -1 unknown
 * @property {Float64Array} grown still-live bytes by the generation of their birth, as `generationsOf` tells; empty where not known
 * @property {Float64Array} grownCount still-live blocks likewise
 * @property {number[]} nodes where it stands in the call tree, largest first
 */

/**
 * @param {CallTree} tree
 * @param {View} view
 * @param {By} by
 * @returns {CallSite[]} by the service's own code, largest first
 */
export function ownSites(tree, view, by) {
  return sitesBy(tree, responsibleNodes(tree), view, by);
}

/**
 * @param {CallTree} tree
 * @param {View} view
 * @param {By} by
 * @returns {CallSite[]} by the frame that allocated, largest first
 */
export function leafSites(tree, view, by) {
  return sitesBy(tree, Int32Array.from({ length: tree.size }, (_, node) => node), view, by);
}

/**
 * @param {CallTree} tree
 * @param {Int32Array} answers by node, the node whose frame answers for it
 * @param {View} view
 * @param {By} by
 * @returns {CallSite[]} those that have something in the present view
 */
function sitesBy(tree, answers, view, by) {
  const { profile } = tree;
  const { node: nodes, values } = profile.rows;
  const known = generationsOf(profile.head).length;
  const generations = known > 1 ? known : 0;
  const joined = joinedGenerations(profile.head);
  const bytes = values[measureOf(view, "bytes")];
  const counts = values[measureOf(view, "count")];
  const weight = by === "bytes" ? bytes : counts;
  /** @type {CallSite[]} */
  const sites = [];
  /** @type {(CallSite | undefined)[]} by frame + 1: the empty stack has -1 */
  const byFrame = new Array(profile.frames.line.length + 1).fill(undefined);
  /** @type {(CallSite | undefined)[]} by row */
  const siteOf = new Array(nodes.length);
  const byNode = new Float64Array(tree.size);
  const seen = new Uint8Array(tree.size);
  for (let row = 0; row < nodes.length; row += 1) {
    const at = answers[nodes[row]];
    const frame = tree.frame[at];
    let site = byFrame[frame + 1];
    if (site === undefined) {
      site = {
        frame,
        own: frame >= 0 && kindOf(profile, frame) === OWN,
        bytes: 0,
        count: 0,
        values: new Array(MEASURES).fill(0),
        oldest: -1,
        grown: new Float64Array(generations),
        grownCount: new Float64Array(generations),
        nodes: [],
      };
      byFrame[frame + 1] = site;
      sites.push(site);
    }
    siteOf[row] = site;
    addSums(site, profile.rows, row, view);
    // Places without a value in the present view must not be navigated to.
    if (seen[at] === 0 && (bytes[row] > 0 || counts[row] > 0)) {
      seen[at] = 1;
      site.nodes.push(at);
    }
    byNode[at] += weight[row];
  }
  if (generations > 0) {
    eachSurvivor(profile, (row, generation, count, size) => {
      const site = siteOf[row];
      if (site !== undefined) {
        site.grown[joined[generation]] += size;
        site.grownCount[joined[generation]] += count;
      }
    });
  }
  for (const site of sites) {
    site.nodes.sort((a, b) => byNode[b] - byNode[a] || a - b);
  }
  const shown = sites.filter((site) => site.bytes > 0 || site.count > 0);
  return shown.sort((a, b) => b[by] - a[by] || a.frame - b.frame);
}

/**
 * Adds a row to sums of several.
 * @param {{bytes: number, count: number, values: number[], oldest: number}} sums in the present view, and in all
 * @param {import("./decode.js").Rows} rows
 * @param {number} row
 * @param {View} view
 */
export function addSums(sums, { values, oldest }, row, view) {
  sums.bytes += values[measureOf(view, "bytes")][row];
  sums.count += values[measureOf(view, "count")][row];
  for (let measure = 0; measure < MEASURES; measure += 1) {
    sums.values[measure] += values[measure][row];
  }
  if (oldest[row] >= 0 && (sums.oldest < 0 || oldest[row] < sums.oldest)) {
    sums.oldest = oldest[row];
  }
}

/**
 * @param {import("./decode.js").Head} head
 * @param {number} oldest milliseconds since the start of the oldest live block; -1 unknown
 * @returns {number} its age in milliseconds; -1 unknown
 */
export function ageOf({ start_ms, end_ms }, oldest) {
  return oldest < 0 ? -1 : end_ms - start_ms - oldest;
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
export function responsibleNodes(tree) {
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
