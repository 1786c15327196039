// Survivors by generation: which call sites grow, and how two generations compare.

import { el } from "./dom.js";
import { amount, bytes, count, duration, plural } from "./format.js";
import { compared, generationsOf } from "./generations.js";
import { ownSites } from "./sites.js";
import { spark } from "./spark.js";

/** @typedef {import("./model.js").Look} Look */

const MOST_CHANGES = 100;

/**
 * @param {HTMLElement} box
 * @param {Look} look
 * @param {(change: Partial<import("./state.js").State>) => void} change
 * @param {(nodes: number[]) => void} choose shows these in the graph
 */
export function showGrowth(box, look, change, choose) {
  const { state, names } = look;
  const { head } = names.profile;
  const generations = generationsOf(head);
  if (generations.length < 2) {
    box.replaceChildren(
      el("h2", "", "Growth over the capture"),
      el("p", "lead", "This report does not tell when the blocks that are still live were allocated."),
    );
    return;
  }
  const { by } = state;
  const sites = ownSites(look.whole, "live", by);
  const last = generations.length - 1;
  const [said, other] = state.growth.split("-").map(Number);
  const first = state.growth !== "" && said <= last ? said : 0;
  const second = state.growth !== "" && other <= last ? other : last;
  const rows = compared(sites, generations, first, second, by);
  const focused = document.activeElement?.id;
  const chooser = (/** @type {string} */ id, /** @type {string} */ label, /** @type {number} */ chosen) => {
    const select = el("select", "", ...generations.map((generation, i) => new Option(generationText(generation), String(i), false, i === chosen)));
    select.id = id;
    select.addEventListener("change", () => {
      const value = Number(select.value);
      change({ growth: id === "growth-from" ? `${value}-${second}` : `${first}-${value}` });
    });
    return el("label", "", `${label} `, select);
  };
  box.replaceChildren(
    el("h2", "", "Growth over the capture"),
    el(
      "p",
      "lead",
      `Blocks that are still live, by the time of their allocation: ${generations.length} generations, cut at every mark and in between. ` +
        "A call site with survivors in each of them grows; one with survivors in the first only is set-up.",
    ),
    overview(generations, sites, look, change),
    el("h3", "", "Compare two generations"),
    el("div", "bar-line", chooser("growth-from", "From", first), chooser("growth-to", "to", second)),
    el("div", "wide", table(rows, look, generations, [first, second], choose)),
    ...(rows.length > MOST_CHANGES ? [el("p", "lead", `${count(rows.length - MOST_CHANGES)} smaller changes are not listed; the table of call sites has all.`)] : []),
  );
  if (focused !== undefined && focused.startsWith("growth-")) {
    document.getElementById(focused)?.focus();
  }
  box.querySelector(".wide")?.setAttribute("tabindex", "0");
}

/** @param {import("./generations.js").Generation} generation */
function generationText({ from, to, name }) {
  return `${name} (${duration(from)} – ${duration(to)})`;
}

/**
 * @param {import("./generations.js").Generation[]} generations
 * @param {import("./sites.js").CallSite[]} sites
 * @param {Look} look
 * @param {(change: Partial<import("./state.js").State>) => void} change
 */
function overview(generations, sites, { state }, change) {
  const { by } = state;
  const sums = generations.map((_, i) =>
    sites.reduce((sum, site) => sum + ((by === "bytes" ? site.grown : site.grownCount)[i] ?? 0), 0),
  );
  const most = Math.max(1, ...sums);
  const columns = generations.map((generation, i) => {
    const bar = el("i", "");
    bar.style.height = `${(100 * sums[i]) / most}%`;
    const button = el(
      "button",
      "",
      el("span", "column", bar),
      el("b", "", amount(sums[i], by)),
      el("span", "", generation.name),
      el("span", "notes", `${duration(generation.from)} – ${duration(generation.to)}`),
    );
    button.type = "button";
    button.title = "Show what was allocated then and is still live, in the graph";
    button.addEventListener("click", () =>
      change({ tab: "graph", view: "range", until: "end", range: `${Math.round(generation.from)}-${Math.round(generation.to)}`, zoom: [] }),
    );
    return el("li", "", button);
  });
  return el("ol", "generations", ...columns);
}

/**
 * @param {import("./generations.js").Growth[]} rows
 * @param {Look} look
 * @param {import("./generations.js").Generation[]} generations
 * @param {[number, number]} pair
 * @param {(nodes: number[]) => void} choose
 */
function table(rows, { names, state }, generations, [first, second], choose) {
  const { by } = state;
  const signed = (/** @type {number} */ value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${rate(Math.abs(value), by)}`;
  const heads = ["Function", "Place", `In ${generations[first].name}`, `In ${generations[second].name}`, "Change", "Growth", "Live"];
  const head = heads.map((text, i) => {
    const cell = el("th", i < 2 ? "text" : "", text);
    cell.scope = "col";
    return cell;
  });
  const lines = rows.slice(0, MOST_CHANGES).map(({ site, before, after, change }) => {
    const button = el("button", "site", names.brief(site.frame), el("span", "under", names.place(site.frame)));
    button.type = "button";
    button.title = names.full(site.frame);
    button.addEventListener("click", () => choose(site.nodes));
    const place = el("span", "place", el("bdi", "", names.place(site.frame)));
    place.title = names.fullPlace(site.frame);
    return el(
      "tr",
      "",
      el("td", "text", button),
      el("td", "text", place),
      el("td", "", rate(before, by)),
      el("td", "", rate(after, by)),
      el("td", change > 0 ? "more" : "less", signed(change)),
      el("td", "", spark(by === "bytes" ? site.grown : site.grownCount, by)),
      el("td", "", by === "bytes" ? bytes(site.bytes) : plural(site.count, "block")),
    );
  });
  return el("table", "grid", el("thead", "", el("tr", "", ...head)), el("tbody", "", ...lines));
}

/**
 * @param {number} value a minute
 * @param {import("./decode.js").By} by
 */
function rate(value, by) {
  return `${by === "bytes" ? bytes(value) : count(Math.round(value))}/min`;
}
