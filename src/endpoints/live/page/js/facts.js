// The figures at the top.

import { byId, el } from "../../../../../report/page/js/dom.js";
import { bytes, clock, count, duration, plural } from "../../../../../report/page/js/format.js";

/**
 * @typedef {{ count: number, bytes: number }} Blocks
 * @typedef {object} Status
 * @property {"disabled" | "stopped" | "background" | "recording" | "stopping" | "forked"} state
 * @property {string} job_name
 * @property {string} job_version
 * @property {string} program
 * @property {string} host
 * @property {number} pid
 * @property {string | null} recording_since
 * @property {number} events
 * @property {Blocks} allocated
 * @property {Blocks} live
 * @property {Blocks} high_water
 * @property {{ mean_bytes: number, current_mean_bytes: number, samples: number, asked: Blocks, live_margin: Blocks, high_water_margin: Blocks,
 *   allocated_margin: Blocks } | null} sampling
 * @property {number} lost_events
 * @property {number | null} lost_since_ms of the session
 * @property {{ memory_bytes: number, collector_cpu_ns: number, log_bytes: number }} overhead
 * @property {string | null} log_given_up
 * @property {string | null} trouble
 * @property {{ kind: string, reason: string, at: string, report: string | null, trouble: string | null } | null} trigger
 */

const STATES = {
  disabled: "There is no profiler",
  stopped: "Not recording",
  background: "Recording in the background",
  recording: "Recording",
  stopping: "Writing the report…",
  forked: "A forked process: nothing is recorded here",
};

/** @param {Status | null} status @returns {boolean} whether allocations are recorded */
export function isRunning(status) {
  return status?.state === "recording" || status?.state === "background";
}

/** @param {Status} status @returns {string} path of the flame graph of the session that is shown */
export function shownGraph(status) {
  return status.state === "background" ? "flamegraph?session=running" : "flamegraph";
}

/** @param {Status} status */
export function showFacts(status) {
  const since = status.recording_since === null ? undefined : Date.now() - Date.parse(status.recording_since);
  const text = since === undefined ? STATES[status.state] : `${STATES[status.state]} for ${duration(1000 * Math.max(1, Math.round(since / 1000)))}`;
  // The time changes every second: a screen reader should announce only a new state.
  const shown = byId("state-text", HTMLElement);
  shown.parentElement?.setAttribute("aria-live", shown.dataset["state"] === status.state ? "off" : "polite");
  shown.dataset["state"] = status.state;
  shown.textContent = text;
  byId("lamp", HTMLElement).className = status.state;

  showJob(status);
  const trouble = [status.trouble, lost(status), status.log_given_up === null ? null : `There is no event log: ${status.log_given_up}.`, triggered(status)];
  showTrouble(trouble.filter((part) => part !== null).join(" "));

  const { live, high_water: peak, allocated, overhead, sampling } = status;
  const within = (/** @type {Blocks | undefined} */ margin) => (margin === undefined ? "" : `± ${bytes(margin.bytes)}, `);
  const about = sampling === null ? "" : "≈ ";
  const facts = [
    ["Live", about + bytes(live.bytes), within(sampling?.live_margin) + plural(live.count, "block")],
    ["High-water mark", about + bytes(peak.bytes), within(sampling?.high_water_margin) + plural(peak.count, "block")],
    sampling === null
      ? ["Allocated in all", bytes(allocated.bytes), plural(allocated.count, "block")]
      : ["Allocated in all", bytes(sampling.asked.bytes), plural(sampling.asked.count, "block")],
    sampling === null
      ? ["Events", count(status.events), "allocations and frees"]
      : ["Samples", count(sampling.samples), `one each ${bytes(sampling.mean_bytes)} on average`],
    ["heapray’s memory", bytes(overhead.memory_bytes), `${duration(overhead.collector_cpu_ns / 1e6)} of CPU time`],
    sampling === null ? ["Event log", bytes(overhead.log_bytes), "on disk"] : ["Event log", "none", "only samples are recorded"],
  ];
  byId("facts", HTMLElement).replaceChildren(
    ...facts.map(([name, value, note]) =>
      el("div", "", el("dt", "", name ?? ""), el("dd", "", value ?? "", el("small", "", note ?? ""))),
    ),
  );
}

/** @param {Status} status */
function showJob({ job_name: job, job_version: version, program, host, pid }) {
  const name = [job || program, version].filter((part) => part !== "").join(" ");
  const process = host === "" ? `process ${pid}` : `process ${pid} on ${host}`;
  byId("job", HTMLElement).textContent = name || "Memory, live";
  byId("process", HTMLElement).textContent = process;
  // The name first: a tab shows little more.
  document.title = `${name} · ${process} · live memory`;
}

/** @param {Status} status */
function triggered({ trigger }) {
  if (trigger === null) {
    return null;
  }
  const outcome = trigger.trouble === null ? "A report was written" : `A report was due, but is not there (${trigger.trouble})`;
  return `${outcome} at ${clock(Date.parse(trigger.at))}, because ${trigger.reason}.`;
}

/** @param {Status} status */
function lost(status) {
  const since = status.lost_since_ms === null ? "" : ` from ${duration(status.lost_since_ms)} on`;
  return status.lost_events === 0 ? null : `${plural(status.lost_events, "event")} were lost${since}: all sums are too low.`;
}

/** @param {string} text empty if there is no trouble */
export function showTrouble(text) {
  const trouble = byId("trouble", HTMLElement);
  if (trouble.textContent !== text) {
    trouble.textContent = text;
  }
  trouble.hidden = text === "";
}

/** @param {string} text why the service does not answer */
export function showGone(text) {
  byId("state-text", HTMLElement).dataset["state"] = "";
  byId("state-text", HTMLElement).textContent = text;
  byId("lamp", HTMLElement).className = "gone";
}
