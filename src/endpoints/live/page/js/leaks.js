// The lines that probably leak, as the service ranks them.

import { byId, el } from "../../../../../report/page/js/dom.js";
import { bytes, plural, sentence } from "../../../../../report/page/js/format.js";
import { place } from "./lines.js";

/**
 * @typedef {import("./lines.js").Line & { growth_bytes_per_hour: number, confidence: "low" | "medium" | "high",
 *   evidence: string[], against: string[] }} Leak
 */

/**
 * @param {Leak[]} leaks the likeliest first
 * @param {boolean} recording
 */
export function showLeaks(leaks, recording) {
  byId("leaks-section", HTMLElement).hidden = !recording;
  byId("leaks-lead", HTMLElement).textContent =
    leaks.length === 0
      ? "No line keeps more the more the service does, so far. Looked at every few seconds, in the call sites with the most live bytes."
      : "Lines that keep more the more the service does, the likeliest first. Looked at every few seconds, in the call sites with the most live bytes.";
  byId("leaks", HTMLElement).replaceChildren(...leaks.map(candidate));
}

/** @param {Leak} leak */
function candidate(leak) {
  const sums = el(
    "p",
    "",
    el("span", `tag ${leak.confidence}`, `${leak.confidence} confidence`),
    ` ${bytes(leak.live.bytes)} in ${plural(leak.live.count, "block")}`,
  );
  const item = el("li", "", el("h3", "", place(leak)), sums, el("p", "what", sentence(leak.evidence)));
  if (leak.against.length > 0) {
    item.append(el("p", "what", sentence(leak.against, "against: ")));
  }
  return item;
}
