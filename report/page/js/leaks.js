// The ranking of lines that probably leak. `views::leaks` in Rust makes it, for this page and for all else; here it is put
// into words, and its lines are found in the graph.

import { ownSites } from "./sites.js";

/** @typedef {import("./decode.js").RankedLine} RankedLine */

/** What is said of a line, by its confidence. */
export const VERDICTS = { high: "Probably leaks", medium: "May leak", low: "Grows a little" };

/**
 * @param {import("./call_tree.js").CallTree} tree
 * @param {number} frame of a ranked line
 * @param {Int32Array | null} same by frame, the one that stands for it among plain names; null: itself
 * @returns {number[]} where the line holds memory, most first; none where filters leave it out
 */
export function placesOfLine(tree, frame, same) {
  return ownSites(tree, "live", "bytes")
    .filter((site) => site.frame === frame || (site.frame >= 0 && same?.[site.frame] === frame))
    .flatMap(({ nodes }) => nodes);
}

/**
 * @param {import("./state.js").State} state
 * @returns {boolean} whether only a part of the report is shown
 */
export function isPart({ thread, allocator, where, only, matching }) {
  return thread !== "" || allocator !== "" || where !== "" || only !== "" || matching !== "";
}
