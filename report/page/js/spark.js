// Small pictures inside tables. SVG elements, since a row of them is cheaper than as many canvases and prints.

import { amount } from "./format.js";

/** Largest width in pixels: many marks make many bars. */
const WIDEST = 80;

const SVG = "http://www.w3.org/2000/svg";

/**
 * Bars, one for each generation of survivors.
 * @param {ArrayLike<number>} values
 * @param {import("./decode.js").By} by
 * @returns {SVGElement}
 */
export function spark(values, by) {
  const list = Array.from(values);
  const most = Math.max(1, ...list);
  const width = 5;
  const height = 14;
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("class", "spark");
  picture.setAttribute("viewBox", `0 0 ${list.length * width} ${height}`);
  picture.setAttribute("width", String(Math.min(WIDEST, list.length * width)));
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("height", String(height));
  picture.setAttribute("role", "img");
  const words = `Still live by the time of allocation: ${list.map((value) => amount(value, by)).join(", ")}`;
  picture.setAttribute("aria-label", words);
  const title = document.createElementNS(SVG, "title");
  title.textContent = words;
  picture.append(title);
  list.forEach((value, i) => {
    const bar = document.createElementNS(SVG, "rect");
    const tall = value > 0 ? Math.max(2, (value / most) * height) : 1;
    const place = { x: i * width, y: height - tall, width: width - 1, height: tall };
    for (const [name, size] of Object.entries(place)) {
      bar.setAttribute(name, size.toFixed(1));
    }
    bar.setAttribute("class", value > 0 ? "grown" : "none");
    picture.append(bar);
  });
  return picture;
}
