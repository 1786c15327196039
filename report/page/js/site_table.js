// Call sites by the service's own code, for the question "what leaks?".

import { byId, el } from "./dom.js";
import { amount, bytes, count, duration, percent, plural } from "./format.js";
import { fitted, fittedPlace } from "./names.js";
import { spark } from "./spark.js";

/** @typedef {import("./sites.js").CallSite} CallSite */

/** Returns the number of rows at first: as many as fit beside the graph, and some in any case. */
function few() {
  if (matchMedia("(max-width: 999px)").matches) {
    return 6;
  }
  const size = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  return Math.max(6, Math.floor((window.innerHeight - 33 * size) / (4 * size)));
}

const HEADINGS = {
  live: "Top still-live call sites",
  peak: "Top call sites at the high-water mark",
  total: "Top allocating call sites",
  temporary: "Top call sites of temporary blocks",
  range: "Top call sites of the range",
};

/** Widths of what stands beside a place, in sizes of the font: the word "library", and a small history. */
const TAG = 4.4;
const SPARK = 3.3;

export class SiteTable {
  /**
   * @param {import("./names.js").Names} names
   * @param {(site: CallSite) => void} choose
   */
  constructor(names, choose) {
    /** @type {{context: {measureText: (text: string) => {width: number}}, width: number, size: number}} */
    this.room = { context: { measureText: (text) => ({ width: 7 * text.length }) }, width: 200, size: 13 };
    this.names = names;
    this.choose = choose;
    this.all = false;
    /** @type {CallSite[]} */
    this.sites = [];
    /** @type {import("./state.js").State["view"]} */
    this.view = "live";
    /** @type {import("./state.js").State["by"]} */
    this.by = "bytes";
    this.more = byId("more-sites", HTMLButtonElement);
    this.more.addEventListener("click", () => {
      this.all = !this.all;
      this.render();
    });
  }

  /**
   * @param {CallSite[]} sites
   * @param {import("./state.js").State["view"]} view
   * @param {import("./state.js").State["by"]} by
   */
  show(sites, view, by) {
    this.sites = sites;
    this.view = view;
    this.by = by;
    byId("sites-heading", HTMLElement).textContent = HEADINGS[view];
    byId("sites-amount", HTMLElement).textContent = by === "bytes" ? "Bytes" : "Blocks";
    this.render();
  }

  render() {
    this.measure();
    const { sites, by } = this;
    const whole = sites.reduce((sum, site) => sum + site[by], 0);
    const most = few();
    const shown = this.all ? sites : sites.slice(0, most);
    byId("sites", HTMLElement).replaceChildren(...shown.map((site) => this.row(site, whole)));
    byId("sites-none", HTMLElement).hidden = sites.length > 0;
    this.more.hidden = sites.length <= most;
    const rest = sites.slice(most).reduce((sum, site) => sum + site[by], 0);
    this.more.textContent = this.all
      ? "Show fewer"
      : `Show ${count(sites.length - most)} more (${by === "bytes" ? bytes(rest) : plural(rest, "block")})`;
  }

  /**
   * @param {CallSite} site
   * @returns {string} as much of its function's path as the column has room for
   */
  nameOf(site) {
    const { names, room } = this;
    if (site.frame < 0) {
      return names.brief(site.frame);
    }
    const parts = names.parts(names.profile.frames.function[site.frame]);
    return fitted(parts, room.width, room.size, (text) => room.context.measureText(text).width) || names.brief(site.frame);
  }

  /**
   * @param {CallSite} site
   * @param {number} aside what else stands in the row, in sizes of the font
   * @returns {string} as much of its place as there is room for
   */
  placeOf({ frame }, aside) {
    const { width, size, context } = this.room;
    // The measured letters are bold and larger than these.
    return fittedPlace(this.names.place(frame), width - aside * size, (text) => 0.9 * context.measureText(text).width);
  }

  /** Measures the column of names. */
  measure() {
    const heading = /** @type {HTMLElement} */ (byId("sites", HTMLElement).closest("table")?.querySelector("th"));
    const context = document.createElement("canvas").getContext("2d");
    const style = getComputedStyle(heading);
    const size = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    const width = heading.clientWidth - Number.parseFloat(style.paddingLeft) - 10;
    if (context !== null) {
      context.font = `600 ${size}px ${style.fontFamily}`;
      this.room = { context, width, size };
    }
  }

  /**
   * @param {CallSite} site
   * @param {number} whole
   */
  row(site, whole) {
    const { by, names } = this;
    const { head } = names.profile;
    const button = el("button", "site", el("span", "name", this.nameOf(site)));
    button.type = "button";
    const places = site.nodes.length > 1 ? `\nat ${count(site.nodes.length)} places of the graph` : "";
    button.title = names.full(site.frame) + places;
    button.addEventListener("click", () => this.choose(site));
    const aside = (site.own ? 0 : TAG) + (this.view === "live" ? SPARK : 0);
    const where = el("span", "place", this.placeOf(site, aside));
    where.title = names.fullPlace(site.frame);
    const other = by === "bytes" ? plural(site.count, "block") : bytes(site.bytes);
    const aged = site.oldest >= 0 && this.view === "live";
    const oldest = el("span", "notes", aged ? `for ${duration(Math.max(0, head.end_ms - head.start_ms - site.oldest))}` : "");
    oldest.title = aged ? `Age of its oldest block, allocated ${duration(site.oldest)} after the start` : "";
    const bar = el("i", "bar");
    bar.style.width = `${whole > 0 ? Math.max(0.5, (100 * site[by]) / whole) : 0}%`;
    const second = el("div", "second", where);
    const grown = by === "bytes" ? site.grown : site.grownCount;
    if (this.view === "live" && grown.length > 1) {
      second.append(spark(grown, by));
    }
    if (!site.own) {
      const foreign = el("span", "foreign", "library");
      foreign.title = "No frame of these stacks is the service’s own";
      second.prepend(foreign);
    }
    return el(
      "tr",
      site.own ? "own" : "",
      el("td", "what", button, second, bar),
      el("td", "amount", amount(site[by], by), el("span", "notes", other)),
      el("td", "share", percent(site[by], whole), oldest),
    );
  }
}
