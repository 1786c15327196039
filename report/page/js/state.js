// The state of the page, and its form in the URL's hash, so that a view can be linked and the back button works.

import { VIEWS } from "./decode.js";
import { FOLDS } from "./fold.js";

/** @type {readonly ["graph", "table", "tree", "sandwich", "contexts", "growth", "memory", "advice", "stats"]} */
export const TABS = ["graph", "table", "tree", "sandwich", "contexts", "growth", "memory", "advice", "stats"];

/** @typedef {(typeof TABS)[number]} Tab */

/**
 * @typedef {object} State
 * @property {Tab} tab
 * @property {import("./decode.js").View} view
 * @property {import("./decode.js").By} by
 * @property {"root" | "leaf"} order
 * @property {"down" | "up"} grow icicle or flame
 * @property {number[]} zoom frames from the tree's first level to the zoomed node
 * @property {string} search
 * @property {string} crate the highlighted swatch, by name
 * @property {import("./fold.js").Fold} fold
 * @property {"plain" | "full"} names
 * @property {string} thread index, or empty for all
 * @property {string} allocator its number, or empty for all
 * @property {string} where `key=value` that the context must have, `key` that it must not have, or empty
 * @property {string} key of the contexts that are compared; empty for the first one
 * @property {string} root key of the contexts whose values are the root frames, or empty
 * @property {string} only name of the crate that stacks must go through, or empty
 * @property {"" | "1"} matching whether stacks must hold a match of the search
 * @property {string} range `from-to` in milliseconds, or empty
 * @property {import("./ranges.js").Until} until
 * @property {"own" | "leaf" | "function"} group of the table
 * @property {string} sort column of the table; with a leading `-` smallest first
 * @property {string} find text in the table
 * @property {string} function of the sandwich, by its string's number in base 36
 * @property {string} growth generations that are compared: `1-4`, from 0
 */

/** @type {Readonly<State>} */
export const START = Object.freeze({
  tab: "graph",
  view: "live",
  by: "bytes",
  order: "root",
  grow: "down",
  zoom: [],
  search: "",
  crate: "",
  fold: "none",
  names: "plain",
  thread: "",
  allocator: "",
  where: "",
  key: "",
  root: "",
  only: "",
  matching: "",
  range: "",
  until: "range",
  group: "own",
  sort: "value",
  find: "",
  function: "",
  growth: "",
});

/** Allowed values of each key; the other keys are free text. */
const ALLOWED = {
  tab: TABS,
  view: VIEWS,
  by: /** @type {const} */ (["bytes", "count"]),
  order: /** @type {const} */ (["root", "leaf"]),
  grow: /** @type {const} */ (["down", "up"]),
  fold: FOLDS,
  names: /** @type {const} */ (["plain", "full"]),
  matching: /** @type {const} */ (["", "1"]),
  until: /** @type {const} */ (["range", "end", "all"]),
  group: /** @type {const} */ (["own", "leaf", "function"]),
};

/** Patterns of free text. */
const TEXTS = {
  search: /^/,
  crate: /^/,
  only: /^/,
  where: /^/,
  key: /^/,
  root: /^/,
  find: /^/,
  thread: /^\d{0,9}$/,
  allocator: /^\d{0,3}$/,
  range: /^(\d{1,15}-\d{1,15})?$/,
  sort: /^-?[a-z]+$/,
  function: /^[0-9a-z]{0,7}$/,
  growth: /^(\d{1,6}-\d{1,6})?$/,
};

/**
 * @param {string} hash with or without `#`; what it does not say or says wrongly is as at the start
 * @returns {State}
 */
export function parseHash(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {Record<string, unknown>} */
  const state = { ...START };
  for (const [key, allowed] of Object.entries(ALLOWED)) {
    state[key] = allowed.find((value) => value === said.get(key)) ?? state[key];
  }
  for (const [key, looks] of Object.entries(TEXTS)) {
    const text = said.get(key);
    state[key] = text !== null && looks.test(text) ? text : state[key];
  }
  const zoom = (said.get("zoom") ?? "").split(".").filter((part) => part !== "");
  const frames = zoom.map((part) => Number.parseInt(part, 36));
  state.zoom = frames.every((frame) => frame >= 0) ? frames : [];
  return /** @type {State} */ (state);
}

/**
 * @param {State} state
 * @returns {string} with `#`; only what differs from the start
 */
export function formatHash(state) {
  const said = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (typeof value === "string" && value !== /** @type {Record<string, unknown>} */ (START)[key]) {
      said.set(key, value);
    }
  }
  if (state.zoom.length > 0) {
    said.set("zoom", state.zoom.map((frame) => frame.toString(36)).join("."));
  }
  return `#${said}`;
}

/**
 * @param {State} state
 * @returns {import("./ranges.js").Range | null}
 */
export function rangeOf({ range, until }) {
  const [from, to] = range.split("-").map(Number);
  return range === "" || !(to > from) ? null : { from, to, until };
}
