// What grows: the ranking of lines, and beside it the survivors by generation, with two of these compared.

import { el } from "./dom.js";
import { amount, bytes, count, duration, plural } from "./format.js";
import { compared, generationsOf, worthComparing } from "./generations.js";
import { leakList } from "./leak_list.js";
import { ownSites } from "./sites.js";
import { placeOf } from "./source.js";
import { spark } from "./spark.js";

/** @typedef {import("./model.js").Look} Look */
/** @typedef {import("./generations.js").Generation} Generation */

const MOST_CHANGES = 100;

/**
 * @param {HTMLElement} box
 * @param {Look} look
 * @param {(change: Partial<import("./state.js").State>) => void} change
 * @param {(nodes: number[]) => void} choose shows these in the graph
 * @param {(frame: number) => void} show shows a ranked line in the graph
 */
export function showGrowth(box, look, change, choose, show) {
  const { state, names } = look;
  const { head } = names.profile;
  const generations = generationsOf(head);
  const ranking = leakList(look, show);
  if (generations.length < 2) {
    const none = "This report does not tell when the blocks that are still live were allocated.";
    box.replaceChildren(...ranking, ...(head.leaks.unknown === null ? [el("p", "lead", none)] : []));
    return;
  }
  const { by } = state;
  const sites = ownSites(look.whole, "live", by);
  const last = generations.length - 1;
  const [said, other] = state.growth.split("-").map(Number);
  const usual = worthComparing(generations);
  const first = state.growth !== "" && said <= last ? said : usual[0];
  const second = state.growth !== "" && other <= last ? other : usual[1];
  const rows = compared(sites, first, second, by);
  const focused = document.activeElement?.id;
  const chooser = (/** @type {string} */ id, /** @type {string} */ label, /** @type {number} */ chosen) => {
    const select = el("select", "", ...generations.map((generation, i) => new Option(`${generation.name} (${spanText(generation)})`, String(i), false, i === chosen)));
    select.id = id;
    select.addEventListener("change", () => {
      const value = Number(select.value);
      change({ growth: id === "growth-from" ? `${value}-${second}` : `${first}-${value}` });
    });
    return el("label", "", `${label} `, select);
  };
  box.replaceChildren(
    ...ranking,
    el("h3", "", "When the live blocks were allocated"),
    el(
      "p",
      "lead",
      `Blocks that are still live, by the time of their allocation, in ${generations.length} generations. They are cut at every mark, ` +
        "and so that each has its part of the time and of the work: they differ in length.",
    ),
    overview(generations, sites, look, change),
    el("h3", "", "Compare two generations"),
    el("div", "bar-line", chooser("growth-from", "From", first), chooser("growth-to", "to", second)),
    el("p", "lead", `${workText(generations[first])}; ${workText(generations[second])}. Still live of that:`),
    el("div", "wide", table(rows, look, generations, [first, second], choose)),
    ...(rows.length > MOST_CHANGES ? [el("p", "lead", `${count(rows.length - MOST_CHANGES)} smaller ones are not listed; the table of call sites has all.`)] : []),
  );
  if (focused !== undefined && focused.startsWith("growth-")) {
    document.getElementById(focused)?.focus();
  }
  box.querySelector(".wide")?.setAttribute("tabindex", "0");
}

/** @param {Generation} generation */
function spanText({ from, to }) {
  // A line ends between the two, not inside of one.
  const whole = (/** @type {number} */ ms) => duration(ms).replaceAll(" ", "\u00a0");
  return `${whole(from)} – ${whole(to)}`;
}

/** @param {Generation} generation */
function workText({ from, to, allocated, name }) {
  const work = allocated < 0 ? "" : `, ${bytes(allocated)} allocated`;
  return `${name}: ${duration(to - from)}${work}`;
}

/**
 * @param {Generation[]} generations
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
      el("span", "notes", spanText(generation)),
    );
    button.type = "button";
    button.title = `${workText(generation)}\nShow what was allocated then and is still live, in the graph`;
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
 * @param {Generation[]} generations
 * @param {[number, number]} pair
 * @param {(nodes: number[]) => void} choose
 */
function table(rows, { names, state }, generations, [first, second], choose) {
  const { by } = state;
  const signed = (/** @type {number} */ value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${amount(Math.abs(value), by)}`;
  const heads = ["Function", "Place", `Kept from ${generations[first].name}`, `Kept from ${generations[second].name}`, "Difference", "Over time", "Live"];
  const head = heads.map((text, i) => {
    const cell = el("th", i < 2 ? "text" : "", text);
    cell.scope = "col";
    return cell;
  });
  const lines = rows.slice(0, MOST_CHANGES).map(({ site, before, after, change }) => {
    const button = el("button", "site", names.brief(site.frame), el("span", "under", el("bdi", "", names.place(site.frame))));
    button.type = "button";
    button.title = names.full(site.frame);
    button.addEventListener("click", () => choose(site.nodes));
    return el(
      "tr",
      "",
      el("td", "text", button),
      el("td", "text", placeOf(names, site.frame)),
      el("td", "", amount(before, by)),
      el("td", "", amount(after, by)),
      el("td", "", signed(change)),
      el("td", "", spark(by === "bytes" ? site.grown : site.grownCount, by)),
      el("td", "", by === "bytes" ? bytes(site.bytes) : plural(site.count, "block")),
    );
  });
  return el("table", "grid", el("thead", "", el("tr", "", ...head)), el("tbody", "", ...lines));
}
