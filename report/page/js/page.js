// Connects the parts of the page: there is one state, and everything shown is a function of the state and the report.

import { showAdvice } from "./advice_pane.js";
import { nodeAt, pathTo } from "./call_tree.js";
import { Controls } from "./controls.js";
import { ContextsPane } from "./contexts_pane.js";
import { showCrumbs } from "./crumbs.js";
import { factsOf, showStatus, showTooltip, spoken, stackText } from "./details.js";
import { prepareDialogs } from "./dialogs.js";
import { byId, copy, el, forgetTheme } from "./dom.js";
import { amount, bytes, count, percent, plural } from "./format.js";
import { Graph } from "./graph.js";
import { showGrowth } from "./growth_pane.js";
import { showHeader } from "./header.js";
import { listen } from "./input.js";
import { leakNote } from "./leak_list.js";
import { placesOfLine } from "./leaks.js";
import { framesAt } from "./line_link.js";
import { showMemory } from "./memory_pane.js";
import { Minimap } from "./minimap.js";
import { Model } from "./model.js";
import { Outline } from "./outline.js";
import { snap } from "./ranges.js";
import { SandwichPane } from "./sandwich_pane.js";
import { matchedTotal } from "./search.js";
import { ownSites } from "./sites.js";
import { SiteTable } from "./site_table.js";
import { START, formatHash, parseHash, rangeOf } from "./state.js";
import { showStats } from "./stats_pane.js";
import { TablePane } from "./table_pane.js";
import { Timeline } from "./timeline.js";
import { wire } from "./wiring.js";

/** @typedef {import("./call_tree.js").Tree} Tree */
/** @typedef {import("./state.js").State} State */

export class Page {
  /** @param {import("./decode.js").Profile} profile */
  constructor(profile) {
    this.model = new Model(profile);
    const { names, variables } = this.model;
    /** @type {State} */
    this.state = this.model.possible(parseHash(location.hash));
    this.look = this.model.look(this.state);
    /** Outermost matches of the search, largest first, and which was shown last. */
    this.matches = /** @type {number[]} */ ([]);
    this.match = -1;
    /** The place of a call site that was shown last. */
    this.walk = { nodes: /** @type {number[]} */ ([]), at: 0 };
    /** @type {{key: string, sites: import("./sites.js").CallSite[]}} of the rail */
    this.rail = { key: "", sites: [] };

    showHeader(this.model.whole, leakNote(names, () => this.change({ tab: "growth" }, true)));
    prepareDialogs();
    this.controls = new Controls(this.model, (change, step) => this.change(change, step), (text) => this.toast(text));
    this.timeline = new Timeline(
      byId("timeline", HTMLElement),
      byId("curve", HTMLCanvasElement),
      byId("reading", HTMLElement),
      profile,
      { range: (from, to, done) => this.chooseRange(from, to, done), clear: () => this.controls.clearRange() },
    );
    const goTo = (/** @type {number[]} */ nodes) => this.goTo(nodes);
    this.sites = new SiteTable(names, (site) => goTo(site.nodes));
    this.table = new TablePane((change) => this.change(change, false), goTo);
    this.contexts = new ContextsPane(profile.head, (change, step) => this.change(change, step));
    this.outline = new Outline(byId("outline", HTMLElement), (node) => this.tell(this.look.ordered, node), (node) => this.zoom(node, "graph"));
    this.sandwich = new SandwichPane(names, variables, {
      choose: (name) => this.change({ function: name.toString(36) }, true),
      point: (tree, box, x, y) => this.point(tree, box, x, y),
      select: (tree, node) => this.tell(tree, node),
      copy: (tree, node) => this.copyStack(tree, node, false),
    });
    this.graph = new Graph(
      byId("scroller", HTMLElement),
      byId("graph", HTMLCanvasElement),
      byId("spacer", HTMLElement),
      names,
      variables,
    );
    this.minimap = new Minimap(byId("minimap", HTMLCanvasElement), this.graph, (node) => this.zoom(node));
    this.graph.settled = () => this.minimap.follow();
    listen(this.graph, {
      zoom: (node) => this.zoom(node),
      select: (node) => this.select(node),
      point: (box, x, y) => this.point(this.look.ordered, box, x, y),
      copy: () => this.copyStack(this.look.ordered, this.graph.selected, this.state.order === "leaf"),
      sandwich: () => this.openSandwich(),
    });
    wire(this);
    this.render();
  }

  /** @returns {number} the zoomed node */
  get zoomed() {
    return nodeAt(this.look.ordered, this.state.zoom);
  }

  /**
   * @param {Partial<State>} change
   * @param {boolean} step whether the browser's back button undoes it
   */
  change(change, step) {
    this.state = this.model.possible({ ...this.state, ...change });
    const hash = formatHash(this.state);
    if (hash !== (location.hash || "#")) {
      history[step ? "pushState" : "replaceState"](null, "", hash);
    }
    this.render();
  }

  /**
   * @param {number} node of the present order
   * @param {State["tab"]} tab
   */
  zoom(node, tab = this.state.tab) {
    const tree = this.look.ordered;
    if (node === 0 && this.zoomed === 0) {
      // Nothing is zoomed: what is out of sight between the root and the first branch is wanted.
      this.graph.scrollToDepth(0);
    }
    const frames = pathTo(tree, node).map((at) => tree.frameOf(at));
    this.change({ zoom: frames, tab }, true);
    this.graph.selected = this.zoomed;
    this.say(`Zoomed to ${spoken(factsOf(this.look, this.look.ordered, this.zoomed))}`);
  }

  /** @param {number} node of the graph */
  select(node) {
    const tree = this.look.ordered;
    const zoom = this.zoomed;
    const inside = node === zoom || pathTo(tree, node).includes(zoom) || zoom === 0;
    this.graph.select(node);
    if (!inside) {
      this.zoom(Math.max(0, tree.parentOf(node)));
      this.graph.select(node);
    }
    this.graph.reveal(node);
    this.tell(tree, node);
  }

  /**
   * @param {Tree} tree
   * @param {number} node
   */
  tell(tree, node) {
    const facts = factsOf(this.look, tree, node);
    showStatus(facts);
    this.say(spoken(facts));
  }

  /** Opens the source of the selected box, if it has an address. */
  openSource() {
    const { url } = factsOf(this.look, this.look.ordered, this.graph.selected);
    if (url === "") {
      this.say("The address of this source is not known");
    } else {
      window.open(url, "_blank", "noopener,noreferrer");
    }
  }

  /**
   * @param {Tree} tree
   * @param {import("./graph.js").Box | null} box
   * @param {number} x
   * @param {number} y
   */
  point(tree, box, x, y) {
    if (box === null || tree === undefined) {
      showTooltip(null, "", 0, 0);
      if (this.state.tab === "graph") {
        showStatus(factsOf(this.look, this.look.ordered, this.graph.selected));
      }
      return;
    }
    const facts = factsOf(this.look, tree, box.node);
    const rest = box.more > 0 ? `${plural(box.more, "call")} too narrow to show here` : "";
    showTooltip(facts, rest, x, y);
    showStatus(facts);
  }

  /** @param {number[]} nodes places of the tree with every frame; the next of them at every call with the same */
  goTo(nodes) {
    const next = this.walk.nodes === nodes ? (this.walk.at + 1) % nodes.length : 0;
    this.walk = { nodes, at: next };
    const { whole } = this.look;
    const zoom = pathTo(whole, nodes[next]).map((node) => whole.frameOf(node));
    this.change({ zoom, order: "root", tab: "graph" }, true);
    this.say(`Zoomed to ${spoken(factsOf(this.look, this.look.ordered, this.zoomed))}`);
    if (nodes.length > 1) {
      this.toast(`Place ${count(next + 1)} of ${count(nodes.length)} in the graph. Click again for the next.`);
    }
  }

  /**
   * Shows the line of a link in the graph.
   * @param {import("./line_link.js").Place} place
   */
  openLine(place) {
    const same = this.model.same?.same ?? null;
    const found = framesAt(this.model.profile, place).some((frame) => this.goToLine(same?.[frame] ?? frame));
    if (!found) {
      this.toast(`Nothing of ${place.file}:${place.line} is live in this report.`);
    }
  }

  /**
   * Shows a line of the ranking, which filters do not change: those that hide the line are cleared.
   * @param {number} frame
   * @returns {boolean} whether the line holds memory
   */
  goToLine(frame) {
    const same = this.model.same?.same ?? null;
    const { thread, allocator, where, only, matching } = START;
    const shown = { ...this.state, view: START.view, order: START.order, tab: START.tab };
    for (const wish of [shown, { ...shown, thread, allocator, where, only, matching }]) {
      const { whole } = this.model.look(wish);
      const [node] = placesOfLine(whole, frame, same);
      if (node !== undefined) {
        this.change({ ...wish, zoom: pathTo(whole, node).map((at) => whole.frameOf(at)) }, true);
        this.say(`Zoomed to ${spoken(factsOf(this.look, this.look.ordered, this.zoomed))}`);
        return true;
      }
    }
    return false;
  }

  openSandwich() {
    const tree = this.look.ordered;
    const frame = tree.frameOf(this.state.tab === "tree" ? this.outline.at : this.graph.selected);
    if (frame < 0) {
      this.toast("Select a frame first.");
      return;
    }
    this.change({ tab: "sandwich", function: this.model.names.profile.frames.function[frame].toString(36) }, true);
  }

  /**
   * @param {number} from in milliseconds
   * @param {number} to
   * @param {boolean} done
   */
  chooseRange(from, to, done) {
    const { source } = this.model;
    if (source === null) {
      if (done) {
        this.toast(this.controls.rangeNote());
      }
      return;
    }
    const [first, last] = snap(source, from, to);
    if (!done) {
      this.timeline.show({ from: first, to: last });
      return;
    }
    this.change({ view: "range", range: `${Math.round(first)}-${Math.round(last)}` }, this.state.view !== "range");
    this.say(`Range chosen: ${byId("range-text", HTMLElement).textContent}`);
  }

  /**
   * @param {Tree} tree
   * @param {number} node
   * @param {boolean} leafFirst
   */
  async copyStack(tree, node, leafFirst) {
    const text = stackText(this.look, tree, node, leafFirst);
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
    this.toastTimer = setTimeout(() => toast.classList.remove("shown"), 2000 + 40 * text.length);
  }

  render() {
    const { state } = this;
    const look = this.model.look(state);
    this.look = look;
    this.controls.show(state, look);
    this.timeline.show(state.view === "range" ? rangeOf(state) : null);
    this.renderMatches();
    const goTo = (/** @type {number[]} */ nodes) => this.goTo(nodes);
    const goToLine = (/** @type {number} */ frame) => this.goToLine(frame);
    const change = (/** @type {Partial<State>} */ wish) => this.change(wish, true);
    /** @type {Record<State["tab"], () => void>} */
    const panes = {
      graph: () => this.renderGraph(),
      table: () => this.table.show(look),
      tree: () => this.outline.show(look, this.zoomed),
      sandwich: () => this.sandwich.show(look),
      contexts: () => this.contexts.show(look),
      growth: () => showGrowth(byId("pane-growth", HTMLElement), look, change, goTo, goToLine),
      memory: () => showMemory(byId("pane-memory", HTMLElement), this.model.profile),
      advice: () => showAdvice(byId("pane-advice", HTMLElement), look, goTo, goToLine),
      stats: () => showStats(byId("pane-stats", HTMLElement), this.model.profile),
    };
    panes[state.tab]();
    if (state.tab === "graph" || state.tab === "tree") {
      this.renderRail();
      showStatus(factsOf(look, look.ordered, this.zoomed));
    }
    document.title = `${byId("program", HTMLElement).textContent} · ${look.title.replace("all ", "")} · heapray`;
  }

  renderGraph() {
    const { state, look } = this;
    const zoom = this.zoomed;
    const whole = look.tree.valueOf(0, look.measure);
    const unit = state.by === "bytes" ? bytes(whole) : plural(whole, "block");
    const title = `${look.title} · ${unit}`;
    this.graph.show({ tree: look.ordered, measure: look.measure, grow: state.grow, zoom, title, hits: look.hits });
    this.graph.selected = zoom;
    byId("empty", HTMLElement).hidden = whole > 0;
    showCrumbs(look, zoom, (node) => this.zoom(node));
    this.renderLegend();
  }

  renderRail() {
    const { state, look } = this;
    const key = [look.key, state.view, state.by].join("\n");
    if (this.rail.key !== key) {
      this.rail = { key, sites: ownSites(look.whole, state.view, state.by) };
      this.sites.show(this.rail.sites, state.view, state.by);
    }
  }

  renderMatches() {
    const { look, state } = this;
    const result = byId("search-result", HTMLElement);
    const { error } = this.model.searched;
    byId("search", HTMLInputElement).ariaInvalid = String(error !== "");
    result.classList.toggle("wrong", error !== "");
    if (look.hits === null || error !== "") {
      this.matches = [];
      this.match = -1;
      result.textContent = error;
      return;
    }
    const { value, nodes } = matchedTotal(look.tree, look.hits, look.measure);
    this.matches = nodes;
    const whole = look.tree.valueOf(0, look.measure);
    result.textContent = nodes.length === 0 ? "No match" : `${percent(value, whole)} · ${amount(value, state.by)}`;
    result.title = `in ${plural(nodes.length, "place")}`;
  }

  renderLegend() {
    const legend = byId("legend", HTMLElement);
    if (legend.childElementCount === 0) {
      legend.append(
        ...this.model.legend.map(({ name, variable }) => {
          const color = el("i", "swatch");
          color.style.background = `var(${variable})`;
          const button = el("button", "", color, name);
          button.type = "button";
          button.value = name;
          button.title = `Let ${name} stand out`;
          button.addEventListener("click", () => this.change({ crate: this.state.crate === name ? "" : name }, false));
          return el("li", "", button);
        }),
      );
    }
    for (const item of legend.querySelectorAll("button")) {
      item.ariaPressed = String(item.value === this.state.crate);
    }
    legend.classList.toggle("chosen", this.state.crate !== "");
  }

  /** @param {number} step forward or back through the matches, largest first */
  nextMatch(step) {
    if (this.matches.length > 0) {
      this.match = (this.match + step + this.matches.length) % this.matches.length;
      const node = this.matches[this.match];
      const { tree } = this.look;
      this.change({ zoom: pathTo(tree, node).map((at) => tree.frameOf(at)), order: "root", tab: "graph" }, true);
      this.toast(`Match ${count(this.match + 1)} of ${count(this.matches.length)}, largest first.`);
    }
  }

  retheme() {
    forgetTheme();
    this.graph.retheme();
    this.sandwich.retheme();
    this.timeline.paint();
    this.minimap.follow();
  }
}
