// Makes the shown data from the whole report and the state: the chosen part as trees, with the last few kept.

import { CallTree } from "./call_tree.js";
import { swatches } from "./colors.js";
import { contextsWhere, keysOf } from "./contexts.js";
import { OWN, measureOf } from "./decode.js";
import { filtered, foldedBy, sameByName, withNames, withRange } from "./derive.js";
import { hiding, namesOfBoxes } from "./fold.js";
import { groupedBy, withContextFrames } from "./grouped.js";
import { InvertedTree } from "./inverted_tree.js";
import { Names, commonDirectory } from "./names.js";
import { rangeColumns, rangeSource } from "./ranges.js";
import { compile, matchingFrames } from "./search.js";
import { kindOf } from "./sites.js";
import { START, TABS, rangeOf } from "./state.js";

/** @typedef {import("./decode.js").Profile} Profile */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./call_tree.js").Tree} Tree */

/**
 * @typedef {object} Look data that the panes show
 * @property {State} state
 * @property {CallTree} whole the chosen part with every frame, for tables: call sites do not depend on what is folded
 * @property {CallTree} tree the chosen part without folded frames, root first, by context if that is chosen
 * @property {number} hidden boxes that are folded
 * @property {Tree} ordered in the chosen order
 * @property {number} measure
 * @property {string} title of the whole, in words
 * @property {Names} names
 * @property {string[]} variables by package, the CSS variable of its colour
 * @property {Uint8Array | null} hits by frame, what stands out; null: nothing is sought
 * @property {string} contextKey of the contexts that are compared
 * @property {string} key of the part: the same key, the same trees
 */

const TITLES = {
  live: "still live",
  peak: "at the high-water mark",
  total: "allocated in total",
  temporary: "temporary",
  range: "of the range",
};

/** Number of parts that are kept, so that going back and forth costs nothing. */
const KEPT = 4;

export class Model {
  /** @param {Profile} report the whole report */
  constructor(report) {
    const { profile, frameOf } = withContextFrames(report);
    this.profile = profile;
    /** By key of contexts: by number of the context, its root frame. */
    this.rootOf = frameOf;
    this.whole = new CallTree(profile);
    this.source = rangeSource(profile);
    /** Keys of contexts; none if nothing was allocated in a context. */
    this.keys = keysOf(profile.head);
    this.legend = swatches(this.whole);
    this.variables = profile.head.packages.map((_, index) => {
      const swatch = this.legend.find(({ packages }) => packages.includes(index));
      return swatch?.variable ?? "--dep-more";
    });
    const own = profile.frames.file.filter((_, frame) => kindOf(profile, frame) === OWN);
    const files = [...new Set(own)].map((file) => profile.strings[file]);
    this.same = sameByName(profile);
    this.names = new Names(profile, commonDirectory(files), this.same?.versions ?? null);
    /** @type {Map<string, {whole: CallTree, tree: CallTree, hidden: number, inverted: InvertedTree | null}>} */
    this.parts = new Map();
    /** @type {{search: string, plain: boolean, hits: Uint8Array | null, error: string}} */
    this.searched = { search: "", plain: true, hits: null, error: "" };
  }

  /** @param {import("./decode.js").View} view */
  has(view) {
    // memray's aggregated captures have neither the total of allocations nor temporary ones.
    const known = this.whole.valueOf(0, measureOf("total", "count")) > 0;
    return view === "range" ? this.source !== null : known || (view !== "total" && view !== "temporary");
  }

  /** @returns {readonly import("./state.js").Tab[]} that have something to show */
  get tabs() {
    return this.keys.length > 0 ? TABS : TABS.filter((tab) => tab !== "contexts");
  }

  /**
   * @param {State} state
   * @returns {State} without what this report does not have
   */
  possible(state) {
    const range = this.source === null ? "" : state.range;
    const view = this.has(state.view) && (state.view !== "range" || rangeOf({ ...state, range }) !== null) ? state.view : START.view;
    const until = this.source === null || this.source.untils.includes(state.until) ? state.until : this.source.untils[0];
    const { threads, packages } = this.profile.head;
    const thread = Number(state.thread) < threads.length ? state.thread : "";
    const only = packages.some(([name]) => name === state.only) ? state.only : "";
    const where = state.where !== "" && contextsWhere(this.profile.head, state.where) !== null ? state.where : "";
    const key = this.keys.indexOf(state.key) > 0 ? state.key : "";
    const root = this.keys.includes(state.root) ? state.root : "";
    const tab = this.tabs.includes(state.tab) ? state.tab : START.tab;
    return { ...state, tab, range, view, until, thread, where, key, root, only };
  }

  /**
   * @param {State} state
   * @returns {Look}
   */
  look(state) {
    this.names.choose(state.names === "plain");
    this.search(state.search);
    const matching = state.matching === "1" && this.searched.hits !== null ? state.search : null;
    const key = JSON.stringify([
      state.view === "range" ? [state.range, state.until] : "",
      state.thread,
      state.allocator,
      state.where,
      state.only,
      matching,
      state.fold,
      state.names,
      state.root,
    ]);
    let part = this.parts.get(key);
    if (part === undefined) {
      const whole = new CallTree(this.part(state));
      const plain = state.names === "plain";
      const hidden = hiding(whole.profile, state.fold, plain);
      const names = plain ? namesOfBoxes(whole.profile) : null;
      const folded = hidden === null ? whole : new CallTree(foldedBy(whole.profile, hidden, null, names));
      const roots = this.rootOf.get(state.root);
      const tree = roots === undefined ? folded : new CallTree(groupedBy(folded.profile, roots));
      part = { whole, tree, hidden: this.whole.size - folded.size, inverted: null };
      const [oldest] = this.parts.keys();
      if (this.parts.size >= KEPT) {
        this.parts.delete(oldest);
      }
      this.parts.set(key, part);
    }
    if (state.order === "leaf") {
      part.inverted ??= new InvertedTree(part.tree);
    }
    return {
      state,
      whole: part.whole,
      tree: part.tree,
      hidden: part.hidden,
      ordered: state.order === "leaf" && part.inverted !== null ? part.inverted : part.tree,
      measure: measureOf(state.view, state.by),
      title: state.where === "" ? `all ${TITLES[state.view]}` : `${state.where}: ${TITLES[state.view]}`,
      contextKey: state.key || (this.keys[0] ?? ""),
      names: this.names,
      variables: this.variables,
      hits: this.standingOut(state.crate),
      key,
    };
  }

  /**
   * @param {State} state
   * @returns {Profile}
   */
  part(state) {
    let { profile } = this;
    const range = rangeOf(state);
    if (state.view === "range" && range !== null && this.source !== null) {
      profile = withRange(profile, rangeColumns(this.source, range, profile.rows.node.length));
    }
    profile = withNames(profile, state.names === "plain", this.same?.same ?? null);
    const frames = state.matching === "1" ? this.searched.hits : null;
    const { packages } = profile.head;
    const crate =
      state.only === ""
        ? null
        : Uint8Array.from(profile.frames.package, (index) => (packages[index]?.[0] === state.only ? 1 : 0));
    const thread = state.thread === "" ? -1 : Number(state.thread);
    const allocator = state.allocator === "" ? -1 : Number(state.allocator);
    const contexts = state.where === "" ? null : contextsWhere(profile.head, state.where);
    if (thread >= 0 || allocator >= 0 || contexts !== null || frames !== null || crate !== null) {
      profile = filtered(profile, { thread, allocator, contexts, frames, crate });
    }
    return profile;
  }

  /** @param {string} search */
  search(search) {
    const { plain, profile } = this.names;
    if (search !== this.searched.search || plain !== this.searched.plain) {
      const { regex, error } = compile(search);
      this.searched = { search, plain, error, hits: regex === null ? null : matchingFrames(profile, regex) };
    }
  }

  /**
   * @param {string} crate name of a swatch, or empty
   * @returns {Uint8Array | null}
   */
  standingOut(crate) {
    const found = this.searched.hits;
    const swatch = this.legend.find(({ name }) => name === crate);
    if (swatch === undefined) {
      return found;
    }
    const members = new Set(swatch.packages);
    return Uint8Array.from(this.profile.frames.package, (index, frame) =>
      members.has(index) && (found === null || found[frame] === 1) ? 1 : 0,
    );
  }
}
