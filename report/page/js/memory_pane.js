// The question "where did the RSS go": one bar, and an explanation of each part.

import { el } from "./dom.js";
import { bytes, percent } from "./format.js";
import { memoryParts } from "./memory_parts.js";

/**
 * @param {HTMLElement} box
 * @param {import("./decode.js").Profile} profile the whole report
 */
export function showMemory(box, profile) {
  const found = memoryParts(profile);
  const { memory } = profile.head;
  if (found === null || memory === null) {
    box.replaceChildren(
      el("h2", "", "Where did the RSS go?"),
      el("p", "lead", "This report does not hold the process’s own figures: it was made by another tool, or after the process had ended."),
    );
    return;
  }
  const { parts, rss, over } = found;
  const bar = el("div", "stack");
  bar.role = "img";
  bar.ariaLabel = `${bytes(rss)} resident: ${parts.map((part) => `${part.name} ${bytes(part.bytes)}`).join(", ")}`;
  for (const part of parts) {
    const piece = el("i", `part-${part.key}`);
    piece.style.flexGrow = String(part.bytes);
    piece.title = `${part.name}: ${bytes(part.bytes)}, ${percent(part.bytes, rss)}`;
    bar.append(piece);
  }
  const lines = parts.map((part) =>
    el(
      "tr",
      "",
      el("td", "text", el("i", `swatch part-${part.key}`), part.name),
      el("td", "", bytes(part.bytes)),
      el("td", "", percent(part.bytes, rss)),
      el("td", "text note", part.note),
    ),
  );
  const sum = el("tr", "sum", el("td", "text", "RSS"), el("td", "", bytes(rss)), el("td", "", "100 %"), el("td", "text note", "at the end of the capture"));
  const table = el("table", "grid memory", el("tbody", "", ...lines, sum));
  const caption = el("caption", "hidden", "Parts of the resident memory");
  table.prepend(caption);
  const wide = el("div", "wide", table);
  wide.tabIndex = 0;
  const notes = [];
  if (over > 0) {
    notes.push(
      `The figures add up to ${bytes(over)} more than what is resident: some pages were never touched or were given back. ` +
        "So much was taken off, first from what the allocator keeps.",
    );
  }
  if (memory.anonymous === null) {
    notes.push("The system did not tell files and shared memory apart: they are in the unexplained rest.");
  }
  if (memory.allocators.length === 0) {
    notes.push("No allocator told its own figures: what it keeps is in the unexplained rest.");
  }
  for (const [name] of memory.allocators.filter(([, used, kept]) => used + kept === 0)) {
    const how = name === "jemalloc" ? " (the feature “stats” of tikv-jemallocator builds it with them)" : "";
    notes.push(`${name} is in this program, but keeps no statistics${how}: what it has is in the unexplained rest.`);
  }
  if (memory.swapped !== null && memory.swapped > 0) {
    notes.push(`${bytes(memory.swapped)} more were swapped out.`);
  }
  const { fragmentation } = profile.head;
  if (fragmentation !== null) {
    notes.unshift(fragmentation);
  }
  box.replaceChildren(
    el("h2", "", "Where did the RSS go?"),
    el("p", "lead", `${bytes(rss)} were resident at the end; ${bytes(profile.head.totals.live[1])} of that at most are blocks that the code asked for and holds.`),
    bar,
    wide,
    ...notes.map((text) => el("p", "lead", text)),
    ...group(memory),
  );
}

/**
 * @param {import("./decode.js").Memory} memory
 * @returns {HTMLElement[]}
 */
function group({ cgroup, cgroup_limit: limit, rss }) {
  if (cgroup === null) {
    return [];
  }
  const whole = Math.max(limit ?? cgroup, cgroup, 1);
  const bar = el("div", "stack thin");
  const other = Math.max(0, cgroup - rss);
  const words = `This process ${bytes(Math.min(rss, cgroup))}, page cache, kernel and other processes ${bytes(other)}${limit === null ? "" : `, limit ${bytes(limit)}`}`;
  bar.role = "img";
  bar.ariaLabel = words;
  for (const [key, size] of /** @type {const} */ ([["live", Math.min(rss, cgroup)], ["files", other], ["none", whole - cgroup]])) {
    const piece = el("i", `part-${key}`);
    piece.style.flexGrow = String(size);
    bar.append(piece);
  }
  const share = limit === null ? "no limit is set" : `${percent(cgroup, limit)} of the limit of ${bytes(limit)}`;
  return [el("h3", "", "The control group"), el("p", "", `${bytes(cgroup)} charged, ${share}.`), bar, el("p", "lead", `${words}.`)];
}
