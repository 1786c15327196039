// The whole graph in a strip, with a frame around the zoomed part, for orientation.

import { prepare } from "./dom.js";
import { boxAt, layout } from "./layout.js";

const HEIGHT = 42;
/** Largest height of a row. If there are too many rows, several share a pixel. */
const ROW = 3;

export class Minimap {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import("./graph.js").Graph} graph that it is the map of
   * @param {(node: number) => void} zoom
   */
  constructor(canvas, graph, zoom) {
    this.canvas = canvas;
    this.graph = graph;
    /** @type {import("./layout.js").Row[]} */
    this.rows = [];
    /** @type {{tree: unknown, measure: number, width: number}} what `rows` were made for */
    this.made = { tree: null, measure: -1, width: 0 };
    canvas.addEventListener("click", (event) => {
      const depth = Math.min(this.rows.length - 1, Math.floor(event.offsetY / this.rowHeight()));
      // A click beside the deepest boxes means the nearest box above them.
      for (let at = depth; at >= 0; at -= 1) {
        const index = boxAt(this.rows[at], event.offsetX);
        if (index >= 0) {
          zoom(this.rows[at].node[index]);
          return;
        }
      }
    });
  }

  rowHeight() {
    return Math.min(ROW, HEIGHT / Math.max(1, this.rows.length));
  }

  /** Follows the graph. Hides the strip if the whole graph is visible. */
  follow() {
    const { scene, span, width } = this.graph;
    const zoomed = scene !== null && (span.from > 0 || span.to < 1);
    this.canvas.hidden = !zoomed;
    if (!zoomed || scene === null || width === 0) {
      return;
    }
    const { made } = this;
    if (made.tree !== scene.tree || made.measure !== scene.measure || made.width !== width) {
      this.rows = layout(scene.tree, scene.measure, { from: 0, to: 1 }, width);
      this.made = { tree: scene.tree, measure: scene.measure, width };
    }
    this.paint(scene, span, width);
  }

  /**
   * @param {import("./graph.js").Scene} scene
   * @param {import("./layout.js").Span} span
   * @param {number} width
   */
  paint(scene, span, width) {
    const context = prepare(this.canvas, width, HEIGHT);
    const high = this.rowHeight();
    for (const [depth, row] of this.rows.entries()) {
      for (let i = 0; i < row.node.length; i += 1) {
        const frame = scene.tree.frameOf(row.node[i]);
        context.fillStyle = row.more[i] > 0 ? this.graph.theme.rest : this.graph.fillOf(frame);
        context.fillRect(row.left[i], depth * high, Math.max(0.5, row.right[i] - row.left[i] - 0.3), high);
      }
    }
    const left = span.from * width;
    const right = Math.max(left + 3, span.to * width);
    context.globalAlpha = 0.6;
    context.fillStyle = this.graph.theme.panel;
    context.fillRect(0, 0, left, HEIGHT);
    context.fillRect(right, 0, width - right, HEIGHT);
    context.globalAlpha = 1;
    context.strokeStyle = this.graph.theme.accent;
    context.lineWidth = 2;
    context.strokeRect(left + 1, 1, right - left - 2, HEIGHT - 2);
  }
}
