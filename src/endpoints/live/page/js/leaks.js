// The lines that probably leak, as the service ranks them.

import { byId, el } from "../../../../../report/page/js/dom.js";
import { bytes, plural, sentence } from "../../../../../report/page/js/format.js";
import { refill } from "./links.js";
import { shownGraph, isRunning } from "./facts.js";
import { placeBlock } from "./places.js";

/**
 * @typedef {import("./lines.js").Line & { growth_bytes_per_hour: number, confidence: "low" | "medium" | "high",
 *   evidence: string[], against: string[] }} Leak
 */

/** What is listed: a list that stays the same is not made again, so that a click or the focus is not lost. */
let listed = "";

/**
 * @param {Leak[]} leaks the likeliest first
 * @param {boolean} known whether leaks have been looked for
 * @param {import("./facts.js").Status} status
 */
export function showLeaks(leaks, known, status) {
  const recording = isRunning(status);
  const graph = shownGraph(status);
  byId("leaks-section", HTMLElement).hidden = !known;
  const list = JSON.stringify([leaks, recording, graph]);
  if (list === listed) {
    return;
  }
  listed = list;
  const found =
    leaks.length === 0
      ? `No line ${recording ? "keeps more the more the service does, so far" : "kept more the more the service did"}.`
      : "Lines that keep more the more the service does, the likeliest first.";
  const how = recording ? " Looked at every few seconds, in the call sites with the most live bytes." : "";
  byId("leaks-lead", HTMLElement).textContent = found + how;
  refill(byId("leaks", HTMLElement), leaks.map((leak) => candidate(leak, graph)));
}

/**
 * @param {Leak} leak
 * @param {string} graph path of the flame graph that has it
 */
function candidate(leak, graph) {
  const sums = el(
    "p",
    "",
    el("span", `tag ${leak.confidence}`, `${leak.confidence} confidence`),
    ` ${bytes(leak.live.bytes)} in ${plural(leak.live.count, "block")}`,
  );
  const item = el("li", "", el("h3", "", placeBlock(leak, graph)), sums, el("p", "what", sentence(leak.evidence)));
  if (leak.against.length > 0) {
    item.append(el("p", "what", sentence(leak.against, "against: ")));
  }
  return item;
}
