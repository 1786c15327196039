// The flame graph on its canvas. The canvas is as high as its window and stays in place while a spacer behind it scrolls, so
// that a graph may be ten thousand frames deep.

import { isContextFrame } from "./contexts.js";
import { prepare, themed } from "./dom.js";
import { plural } from "./format.js";
import { boxAt, layout, spanOf } from "./layout.js";
import { fitted } from "./names.js";

/** @typedef {import("./call_tree.js").Tree} Tree */

/**
 * @typedef {object} Scene
 * @property {Tree} tree
 * @property {number} measure
 * @property {"down" | "up"} grow
 * @property {number} zoom node
 * @property {string} title what node 0 is called
 * @property {Uint8Array | null} hits by frame: 1 is highlighted, the others fade; null: no search
 *
 * @typedef {{node: number, more: number}} Box what lies under the pointer
 */

const SLIDE_MS = 140;
const PADDING = 5;
const FAMILY = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
/** Number of ancestors that stay visible above a zoomed box, besides the outermost one, which always is. */
const CONTEXT = 2;
/** Neighbours of one crate differ a little, since otherwise its functions would look like one box. */
const SHADES = [0, 0.1, 0.2];

/**
 * @param {string} color `rgb(…)`
 * @param {string} other
 * @param {number} share of `other`
 * @returns {string}
 */
function mix(color, other, share) {
  const parts = (/** @type {string} */ text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const [from, to] = [parts(color), parts(other)];
  return `rgb(${[0, 1, 2].map((i) => Math.round(from[i] * (1 - share) + to[i] * share)).join(" ")})`;
}

export class Graph {
  /**
   * @param {HTMLElement} scroller
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLElement} spacer
   * @param {import("./names.js").Names} names
   * @param {string[]} variables by package, the CSS variable of its colour
   */
  constructor(scroller, canvas, spacer, names, variables) {
    this.scroller = scroller;
    this.canvas = canvas;
    this.spacer = spacer;
    this.names = names;
    this.variables = variables;
    this.rowHeight = 20;
    this.fontSize = 12;
    /** @type {Scene | null} */
    this.scene = null;
    /** @type {import("./layout.js").Row[]} */
    this.rows = [];
    this.span = { from: 0, to: 1 };
    this.height = 0;
    // The window's size and place are kept, because reading them may cost a layout of the page.
    this.width = 0;
    this.inner = 0;
    this.scrolled = 0;
    /** The requested animation frame; 0 if there is none. */
    this.slide = 0;
    this.paintDue = 0;
    this.selected = 0;
    /** @type {Box | null} */
    this.hovered = null;
    /** Where the window was scrolled to, in pixels: as long as the user leaves it there, a new size scrolls again. */
    this.ledTo = -1;
    /** Set while the graph is painted for the printer. */
    this.printed = false;
    /** Set if the window scrolls to the first branch of the graph. */
    this.leads = true;
    /** Called after each new layout. */
    this.settled = () => {};
    this.theme = this.readTheme();

    scroller.addEventListener("scroll", () => this.paintSoon());
    // Also reports the first size, once the page is laid out: nothing is painted before.
    this.sized = false;
    new ResizeObserver(() => this.resize()).observe(scroller);
  }

  readTheme() {
    return {
      fills: this.variables.map((variable) => SHADES.map((share) => mix(themed(variable), themed("--panel"), share))),
      root: themed("--root-fill"),
      rest: themed("--rest-fill"),
      panel: themed("--panel"),
      text: themed("--box-text"),
      faded: themed("--box-text-faded"),
      ink: themed("--ink"),
      accent: themed("--accent"),
    };
  }

  /** Reads the colours again. */
  retheme() {
    this.theme = this.readTheme();
    this.paintSoon();
  }

  /**
   * Shows `scene`; slides if only the zoom differs.
   * @param {Scene} scene
   */
  show(scene) {
    const before = this.scene;
    this.scene = scene;
    this.hovered = null;
    if (!this.sized) {
      this.span = spanOf(scene.tree, scene.measure, scene.zoom);
      return;
    }
    const same = before !== null && before.tree === scene.tree && before.measure === scene.measure;
    const target = spanOf(scene.tree, scene.measure, scene.zoom);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    cancelAnimationFrame(this.slide);
    if (same && !still && before.grow === scene.grow && before.zoom !== scene.zoom) {
      this.slideTo(target);
    } else {
      this.span = target;
      this.relayout();
    }
    if (!same || before.zoom !== scene.zoom || before.grow !== scene.grow) {
      this.scrollToZoom();
    }
  }

  /** @param {import("./layout.js").Span} target */
  slideTo(target) {
    const origin = this.span;
    const began = performance.now();
    const step = () => {
      const passed = Math.min(1, (performance.now() - began) / SLIDE_MS);
      const ease = 1 - (1 - passed) ** 3;
      const between = (/** @type {number} */ a, /** @type {number} */ b) => a + (b - a) * ease;
      // Exactly the target at the end, without rounding errors.
      this.span =
        passed === 1 ? target : { from: between(origin.from, target.from), to: between(origin.to, target.to) };
      this.relayout();
      if (passed < 1) {
        this.slide = requestAnimationFrame(step);
      } else {
        this.scrollToZoom();
      }
    };
    step();
  }

  resize() {
    if (this.scroller.clientWidth === 0 || this.printed) {
      // The pane is not shown, or was made for paper.
      return;
    }
    this.width = this.scroller.clientWidth;
    this.inner = this.scroller.clientHeight;
    const size = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    this.rowHeight = Math.round(size * 1.55);
    this.fontSize = Math.round(size * 0.93);
    const led = this.scroller.scrollTop === this.ledTo;
    this.relayout();
    if (led || !this.sized) {
      this.sized = true;
      this.scrollToZoom();
      this.paint();
    }
  }

  /**
   * Paints all rows at once, for the printer, which does not scroll; or goes back to the window.
   * @param {boolean} on
   */
  printing(on) {
    this.printed = on;
    if (!on) {
      this.resize();
      return;
    }
    this.width = this.scroller.clientWidth;
    this.relayout();
    // So the graph is not higher than a page of the same width.
    this.rowHeight = Math.min(this.rowHeight, Math.max(4, Math.floor((1.1 * this.width) / Math.max(1, this.rows.length))));
    this.fontSize = Math.min(this.fontSize, Math.round(0.7 * this.rowHeight));
    this.inner = this.rows.length * this.rowHeight;
    this.relayout();
  }

  relayout() {
    const { scene, inner } = this;
    if (scene === null) {
      return;
    }
    this.rows = layout(scene.tree, scene.measure, this.span, this.width);
    const height = Math.max(this.rows.length * this.rowHeight, inner);
    // If it is scrolled to its end, the window shows whole rows.
    this.height = Math.ceil((height - inner) / this.rowHeight) * this.rowHeight + inner;
    this.spacer.style.height = `${this.height}px`;
    this.spacer.style.marginTop = `${-inner}px`;
    this.paint();
    this.settled();
  }

  /** Scrolls to the zoomed box, or to the first branch of the whole graph, which may be far away. */
  scrollToZoom() {
    const { scene } = this;
    if (scene === null) {
      return;
    }
    const { tree, measure } = scene;
    let node = scene.zoom;
    while (scene.zoom === 0 && this.leads) {
      const largest = tree.childrenOf(node, measure)[0];
      if (largest === undefined || tree.valueOf(largest, measure) < 0.9 * tree.valueOf(0, measure)) {
        break;
      }
      if (isContextFrame(this.names.profile, tree.frameOf(largest))) {
        // Who asks for a graph by route wants to see the routes.
        break;
      }
      node = largest;
    }
    // The window does not scroll beyond the last row: callers stay visible if there is room.
    this.scrollToDepth(Math.max(0, tree.depthOf(node) - CONTEXT - 1));
  }

  /** @param {number} depth to lie at the edge that the graph grows from */
  scrollToDepth(depth) {
    const offset = depth * this.rowHeight;
    const down = this.scene?.grow === "down";
    this.scroller.scrollTop = down ? offset : this.height - this.inner - offset;
    this.ledTo = this.scroller.scrollTop;
  }

  /** @param {number} node whose row shall be in sight */
  reveal(node) {
    if (this.scene === null) {
      return;
    }
    this.scrolled = this.scroller.scrollTop;
    const top = this.top(this.scene.tree.depthOf(node));
    // The pinned row takes one row at the outer edge.
    const down = this.scene.grow === "down";
    const first = down ? this.rowHeight : 0;
    const last = this.inner - (down ? 1 : 2) * this.rowHeight;
    if (top < first) {
      this.scroller.scrollTop += top - first;
    } else if (top > last) {
      this.scroller.scrollTop += top - last;
    }
  }

  /**
   * @param {number} depth
   * @returns {number} the row's upper edge in the window, in pixels
   */
  top(depth) {
    const down = this.scene?.grow === "down";
    const top = down ? depth * this.rowHeight : this.height - (depth + 1) * this.rowHeight;
    return top - this.scrolled;
  }

  /** @param {number} node to be outlined */
  select(node) {
    this.selected = node;
    this.paintSoon();
  }

  /** @param {Box | null} box under the pointer */
  hover(box) {
    if (box?.node !== this.hovered?.node || box?.more !== this.hovered?.more) {
      this.hovered = box;
      this.paintSoon();
    }
  }

  /**
   * @param {number} x in the scroller's window
   * @param {number} y
   * @returns {Box | null}
   */
  boxUnder(x, y) {
    const down = this.scene?.grow === "down";
    if (this.rows.length > 0 && y >= this.pinned() && y < this.pinned() + this.rowHeight) {
      return { node: 0, more: 0 };
    }
    const inside = y + this.scroller.scrollTop;
    const depth = Math.floor((down ? inside : this.height - inside) / this.rowHeight);
    const row = this.rows[depth];
    const index = row === undefined ? -1 : boxAt(row, x);
    return index < 0 ? null : { node: row.node[index], more: row.more[index] };
  }

  paintSoon() {
    if (this.paintDue === 0) {
      this.paintDue = requestAnimationFrame(() => this.paint());
    }
  }

  paint() {
    cancelAnimationFrame(this.paintDue);
    this.paintDue = 0;
    const { scene } = this;
    if (scene === null || this.width === 0) {
      return;
    }
    this.scrolled = this.scroller.scrollTop;
    const context = prepare(this.canvas, this.width, this.inner);
    context.font = `${this.fontSize}px ${FAMILY}`;
    context.textBaseline = "middle";
    for (const [depth, row] of this.rows.entries()) {
      const top = this.top(depth);
      if (top + this.rowHeight >= 0 && top <= this.inner) {
        this.paintRow(context, scene, row, top);
      }
    }
    this.paintSelection(context, scene);
    if (this.rows.length > 0 && this.top(0) !== this.pinned()) {
      context.fillStyle = this.theme.panel;
      context.fillRect(0, this.pinned(), this.width, this.rowHeight);
      this.paintRow(context, scene, this.rows[0], this.pinned());
      this.paintHidden(context, scene);
    }
  }

  /**
   * Says in the outermost row how many rows lie out of sight between it and the next one.
   * @param {CanvasRenderingContext2D} context
   * @param {Scene} scene
   */
  paintHidden(context, { grow, title }) {
    const scrolled = grow === "down" ? this.scrolled : this.height - this.inner - this.scrolled;
    const rows = Math.floor(scrolled / this.rowHeight);
    const text = grow === "down" ? `↑ ${plural(rows, "frame")} above` : `↓ ${plural(rows, "frame")} below`;
    const left = this.width - context.measureText(text).width - 2 * PADDING;
    if (rows > 0 && left > context.measureText(title).width + 6 * PADDING) {
      context.fillStyle = this.theme.text;
      context.fillText(text, left, this.pinned() + this.rowHeight / 2);
    }
  }

  /** @returns {number} the upper edge of the outermost row, which never leaves the window */
  pinned() {
    return this.scene?.grow === "up" ? this.inner - this.rowHeight : 0;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Scene} scene
   * @param {import("./layout.js").Row} row
   * @param {number} top
   */
  paintRow(context, scene, row, top) {
    const width = this.width;
    const height = this.rowHeight - 1;
    const { theme, hovered } = this;
    for (let i = 0; i < row.node.length; i += 1) {
      const node = row.node[i];
      const left = Math.max(row.left[i], 0);
      const right = Math.min(row.right[i], width);
      // Wide boxes keep a gap of a pixel; a run of narrow ones looks like one surface.
      const box = right - left > 3 ? right - left - 1 : Math.max(right - left, 0.5);
      const frame = scene.tree.frameOf(node);
      const faded = scene.hits !== null && (row.more[i] > 0 || frame < 0 || scene.hits[frame] === 0);
      if (row.more[i] > 0) {
        context.fillStyle = theme.rest;
      } else {
        context.fillStyle = this.fillOf(frame);
      }
      context.globalAlpha = faded ? 0.28 : 1;
      context.fillRect(left, top, box, height);
      if (hovered !== null && hovered.node === node && hovered.more === row.more[i]) {
        context.globalAlpha = 0.16;
        context.fillStyle = theme.ink;
        context.fillRect(left, top, box, height);
      }
      context.globalAlpha = 1;
      if (box > 2.5 * this.fontSize && row.more[i] === 0) {
        context.fillStyle = faded ? theme.faded : theme.text;
        this.paintLabel(context, this.nameParts(scene, node), left + PADDING, top + height / 2 + 0.5, box - 2 * PADDING);
      }
    }
  }

  /**
   * @param {Scene} scene
   * @param {number} node
   * @returns {string[]}
   */
  nameParts(scene, node) {
    const frame = scene.tree.frameOf(node);
    if (frame < 0) {
      return [scene.title];
    }
    return this.names.parts(this.names.profile.frames.function[frame]);
  }

  /**
   * @param {number} frame
   * @returns {string} its colour under the present theme
   */
  fillOf(frame) {
    const { package: packages, function: functions } = this.names.profile.frames;
    return frame < 0 ? this.theme.root : this.theme.fills[packages[frame]][functions[frame] % SHADES.length];
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {string[]} parts
   * @param {number} x
   * @param {number} y
   * @param {number} room in pixels
   */
  paintLabel(context, parts, x, y, room) {
    const text = fitted(parts, room, this.fontSize, (label) => context.measureText(label).width);
    if (text !== "") {
      context.fillText(text, x, y);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Scene} scene
   */
  paintSelection(context, scene) {
    const depth = scene.tree.depthOf(this.selected);
    const row = this.rows[depth];
    const index = row?.node.findIndex((node, i) => node === this.selected && row.more[i] === 0) ?? -1;
    if (index < 0 || (this.selected === 0 && document.activeElement !== this.scroller)) {
      return;
    }
    const left = Math.max(row.left[index], 0);
    const right = Math.min(row.right[index], this.width);
    context.strokeStyle = this.theme.accent;
    context.lineWidth = 2;
    context.strokeRect(left + 1, this.top(depth) + 1, Math.max(right - left - 3, 1), this.rowHeight - 3);
  }
}
