// The routes of the service that hold the most.

import { byId, el } from "../../../../../report/page/js/dom.js";
import { bytes, count } from "../../../../../report/page/js/format.js";
import { shownGraph } from "./facts.js";
import { link } from "./links.js";

/**
 * @typedef {{ route: string, live: import("./lines.js").Held, requests: number, left: number | null }} Route
 */

/** The link to the graph: one that stays the same is not made again, so that a click or the focus is not lost. */
let linked = "";

/**
 * @param {Route[]} routes the one that holds the most first; none if the service does not record by route
 * @param {import("./facts.js").Status} status
 */
export function showRoutes(routes, status) {
  byId("routes-section", HTMLElement).hidden = routes.length === 0;
  const shown = shownGraph(status);
  const graph = `${shown}${shown.includes("?") ? "&" : "?"}by=route`;
  if (graph !== linked) {
    linked = graph;
    const anchor = link(graph, "", false);
    anchor.append("Flame graph by route");
    byId("routes-lead", HTMLElement).replaceChildren(anchor);
  }
  byId("routes", HTMLElement).replaceChildren(
    ...routes.map(({ route, live, requests, left }) =>
      el(
        "tr",
        "",
        el("td", "", el("code", "", route)),
        el("td", "number", bytes(live.bytes)),
        el("td", "number", count(live.count)),
        el("td", "number", requests === 0 ? "" : count(requests)),
        el("td", "number", left === null ? "" : bytes(left)),
      ),
    ),
  );
}
