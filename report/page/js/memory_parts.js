// The parts of the resident memory, from the figures of the system, of the allocator and of the capture.

/** @typedef {import("./decode.js").Profile} Profile */

/**
 * @typedef {object} Part
 * @property {string} key which colour
 * @property {string} name
 * @property {number} bytes
 * @property {string} note the source of the figure
 *
 * @typedef {object} MemoryParts
 * @property {Part[]} parts that add up to the RSS
 * @property {number} rss
 * @property {number} over bytes of the figures that cannot be resident: the parts were cut by so much
 * @property {number} mapped live bytes that were mapped and not allocated
 */

/** Numbers of `mmap` among the allocators. */
const MMAP = 14;

/**
 * @param {Profile} profile the whole report
 * @returns {MemoryParts | null} null: the process's memory was not read
 */
export function memoryParts({ head, rows }) {
  const { memory, totals } = head;
  if (memory === null) {
    return null;
  }
  let mapped = 0;
  for (let row = 0; row < rows.node.length; row += 1) {
    mapped += rows.allocator[row] === MMAP ? rows.values[1][row] : 0;
  }
  const live = totals.live[1];
  const blocks = Math.max(0, live - mapped);
  const names = memory.allocators
    .filter(([, used, size]) => used + size > 0)
    .map(([name]) => name)
    .join(" and ");
  const inUse = memory.allocators.reduce((sum, [, used]) => sum + used, 0);
  const kept = memory.allocators.reduce((sum, [, , size]) => sum + size, 0);
  /** @type {Part[]} certainly resident parts first: parts that may not be resident are cut first, from the end */
  const parts = [
    part("files", "Mapped files", memory.files ?? 0, "resident pages of code, libraries and data (RssFile)"),
    part("shared", "Shared memory", memory.shared ?? 0, "RssShmem"),
    part("stacks", "Thread stacks", memory.stacks ?? 0, `resident pages of ${memory.stack_count} stacks`),
    part("profiler", "heapray", memory.own_mapped + memory.own_heap, "mapped, and from the allocator, for the capture"),
    part("live", "Live blocks", blocks, "as asked for by the code: what the graph shows"),
    part("mapped", "Live mappings", mapped, "mmap by the code; pages that were never touched are not resident"),
    part(
      "slack",
      "Headers, rounding, older blocks",
      inUse > 0 ? Math.max(0, inUse - blocks - memory.own_heap) : 0,
      `in use by ${names || "the allocator"}’s account, but not asked for during the capture`,
    ),
    part("kept", "Kept by the allocator", kept, `freed, not given back to the system (${names || "unknown"})`),
  ].filter(({ bytes }) => bytes > 0);

  let over = Math.max(0, parts.reduce((sum, { bytes }) => sum + bytes, 0) - memory.rss);
  const cut = over;
  for (const found of [...parts].reverse()) {
    const less = Math.min(over, found.bytes);
    found.bytes -= less;
    over -= less;
  }
  const rest = memory.rss - parts.reduce((sum, { bytes }) => sum + bytes, 0);
  if (rest > 0) {
    parts.push(part("rest", "Unexplained", rest, "resident, and none of the above tells whose"));
  }
  const order = ["live", "mapped", "slack", "kept", "stacks", "files", "shared", "profiler", "rest"];
  parts.sort((a, b) => order.indexOf(a.key) - order.indexOf(b.key));
  return { parts: parts.filter(({ bytes }) => bytes > 0), rss: memory.rss, over: cut, mapped };
}

/**
 * @param {string} key
 * @param {string} name
 * @param {number} bytes
 * @param {string} note
 * @returns {Part}
 */
function part(key, name, bytes, note) {
  return { key, name, bytes, note };
}
