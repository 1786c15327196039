// The path to the zoomed node, with a button for each frame.

import { pathTo } from "./call_tree.js";
import { OWN } from "./decode.js";
import { byId, el } from "./dom.js";
import { count } from "./format.js";
import { kindOf } from "./sites.js";

/** Largest number of crumbs. */
const CRUMBS = 60;

/**
 * @param {import("./model.js").Look} look
 * @param {number} zoomed
 * @param {(node: number) => void} zoom
 */
export function showCrumbs({ ordered: tree, names }, zoomed, zoom) {
  const path = pathTo(tree, zoomed);
  const crumb = (/** @type {number} */ node, /** @type {string} */ text) => {
    const button = el("button", "crumb", text);
    button.type = "button";
    button.addEventListener("click", () => zoom(node));
    return el("li", "", button);
  };
  const named = (/** @type {number} */ node) => {
    const frame = tree.frameOf(node);
    const item = crumb(node, names.brief(frame));
    item.title = names.full(frame);
    item.classList.toggle("own", kindOf(names.profile, frame) === OWN);
    return item;
  };
  const left = path.length > CRUMBS ? path.length - CRUMBS : 0;
  const items = [crumb(0, "all")];
  if (left > 0) {
    items.push(el("li", "left-out", `${count(left)} frames`));
  }
  items.push(...path.slice(left).map(named));
  const last = items[items.length - 1].firstElementChild;
  if (last !== null) {
    last.ariaCurrent = "location";
  }
  const list = byId("crumbs", HTMLElement);
  list.replaceChildren(...items);
  // Reading its width makes the browser lay out the page, so do it only if there is something to scroll.
  if (path.length > 0) {
    list.scrollLeft = list.scrollWidth;
  }
}
