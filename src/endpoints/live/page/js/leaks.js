// The lines that probably leak, as the service ranks them.

import { byId, el } from "../../../../../report/page/js/dom.js";
import { bytes, plural, sentence } from "../../../../../report/page/js/format.js";
import { refill } from "./links.js";
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
 * @param {boolean} recording
 */
export function showLeaks(leaks, known, recording) {
  byId("leaks-section", HTMLElement).hidden = !known;
  const list = JSON.stringify([leaks, recording]);
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
  refill(byId("leaks", HTMLElement), leaks.map(candidate));
}

/** @param {Leak} leak */
function candidate(leak) {
  const sums = el(
    "p",
    "",
    el("span", `tag ${leak.confidence}`, `${leak.confidence} confidence`),
    ` ${bytes(leak.live.bytes)} in ${plural(leak.live.count, "block")}`,
  );
  const item = el("li", "", el("h3", "", placeBlock(leak, "flamegraph")), sums, el("p", "what", sentence(leak.evidence)));
  if (leak.against.length > 0) {
    item.append(el("p", "what", sentence(leak.against, "against: ")));
  }
  return item;
}
