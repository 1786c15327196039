// Tabs, radios, filters and search: they show the state, and a user's action changes it.

import { conditionOf, shownValue, valuesOf } from "./contexts.js";
import { VIEWS } from "./decode.js";
import { threadName } from "./details.js";
import { byId, el } from "./dom.js";
import { count, duration, plural } from "./format.js";
import { libraryWord } from "./language.js";
import { whyNone } from "./ranges.js";
import { START, TABS, rangeOf } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./model.js").Model} Model */
/** @typedef {(change: Partial<State>, step: boolean) => void} Change `step`: the browser's back button undoes it */

const UNTILS = {
  range: "what is live at its end",
  end: "what is live at the capture’s end",
  all: "all that was allocated",
};

/** Number of values of a key that can be chosen from; the view of them all has the others. */
const MOST_VALUES = 200;

/** Keys of the state in the filter row, each with its value for "no filter". */
const FILTERS = /** @type {const} */ (["thread", "allocator", "where", "root", "only", "fold", "matching"]);

export class Controls {
  /**
   * @param {Model} model
   * @param {Change} change
   * @param {(text: string) => void} toast
   */
  constructor(model, change, toast) {
    this.model = model;
    this.change = change;
    this.toast = toast;
    this.fillSelects();
    this.wireTabs();
    this.wireForm();
    for (const view of VIEWS) {
      // The range view stays visible if it is not available, and says why.
      byId(`view-${view}`, HTMLElement).hidden = view !== "range" && !model.has(view);
    }
    byId("range-note", HTMLElement).textContent = this.rangeNote();
  }

  /** @returns {string} on what ranges can show here */
  rangeNote() {
    const { source, profile } = this.model;
    return source === null ? `Ranges are not available. ${whyNone(profile)}` : source.note || "Drag to choose a range of the capture.";
  }

  fillSelects() {
    const { profile, source } = this.model;
    const { head, rows } = profile;
    const option = (/** @type {string} */ value, /** @type {string} */ text) => new Option(text, value);
    const weigh = (/** @type {Int32Array} */ column) => {
      /** @type {Map<number, number>} */
      const found = new Map();
      for (let row = 0; row < column.length; row += 1) {
        found.set(column[row], (found.get(column[row]) ?? 0) + rows.values[3][row]);
      }
      return [...found].sort(([, a], [, b]) => b - a).map(([key]) => key);
    };
    const threads = weigh(rows.thread).map((thread) => option(String(thread), threadName(head, thread)));
    byId("thread", HTMLSelectElement).append(option("", `all (${count(threads.length)})`), ...threads);
    const names = new Map(head.allocators);
    const allocators = weigh(rows.allocator).map((kind) => option(String(kind), (names.get(kind) ?? "unknown").toLowerCase()));
    byId("allocator", HTMLSelectElement).append(option("", "all"), ...allocators);
    this.fillContexts(weigh(rows.context));
    const crates = head.packages.map(([name]) => name).filter((name, i, all) => name !== "" && all.indexOf(name) === i);
    const word = libraryWord(this.model.profile);
    byId("only-word", HTMLElement).textContent = word === "crate" ? "Crate" : "Package";
    for (const element of document.querySelectorAll(".libraries, #fold option[value=crates]")) {
      element.textContent = (element.textContent ?? "").replace("crates", `${word}s`);
    }
    byId("only", HTMLSelectElement).append(option("", "any"), ...crates.sort().map((name) => option(name, name)));
    const untils = source?.untils ?? [];
    byId("until", HTMLSelectElement).append(...untils.map((until) => option(until, UNTILS[until])));
  }

  /** @param {number[]} contexts that rows have, those with the most live bytes first */
  fillContexts(contexts) {
    const { keys, profile } = this.model;
    byId("tab-contexts", HTMLElement).hidden = keys.length === 0;
    byId("where-filter", HTMLElement).hidden = keys.length === 0;
    byId("root-choice", HTMLElement).hidden = keys.length === 0;
    byId("root", HTMLSelectElement).append(new Option("nothing", ""), ...keys.map((key) => new Option(key, key)));
    const select = byId("where", HTMLSelectElement);
    select.append(new Option("any", ""));
    for (const key of keys) {
      const valueOf = valuesOf(profile.head, key);
      const values = [...new Set(contexts.map((context) => valueOf[context] ?? null))].slice(0, MOST_VALUES);
      const group = el("optgroup", "", ...values.map((value) => new Option(shownValue(key, value), conditionOf(key, value))));
      group.label = key;
      select.append(group);
    }
  }

  wireTabs() {
    const tabs = byId("tabs", HTMLElement);
    tabs.addEventListener("click", (event) => {
      const tab = event.target instanceof Element ? event.target.closest("[role=tab]") : null;
      if (tab !== null) {
        this.change({ tab: /** @type {State["tab"]} */ (tab.id.replace("tab-", "")) }, true);
      }
    });
    tabs.addEventListener("keydown", (event) => {
      const steps = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowRight: 1, Home: -TABS.length, End: TABS.length });
      if (event.key in steps && document.activeElement !== null) {
        const { tabs } = this.model;
        const at = tabs.findIndex((tab) => document.activeElement?.id === `tab-${tab}`);
        const jump = Math.abs(steps[event.key]) > 1;
        const next = jump ? (steps[event.key] < 0 ? 0 : tabs.length - 1) : (at + steps[event.key] + tabs.length) % tabs.length;
        this.change({ tab: tabs[next] }, true);
        byId(`tab-${tabs[next]}`, HTMLElement).focus();
        event.preventDefault();
      }
    });
  }

  wireForm() {
    const form = byId("controls", HTMLFormElement);
    form.addEventListener("submit", (event) => event.preventDefault());
    document.addEventListener("change", (event) => {
      const { target } = event;
      if (target instanceof HTMLInputElement && target.form === form && target.type === "radio") {
        this.pick(target.name, target.value);
      } else if (target instanceof HTMLSelectElement && target.form === form && target.name !== "") {
        // Under other root frames, a path through the tree means nothing.
        this.change({ [target.name]: target.value, ...(target.name === "root" ? { zoom: [] } : {}) }, true);
      }
    });
    byId("plain", HTMLInputElement).addEventListener("change", (event) => {
      const { checked } = /** @type {HTMLInputElement} */ (event.target);
      this.change({ names: checked ? "plain" : "full" }, true);
    });
    byId("matching", HTMLInputElement).addEventListener("change", (event) => {
      const { checked } = /** @type {HTMLInputElement} */ (event.target);
      this.change({ matching: checked ? "1" : "" }, true);
    });
    byId("clear-filters", HTMLButtonElement).addEventListener("click", () => {
      const all = Object.fromEntries(FILTERS.map((key) => [key, START[key]]));
      const root = byId("root", HTMLSelectElement).value;
      this.change({ ...all, ...(root === "" ? {} : { zoom: [] }) }, true);
    });
    byId("open-filters", HTMLButtonElement).addEventListener("click", () => {
      const open = form.classList.toggle("filtering");
      byId("open-filters", HTMLButtonElement).ariaExpanded = String(open);
    });
    byId("open-filters", HTMLButtonElement).ariaExpanded = "false";
    byId("clear-range", HTMLButtonElement).addEventListener("click", () => this.clearRange());
  }

  clearRange() {
    this.change({ range: "", view: START.view }, true);
  }

  /**
   * @param {string} name of a radio
   * @param {string} value
   */
  pick(name, value) {
    const { source } = this.model;
    if (name === "view" && value === "range") {
      if (source === null) {
        this.toast(this.rangeNote());
        this.change({}, false);
        return;
      }
      const whole = `${source.bounds[0]}-${source.bounds[source.bounds.length - 1]}`;
      const range = byId("range", HTMLElement).dataset.chosen || whole;
      this.change({ view: "range", range }, true);
      this.toast("Drag in the timeline to choose another range.");
      return;
    }
    // Another order is another tree: a path through one tree means nothing in the other.
    this.change({ [name]: value, ...(name === "order" ? { zoom: [] } : {}) }, true);
  }

  /**
   * @param {State} state
   * @param {import("./model.js").Look} look
   */
  show(state, look) {
    for (const tab of TABS) {
      const button = byId(`tab-${tab}`, HTMLElement);
      const chosen = tab === state.tab;
      button.ariaSelected = String(chosen);
      button.tabIndex = chosen ? 0 : -1;
      byId(`pane-${tab}`, HTMLElement).hidden = !chosen;
    }
    document.body.dataset.tab = state.tab;
    for (const input of document.querySelectorAll("input[type=radio]")) {
      if (input instanceof HTMLInputElement) {
        input.checked = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (state))[input.name] === input.value;
      }
    }
    byId("tab-contexts", HTMLElement).textContent = `By ${look.contextKey}`;
    this.offer(state.where);
    for (const key of /** @type {const} */ (["thread", "allocator", "where", "root", "only", "fold", "until"])) {
      byId(key, HTMLSelectElement).value = state[key];
    }
    byId("plain", HTMLInputElement).checked = state.names === "plain";
    const matching = byId("matching", HTMLInputElement);
    matching.checked = state.matching === "1";
    const search = byId("search", HTMLInputElement);
    if (search.value !== state.search) {
      search.value = state.search;
    }
    this.showFilters(state, look);
    this.showRange(state);
  }

  /** @param {string} where a condition, which can be chosen from now on even if it is one of the smaller values */
  offer(where) {
    const select = byId("where", HTMLSelectElement);
    if ([...select.options].every(({ value }) => value !== where)) {
      select.append(new Option(where, where));
    }
  }

  /**
   * @param {State} state
   * @param {import("./model.js").Look} look
   */
  showFilters(state, { tree, hidden }) {
    const active = FILTERS.filter((key) => state[key] !== START[key]).length;
    byId("filter-count", HTMLElement).textContent = active > 0 ? ` (${active})` : "";
    byId("clear-filters", HTMLButtonElement).hidden = active === 0;
    const plain = state.names === "plain";
    const before = this.model.whole;
    const kept = tree.profile.rows.node.length;
    const parts = [];
    if (kept < before.profile.rows.node.length) {
      parts.push(`${count(kept)} of ${plural(before.profile.rows.node.length, "call site")}`);
    }
    if (hidden > 0) {
      const chosen = byId("fold", HTMLSelectElement).selectedOptions[0]?.textContent ?? "";
      const what = [...(state.fold === "none" ? [] : [chosen]), ...(plain ? ["wrappers"] : [])];
      parts.push(`${count(hidden)} of ${count(before.size - 1)} boxes folded${what.length > 0 ? `: ${what.join(", ")}` : ""}`);
    }
    const note = byId("filter-note", HTMLElement);
    note.textContent = parts.join(", ");
    note.title = plain && hidden > 0 ? "“Plain names” folds wrappers: calls that only pass on, closures and async bodies" : "";
  }

  /** @param {State} state */
  showRange(state) {
    const range = state.view === "range" ? rangeOf(state) : null;
    const box = byId("range", HTMLElement);
    box.hidden = range === null;
    if (range !== null) {
      box.dataset.chosen = state.range;
      byId("range-text", HTMLElement).textContent = `${duration(range.from)} – ${duration(range.to)}`;
      box.title = this.model.source?.note ?? "";
      const approximate = box.title !== "";
      const note = approximate ? el("span", "coarse", "by generation") : "";
      byId("range-text", HTMLElement).append(" ", note);
    }
  }
}
