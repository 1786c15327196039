// By route, or by another key of contexts: what each value holds, since when, and where most of it is.

import { conditionOf, contextSums, keysOf, leftEach, shownValue } from "./contexts.js";
import { byId, el } from "./dom.js";
import { bytes, count, plural } from "./format.js";
import { csvText, download } from "./save.js";
import { fillTable, headOf, sortedRows } from "./sorted_table.js";
import { placeOf } from "./source.js";
import { countOf, quantile } from "./spread.js";
import { amountColumns, sideColumns, timeColumns } from "./sum_columns.js";

/** @typedef {import("./model.js").Look} Look */
/** @typedef {import("./contexts.js").ContextSums} ContextSums */
/** @typedef {import("./sorted_table.js").Column<ContextSums>} Column */

/** Number of rows that are made. */
const MOST_CONTEXTS = 500;

export class ContextsPane {
  /**
   * @param {import("./decode.js").Head} head
   * @param {(change: Partial<import("./state.js").State>, step: boolean) => void} change
   */
  constructor(head, change) {
    this.change = change;
    /** @type {{key: string, rows: ContextSums[]}} */
    this.made = { key: "", rows: [] };
    /** @type {Look | null} */
    this.look = null;
    const chooser = byId("context-key", HTMLSelectElement);
    const keys = keysOf(head);
    chooser.append(...keys.map((key) => new Option(key, key)));
    chooser.disabled = keys.length < 2;
    byId("save-contexts", HTMLButtonElement).addEventListener("click", () => this.save());
  }

  /** @param {Look} look */
  show(look) {
    this.look = look;
    const { state, contextKey: key } = look;
    byId("context-key", HTMLSelectElement).value = key;
    const made = [look.key, key, state.view, state.by].join("\n");
    if (this.made.key !== made) {
      this.made = { key: made, rows: contextSums(look.whole, key, state.view, state.by) };
    }
    const columns = contextColumns(look, this.made.rows);
    const rows = sortedRows(columns, this.made.rows, state.sort, "value");
    const shown = rows.slice(0, MOST_CONTEXTS);
    const left = rows.length - shown.length;
    byId("context-count", HTMLElement).textContent =
      `${plural(rows.length, "row")}${left > 0 ? `; the first ${count(MOST_CONTEXTS)} are shown, the file has all` : ""}`;
    const head = headOf(columns, state.sort, (sort) => this.change({ sort }, false));
    const body = el("tbody", "", ...shown.map((row) => this.line(row, columns, key)));
    fillTable(byId("contexts", HTMLTableElement), head, body);
  }

  /**
   * @param {ContextSums} row
   * @param {Column[]} columns
   * @param {string} key
   */
  line(row, columns, key) {
    const cells = columns.map((column) => el("td", column.text ? "text" : "", column.cell(row)));
    const button = el("button", "site", ...cells[0].childNodes);
    button.type = "button";
    button.title = "Show only this in the graph, the tables and growth";
    button.addEventListener("click", () => this.change({ where: conditionOf(key, row.value), tab: "graph", zoom: [] }, true));
    cells[0].replaceChildren(button);
    return el("tr", "", ...cells);
  }

  save() {
    const { look } = this;
    if (look !== null) {
      const columns = contextColumns(look, this.made.rows);
      const rows = sortedRows(columns, this.made.rows, look.state.sort, "value");
      const lines = rows.map((row) => columns.map((column) => column.by(row)));
      const text = csvText([columns.map(({ title }) => title.toLowerCase()), ...lines]);
      download(`heapray-by-${look.contextKey.replaceAll(/[^\w-]/g, "_")}.csv`, new Blob([text], { type: "text/csv" }));
    }
  }
}

/**
 * @param {Look} look
 * @param {ContextSums[]} rows
 * @returns {Column[]}
 */
function contextColumns({ state, contextKey: key, names, whole: tree, measure }, rows) {
  const { by } = state;
  const name = (/** @type {ContextSums} */ { value }) => shownValue(key, value);
  const line = (/** @type {ContextSums} */ { frame }) => (frame < 0 ? "" : names.brief(frame));
  return [
    { key: "context", title: key, text: true, by: name, cell: (row) => (row.value === null ? el("i", "", name(row)) : name(row)) },
    { key: "line", title: "Most of it", text: true, by: line, cell: (row) => mostOf(row, names) },
    ...amountColumns(by, tree.valueOf(0, measure)),
    ...timeColumns(rows),
    ...runColumns(rows),
    ...sideColumns(state),
  ];
}

/**
 * @param {ContextSums[]} rows
 * @returns {Column[]} about requests and futures, if any has ended
 */
function runColumns(rows) {
  if (rows.every(({ each }) => countOf(each) === 0)) {
    return [];
  }
  const many = (/** @type {ContextSums} */ { each }) => countOf(each);
  const column = (/** @type {string} */ key, /** @type {string} */ title, /** @type {string} */ note, /** @type {(row: ContextSums) => number} */ by) => ({
    key,
    title,
    note,
    by,
    cell: (/** @type {ContextSums} */ row) => (many(row) === 0 || by(row) < 0 ? "" : bytes(by(row))),
  });
  const columns = [
    { ...column("runs", "Runs", "Requests, or futures, that have ended", many), cell: (/** @type {ContextSums} */ row) => (many(row) === 0 ? "" : count(many(row))) },
    column("median", "Each", "Bytes that a run allocated: the median, within a quarter", ({ each }) => quantile(each, 0.5)),
    column("p99", "99 %", "Bytes that 99 of 100 runs did not exceed, within a quarter", ({ each }) => quantile(each, 0.99)),
    column("most", "Most", "Bytes that the largest run allocated", ({ each }) => each.largest),
  ];
  if (rows.some(({ most }) => countOf(most) > 0)) {
    columns.push(column("at-once", "At once", "The most bytes that a run held at one time: 99 of 100 did not exceed it, within a quarter", ({ most }) => quantile(most, 0.99)));
  }
  return [...columns, column("left", "Left behind", "Live bytes, by the number of runs", leftEach)];
}

/**
 * @param {ContextSums} row
 * @param {import("./names.js").Names} names
 */
function mostOf({ frame }, names) {
  if (frame < 0) {
    return "";
  }
  const cell = el("span", "", names.brief(frame), " ", placeOf(names, frame));
  cell.title = names.full(frame);
  return cell;
}
