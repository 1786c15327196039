// One frame as text: the tooltip, the status line, the spoken line, and the stack to copy.

import { byId, el } from "./dom.js";
import { explained } from "./fold.js";
import { bytes, count, percent, plural } from "./format.js";
import { measureOf } from "./decode.js";
import { excerptOf, placeLink, sourceOf, sourceText } from "./source.js";

/** @typedef {import("./call_tree.js").Tree} Tree */
/** @typedef {import("./model.js").Look} Look */

/**
 * @typedef {object} Facts
 * @property {string} name
 * @property {string} place
 * @property {string} url of its source, or empty
 * @property {import("./source.js").Excerpt | null} excerpt of its source
 * @property {string} crate
 * @property {string} variable the CSS variable of the crate's colour
 * @property {number} bytes
 * @property {number} count
 * @property {number} margin bytes on either side that hold the true value with 95 % confidence; 0 where nothing is estimated
 * @property {string} share of the whole, in the present unit
 * @property {string} ofParent empty for the outermost
 * @property {string} self empty where it means nothing
 * @property {string} threads whose blocks these are, in words
 * @property {string} note what is odd about the name, or empty
 */

/** Number of threads that are named. */
const NAMED = 3;

/**
 * @param {Look} look
 * @param {Tree} tree that `node` is of
 * @param {number} node
 * @returns {Facts}
 */
export function factsOf({ tree: all, state, title, names, variables, measure }, tree, node) {
  const { profile } = all;
  const frame = tree.frameOf(node);
  const parent = tree.parentOf(node);
  const value = tree.valueOf(node, measure);
  const index = frame < 0 ? -1 : profile.frames.package[frame];
  const own = tree.ownOf(node, measure);
  const held = tree.valueOf(node, measureOf(state.view, "bytes"));
  return {
    name: frame < 0 ? title : names.full(frame),
    place: names.fullPlace(frame),
    url: sourceOf(names, frame),
    excerpt: frame < 0 ? null : excerptOf(profile, frame),
    crate: index < 0 ? "" : profile.head.packages[index][0],
    variable: index < 0 ? "--root-fill" : variables[index],
    bytes: held,
    margin: node === 0 ? wholeMargin(profile.head, held) : marginOf(profile.head.conditions.sampling, held),
    count: tree.valueOf(node, measureOf(state.view, "count")),
    share: percent(value, all.valueOf(0, measure)),
    ofParent: parent < 0 ? "" : percent(value, tree.valueOf(parent, measure)),
    self: state.order === "leaf" || node === 0 ? "" : state.by === "bytes" ? bytes(own) : plural(own, "block"),
    threads: threadsOf(profile, tree, node, measure),
    note: frame < 0 ? "" : explained(names.full(frame)),
  };
}

/**
 * Returns the margin of a whole, which is narrower than that of a part.
 * @param {import("./decode.js").Head} head
 * @param {number} value
 * @returns {number}
 */
function wholeMargin({ conditions, totals }, value) {
  const { sampling } = conditions;
  if (sampling && value === totals.live[1]) {
    return sampling.live_margin.bytes;
  }
  return sampling && value === totals.high_water[1] ? sampling.high_water_margin.bytes : marginOf(sampling, value);
}

/**
 * As `model::Sampling::margin` in Rust: the upper limit of a Poisson distribution of which `value / mean` were seen.
 * @param {import("./decode.js").Sampling | null | undefined} sampling
 * @param {number} value estimated bytes
 * @returns {number}
 */
export function marginOf(sampling, value) {
  if (!sampling) {
    return 0;
  }
  const number = value / sampling.mean_bytes + 1;
  const limit = number * (1 - 1 / (9 * number) + 1.959964 / (3 * Math.sqrt(number))) ** 3;
  return Math.round(sampling.mean_bytes * limit - value);
}

/**
 * @param {import("./decode.js").Profile} profile
 * @param {Tree} tree
 * @param {number} node
 * @param {number} measure
 * @returns {string} `rates 61.2 %, tokio-runtime-w 38.8 %`
 */
function threadsOf(profile, tree, node, measure) {
  const { thread, values } = profile.rows;
  const column = values[measure];
  /** @type {Map<number, number>} */
  const sums = new Map();
  let whole = 0;
  for (const row of tree.rowsOf(node)) {
    sums.set(thread[row], (sums.get(thread[row]) ?? 0) + column[row]);
    whole += column[row];
  }
  const found = [...sums].filter(([, value]) => value > 0).sort(([, a], [, b]) => b - a);
  const named = found.slice(0, NAMED).map(([index, value]) => {
    const name = threadName(profile.head, index);
    return found.length === 1 ? name : `${name} ${percent(value, whole)}`;
  });
  return [...named, ...(found.length > NAMED ? [`${count(found.length - NAMED)} more`] : [])].join(", ");
}

/**
 * @param {import("./decode.js").Head} head
 * @param {number} index of a thread
 * @returns {string}
 */
export function threadName({ threads }, index) {
  const thread = threads[index];
  if (thread === undefined) {
    return "unknown thread";
  }
  const name = thread.name === "" ? `thread ${thread.tid}` : thread.name;
  return thread.threads > 1 ? `${name} (${thread.threads})` : name;
}

/**
 * @param {Look} look
 * @param {Tree} tree
 * @param {number} node
 * @param {boolean} leafFirst whether `tree` begins with leaves
 * @returns {string} the stack, leaf first, a frame a line
 */
export function stackText({ names }, tree, node, leafFirst) {
  const lines = [];
  for (let at = node; at > 0; at = tree.parentOf(at)) {
    const frame = tree.frameOf(at);
    lines.push(`${names.full(frame)}\n    at ${names.fullPlace(frame)}`);
  }
  return (leafFirst ? lines.reverse() : lines).join("\n");
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
    ["Bytes", facts.margin > 0 ? `${bytes(facts.bytes)} ± ${bytes(facts.margin)}` : bytes(facts.bytes)],
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
          ...(facts.excerpt === null ? [] : [sourceText(facts.excerpt, true)]),
          el("dl", "", ...pairs),
          ...(facts.threads === "" ? [] : [el("p", "threads", `Threads: ${facts.threads}`)]),
          ...(facts.crate === "" ? [] : [el("p", "crate", swatch(facts), facts.crate)]),
          ...(facts.note === "" ? [] : [el("p", "crate", facts.note)]),
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
  const place = placeLink(facts.place, facts.url, facts.place);
  byId("status", HTMLElement).replaceChildren(
    el("div", "frame", swatch(facts), name, place),
    el("dl", "", ...lines(facts).map(([term, value]) => el("div", "", el("dt", "", term), el("dd", "", value)))),
  );
}
