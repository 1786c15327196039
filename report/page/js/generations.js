// Survivors by the time of their allocation, and the differences between two generations.

/** @typedef {import("./decode.js").Head} Head */
/** @typedef {import("./sites.js").CallSite} CallSite */

/**
 * @typedef {object} Generation
 * @property {number} from in milliseconds since the start
 * @property {number} to
 * @property {string} name of the mark that it begins at, or the ordinal
 */

/**
 * @param {Head} head
 * @returns {Generation[]}
 */
export function generationsOf(head) {
  const length = Math.max(1, head.end_ms - head.start_ms);
  return head.generations.map((from, i) => {
    const mark = head.marks.find(({ at_ms }) => at_ms === from);
    const name = mark?.name ?? (i === 0 ? "start" : `part ${i + 1}`);
    return { from, to: head.generations[i + 1] ?? length, name };
  });
}

/**
 * @typedef {object} Growth
 * @property {CallSite} site
 * @property {number} before survivors of the first of two generations, in the present unit
 * @property {number} after of the second
 * @property {number} change
 */

/**
 * Returns the survivors of each call site in two generations. These may differ in length, so both are scaled to a minute.
 * @param {CallSite[]} sites
 * @param {Generation[]} generations
 * @param {number} first
 * @param {number} second
 * @param {import("./decode.js").By} by
 * @returns {Growth[]} largest growth first; those that have neither are left out
 */
export function compared(sites, generations, first, second, by) {
  const minutes = (/** @type {number} */ at) => Math.max(1, generations[at].to - generations[at].from) / 60_000;
  return sites
    .map((site) => {
      const grown = by === "bytes" ? site.grown : site.grownCount;
      const before = (grown[first] ?? 0) / minutes(first);
      const after = (grown[second] ?? 0) / minutes(second);
      return { site, before, after, change: after - before };
    })
    .filter(({ before, after }) => before > 0 || after > 0)
    .sort((a, b) => b.change - a.change || b.after - a.after);
}
