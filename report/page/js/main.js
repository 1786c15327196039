// Puts the page together: one state, and everything shown is a function of it and the profile.

import { CallTree, pathTo } from "./call_tree.js";
import { swatches } from "./colors.js";
import { decode, measureOf, OWN, VIEWS } from "./decode.js";
import { factsOf, showStatus, showTooltip, spoken, stackText } from "./details.js";
import { prepareDialogs } from "./dialogs.js";
import { byId, copy, el, forgetTheme } from "./dom.js";
import { amount, bytes, count, percent, plural } from "./format.js";
import { Graph } from "./graph.js";
import { showHeader } from "./header.js";
import { listen } from "./input.js";
import { InvertedTree } from "./inverted_tree.js";
import { brief, commonDirectory, segments, shortPath } from "./names.js";
import { compile, matchedTotal, matchingFrames } from "./search.js";
import { kindOf, ownSites } from "./sites.js";
import { SiteTable } from "./site_table.js";
import { formatHash, parseHash, START } from "./state.js";
import { Timeline } from "./timeline.js";

/** @typedef {import("./call_tree.js").Tree} Tree */
/** @typedef {import("./state.js").State} State */

const TITLES = { live: "still live", peak: "at the high-water mark", total: "allocated in total" };

/** More crumbs than this are not made: nobody reads ten thousand. */
const CRUMBS = 60;

class Page {
  /** @param {import("./decode.js").Profile} profile */
  constructor(profile) {
    this.profile = profile;
    this.rootFirst = new CallTree(profile);
    /** @type {InvertedTree | null} made when first asked for */
    this.leafFirst = null;
    this.legend = swatches(this.rootFirst);
    this.variables = profile.head.packages.map((_, index) => {
      const swatch = this.legend.find(({ packages }) => packages.includes(index));
      return swatch?.variable ?? "--dep-more";
    });
    /** @type {State} */
    this.state = this.possible(parseHash(location.hash));
    /** Outermost matches of the search, largest first, and which was shown last. */
    this.matches = /** @type {number[]} */ ([]);
    this.match = -1;
    /** @type {Map<string, import("./sites.js").OwnSite[]>} */
    this.sites = new Map();
    /** @type {{search: string, hits: Uint8Array | null, error: string}} */
    this.searched = { search: "", hits: null, error: "" };

    const own = profile.frames.file.map((file, frame) => (kindOf(profile, frame) === OWN ? file : -1));
    const files = [...new Set(own)].filter((file) => file >= 0).map((file) => profile.strings[file]);
    this.common = commonDirectory(files);

    showHeader(this.rootFirst);
    prepareDialogs(profile.head);
    this.timeline = new Timeline(
      byId("timeline", HTMLElement),
      byId("curve", HTMLCanvasElement),
      byId("reading", HTMLElement),
      profile,
    );
    this.table = new SiteTable(
      profile,
      (frame) => this.shortPlace(frame),
      (site) => this.goToSite(site),
    );
    this.graph = new Graph(
      byId("scroller", HTMLElement),
      byId("graph", HTMLCanvasElement),
      byId("spacer", HTMLElement),
      profile,
      this.variables,
    );
    listen(this.graph, {
      zoom: (node) => this.zoom(node),
      select: (node) => this.select(node),
      point: (box, x, y) => this.point(box, x, y),
      copy: () => this.copyStack(),
    });
    this.wireControls();
    this.wireTheme();
    this.render();
  }

  /** @returns {Tree} of the present order */
  get tree() {
    if (this.state.order === "root") {
      return this.rootFirst;
    }
    this.leafFirst ??= new InvertedTree(this.rootFirst);
    return this.leafFirst;
  }

  get look() {
    const title = `all ${TITLES[this.state.view]}`;
    return { profile: this.profile, tree: this.tree, state: this.state, title, variables: this.variables };
  }

  /** @returns {number} the zoomed node; the deepest that exists of the path in the state */
  get zoomed() {
    let node = 0;
    for (const frame of this.state.zoom) {
      const child = this.tree.childOf(node, frame);
      if (child < 0) {
        break;
      }
      node = child;
    }
    return node;
  }

  /**
   * @param {State} state
   * @returns {State} without a view that this report does not have
   */
  possible(state) {
    return this.has(state.view) ? state : { ...state, view: START.view };
  }

  /** @param {import("./decode.js").View} view */
  has(view) {
    // memray's aggregated captures do not tell what was allocated in total.
    return view !== "total" || this.rootFirst.valueOf(0, measureOf("total", "count")) > 0;
  }

  /** @param {number} frame */
  shortPlace(frame) {
    const { strings, frames } = this.profile;
    const path = shortPath(strings[frames.file[frame]], this.common);
    return frames.line[frame] > 0 ? `${path}:${frames.line[frame]}` : path;
  }

  /**
   * @param {Partial<State>} change
   * @param {boolean} step whether the browser's back button undoes it
   */
  change(change, step) {
    this.state = { ...this.state, ...change };
    const hash = formatHash(this.state);
    if (hash !== (location.hash || "#")) {
      history[step ? "pushState" : "replaceState"](null, "", hash);
    }
    this.render();
  }

  /** @param {number} node */
  zoom(node) {
    const frames = pathTo(this.tree, node).map((at) => this.tree.frameOf(at));
    this.graph.selected = node;
    this.change({ zoom: frames }, true);
    this.say(`Zoomed to ${spoken(factsOf(this.look, node))}`);
  }

  /** @param {number} node */
  select(node) {
    const zoom = this.zoomed;
    const inside = node === zoom || pathTo(this.tree, node).includes(zoom) || zoom === 0;
    this.graph.select(node);
    if (!inside) {
      this.zoom(Math.max(0, this.tree.parentOf(node)));
      this.graph.select(node);
    }
    this.graph.reveal(node);
    const facts = factsOf(this.look, node);
    showStatus(facts);
    this.say(spoken(facts));
  }

  /**
   * @param {import("./graph.js").Box | null} box
   * @param {number} x
   * @param {number} y
   */
  point(box, x, y) {
    if (box === null) {
      showTooltip(null, "", 0, 0);
      showStatus(factsOf(this.look, this.graph.selected));
      return;
    }
    const facts = factsOf(this.look, box.node);
    const rest = box.more > 0 ? `${plural(box.more, "call")} too narrow to show here` : "";
    showTooltip(facts, rest, x, y);
    showStatus(facts);
  }

  /** @param {import("./sites.js").OwnSite} site */
  goToSite(site) {
    const present = this.state.order === "root" ? site.nodes.indexOf(this.zoomed) : -1;
    const node = site.nodes[(present + 1) % site.nodes.length];
    this.state = { ...this.state, order: "root" };
    this.zoom(node);
    if (site.nodes.length > 1) {
      const which = ((present + 1) % site.nodes.length) + 1;
      this.toast(`Place ${which} of ${count(site.nodes.length)} in the graph. Click again for the next.`);
    }
  }

  async copyStack() {
    const text = stackText(this.look, this.graph.selected);
    this.toast(text === "" ? "Select a frame first." : (await copy(text)) ? "Stack copied." : "The browser refused to copy.");
  }

  /** @param {string} text for a screen reader */
  say(text) {
    byId("live", HTMLElement).textContent = text;
  }

  /** @param {string} text */
  toast(text) {
    const toast = byId("toast", HTMLElement);
    toast.textContent = text;
    toast.classList.add("shown");
    clearTimeout(this.toastTimer);
    this.toastTimer = setTimeout(() => toast.classList.remove("shown"), 2600);
  }

  /** @returns {Uint8Array | null} by frame, what stands out */
  hits() {
    const { search, crate } = this.state;
    if (search !== this.searched.search) {
      const { regex, error } = compile(search);
      this.searched = { search, error, hits: regex === null ? null : matchingFrames(this.profile, regex) };
    }
    const swatch = this.legend.find(({ name }) => name === crate);
    if (swatch === undefined) {
      return this.searched.hits;
    }
    const found = this.searched.hits;
    const members = new Set(swatch.packages);
    return Uint8Array.from(this.profile.frames.package, (index, frame) =>
      members.has(index) && (found === null || found[frame] === 1) ? 1 : 0,
    );
  }

  render() {
    const { state, look } = this;
    const measure = measureOf(state.view, state.by);
    const zoom = this.zoomed;
    const hits = this.hits();
    const whole = this.rootFirst.valueOf(0, measure);
    const unit = state.by === "bytes" ? bytes(whole) : plural(whole, "block");
    this.graph.show({ tree: look.tree, measure, grow: state.grow, zoom, title: `${look.title} · ${unit}`, hits });
    this.graph.selected = zoom;
    byId("empty", HTMLElement).hidden = whole > 0;

    const key = `${state.view} ${state.by}`;
    let sites = this.sites.get(key);
    if (sites === undefined) {
      sites = ownSites(this.rootFirst, state.view, state.by);
      this.sites.set(key, sites);
    }
    if (this.table.sites !== sites) {
      this.table.show(sites, state.view, state.by);
    }
    this.renderCrumbs(zoom);
    this.renderMatches(hits, measure, whole);
    this.renderControls();
    showStatus(factsOf(look, zoom));
    document.title = `${byId("program", HTMLElement).textContent} · ${TITLES[state.view]} · heapray`;
  }

  /** @param {number} zoom */
  renderCrumbs(zoom) {
    const path = pathTo(this.tree, zoom);
    const { strings, frames } = this.profile;
    const crumb = (/** @type {number} */ node, /** @type {string} */ text) => {
      const button = el("button", "crumb", text);
      button.type = "button";
      button.addEventListener("click", () => this.zoom(node));
      return el("li", "", button);
    };
    const named = (/** @type {number} */ node) => {
      const frame = this.tree.frameOf(node);
      const name = strings[frames.function[frame]];
      const item = crumb(node, brief(segments(name)));
      item.title = name;
      item.classList.toggle("own", kindOf(this.profile, frame) === OWN);
      return item;
    };
    const left = path.length > CRUMBS ? path.length - CRUMBS : 0;
    const items = [crumb(0, "all")];
    if (left > 0) {
      items.push(el("li", "left-out", `${count(left)} frames`));
    }
    items.push(...path.slice(left).map(named));
    items[items.length - 1].ariaCurrent = "location";
    const list = byId("crumbs", HTMLElement);
    list.replaceChildren(...items);
    // Asking for its width makes the browser lay out the page: not when there is nothing to scroll.
    if (path.length > 0) {
      list.scrollLeft = list.scrollWidth;
    }
  }

  /**
   * @param {Uint8Array | null} hits
   * @param {number} measure
   * @param {number} whole
   */
  renderMatches(hits, measure, whole) {
    const result = byId("search-result", HTMLElement);
    const { error } = this.searched;
    byId("search", HTMLInputElement).ariaInvalid = String(error !== "");
    result.classList.toggle("wrong", error !== "");
    if (hits === null || error !== "") {
      this.matches = [];
      this.match = -1;
      result.textContent = error;
      return;
    }
    const { value, nodes } = matchedTotal(this.rootFirst, hits, measure);
    this.matches = nodes;
    result.textContent = nodes.length === 0 ? "No match" : `${percent(value, whole)} · ${amount(value, this.state.by)}`;
    result.title = `in ${plural(nodes.length, "place")}`;
  }

  renderControls() {
    for (const input of document.querySelectorAll("input[type=radio]")) {
      if (input instanceof HTMLInputElement) {
        const key = /** @type {"view" | "by" | "order" | "grow"} */ (input.name);
        input.checked = this.state[key] === input.value;
      }
    }
    const search = byId("search", HTMLInputElement);
    if (search.value !== this.state.search) {
      search.value = this.state.search;
    }
    const legend = byId("legend", HTMLElement);
    if (legend.childElementCount === 0) {
      legend.append(...this.legend.map((swatch) => this.legendItem(swatch)));
    }
    for (const item of legend.querySelectorAll("button")) {
      item.ariaPressed = String(item.value === this.state.crate);
    }
    legend.classList.toggle("chosen", this.state.crate !== "");
  }

  /** @param {import("./colors.js").Swatch} swatch */
  legendItem({ name, variable }) {
    const color = el("i", "swatch");
    color.style.background = `var(${variable})`;
    const button = el("button", "", color, name);
    button.type = "button";
    button.value = name;
    button.title = `Let ${name} stand out`;
    button.addEventListener("click", () => this.change({ crate: this.state.crate === name ? "" : name }, false));
    return el("li", "", button);
  }

  /** @param {number} step forward or back through the matches, largest first */
  nextMatch(step) {
    if (this.matches.length > 0) {
      this.match = (this.match + step + this.matches.length) % this.matches.length;
      this.state = { ...this.state, order: "root" };
      this.zoom(this.matches[this.match]);
      this.toast(`Match ${count(this.match + 1)} of ${count(this.matches.length)}, largest first.`);
    }
  }

  wireControls() {
    for (const view of VIEWS) {
      byId(`view-${view}`, HTMLElement).hidden = !this.has(view);
    }
    byId("controls", HTMLFormElement).addEventListener("submit", (event) => event.preventDefault());
    byId("controls", HTMLFormElement).addEventListener("change", (event) => {
      const { target } = event;
      if (target instanceof HTMLInputElement && target.type === "radio") {
        // Another order is another tree: a path through one says nothing in the other.
        const zoom = target.name === "order" ? { zoom: [] } : {};
        this.change({ [target.name]: target.value, ...zoom }, true);
      }
    });
    const search = byId("search", HTMLInputElement);
    search.addEventListener("input", () => {
      this.match = -1;
      this.change({ search: search.value }, false);
    });
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        this.nextMatch(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") {
        this.change({ search: "" }, false);
        byId("scroller", HTMLElement).focus();
      }
    });
    byId("copy", HTMLButtonElement).addEventListener("click", () => this.copyStack());
    byId("reset", HTMLButtonElement).addEventListener("click", () => this.zoom(0));
    addEventListener("popstate", () => this.restore());
    addEventListener("hashchange", () => this.restore());
    addEventListener("keydown", (event) => this.shortcut(event));
  }

  restore() {
    this.state = this.possible(parseHash(location.hash));
    this.render();
  }

  /** @param {KeyboardEvent} event */
  shortcut(event) {
    const typing = event.target instanceof HTMLInputElement && event.target.type !== "radio";
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null) {
      return;
    }
    /** @type {Record<string, () => void>} */
    const deeds = {
      "/": () => byId("search", HTMLInputElement).focus(),
      "?": () => byId("help", HTMLDialogElement).showModal(),
      n: () => this.nextMatch(1),
      N: () => this.nextMatch(-1),
    };
    if (event.key in deeds) {
      event.preventDefault();
      deeds[event.key]();
    }
  }

  wireTheme() {
    const root = document.documentElement;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const repaint = () => {
      forgetTheme();
      this.graph.retheme();
      this.timeline.paint();
    };
    dark.addEventListener("change", repaint);
    byId("theme", HTMLButtonElement).addEventListener("click", () => {
      const isDark = root.dataset.theme === "dark" || (root.dataset.theme !== "light" && dark.matches);
      root.dataset.theme = isDark ? "light" : "dark";
      try {
        localStorage.setItem("heapray-theme", root.dataset.theme);
      } catch {
        // As above.
      }
      repaint();
    });
  }
}

try {
  document.documentElement.dataset.theme = localStorage.getItem("heapray-theme") ?? "";
} catch {
  // Pages from disk may have no storage: the system's theme then.
}
try {
  const data = byId("data", HTMLScriptElement);
  const profile = await decode(data.textContent ?? "");
  // The text is the largest string of the page and has served.
  data.remove();
  performance.mark("decoded");
  new Page(profile);
  performance.mark("shown");
  document.documentElement.dataset.ready = "true";
} catch (failure) {
  const text = failure instanceof Error ? failure.message : String(failure);
  byId("failure", HTMLElement).textContent = `This page cannot show its report: ${text}`;
  throw failure;
}
