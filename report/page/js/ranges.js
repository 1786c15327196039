// Allocations in a time range of the capture that are still live at some later moment.

/** @typedef {import("./decode.js").Profile} Profile */

/**
 * @typedef {"range" | "end" | "all"} Until live at the range's end; at the capture's end; freed or not
 *
 * @typedef {object} RangeSource
 * @property {number[]} bounds where slots begin, and the capture's end, in milliseconds since the start
 * @property {Until[]} untils that are available
 * @property {Profile["intervals"] | Profile["survivors"]} rows
 * @property {string} note about what is not available; may be empty
 *
 * @typedef {object} Range
 * @property {number} from in milliseconds
 * @property {number} to
 * @property {Until} until
 */

/**
 * @param {Profile} profile
 * @returns {RangeSource | null} null: the report does not tell at all when blocks were allocated
 */
export function rangeSource(profile) {
  const { head, intervals, survivors } = profile;
  const length = Math.max(1, head.end_ms - head.start_ms);
  const bounds = (/** @type {number[]} */ starts) => [...starts.filter((ms, i) => i === 0 || ms < length), length];
  if (head.slots !== null && head.slots.length > 0) {
    return { bounds: bounds(head.slots), untils: ["range", "end", "all"], rows: intervals, note: "" };
  }
  if (head.generations.length > 1) {
    const note = `${whyNone(profile)} Its survivors are known by ${head.generations.length} generations: ranges snap to those and show what lives at the end.`;
    return { bounds: bounds(head.generations), untils: ["end"], rows: survivors, note };
  }
  return null;
}

/**
 * @param {Profile} profile
 * @returns {string} why the page has no event log
 */
export function whyNone({ head }) {
  if (head.conditions.sampling) {
    return "There is no event log: only samples were recorded.";
  }
  const reason = head.conditions.log_given_up;
  if (reason !== null) {
    return `There is no event log: ${reason}.`;
  }
  return head.has_log
    ? "This page was made without the events of the capture; `heapray flamegraph --temporal FILE` makes one that has them."
    : "This report is aggregated: it has no event log.";
}

/**
 * @param {RangeSource} source
 * @param {number} a milliseconds
 * @param {number} b
 * @returns {[number, number]} the nearest bounds, at least one slot apart
 */
export function snap({ bounds }, a, b) {
  const nearest = (/** @type {number} */ ms) => {
    let best = 0;
    bounds.forEach((bound, i) => {
      best = Math.abs(bound - ms) < Math.abs(bounds[best] - ms) ? i : best;
    });
    return best;
  };
  let [first, last] = [nearest(Math.min(a, b)), nearest(Math.max(a, b))];
  if (first === last) {
    // The slot of the range's middle.
    const middle = (a + b) / 2;
    first = Math.max(0, Math.min(bounds.length - 2, bounds.findLastIndex((bound) => bound <= middle)));
    last = first + 1;
  }
  return [bounds[first], bounds[last]];
}

/**
 * @param {RangeSource} source
 * @param {Range} range
 * @param {number} length rows of the whole report
 * @returns {[Float64Array, Float64Array]} by row, blocks and bytes
 */
export function rangeColumns({ bounds, rows }, { from, to, until }, length) {
  const first = bounds.findIndex((bound) => bound >= from);
  const found = bounds.findIndex((bound) => bound >= to);
  const last = found < 0 ? bounds.length - 1 : found;
  const count = new Float64Array(length);
  const bytes = new Float64Array(length);
  const born = "born" in rows ? rows.born : rows.generation;
  const freed = "freed" in rows ? rows.freed : null;
  for (let i = 0; i < born.length; i += 1) {
    if (born[i] < first || born[i] >= last) {
      continue;
    }
    const dead = freed !== null && freed[i] >= 0 && (until === "end" || (until === "range" && freed[i] < last));
    if (!dead) {
      count[rows.row[i]] += rows.count[i];
      bytes[rows.row[i]] += rows.bytes[i];
    }
  }
  return [count, bytes];
}
