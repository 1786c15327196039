// The kept reports, with links to all their outputs.

import { byId, el } from "../../../../../report/page/js/dom.js";
import { bytes, clock, duration, plural } from "../../../../../report/page/js/format.js";
import { Failure, call } from "./connection.js";
import { showTrouble } from "./facts.js";
import { openTab, outputs, refill } from "./links.js";
import { placeText } from "./places.js";

/**
 * @typedef {{ count: number, bytes: number }} Sum
 * @typedef {object} Kept
 * @property {string} id
 * @property {number} session
 * @property {number} pid
 * @property {string} started
 * @property {string} ended
 * @property {boolean} present
 * @property {number} report_bytes
 * @property {Sum} live
 * @property {Sum} high_water
 * @property {number} lost_events
 * @property {{ kind: string, reason: string } | null} trigger
 * @property {{ function: string, file: string, line: number, live: Sum } | null} largest
 * @property {{ function: string, file: string, line: number, live: Sum, growth_bytes_per_hour: number,
 *   confidence: string } | null} leak
 */

/** @type {Readonly<Record<string, string>>} */
const KINDS = {
  allocation_failed: "allocation failed",
  control_group: "container’s limit",
  host: "machine’s memory",
  address_space: "address space",
  size: "size",
  step: "step",
  slope: "growth",
  signal: "signal",
  killed: "killed while recording",
  unwritten: "written later",
  overhead: "profiler’s memory",
};

/** @param {Kept[]} kept */
export function showReports(kept) {
  const lead = byId("reports-lead", HTMLElement);
  lead.textContent =
    kept.length === 0
      ? "None yet: a report is written when a recording is stopped."
      : "Of the last few recordings, and of moments when memory ran short, the latest first. Older ones make room by themselves.";
  refill(
    byId("reports", HTMLElement),
    kept.map((report, nth) => entry(report, kept.slice(nth + 1))),
  );
}

/**
 * @param {Kept} kept
 * @param {Kept[]} older
 */
function entry(kept, older) {
  const began = Date.parse(kept.started);
  // A report that the flight recorder wrote shows its own moment.
  const title = el("h3", "", clock(momentOf(kept)));
  if (kept.present) {
    title.append(el("span", "tag", "latest"));
  }
  if (kept.trigger !== null) {
    title.append(el("span", "tag", KINDS[kept.trigger.kind] ?? kept.trigger.kind));
  }
  const sums = `${duration(Date.parse(kept.ended) - began)} · ${bytes(kept.high_water.bytes)} at the high-water mark · ${bytes(kept.live.bytes)} not freed · file of ${bytes(kept.report_bytes)}`;
  const what = el("div", "", title, el("p", "what", sums), el("p", "what", largest(kept)));
  if (kept.leak !== null) {
    what.append(el("p", "what", probable(kept.leak, graphOf(kept))));
  }
  if (kept.trigger !== null) {
    what.append(el("p", "what", `Written because ${kept.trigger.reason}.`));
  }
  const links = el("div", "links", ...outputs(`reports/${kept.id}/`, clock(began)), ...comparer(kept, older), remover(kept));
  return el("li", "", what, links);
}

/** @param {Kept} kept */
const graphOf = ({ id }) => `reports/${id}/flamegraph`;

/**
 * @param {NonNullable<Kept["leak"]>} leak
 * @param {string} graph
 */
function probable(leak, graph) {
  const growth = `, ${bytes(leak.live.bytes)} (${leak.confidence} confidence)`;
  return el("span", "", "Probably leaks: ", placeText(leak, graph), growth);
}

/** @param {Kept} kept */
function largest(kept) {
  if (kept.largest === null) {
    return "Everything was freed.";
  }
  const { live } = kept.largest;
  return el("span", "", `Most not freed: ${bytes(live.bytes)} in ${plural(live.count, "block")}, `, placeText(kept.largest, graphOf(kept)));
}

/**
 * @param {Kept} kept
 * @returns {number} the moment that it shows, in milliseconds
 */
const momentOf = ({ started, ended, trigger }) => Date.parse(trigger === null ? started : ended);

/**
 * @param {Kept} kept
 * @param {Kept[]} older
 * @returns {HTMLElement[]} a list of reports to compare it with; none if it is the oldest
 */
function comparer(kept, older) {
  if (older.length === 0) {
    return [];
  }
  const list = el("select", "", el("option", "", "Growth since…"));
  list.setAttribute("aria-label", `Compare the report of ${clock(momentOf(kept))} with an older one`);
  list.dataset["key"] = `compare ${kept.id}`;
  for (const other of older) {
    const option = el("option", "", `${clock(momentOf(other))} · ${bytes(other.live.bytes)}`);
    option.value = other.id;
    list.append(option);
  }
  list.addEventListener("change", () => {
    const since = list.value;
    list.selectedIndex = 0;
    openTab(graphOf(kept), `since=${since}`);
  });
  return [list];
}

/** @param {Kept} kept */
function remover(kept) {
  const button = el("button", "grave", "Delete");
  button.type = "button";
  button.dataset["key"] = `delete ${kept.id}`;
  const when = clock(Date.parse(kept.started));
  button.setAttribute("aria-label", `Delete the report of ${when}`);
  button.addEventListener("click", async () => {
    const dialog = byId("confirm", HTMLDialogElement);
    byId("confirm-text", HTMLElement).textContent = `Delete the report of ${when} (${bytes(kept.report_bytes)})? It cannot be made again.`;
    dialog.returnValue = "no";
    dialog.showModal();
    await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
    if (dialog.returnValue !== "yes") {
      return;
    }
    try {
      await call(`reports/${kept.id}`, "DELETE");
      showReports(await call("reports", "GET"));
      byId("reports-heading", HTMLElement).scrollIntoView({ block: "nearest" });
    } catch (failure) {
      showTrouble(failure instanceof Failure ? failure.message : String(failure));
    }
  });
  return button;
}
