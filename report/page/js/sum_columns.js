// Columns that tables of sums have in common: of call sites, and of contexts.

import { measureOf } from "./decode.js";
import { amount, bytes, count, duration, percent } from "./format.js";
import { spark } from "./spark.js";

/** @typedef {import("./decode.js").By} By */

/**
 * @typedef {object} Summed
 * @property {number} bytes in the present view
 * @property {number} count in the present view
 * @property {number[] | null} values in every view, by `measureOf`
 * @property {number} age in milliseconds of the oldest live block; -1 unknown
 * @property {Float64Array} grown still-live bytes by generation
 */

/**
 * @template {Summed} Row
 * @typedef {import("./sorted_table.js").Column<Row>} SumColumn
 */

/** Names of views above a column that is not the present one. */
const SIDES = /** @type {const} */ ([["live", "Still live"], ["peak", "Peak"], ["total", "Allocated"], ["temporary", "Temporary"]]);

/**
 * @template {Summed} Row
 * @param {By} by
 * @param {number} all in the present view and unit
 * @returns {SumColumn<Row>[]} the amount, its share, and the amount in the other unit
 */
export function amountColumns(by, all) {
  return [
    { key: "value", title: by === "bytes" ? "Bytes" : "Blocks", by: (row) => row[by], cell: (row) => amount(row[by], by) },
    { key: "share", title: "Share", by: (row) => (all > 0 ? row[by] / all : 0), cell: (row) => percent(row[by], all) },
    {
      key: "other",
      title: by === "bytes" ? "Blocks" : "Bytes",
      by: (row) => (by === "bytes" ? row.count : row.bytes),
      cell: (row) => (by === "bytes" ? count(row.count) : bytes(row.bytes)),
    },
  ];
}

/**
 * @template {Summed} Row
 * @param {Row[]} rows
 * @returns {SumColumn<Row>[]} the age of the oldest block, and growth, as far as they are known
 */
export function timeColumns(rows) {
  /** @type {SumColumn<Row>[]} */
  const columns = [];
  if (rows.some(({ age }) => age >= 0)) {
    columns.push({ key: "age", title: "Oldest", by: (row) => row.age, cell: (row) => (row.age < 0 ? "" : duration(row.age)) });
  }
  if (rows.some(({ grown }) => grown.length > 1)) {
    const late = (/** @type {Row} */ { grown }) => grown.slice(1).reduce((sum, size) => sum + size, 0);
    columns.push({ key: "growth", title: "Over time", by: late, cell: (row) => spark(row.grown, "bytes") });
  }
  return columns;
}

/**
 * @template {Summed} Row
 * @param {import("./state.js").State} state
 * @returns {SumColumn<Row>[]} the amounts in the other views
 */
export function sideColumns({ view: present, by }) {
  return SIDES.filter(([view]) => view !== present).map(([view, title]) => {
    const value = (/** @type {Row} */ row) => row.values?.[measureOf(view, by)] ?? 0;
    return { key: view, title, by: value, cell: (row) => amount(value(row), by) };
  });
}
