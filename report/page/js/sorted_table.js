// A table that is sorted by any of its columns: a click on a heading chooses one, a second click turns it around.

import { el } from "./dom.js";

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} key of the state
 * @property {string} title
 * @property {(row: Row) => string | number} by what sorts
 * @property {(row: Row) => Node | string} cell
 * @property {boolean} [text] left-aligned, smallest first
 * @property {string} [note] what it means
 */

/**
 * @template Row
 * @param {Column<Row>[]} columns
 * @param {Row[]} rows
 * @param {string} sort key of a column; with a leading `-` turned around
 * @param {string} otherwise key of the column that sorts if there is no such column
 * @returns {Row[]}
 */
export function sortedRows(columns, rows, sort, otherwise) {
  const found = columns.find(({ key }) => key === sort.replace("-", ""));
  const column = found ?? columns.find(({ key }) => key === otherwise);
  if (column === undefined) {
    return rows;
  }
  const turn = sort.startsWith("-") ? -1 : 1;
  const compare = (/** @type {string | number} */ a, /** @type {string | number} */ b) =>
    typeof a === "string" ? (a < b ? -1 : a > b ? 1 : 0) : Number(b) - Number(a);
  const keys = new Map(rows.map((row) => [row, column.by(row)]));
  const keyOf = (/** @type {Row} */ row) => keys.get(row) ?? 0;
  return [...rows].sort((a, b) => turn * compare(keyOf(a), keyOf(b)));
}

/**
 * @template Row
 * @param {Column<Row>[]} columns
 * @param {string} sort
 * @param {(sort: string) => void} change
 * @returns {HTMLElement}
 */
export function headOf(columns, sort, change) {
  return el("thead", "", el("tr", "", ...columns.map((column) => heading(column, sort, change))));
}

/**
 * @template Row
 * @param {Column<Row>} column
 * @param {string} sort
 * @param {(sort: string) => void} change
 */
function heading({ key, title, text, note }, sort, change) {
  const sorted = sort.replace("-", "") === key;
  const turned = sort.startsWith("-");
  const button = el("button", "", title);
  button.type = "button";
  button.dataset.sort = key;
  button.title = note ?? "";
  button.addEventListener("click", () => change(sorted && !turned ? `-${key}` : key));
  const cell = el("th", text ? "text" : "", button);
  cell.scope = "col";
  // Texts begin with A, numbers with the largest.
  cell.ariaSort = !sorted ? "none" : turned === (text === true) ? "descending" : "ascending";
  return cell;
}

/**
 * Puts a head and a body into a table. Sorting by keyboard keeps the focus on the heading.
 * @param {HTMLTableElement} grid
 * @param {HTMLElement} head
 * @param {HTMLElement} body
 */
export function fillTable(grid, head, body) {
  const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.sort : undefined;
  grid.replaceChildren(head, body);
  if (focused !== undefined) {
    /** @type {HTMLElement | null} */ (grid.querySelector(`[data-sort="${CSS.escape(focused)}"]`))?.focus();
  }
}
