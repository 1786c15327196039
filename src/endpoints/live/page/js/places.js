// Places of the service's code: functions with file and line, and links that show them in a flame graph.

import { el } from "../../../../../report/page/js/dom.js";
import { hashOfLine } from "../../../../../report/page/js/line_link.js";
import { logical, segments, shortPath } from "../../../../../report/page/js/names.js";
import { link } from "./links.js";

/** @typedef {{ function: string, file: string, line: number }} Place */

/**
 * @param {string} file
 * @returns {string} without the registry's directory, and no more than its last parts
 */
function tail(file) {
  const short = shortPath(file, "");
  const parts = short.split("/");
  return short === file && parts.length > 4 ? `…/${parts.slice(-3).join("/")}` : short;
}

/** @param {Place} place */
function position({ file, line }) {
  return line === 0 ? tail(file) : `${tail(file)}:${line}`;
}

/**
 * @param {Place} place
 * @param {string} graph path of the flame graph that has it
 * @returns {HTMLElement} the function without generic arguments and closures, as a link
 */
function named(place, graph) {
  const anchor = link(graph, hashOfLine(place), false);
  anchor.title = `${place.function}\nShow in the flame graph`;
  anchor.append(el("code", "", logical(segments(place.function)).join("::")));
  return anchor;
}

/**
 * @param {Place} place
 * @param {string} graph path of the flame graph that has it
 * @returns {HTMLElement} the function, and file and line below it
 */
export function placeBlock(place, graph) {
  const where = el("span", "place", position(place));
  where.title = place.file;
  return el("span", "", named(place, graph), where);
}

/**
 * @param {Place} place
 * @param {string} graph path of the flame graph that has it
 * @returns {HTMLElement} the same in a line of text
 */
export function placeText(place, graph) {
  return el("span", "", named(place, graph), ` ${position(place)}`);
}
