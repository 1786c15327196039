// The profiled process, and what a reader must know before believing the numbers.

import { byId, el } from "./dom.js";
import { bytes, clock, count, duration, plural } from "./format.js";
import { programOf } from "./language.js";

/** @typedef {import("./decode.js").Head} Head */

const SIGNS = { wrong: "!", note: "i", leak: "+" };

/**
 * @param {import("./call_tree.js").CallTree} tree
 * @param {HTMLElement | null} leak the likeliest one, in a line
 */
export function showHeader(tree, leak) {
  const { head } = tree.profile;
  byId("program", HTMLElement).textContent = programOf(head.command_line);
  const command = byId("command", HTMLElement);
  command.textContent = head.command_line;
  command.title = head.command_line;

  const { totals } = head;
  const peakAt = totals.high_water_ms === null ? "" : ` at ${duration(totals.high_water_ms)}`;
  const fact = (/** @type {string} */ name, /** @type {string} */ value, /** @type {string} */ note) =>
    el("div", "fact", el("dt", "", name), el("dd", "", value, el("span", "note", note)));
  const about = head.conditions.sampling ? "≈ " : "";
  const live = fact("Still live", about + bytes(totals.live[1]), plural(totals.live[0], "block"));
  live.classList.add("lead");
  const process = fact("Process", String(head.pid), plural(threadCount(head), "thread"));
  process.classList.add("process");
  byId("facts", HTMLElement).replaceChildren(
    live,
    fact("Peak", about + bytes(totals.high_water[1]), `${plural(totals.high_water[0], "block")}${peakAt}`),
    fact("Recorded", duration(head.end_ms - head.start_ms), `from ${clock(head.start_ms)}`),
    process,
  );
  byId("banners", HTMLElement).replaceChildren(
    ...(leak === null ? [] : [banner({ text: leak, kind: "leak" })]),
    ...warnings(tree).map(banner),
    ...notes(head).map(banner),
  );
}

/**
 * @param {Head} head
 * @returns {number} threads that allocated
 */
export function threadCount(head) {
  return head.threads.reduce((sum, { threads }) => sum + threads, 0);
}

/**
 * @typedef {{text: string | HTMLElement, kind: "wrong" | "note" | "leak"}} Banner
 */

/**
 * Returns the reasons why numbers may be wrong.
 * @param {import("./call_tree.js").CallTree} tree
 * @returns {Banner[]}
 */
function warnings(tree) {
  const { head, rows } = tree.profile;
  const { conditions, totals } = head;
  const found = [];
  if (conditions.lost_events > 0) {
    const since = conditions.lost_since_ms === null ? "" : ` from ${duration(conditions.lost_since_ms)} on`;
    found.push(`${plural(conditions.lost_events, "event")} lost${since} because the collector could not keep up: sums are too low.`);
  }
  if (conditions.stacks_cut > 0) {
    found.push(`${plural(conditions.stacks_cut, "call stack")} too deep, so the outer frames were cut.`);
  }
  if (conditions.stacks_incomplete > 0) {
    found.push(`${plural(conditions.stacks_incomplete, "call stack")} without outer frames: code had no unwind information.`);
  }
  const live = rows.values[1].reduce((sum, value) => sum + value, 0);
  if (live !== totals.live[1]) {
    found.push(`The call stacks hold ${bytes(live)} of ${bytes(totals.live[1])} still live: the graph does not show the rest.`);
  }
  return found.map((text) => ({ text, kind: "wrong" }));
}

/**
 * @param {Head} head
 * @returns {Banner[]}
 */
function notes(head) {
  const { conditions } = head;
  const found = [];
  if (conditions.still_recording) {
    found.push(`Snapshot of ${clock(head.end_ms)}: recording went on. Blocks that are just in use count as still live.`);
  }
  if (conditions.sampling) {
    found.push(sampled(conditions.sampling, head.totals));
  }
  if (conditions.log_given_up !== null) {
    found.push(`No event log: ${conditions.log_given_up}. Sums and peak are exact all the same.`);
  }
  found.push(...conditions.notes);
  return found.map((text) => ({ text, kind: "note" }));
}

/**
 * @param {import("./decode.js").Sampling} sampling
 * @param {Head["totals"]} totals
 */
function sampled(sampling, { live }) {
  const margin = sampling.live_margin;
  return (
    `Estimates: ${count(sampling.samples)} of ${plural(sampling.asked.count, "allocation")} were recorded, one sample each ` +
    `${bytes(sampling.mean_bytes)} on average. With 95 % confidence ${bytes(live[1])} ± ${bytes(margin.bytes)} in ` +
    `${count(live[0])} ± ${plural(margin.count, "block")} are still live.`
  );
}

/** @param {Banner} banner */
function banner({ text, kind }) {
  const close = el("button", "close", "×");
  close.ariaLabel = "Hide this note";
  const box = el("div", `banner ${kind}`, el("span", "sign", SIGNS[kind]), typeof text === "string" ? el("p", "", text) : text, close);
  close.addEventListener("click", () => box.remove());
  // Narrow screens show one line of it until it is tapped.
  box.addEventListener("click", () => box.classList.toggle("open"));
  return box;
}
