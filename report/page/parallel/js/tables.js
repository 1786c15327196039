// Tables of workers, tasks, functions and call sites.

import { short } from "./data.js";
import { el } from "../../js/dom.js";
import { bytes, count, percent } from "../../js/format.js";
import { logical, segments } from "../../js/names.js";

/** Number of rows at first. */
const FEW = 25;

/**
 * @template R
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: R) => string | Node} cell
 * @property {(row: R) => number} [by] what it is sorted by, the largest first; a column without it is text
 * @property {boolean} [optional] left out if there is little room
 */

/**
 * Makes a table that is sorted by a click and begins with few rows.
 * @template R
 * @param {HTMLElement} box
 * @param {R[]} rows
 * @param {Column<R>[]} columns
 * @param {number} first the column that it is sorted by at first; -1 as they come
 */
export function table(box, rows, columns, first) {
  let by = first;
  let all = false;
  const draw = () => {
    const key = columns[by]?.by;
    const sorted = key === undefined ? rows : [...rows].sort((a, b) => key(b) - key(a));
    const shown = all ? sorted : sorted.slice(0, FEW);
    const heads = columns.map(({ title, by: key, optional }, nth) => {
      const head = el("th", `${key ? "number" : ""}${optional ? " optional" : ""}`);
      head.scope = "col";
      if (key && first >= 0) {
        const button = el("button", "", title);
        button.type = "button";
        button.addEventListener("click", () => {
          by = nth;
          draw();
        });
        head.append(button);
        if (nth === by) {
          head.setAttribute("aria-sort", "descending");
        }
      } else {
        head.append(title);
      }
      return head;
    });
    const body = shown.map((row) =>
      el("tr", "", ...columns.map(({ cell, by: key, optional }) => el("td", `${key ? "number" : "what"}${optional ? " optional" : ""}`, cell(row)))),
    );
    box.replaceChildren(el("table", "", el("thead", "", el("tr", "", ...heads)), el("tbody", "", ...body)));
    if (rows.length > shown.length) {
      const more = el("button", "more", `Show all ${count(rows.length)}`);
      more.type = "button";
      more.addEventListener("click", () => {
        all = true;
        draw();
      });
      box.append(more);
    }
  };
  draw();
}

/**
 * @param {string} name
 * @param {string} file
 * @param {number} line
 * @returns {HTMLElement} a function with its place below
 */
function named(name, file, line) {
  const place = file === "" ? "" : `${file.split("/").slice(-3).join("/")}${line > 0 ? `:${line}` : ""}`;
  const text = el("span", "", logical(segments(name)).slice(-3).join("::"), el("span", "place", place));
  text.title = `${name}\n${file}${line > 0 ? `:${line}` : ""}`;
  return text;
}

/**
 * @param {number} part
 * @param {number} whole
 * @param {string} text
 * @returns {HTMLElement} a figure with a bar below
 */
function metered(part, whole, text) {
  const bar = el("span", "meter");
  bar.style.width = `${Math.max(1, (100 * part) / Math.max(whole, 1e-9))}%`;
  return el("span", "metered", text, bar);
}

/** @param {import("./data.js").Run} run @param {HTMLElement} box */
export function workers(run, box) {
  const { data, busy, ms } = run;
  const rows = data.workers.map((worker, nth) => ({ ...worker, ...busy[nth] }));
  /** @type {Column<typeof rows[0]>[]} */
  const columns = [
    { title: "Worker", cell: (row) => el("span", "", row.name, el("span", "place", `thread ${row.tid}`)) },
    { title: "Tasks", by: (row) => row.tasks, cell: (row) => count(row.tasks) },
    { title: "In tasks", by: (row) => row.busy, cell: (row) => metered(row.busy, ms, `${short(row.busy)}`) },
    { title: "Idle", by: (row) => ms - row.busy, cell: (row) => percent(Math.max(0, ms - row.busy), ms), optional: true },
    { title: "CPU time", by: (row) => row.cpu_ns, cell: (row) => metered(row.cpu_ns / 1e6, ms, short(row.cpu_ns / 1e6)) },
  ];
  if (data.allocations !== null) {
    columns.push(
      { title: "Blocks", by: (row) => row.allocated?.[0] ?? 0, cell: (row) => count(row.allocated?.[0] ?? 0), optional: true },
      { title: "Allocated", by: (row) => row.allocated?.[1] ?? 0, cell: (row) => bytes(row.allocated?.[1] ?? 0) },
    );
  }
  table(box, rows, columns, -1);
}

/** @param {import("./data.js").Run} run @param {HTMLElement} box */
export function taskNames(run, box) {
  const most = run.names[run.ranked[0]]?.ms ?? 1;
  table(
    box,
    run.names,
    [
      {
        title: "Task",
        cell: (row) => {
          const swatch = el("span", "swatch");
          swatch.style.background = `var(${row.color})`;
          return el("span", "", swatch, row.name);
        },
      },
      { title: "Pieces", by: (row) => row.count, cell: (row) => count(row.count) },
      { title: "Time", by: (row) => row.ms, cell: (row) => metered(row.ms, most, short(row.ms)) },
      { title: "Mean", by: (row) => row.ms / Math.max(1, row.count), cell: (row) => short(row.ms / Math.max(1, row.count)), optional: true },
      { title: "Longest", by: (row) => row.longest, cell: (row) => short(row.longest) },
    ],
    2,
  );
}

/** @param {import("./data.js").Run} run @param {HTMLElement} box @param {string} search */
export function functions(run, box, search) {
  const { data } = run;
  const total = data.functions.reduce((sum, { own }) => sum + own[1], 0);
  const wanted = search.trim().toLowerCase();
  const rows = data.functions.filter(({ name, file }) => `${name} ${file}`.toLowerCase().includes(wanted));
  table(
    box,
    rows,
    [
      { title: "Function", cell: (row) => named(row.name, row.file, row.line) },
      { title: "Own time", by: (row) => row.own[1], cell: (row) => metered(row.own[1], total, short(row.own[1] / 1e6)) },
      { title: "Share", by: (row) => row.own[1], cell: (row) => percent(row.own[1], total), optional: true },
      { title: "With callees", by: (row) => row.cumulative[1], cell: (row) => short(row.cumulative[1] / 1e6) },
      { title: "Samples", by: (row) => row.cumulative[0], cell: (row) => count(row.cumulative[0]), optional: true },
    ],
    1,
  );
}

/** @param {import("./data.js").Run} run @param {HTMLElement} box */
export function allocations(run, box) {
  const found = run.data.allocations;
  box.hidden = found === null;
  if (found === null) {
    return;
  }
  table(
    box,
    found.sites,
    [
      { title: "Call site", cell: (row) => named(row.name, row.file, row.line) },
      { title: "Allocated", by: (row) => row.bytes, cell: (row) => metered(row.bytes, found.total[1], bytes(row.bytes)) },
      { title: "Share", by: (row) => row.bytes, cell: (row) => percent(row.bytes, found.total[1]), optional: true },
      { title: "Blocks", by: (row) => row.count, cell: (row) => count(row.count) },
    ],
    1,
  );
}
