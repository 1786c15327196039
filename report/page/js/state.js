// What is looked at, and its spelling in the URL's hash, so that a view can be linked and walked back to.

/**
 * @typedef {object} State
 * @property {import("./decode.js").View} view
 * @property {import("./decode.js").By} by
 * @property {"root" | "leaf"} order
 * @property {"down" | "up"} grow icicle or flame
 * @property {number[]} zoom frames from the tree's first level to the zoomed node
 * @property {string} search
 * @property {string} crate the highlighted swatch, by name
 */

/** @type {Readonly<State>} */
export const START = Object.freeze({
  view: "live",
  by: "bytes",
  order: "root",
  grow: "down",
  zoom: [],
  search: "",
  crate: "",
});

/**
 * @template T
 * @param {string | null} text
 * @param {readonly T[]} allowed
 * @param {T} otherwise
 * @returns {T}
 */
function oneOf(text, allowed, otherwise) {
  return allowed.find((value) => value === text) ?? otherwise;
}

/**
 * @param {string} hash with or without `#`; what it does not say or says wrongly is as at the start
 * @returns {State}
 */
export function parseHash(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const zoom = (said.get("zoom") ?? "").split(".").filter((part) => part !== "");
  const frames = zoom.map((part) => Number.parseInt(part, 36));
  return {
    view: oneOf(said.get("view"), /** @type {const} */ (["live", "peak", "total"]), START.view),
    by: oneOf(said.get("by"), /** @type {const} */ (["bytes", "count"]), START.by),
    order: oneOf(said.get("order"), /** @type {const} */ (["root", "leaf"]), START.order),
    grow: oneOf(said.get("grow"), /** @type {const} */ (["down", "up"]), START.grow),
    zoom: frames.every((frame) => frame >= 0) ? frames : [],
    search: said.get("search") ?? "",
    crate: said.get("crate") ?? "",
  };
}

/**
 * @param {State} state
 * @returns {string} with `#`; only what differs from the start
 */
export function formatHash(state) {
  const said = new URLSearchParams();
  for (const key of /** @type {const} */ (["view", "by", "order", "grow", "search", "crate"])) {
    if (state[key] !== START[key]) {
      said.set(key, state[key]);
    }
  }
  if (state.zoom.length > 0) {
    said.set("zoom", state.zoom.map((frame) => frame.toString(36)).join("."));
  }
  return `#${said}`;
}
