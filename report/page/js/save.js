// Saves files: the present graph as SVG or PNG, a table as CSV.

import { fit } from "./names.js";

const FONT = 12;
/** Approximate width of a character, as a part of the font's size, for labels that are not measured. */
const WIDE = 0.58;

/**
 * @param {string} text
 * @returns {string} that no parser of XML mistakes for markup
 */
export function escaped(text) {
  const names = /** @type {Record<string, string>} */ ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" });
  // Characters that XML does not have, even escaped, are replaced.
  return text.replace(/[&<>"]/g, (found) => names[found]).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
}

/**
 * @typedef {object} Drawing
 * @property {import("./layout.js").Row[]} rows
 * @property {number} width in pixels
 * @property {number} rowHeight
 * @property {boolean} up whether the first row is the lowest
 * @property {(node: number) => string} fill
 * @property {string} rest colour of what was too narrow
 * @property {(node: number) => string[]} parts of the label
 * @property {(node: number) => string} title the tooltip
 * @property {string} ink
 * @property {string} ground
 * @property {string} heading
 */

/**
 * @param {Drawing} drawing
 * @returns {string} an SVG document
 */
export function svgText({ rows, width, rowHeight, up, fill, rest, parts, title, ink, ground, heading }) {
  const head = 28;
  const height = head + rows.length * rowHeight;
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="${FONT}">`,
    `<rect width="100%" height="100%" fill="${ground}"/>`,
    `<text x="6" y="18" font-size="14" fill="${ink}">${escaped(heading)}</text>`,
  ];
  rows.forEach((row, depth) => {
    const y = head + (up ? rows.length - 1 - depth : depth) * rowHeight;
    row.node.forEach((node, i) => {
      const left = Math.max(0, row.left[i]);
      const wide = Math.min(width, row.right[i]) - left;
      const color = row.more[i] > 0 ? rest : fill(node);
      const told = row.more[i] > 0 ? `${row.more[i]} calls too narrow to show` : title(node);
      const most = Math.floor((wide - 8) / (FONT * WIDE));
      const label = row.more[i] > 0 || most < 3 ? "" : fit(parts(node), most);
      const box = `<rect x="${left.toFixed(2)}" y="${y}" width="${Math.max(0.3, wide - (wide > 3 ? 1 : 0)).toFixed(2)}" height="${rowHeight - 1}" fill="${color}"/>`;
      const text = label === "" ? "" : `<text x="${(left + 4).toFixed(2)}" y="${y + rowHeight - 6}" fill="${ink}">${escaped(label)}</text>`;
      lines.push(`<g><title>${escaped(told)}</title>${box}${text}</g>`);
    });
  });
  lines.push("</svg>");
  return lines.join("\n");
}

/**
 * @param {(string | number)[][]} rows
 * @returns {string} RFC 4180; cells that a spreadsheet would run begin with an apostrophe
 */
export function csvText(rows) {
  const cell = (/** @type {string | number} */ value) => {
    if (typeof value === "number") {
      return String(value);
    }
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/**
 * Saves a file through the browser.
 * @param {string} name
 * @param {Blob} blob
 */
export function download(name, blob) {
  const link = document.createElement("a");
  link.download = name;
  link.href = URL.createObjectURL(blob);
  link.click();
  // The browser has opened the file within a minute.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
