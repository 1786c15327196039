// The ranking of lines that probably leak, as a list, and the first of them as a note at the top of the page.

import { el } from "./dom.js";
import { bytes, duration, plural, sentence } from "./format.js";
import { knownList } from "./known.js";
import { VERDICTS, isPart } from "./leaks.js";
import { excerptOf, placeOf, sourceText } from "./source.js";

/** @typedef {import("./leaks.js").RankedLine} RankedLine */
/** @typedef {import("./names.js").Names} Names */

/**
 * @param {import("./model.js").Look} look
 * @param {(frame: number) => void} show shows the line in the graph
 * @returns {HTMLElement[]}
 */
export function leakList({ state, names }, show) {
  const { head } = names.profile;
  const { unknown, list, left_out: leftOut } = head.leaks;
  const lead = (/** @type {string} */ text) => el("p", "lead", text);
  if (unknown !== null) {
    return [el("h2", "", "What grows"), lead(unknown)];
  }
  const filters = isPart(state) ? [lead("Filters do not change this ranking: it is that of the whole report.")] : [];
  if (list.length === 0) {
    return [
      el("h2", "", "What grows"),
      el("p", "", "Nothing grows with the work: no line keeps more the more the service does."),
      lead(
        `Looked at: ${plural(head.counts.rows, "call site")} in ${plural(head.generations.length, "part")} of ` +
          `${duration(head.end_ms - head.start_ms)}, in which ${bytes(head.totals.allocated[1])} were allocated.`,
      ),
      ...filters,
      ...knownList(head),
    ];
  }
  return [
    el("h2", "", "What grows"),
    lead("Lines that keep more the more the service does, the likeliest leak first. Pauses, bursts and start-up do not count."),
    ...filters,
    el("ol", "leaks", ...list.map((line) => item(line, names, show))),
    ...(leftOut > 0 ? [lead(`${plural(leftOut, "less likely line")} not listed.`)] : []),
    ...knownList(head),
  ];
}

/**
 * @param {RankedLine} line
 * @param {Names} names
 * @param {(frame: number) => void} show
 */
function item(line, names, show) {
  const { frame, confidence, evidence, against } = line;
  const button = el("button", "site", names.brief(frame));
  button.type = "button";
  button.title = `${names.full(frame)}\nShow in the graph`;
  button.addEventListener("click", () => show(frame));
  const head = el("p", "head", button, placeOf(names, frame));
  if (!line.own) {
    const foreign = el("span", "foreign", "library");
    foreign.title = "No frame of these stacks is the service’s own";
    head.append(foreign);
  }
  const figures = el(
    "p",
    "figures",
    el("span", `confidence ${confidence}`, `${confidence} confidence`),
    el("span", "", el("b", "", bytes(line.bytes)), ` live in ${plural(line.blocks, "block")}`),
    el("span", "", el("b", "", `+${bytes(line.per_hour)}`), " an hour"),
  );
  const contra = against.length > 0 ? [el("p", "against", sentence(against, "against: "))] : [];
  const excerpt = excerptOf(names.profile, frame);
  const text = excerpt === null ? [] : [sourceText(excerpt, false)];
  return el("li", `advice leak ${confidence}`, head, ...text, figures, el("p", "", sentence(evidence)), ...contra);
}

/**
 * @param {Names} names
 * @param {() => void} open shows the ranking
 * @returns {HTMLElement | null} the likeliest leak in one line; null where none is certain
 */
export function leakNote(names, open) {
  const { list, left_out: leftOut } = names.profile.head.leaks;
  const certain = list.filter(({ confidence }) => confidence === "high");
  if (certain.length === 0) {
    return null;
  }
  const [{ frame, bytes: size, per_hour: hourly }] = certain;
  const button = el("button", "site", names.brief(frame));
  button.type = "button";
  button.title = `${names.full(frame)}\nShow what grows`;
  button.addEventListener("click", open);
  const place = placeOf(names, frame);
  const others = certain.length === list.length && leftOut > 0 ? "more than " : "";
  const more = certain.length > 1 ? `, and ${others}${plural(certain.length - 1, "other line")}` : "";
  return el("p", "", `${VERDICTS.high}: `, button, ", ", place, `, ${bytes(size)}, +${bytes(hourly)} an hour${more}`);
}
