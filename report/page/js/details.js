// One frame in words: the tooltip, the status line, the spoken line, and the stack to copy.

import { byId, el } from "./dom.js";
import { bytes, count, percent, plural } from "./format.js";
import { measureOf } from "./decode.js";

/** @typedef {import("./call_tree.js").Tree} Tree */

/**
 * @typedef {object} Facts
 * @property {string} name
 * @property {string} place
 * @property {string} crate
 * @property {string} variable the CSS variable of the crate's colour
 * @property {number} bytes
 * @property {number} count
 * @property {string} share of the whole, in the present unit
 * @property {string} ofParent empty for the outermost
 * @property {string} self empty where it means nothing
 */

/**
 * @typedef {object} Look
 * @property {import("./decode.js").Profile} profile
 * @property {Tree} tree
 * @property {import("./state.js").State} state
 * @property {string} title of node 0
 * @property {string[]} variables by package
 */

/**
 * @param {Look} look
 * @param {number} node
 * @returns {Facts}
 */
export function factsOf({ profile, tree, state, title, variables }, node) {
  const { strings, frames } = profile;
  const measure = measureOf(state.view, state.by);
  const frame = tree.frameOf(node);
  const parent = tree.parentOf(node);
  const value = tree.valueOf(node, measure);
  const index = frame < 0 ? -1 : frames.package[frame];
  const own = tree.ownOf(node, measure);
  return {
    name: frame < 0 ? title : strings[frames.function[frame]],
    place: frame < 0 ? "" : placeOf(profile, frame),
    crate: index < 0 ? "" : profile.head.packages[index][0],
    variable: index < 0 ? "--root-fill" : variables[index],
    bytes: tree.valueOf(node, measureOf(state.view, "bytes")),
    count: tree.valueOf(node, measureOf(state.view, "count")),
    share: percent(value, tree.valueOf(0, measure)),
    ofParent: parent < 0 ? "" : percent(value, tree.valueOf(parent, measure)),
    self: state.order === "leaf" || node === 0 ? "" : state.by === "bytes" ? bytes(own) : plural(own, "block"),
  };
}

/**
 * @param {import("./decode.js").Profile} profile
 * @param {number} frame
 * @returns {string} the whole path and the line, if known
 */
export function placeOf(profile, frame) {
  const file = profile.strings[profile.frames.file[frame]];
  const line = profile.frames.line[frame];
  return line > 0 ? `${file}:${line}` : file;
}

/**
 * @param {Look} look
 * @param {number} node
 * @returns {string} the stack, leaf first, a frame a line
 */
export function stackText({ profile, tree, state }, node) {
  const lines = [];
  for (let at = node; at > 0; at = tree.parentOf(at)) {
    const frame = tree.frameOf(at);
    lines.push(`${profile.strings[profile.frames.function[frame]]}\n    at ${placeOf(profile, frame)}`);
  }
  if (state.order === "leaf") {
    lines.reverse();
  }
  return lines.join("\n");
}

/**
 * @param {Facts} facts
 * @returns {string} for a screen reader
 */
export function spoken(facts) {
  const where = facts.place === "" ? "" : `, ${facts.place}`;
  const parent = facts.ofParent === "" ? "" : `, ${facts.ofParent} of its parent`;
  return `${facts.name}${where}: ${bytes(facts.bytes)}, ${plural(facts.count, "block")}, ${facts.share} of all${parent}`;
}

/** @param {Facts} facts */
function swatch(facts) {
  const color = el("i", "swatch");
  color.style.background = `var(${facts.variable})`;
  return color;
}

/**
 * @param {Facts} facts
 * @returns {[string, string][]}
 */
function lines(facts) {
  /** @type {[string, string][]} */
  const found = [
    ["Bytes", bytes(facts.bytes)],
    ["Blocks", count(facts.count)],
    ["Average", facts.count > 0 ? bytes(facts.bytes / facts.count) : ""],
    ["Of all", facts.share],
    ["Of parent", facts.ofParent],
    ["Self", facts.self],
  ];
  return found.filter(([, value]) => value !== "");
}

/**
 * @param {Facts | null} facts null hides it
 * @param {string} rest words instead of numbers, for what was too narrow to paint
 * @param {number} x of the pointer
 * @param {number} y
 */
export function showTooltip(facts, rest, x, y) {
  const tip = byId("tooltip", HTMLElement);
  tip.hidden = facts === null;
  if (facts === null) {
    return;
  }
  const pairs = lines(facts).map(([name, value]) => el("div", "", el("dt", "", name), el("dd", "", value)));
  tip.replaceChildren(
    ...(rest === ""
      ? [
          el("p", "name", facts.name),
          el("p", "place", facts.place),
          el("dl", "", ...pairs),
          el("p", "crate", swatch(facts), facts.crate),
        ]
      : [el("p", "name", rest), el("p", "place", "Click to zoom in on them.")]),
  );
  // Beside the pointer, inside the window.
  const { width, height } = tip.getBoundingClientRect();
  const left = x + 16 + width > window.innerWidth ? x - 12 - width : x + 16;
  const top = y + 18 + height > window.innerHeight ? y - 12 - height : y + 18;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

/** @param {Facts} facts */
export function showStatus(facts) {
  const name = el("span", "name", facts.name);
  name.title = facts.name;
  // Cut on the left, as in the table.
  const place = el("span", "place", el("bdi", "", facts.place));
  place.title = facts.place;
  byId("status", HTMLElement).replaceChildren(
    el("div", "frame", swatch(facts), name, place),
    el("dl", "", ...lines(facts).map(([term, value]) => el("div", "", el("dt", "", term), el("dd", "", value)))),
  );
}
