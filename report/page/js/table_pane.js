// All call sites in a table: sorted by any column, filtered by text, each with a link to the graph.

import { measureOf } from "./decode.js";
import { byId, el } from "./dom.js";
import { amount, bytes, count } from "./format.js";
import { functionSums, outermostCalls } from "./functions.js";
import { csvText, download } from "./save.js";
import { ageOf, leafSites, ownSites } from "./sites.js";
import { fillTable, headOf, sortedRows } from "./sorted_table.js";
import { placeOf } from "./source.js";
import { amountColumns, sideColumns, timeColumns } from "./sum_columns.js";

/** @typedef {import("./model.js").Look} Look */

/**
 * @typedef {object} Row
 * @property {number} frame
 * @property {string} crate
 * @property {number} bytes
 * @property {number} count
 * @property {number} self in the present unit; for functions only
 * @property {number[] | null} values in every view; null for functions
 * @property {number} age in milliseconds of the oldest live block; -1 unknown
 * @property {Float64Array} grown
 * @property {() => number[]} nodes
 *
 * @typedef {import("./sorted_table.js").Column<Row>} Column
 */

/** Number of rows that are made at a time. */
const TABLE_STEP = 200;

export class TablePane {
  /**
   * @param {(change: Partial<import("./state.js").State>) => void} change
   * @param {(nodes: number[]) => void} choose shows these in the graph
   */
  constructor(change, choose) {
    this.change = change;
    this.choose = choose;
    this.most = TABLE_STEP;
    /** @type {{key: string, rows: Row[]}} */
    this.made = { key: "", rows: [] };
    /** @type {Look | null} */
    this.look = null;
    const find = byId("find", HTMLInputElement);
    find.addEventListener("input", () => {
      this.most = TABLE_STEP;
      change({ find: find.value });
    });
    byId("save-csv", HTMLButtonElement).addEventListener("click", () => this.save());
  }

  /** @param {Look} look */
  show(look) {
    this.look = look;
    const { state, names } = look;
    const key = [look.key, state.group, state.view, state.by].join("\n");
    if (this.made.key !== key) {
      this.made = { key, rows: rowsOf(look) };
    }
    const columns = columnsOf(look, this.made.rows);
    const rows = this.ordered(columns, state, names);
    const find = byId("find", HTMLInputElement);
    if (find.value !== state.find) {
      find.value = state.find;
    }
    const all = this.made.rows.length;
    byId("table-count", HTMLElement).textContent =
      rows.length === all ? `${count(all)} rows` : `${count(rows.length)} of ${count(all)} rows`;
    const head = headOf(columns, state.sort, (sort) => this.change({ sort }));
    const body = el("tbody", "", ...rows.slice(0, this.most).map((row) => this.line(row, columns)));
    const grid = byId("grid", HTMLTableElement);
    fillTable(grid, head, body);
    if (rows.length > this.most) {
      const more = el("button", "", `Show ${count(Math.min(TABLE_STEP * 5, rows.length - this.most))} more`);
      more.type = "button";
      more.addEventListener("click", () => {
        this.most += TABLE_STEP * 5;
        this.show(look);
      });
      const cell = el("td", "", more);
      cell.colSpan = columns.length;
      grid.append(el("tfoot", "", el("tr", "", cell)));
    }
  }

  /**
   * @param {Column[]} columns
   * @param {import("./state.js").State} state
   * @param {import("./names.js").Names} names
   * @returns {Row[]}
   */
  ordered(columns, state, names) {
    const sought = state.find.toLowerCase();
    const rows =
      sought === ""
        ? this.made.rows
        : this.made.rows.filter(({ frame, crate }) =>
            `${names.full(frame)}\n${names.fullPlace(frame)}\n${crate}`.toLowerCase().includes(sought),
          );
    return sortedRows(columns, rows, state.sort, "value");
  }

  /**
   * @param {Row} row
   * @param {Column[]} columns
   */
  line(row, columns) {
    return el(
      "tr",
      "",
      ...columns.map((column, i) => {
        const cell = el("td", column.text ? "text" : "", column.cell(row));
        if (i === 0) {
          // Narrow screens have no column of places.
          const button = el("button", "site", ...cell.childNodes, el("span", "under", el("bdi", "", this.look?.names.place(row.frame) ?? "")));
          button.type = "button";
          button.title = `${this.look?.names.full(row.frame)}\nShow in the graph`;
          button.addEventListener("click", () => this.choose(row.nodes()));
          cell.replaceChildren(button);
        }
        return cell;
      }),
    );
  }

  save() {
    const { look } = this;
    if (look === null) {
      return;
    }
    const columns = columnsOf(look, this.made.rows);
    const rows = this.ordered(columns, look.state, look.names);
    const plain = columns.filter(({ key }) => key !== "function" && key !== "place");
    const lines = rows.map((row) => [
      look.names.full(row.frame),
      look.names.fullPlace(row.frame),
      ...plain.map((column) => column.by(row)),
    ]);
    const text = csvText([["function", "place", ...plain.map(({ title }) => title.toLowerCase())], ...lines]);
    download("heapray-call-sites.csv", new Blob([text], { type: "text/csv" }));
  }
}

/**
 * @param {() => number[]} make
 * @returns {() => number[]} the same list at every call
 */
function once(make) {
  /** @type {number[] | null} */
  let made = null;
  return () => (made ??= make());
}

/**
 * @param {Look} look
 * @returns {Row[]} largest first
 */
function rowsOf({ state, whole: tree, measure }) {
  const { head, frames } = tree.profile;
  const crateOf = (/** @type {number} */ frame) => head.packages[frames.package[frame]]?.[0] ?? "";
  if (state.group === "function") {
    const other = functionSums(tree, measureOf(state.view, state.by === "bytes" ? "count" : "bytes"));
    const others = new Map(other.map(({ name, total }) => [name, total]));
    return functionSums(tree, measure).map(({ name, frame, total, self }) => ({
      frame,
      crate: crateOf(frame),
      bytes: state.by === "bytes" ? total : (others.get(name) ?? 0),
      count: state.by === "count" ? total : (others.get(name) ?? 0),
      self,
      values: null,
      age: -1,
      grown: new Float64Array(0),
      nodes: once(() => {
        const column = tree.totalColumn(measure);
        return outermostCalls(tree, name).sort((a, b) => column[b] - column[a]);
      }),
    }));
  }
  const sites = state.group === "own" ? ownSites(tree, state.view, state.by) : leafSites(tree, state.view, state.by);
  return sites.map((site) => ({
    frame: site.frame,
    crate: site.frame < 0 ? "" : crateOf(site.frame),
    bytes: site.bytes,
    count: site.count,
    self: 0,
    values: site.values,
    age: ageOf(head, site.oldest),
    grown: site.grown,
    nodes: () => site.nodes,
  }));
}

/**
 * @param {Look} look
 * @param {Row[]} rows
 * @returns {Column[]}
 */
function columnsOf({ state, names, whole: tree, measure }, rows) {
  const { by } = state;
  /** @type {Column[]} */
  const columns = [
    { key: "function", title: "Function", text: true, by: (row) => names.shown(row.frame), cell: (row) => names.shown(row.frame) },
    { key: "place", title: "Place", text: true, by: (row) => names.place(row.frame), cell: (row) => placeOf(names, row.frame) },
    ...amountColumns(by, tree.valueOf(0, measure)),
    { key: "average", title: "Average", by: (row) => row.bytes / row.count || 0, cell: (row) => bytes(row.bytes / row.count || 0) },
  ];
  if (state.group === "function") {
    columns.push({ key: "self", title: "Self", by: (row) => row.self, cell: (row) => amount(row.self, by) });
  } else {
    columns.push(...timeColumns(rows), ...sideColumns(state));
  }
  columns.push({ key: "crate", title: "Crate", text: true, by: (row) => row.crate, cell: (row) => row.crate });
  return columns;
}
