// The answer to "what leaks?": call sites by the service's own code.

import { byId, el } from "./dom.js";
import { amount, bytes, count, duration, percent, plural } from "./format.js";
import { brief, segments } from "./names.js";

/** @typedef {import("./sites.js").OwnSite} OwnSite */

/** Rows that are shown at first: what fits beside the graph, and some everywhere. */
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
};

export class SiteTable {
  /**
   * @param {import("./decode.js").Profile} profile
   * @param {(frame: number) => string} place `file:line` of a frame
   * @param {(site: OwnSite) => void} choose
   */
  constructor(profile, place, choose) {
    this.profile = profile;
    this.place = place;
    this.choose = choose;
    this.all = false;
    /** @type {OwnSite[]} */
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
   * @param {OwnSite[]} sites
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
   * @param {OwnSite} site
   * @param {number} whole
   */
  row(site, whole) {
    const { strings, frames } = this.profile;
    const { by } = this;
    const name = site.frame < 0 ? "no call stack" : strings[frames.function[site.frame]];
    const button = el("button", "site", el("span", "name", site.frame < 0 ? name : brief(segments(name))));
    button.type = "button";
    const places = site.nodes.length > 1 ? `\nat ${count(site.nodes.length)} places of the graph` : "";
    button.title = name + places;
    button.addEventListener("click", () => this.choose(site));
    const place = site.frame < 0 ? "" : this.place(site.frame);
    // Cut on the left where it is too long: the end tells more. `bdi` keeps the text itself left to right.
    const where = el("span", "place", el("bdi", "", place));
    where.title = site.frame < 0 ? "" : `${strings[frames.file[site.frame]]}:${frames.line[site.frame]}`;
    const other = by === "bytes" ? plural(site.count, "block") : bytes(site.bytes);
    const oldest = el("span", "notes", site.oldest >= 0 && this.view === "live" ? `since ${duration(site.oldest)}` : "");
    oldest.title = "Time of the capture at which the oldest of these blocks was allocated";
    const bar = el("i", "bar");
    bar.style.width = `${whole > 0 ? Math.max(0.5, (100 * site[by]) / whole) : 0}%`;
    const second = el("div", "second", where);
    if (!site.own) {
      const foreign = el("span", "foreign", "library");
      foreign.title = "No frame of these stacks is the service’s own";
      second.append(foreign);
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
