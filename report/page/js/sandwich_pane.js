// One function in the middle: its callers above, its callees below.

import { OWN } from "./decode.js";
import { byId, el } from "./dom.js";
import { amount, count, percent, plural } from "./format.js";
import { functionSums } from "./functions.js";
import { Graph } from "./graph.js";
import { listen } from "./input.js";
import { sandwich } from "./sandwich.js";
import { kindOf } from "./sites.js";

/** @typedef {import("./model.js").Look} Look */
/** @typedef {import("./call_tree.js").Tree} Tree */

/** Number of functions in the list. */
const LISTED = 150;

/**
 * @typedef {object} SandwichWishes
 * @property {(name: number) => void} choose the string of a function
 * @property {(tree: Tree, box: import("./graph.js").Box | null, x: number, y: number) => void} point
 * @property {(tree: Tree, node: number) => void} select
 * @property {(tree: Tree, node: number) => void} copy
 */

export class SandwichPane {
  /**
   * @param {import("./names.js").Names} names
   * @param {string[]} variables
   * @param {SandwichWishes} wishes
   */
  constructor(names, variables, wishes) {
    this.names = names;
    this.wishes = wishes;
    this.key = "";
    /** @type {import("./functions.js").FunctionSums[]} */
    this.functions = [];
    /** @type {Look | null} */
    this.look = null;
    this.chosen = -1;
    const half = (/** @type {string} */ id) => {
      const scroller = byId(id, HTMLElement);
      const [canvas, spacer] = scroller.children;
      const graph = new Graph(scroller, /** @type {HTMLCanvasElement} */ (canvas), /** @type {HTMLElement} */ (spacer), names, variables);
      graph.leads = false;
      const tree = () => /** @type {Tree} */ (graph.scene?.tree);
      const choose = (/** @type {number} */ node) => {
        const frame = tree().frameOf(node);
        if (node !== 0 && frame >= 0) {
          wishes.choose(names.profile.frames.function[frame]);
        }
      };
      listen(graph, {
        zoom: choose,
        sandwich: () => choose(graph.selected),
        select: (node) => {
          graph.select(node);
          graph.reveal(node);
          wishes.select(tree(), node);
        },
        point: (box, x, y) => wishes.point(tree(), box, x, y),
        copy: () => wishes.copy(tree(), graph.selected),
      });
      return graph;
    };
    this.callers = half("callers");
    this.callees = half("callees");
    const filter = byId("function-filter", HTMLInputElement);
    filter.addEventListener("input", () => this.list());
    byId("functions", HTMLElement).addEventListener("click", (event) => {
      const button = event.target instanceof Element ? event.target.closest("button") : null;
      if (button !== null) {
        wishes.choose(Number(button.value));
      }
    });
  }

  retheme() {
    this.callers.retheme();
    this.callees.retheme();
  }

  /** @param {Look} look */
  show(look) {
    this.look = look;
    const { state, tree, measure, names } = look;
    const key = `${look.key}\n${measure}`;
    const same = key === this.key;
    if (!same) {
      this.key = key;
      // One's own code is what one looks for: it comes first.
      const isOwn = (/** @type {number} */ frame) => kindOf(names.profile, frame) === OWN;
      const all = functionSums(tree, measure);
      this.functions = [...all.filter(({ frame }) => isOwn(frame)), ...all.filter(({ frame }) => !isOwn(frame))];
    }
    const asked = Number.parseInt(state.function, 36);
    const chosen = this.functions.find(({ name }) => name === asked) ?? this.functions[0];
    if (same && chosen?.name === this.chosen) {
      return;
    }
    this.chosen = chosen?.name ?? -1;
    this.list();
    byId("sandwich-name", HTMLElement).textContent = chosen === undefined ? "No function holds anything" : names.profile.strings[chosen.name];
    const whole = tree.valueOf(0, measure);
    const { callers, callees, calls } = sandwich(tree, this.chosen);
    byId("sandwich-facts", HTMLElement).textContent =
      chosen === undefined
        ? ""
        : `${amount(chosen.total, state.by)} with what it calls (${percent(chosen.total, whole)}), ` +
          `${amount(chosen.self, state.by)} itself, at ${plural(calls.length, "place")} of the tree` +
          (asked >= 0 && asked !== chosen.name ? ". The function that was asked for holds nothing here" : "");
    const title = look.title;
    this.callers.show({ tree: callers, measure, grow: "up", zoom: 0, title, hits: look.hits });
    this.callees.show({ tree: callees, measure, grow: "down", zoom: 0, title, hits: look.hits });
    this.callers.selected = 0;
    this.callees.selected = 0;
    if (chosen !== undefined) {
      this.wishes.select(callees, 0);
    }
  }

  list() {
    const { look, names } = this;
    if (look === null) {
      return;
    }
    const { tree, measure, state } = look;
    const sought = byId("function-filter", HTMLInputElement).value.toLowerCase();
    const found = this.functions.filter(({ name }) => names.profile.strings[name].toLowerCase().includes(sought));
    const whole = tree.valueOf(0, measure);
    const items = found.slice(0, LISTED).map(({ name, frame, total }) => {
      const button = el("button", "", el("span", "name", names.brief(frame)), el("span", "amount", amount(total, state.by)));
      button.type = "button";
      button.value = String(name);
      button.title = `${names.full(frame)}\n${percent(total, whole)}`;
      button.classList.toggle("own", kindOf(names.profile, frame) === OWN);
      button.ariaCurrent = name === this.chosen ? "true" : "false";
      return el("li", "", button);
    });
    const rest = found.length - items.length;
    const note = rest > 0 ? [el("li", "left-out", `${count(rest)} more: type to find them`)] : [];
    byId("functions", HTMLElement).replaceChildren(...items, ...note);
  }
}
