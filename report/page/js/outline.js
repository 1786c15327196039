// The call tree as an outline, top-down or bottom-up according to the order, opened along the largest nodes.

import { el } from "./dom.js";
import { amount, count, percent } from "./format.js";

/** @typedef {import("./model.js").Look} Look */

/** Number of children that are shown at once. */
const OUTLINE_STEP = 60;
/** Nodes that are opened automatically: those with this share of the whole, at most so many levels below the zoomed node. */
const LARGE = 0.2;
const LEVELS = 24;
/** Largest depth of indentation. */
const DEEPEST = 40;

export class Outline {
  /**
   * @param {HTMLElement} box with the role of a tree
   * @param {(node: number) => void} select
   * @param {(node: number) => void} zoom shows the node in the graph
   */
  constructor(box, select, zoom) {
    this.box = box;
    this.select = select;
    this.zoom = zoom;
    /** @type {Look | null} */
    this.look = null;
    /** Nodes whose children are shown, and how many. @type {Map<number, number>} */
    this.open = new Map();
    /** The order of the lines, for the keys. @type {number[]} */
    this.nodes = [];
    this.at = 0;
    this.key = "";
    box.addEventListener("keydown", (event) => this.press(event));
    box.addEventListener("click", (event) => this.click(event));
  }

  /**
   * @param {Look} look
   * @param {number} zoomed
   */
  show(look, zoomed) {
    const key = [look.key, look.state.order, look.measure, zoomed].join("\n");
    this.look = look;
    if (this.key !== key) {
      this.key = key;
      this.open.clear();
      const { ordered: tree, measure } = look;
      for (let at = zoomed; at >= 0; at = tree.parentOf(at)) {
        this.open.set(at, OUTLINE_STEP);
      }
      const whole = tree.valueOf(0, measure);
      for (let at = zoomed, left = LEVELS; left > 0; left -= 1) {
        const [largest] = tree.childrenOf(at, measure);
        if (largest === undefined || tree.valueOf(largest, measure) < LARGE * whole) {
          break;
        }
        this.open.set(largest, OUTLINE_STEP);
        at = largest;
      }
      this.at = zoomed;
    }
    this.render();
  }

  render() {
    const { look } = this;
    if (look === null) {
      return;
    }
    const { ordered: tree, measure } = look;
    this.nodes = [];
    const lines = [];
    /** @type {{node: number, place: number, of: number}[]} */
    const due = [{ node: 0, place: 1, of: 1 }];
    while (due.length > 0) {
      const { node, place, of } = /** @type {{node: number, place: number, of: number}} */ (due.pop());
      if (node < 0) {
        lines.push(this.moreLine(~node, place));
        continue;
      }
      const children = tree.childrenOf(node, measure);
      this.nodes.push(node);
      lines.push(this.line(node, children.length, place, of));
      const shown = this.open.get(node) ?? 0;
      if (children.length > shown && shown > 0) {
        due.push({ node: ~node, place: children.length - shown, of: 0 });
      }
      for (let i = Math.min(shown, children.length) - 1; i >= 0; i -= 1) {
        due.push({ node: children[i], place: i + 1, of: children.length });
      }
    }
    this.box.replaceChildren(...lines);
    this.mark(this.at, false);
  }

  /**
   * @param {number} node
   * @param {number} children
   * @param {number} place among its siblings, from 1
   * @param {number} of how many
   */
  line(node, children, place, of) {
    const { ordered: tree, measure, names, state, variables, title } = /** @type {Look} */ (this.look);
    const frame = tree.frameOf(node);
    const value = tree.valueOf(node, measure);
    const whole = tree.valueOf(0, measure);
    const color = el("i", "swatch");
    const packages = names.profile.frames.package;
    color.style.background = frame < 0 ? "var(--root-fill)" : `var(${variables[packages[frame]]})`;
    const name = el("span", "name", frame < 0 ? title : names.shown(frame));
    name.title = frame < 0 ? "" : `${names.full(frame)}\n${names.fullPlace(frame)}`;
    const share = el("i", "share-bar");
    share.style.width = `${whole > 0 ? (100 * value) / whole : 0}%`;
    const what = el("span", "what", el("i", children > 0 ? "twist" : "twist none"), color, name, el("span", "place", names.place(frame)));
    what.style.setProperty("--depth", String(Math.min(tree.depthOf(node), DEEPEST)));
    const line = el(
      "div",
      "line",
      what,
      el("span", "amount", share, amount(value, state.by)),
      el("span", "percent", percent(value, whole)),
      el("span", "self", state.order === "leaf" || node === 0 ? "" : amount(tree.ownOf(node, measure), state.by)),
    );
    line.role = "treeitem";
    line.id = `line-${node}`;
    line.dataset.node = String(node);
    line.ariaLevel = String(tree.depthOf(node) + 1);
    line.ariaPosInSet = String(place);
    line.ariaSetSize = String(of);
    line.ariaSelected = "false";
    if (children > 0) {
      line.ariaExpanded = String(this.open.has(node));
    }
    return line;
  }

  /**
   * @param {number} node
   * @param {number} rest
   */
  moreLine(node, rest) {
    const button = el("button", "", `${count(rest)} more`);
    button.type = "button";
    button.dataset.more = String(node);
    button.tabIndex = -1;
    const { ordered: tree } = /** @type {Look} */ (this.look);
    const line = el("div", "line more", button);
    line.role = "none";
    button.style.setProperty("--depth", String(Math.min(tree.depthOf(node), DEEPEST)));
    return line;
  }

  /** @param {MouseEvent} event */
  click(event) {
    const target = event.target instanceof Element ? event.target : null;
    const more = target?.closest("[data-more]");
    if (more instanceof HTMLElement) {
      this.openMore(Number(more.dataset.more));
      return;
    }
    const line = target?.closest("[data-node]");
    if (line instanceof HTMLElement) {
      const node = Number(line.dataset.node);
      this.at = node;
      this.toggle(node);
      this.select(node);
    }
  }

  /** @param {number} node */
  openMore(node) {
    this.open.set(node, (this.open.get(node) ?? 0) + 5 * OUTLINE_STEP);
    this.render();
  }

  /** @param {number} node */
  toggle(node) {
    if (!this.open.delete(node)) {
      this.open.set(node, OUTLINE_STEP);
    }
    this.render();
  }

  /**
   * @param {number} node
   * @param {boolean} into whether it is scrolled into sight
   */
  mark(node, into) {
    this.box.querySelector(".line.at")?.classList.remove("at");
    const line = document.getElementById(`line-${node}`);
    if (line !== null) {
      line.classList.add("at");
      line.ariaSelected = "true";
      this.box.setAttribute("aria-activedescendant", line.id);
      if (into) {
        line.scrollIntoView({ block: "nearest" });
      }
    }
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const { look } = this;
    if (look === null || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const { ordered: tree, measure } = look;
    const index = this.nodes.indexOf(this.at);
    const children = tree.childrenOf(this.at, measure);
    const isOpen = this.open.has(this.at);
    const go = (/** @type {number} */ node) => {
      this.at = node;
      this.mark(node, true);
      this.select(node);
    };
    /** @type {Record<string, () => void>} */
    const deeds = {
      ArrowDown: () => go(this.nodes[Math.min(this.nodes.length - 1, index + 1)]),
      ArrowUp: () => go(this.nodes[Math.max(0, index - 1)]),
      Home: () => go(0),
      End: () => go(this.nodes[this.nodes.length - 1]),
      ArrowRight: () => (children.length === 0 ? undefined : isOpen ? go(children[0]) : this.toggle(this.at)),
      ArrowLeft: () => (isOpen ? this.toggle(this.at) : go(Math.max(0, tree.parentOf(this.at)))),
      " ": () => this.toggle(this.at),
      "+": () => (isOpen ? this.openMore(this.at) : this.toggle(this.at)),
      Enter: () => this.zoom(this.at),
    };
    if (event.key in deeds) {
      event.preventDefault();
      deeds[event.key]();
    }
  }
}
