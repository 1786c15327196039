// Statistics of the whole report: totals, sizes, allocators, threads, and the conditions of the capture.

import { measureOf } from "./decode.js";
import { threadName } from "./details.js";
import { el } from "./dom.js";
import { bytes, clock, count, duration, percent, plural } from "./format.js";
import { threadCount } from "./header.js";

/** @typedef {import("./decode.js").Amount} Amount */
/** @typedef {import("./decode.js").Profile} Profile */
/** @typedef {import("./decode.js").Head} Head */

/** Number of threads and functions in a list. */
const MOST_BARS = 40;

/**
 * @param {HTMLElement} box
 * @param {Profile} profile the whole report
 */
export function showStats(box, profile) {
  const { head } = profile;
  const lists = totalsOf(head).filter(([, lines]) => lines.length > 0);
  const sections = lists.map(([heading, lines]) =>
    el(
      "section",
      "",
      el("h3", "", heading),
      el("dl", "", ...lines.map(([name, value]) => el("div", "", el("dt", "", name), el("dd", "", value)))),
    ),
  );
  box.replaceChildren(
    el("h2", "", "Statistics"),
    el("p", "lead", "Of the whole report; filters do not apply."),
    el("div", "columns", ...sections, histogram(profile), threads(profile), allocators(head)),
  );
}

/**
 * Allocations by size, in steps of powers of two.
 * @param {Profile} profile
 */
function histogram({ sizes, head }) {
  /** @type {Map<number, number>} */
  const bins = new Map();
  sizes.size.forEach((size, i) => {
    const bin = size <= 16 ? 4 : Math.ceil(Math.log2(size));
    bins.set(bin, (bins.get(bin) ?? 0) + sizes.count[i]);
  });
  const all = sizes.count.reduce((sum, value) => sum + value, 0);
  const first = Math.min(...bins.keys());
  const last = Math.max(...bins.keys());
  const lines = [];
  for (let bin = first; bin <= last; bin += 1) {
    const up = `up to ${bytes(2 ** bin)}`;
    lines.push(/** @type {[string, number, string]} */ ([up, bins.get(bin) ?? 0, percent(bins.get(bin) ?? 0, all)]));
  }
  const note = head.totals.sizes_rounded ? "Allocations by size; large sizes were counted in steps of under 1 %" : "Allocations by size";
  return bars(note, lines);
}

/** @param {Profile} profile */
function threads({ head, rows }) {
  const live = new Float64Array(head.threads.length + 1);
  const total = new Float64Array(head.threads.length + 1);
  const column = rows.values[measureOf("live", "bytes")];
  const all = rows.values[measureOf("total", "bytes")];
  rows.thread.forEach((thread, row) => {
    const at = Math.min(thread, head.threads.length);
    live[at] += column[row];
    total[at] += all[row];
  });
  const order = [...live.keys()].filter((at) => live[at] > 0 || total[at] > 0).sort((a, b) => live[b] - live[a]);
  const rest = order.length > MOST_BARS ? ` (the ${MOST_BARS} largest of ${order.length})` : "";
  return bars(
    `Still live by thread${rest}`,
    order.slice(0, MOST_BARS).map((at) => [threadName(head, at), live[at], total[at] > 0 ? `${bytes(live[at])} of ${bytes(total[at])}` : bytes(live[at])]),
  );
}

/** @param {Head} head */
function allocators(head) {
  const lines = head.by_allocator.map(
    ([name, [blocks, size]]) => /** @type {[string, number, string]} */ ([name.toLowerCase(), blocks, `${count(blocks)}, ${bytes(size)}`]),
  );
  return bars("Allocations by function", lines);
}

/**
 * @param {string} heading
 * @param {[string, number, string][]} lines name, length of the bar, words
 */
function bars(heading, lines) {
  const most = Math.max(1, ...lines.map(([, value]) => value));
  const rows = lines.map(([name, value, words]) => {
    const bar = el("i", "");
    bar.style.width = `${(100 * value) / most}%`;
    return el("div", "", el("dt", "", name), el("dd", "", el("span", "rule", bar), el("span", "", words)));
  });
  return el("section", "bars", el("h3", "", heading), rows.length > 0 ? el("dl", "", ...rows) : el("p", "lead", "The report does not tell."));
}

/**
 * @param {import("./decode.js").Sampling} sampling
 * @returns {[string, string][]}
 */
function estimates(sampling) {
  const margin = (/** @type {Amount} */ amount) =>
    `right to ± ${bytes(amount.bytes)}, ± ${plural(amount.count, "block")} (95 % confidence)`;
  return [
    ["Recorded", `${plural(sampling.samples, "sample")}, one each ${bytes(sampling.mean_bytes)} on average`],
    ["Asked for, exactly", `${bytes(sampling.asked.bytes)} in ${plural(sampling.asked.count, "allocation")}`],
    ["Still live", margin(sampling.live_margin)],
    ["High-water mark", margin(sampling.high_water_margin)],
    ["Allocated in total", margin(sampling.allocated_margin)],
  ];
}

/**
 * @param {Head} head
 * @returns {[string, [string, string][]][]} headings and their lines
 */
export function totalsOf(head) {
  const { totals, conditions, counts } = head;
  const pair = (/** @type {[number, number]} */ [blocks, size]) =>
    `${bytes(size)} in ${plural(blocks, "block")} (${count(size)} bytes)`;
  const known = (/** @type {number} */ value, /** @type {string} */ text) => (value > 0 ? text : "unknown");
  const length = head.end_ms - head.start_ms;
  return [
    [
      "Capture",
      [
        ["Command line", head.command_line],
        ["Process id", String(head.pid)],
        ["Start", clock(head.start_ms)],
        [conditions.still_recording ? "Snapshot" : "End", clock(head.end_ms)],
        ["Duration", duration(length)],
        ["Written by", head.producer || "unknown"],
      ],
    ],
    [
      "Memory",
      [
        ["Still live", pair(totals.live)],
        ["High-water mark", pair(totals.high_water)],
        ["Reached at", totals.high_water_ms === null ? "unknown" : duration(totals.high_water_ms)],
        ["Allocated in total", known(totals.allocated[0], pair(totals.allocated))],
        ["Freed", known(totals.freed[0], pair(totals.freed))],
        ["Average block", known(totals.allocated[0], bytes(totals.allocated[1] / totals.allocated[0] || 0))],
        ["Allocation rate", known(totals.allocated[0], length > 0 ? `${count(Math.round((1000 * totals.allocated[0]) / length))} a second` : "unknown")],
      ],
    ],
    ["Estimates", conditions.sampling ? estimates(conditions.sampling) : []],
    [
      "Marks",
      head.marks.map(({ name, at_ms, live }) => /** @type {[string, string]} */ ([name, `at ${duration(at_ms)}, ${bytes(live[1])} live`])),
    ],
    [
      "Recording",
      [
        ["Events", count(head.events)],
        ["Lost events", count(conditions.lost_events)],
        ["Call stacks cut", count(conditions.stacks_cut)],
        ["Call stacks without outer frames", count(conditions.stacks_incomplete)],
        ["Frees of unknown blocks", count(conditions.unknown_frees)],
        ["Seen through", conditions.hooks || "unknown"],
        ["Threads", count(threadCount(head))],
        ["Event log", conditions.sampling ? "none: only samples" : (conditions.log_given_up ?? bytes(conditions.log_bytes))],
      ],
    ],
    [
      "heapray’s own cost",
      [
        ["Memory", known(conditions.own_bytes, bytes(conditions.own_bytes))],
        ["CPU time of the collector", known(conditions.collector_cpu_ns, duration(conditions.collector_cpu_ns / 1e6))],
        ["Of one CPU", length > 0 && conditions.collector_cpu_ns > 0 ? percent(conditions.collector_cpu_ns / 1e6, length) : "unknown"],
      ],
    ],
    [
      "This page",
      [
        ["Call sites", `${count(counts.rows)} by call stack, thread and allocator; none left out`],
        ["Nodes of the call tree", `${count(counts.nodes)}; none left out`],
        ["Frames", count(counts.frames)],
        ["Intervals", head.slots === null ? "none" : `${count(counts.intervals)} in ${count(head.slots.length)} slots`],
      ],
    ],
  ];
}
