// Memory that is known, by the rules of heapray-known.toml: it is listed apart, and no advice is given about it.

import { el } from "./dom.js";
import { bytes, plural } from "./format.js";

/** @typedef {import("./call_tree.js").CallTree} CallTree */
/** @typedef {import("./decode.js").Head} Head */

/**
 * @param {CallTree} tree
 * @returns {Uint8Array | null} by node: 1 where a frame of the call stack is known; null where none is
 */
export function knownNodes(tree) {
  const { frames } = tree.profile.head.known;
  if (frames.length === 0) {
    return null;
  }
  const isKnown = new Set(frames);
  const known = new Uint8Array(tree.size);
  // Parents come before their children.
  for (let node = 1; node < tree.size; node += 1) {
    known[node] = known[tree.parent[node]] | Number(isKnown.has(tree.frame[node]));
  }
  return known;
}

/**
 * @param {Head} head
 * @returns {HTMLElement[]} what is known, most first; nothing where no rule matches
 */
export function knownList({ known }) {
  if (known.list.length === 0) {
    return [];
  }
  const items = known.list.map(({ title, pattern, bytes: size, blocks }) => {
    const item = el("li", "", el("b", "", title), `: ${bytes(size)} live in ${plural(blocks, "block")}`);
    item.title = pattern;
    return item;
  });
  return [
    el("h3", "", "Known"),
    el("p", "lead", "Left out above, as heapray-known.toml says:"),
    el("ul", "known", ...items),
  ];
}
