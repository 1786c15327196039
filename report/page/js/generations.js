// Survivors by the time of their allocation, and the differences between two generations.

/** @typedef {import("./decode.js").Head} Head */
/** @typedef {import("./sites.js").CallSite} CallSite */

/**
 * @typedef {object} Generation one of the report's, or several neighbours
 * @property {number} from in milliseconds since the start
 * @property {number} to
 * @property {number} allocated bytes of the whole session meanwhile; -1 unknown
 * @property {string} name of the mark that it begins at, or the ordinal
 */

/** Largest number that is shown, unless there are more marks. */
const MOST_GENERATIONS = 16;

/** @type {WeakMap<Head, {generations: Generation[], joined: Int32Array}>} */
const made = new WeakMap();

/**
 * @param {Head} head
 * @returns {Generation[]} few enough to be looked at: neighbours are joined, but not across a mark
 */
export function generationsOf(head) {
  return madeOf(head).generations;
}

/**
 * @param {Head} head
 * @returns {Int32Array} by the report's generation, the index of the one of {@link generationsOf} that has it
 */
export function joinedGenerations(head) {
  return madeOf(head).joined;
}

/** @param {Head} head */
function madeOf(head) {
  let found = made.get(head);
  if (found === undefined) {
    found = makeGenerations(head);
    made.set(head, found);
  }
  return found;
}

/** @param {Head} head */
function makeGenerations(head) {
  const length = Math.max(1, head.end_ms - head.start_ms);
  const whole = Math.max(1, head.generation_allocated.reduce((sum, bytes) => sum + bytes, 0));
  const list = head.generations.map((from, i) => {
    const to = head.generations[i + 1] ?? length;
    const allocated = head.generation_allocated[i] ?? -1;
    const mark = head.marks.find(({ at_ms }) => at_ms === from)?.name;
    // As the recorder cuts them: half by time, half by work.
    const share = Math.max(0, to - from) / length + Math.max(0, allocated) / whole;
    return { from, to, allocated, mark, share, parts: [i] };
  });
  while (list.length > MOST_GENERATIONS) {
    let least = -1;
    for (let i = 1; i < list.length; i += 1) {
      const share = list[i - 1].share + list[i].share;
      if (list[i].mark === undefined && (least < 0 || share < list[least - 1].share + list[least].share)) {
        least = i;
      }
    }
    if (least < 0) {
      break;
    }
    const [later] = list.splice(least, 1);
    const into = list[least - 1];
    into.to = later.to;
    into.allocated += later.allocated < 0 ? 0 : later.allocated;
    into.share += later.share;
    into.parts.push(...later.parts);
  }
  const joined = new Int32Array(head.generations.length);
  list.forEach(({ parts }, i) => {
    for (const part of parts) {
      joined[part] = i;
    }
  });
  const generations = list.map(({ from, to, allocated, mark }, i) => {
    return { from, to, allocated, name: mark ?? (i === 0 ? "start" : `part ${i + 1}`) };
  });
  return { generations, joined };
}

/**
 * @param {Generation[]} generations
 * @returns {[number, number]} two that are worth a comparison: the first after start-up, and the last one with work
 */
export function worthComparing(generations) {
  const first = generations.length > 3 ? 1 : 0;
  const mean = generations.reduce((sum, { allocated }) => sum + allocated, 0) / generations.length;
  const last = generations.findLastIndex(({ allocated }, i) => i > first && allocated >= mean / 2);
  return [first, last < 0 ? generations.length - 1 : last];
}

/**
 * @typedef {object} Growth
 * @property {CallSite} site
 * @property {number} before survivors of the first of two generations, in the present unit
 * @property {number} after of the second
 * @property {number} change
 */

/**
 * Returns the survivors of each call site in two generations. These differ in length and in work, which the reader is told:
 * by the minute, a pause would make the largest leak look as if it shrank.
 * @param {CallSite[]} sites
 * @param {number} first
 * @param {number} second
 * @param {import("./decode.js").By} by
 * @returns {Growth[]} by the larger of the two, largest first; those that have neither are left out
 */
export function compared(sites, first, second, by) {
  const larger = (/** @type {Growth} */ { before, after }) => Math.max(before, after);
  return sites
    .map((site) => {
      const grown = by === "bytes" ? site.grown : site.grownCount;
      const before = grown[first] ?? 0;
      const after = grown[second] ?? 0;
      return { site, before, after, change: after - before };
    })
    .filter(({ before, after }) => before > 0 || after > 0)
    .sort((a, b) => larger(b) - larger(a) || b.change - a.change);
}
