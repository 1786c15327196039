// Saves the graph as it is shown now.

import { factsOf, spoken } from "./details.js";
import { byId } from "./dom.js";
import { download, svgText } from "./save.js";

/** @param {import("./page.js").Page} page */
export function saveSvg({ graph, look, state }) {
  const frameOf = (/** @type {number} */ node) => look.ordered.frameOf(node);
  const text = svgText({
    rows: graph.rows,
    width: graph.width,
    rowHeight: graph.rowHeight,
    up: state.grow === "up",
    fill: (node) => graph.fillOf(frameOf(node)),
    rest: graph.theme.rest,
    parts: (node) => (graph.scene === null ? [] : graph.nameParts(graph.scene, node)),
    title: (node) => spoken(factsOf(look, look.ordered, node)),
    ink: graph.theme.text,
    ground: graph.theme.panel,
    heading: document.title,
  });
  download("heapray.svg", new Blob([text], { type: "image/svg+xml" }));
}

/** @param {import("./page.js").Page} page */
export function savePng(page) {
  byId("graph", HTMLCanvasElement).toBlob((blob) => {
    if (blob === null) {
      page.toast("The browser could not make a picture of it.");
    } else {
      download("heapray.png", blob);
    }
  });
}
