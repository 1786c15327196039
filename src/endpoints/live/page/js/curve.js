// Memory over time. The server limits its size: each answer of the stream begins with the whole curve, thinned out.

import { sizeTicks, timeTicks } from "../../../../../report/page/js/axis.js";
import { byId, prepare, themed } from "../../../../../report/page/js/dom.js";
import { bytes, duration } from "../../../../../report/page/js/format.js";

/**
 * @typedef {[number, number, number, number]} Row milliseconds since the start; resident, heap, heapray's own bytes
 * @typedef {{ name: string, at_ms: number, live: { count: number, bytes: number } }} Mark
 */

/** Largest number of rows, even if the server sends more than it should. */
const MOST_ROWS = 2000;

/** @type {Row[]} */
let rows = [];
/** @type {Mark[]} */
let marks = [];
/** @type {number | undefined} the row that the reading below shows */
let picked;

/** @param {{ points: Row[], marks: Mark[] }} curve */
export function setCurve(curve) {
  rows = curve.points.slice(-MOST_ROWS);
  marks = curve.marks;
  picked = undefined;
  drawCurve();
}

/** @param {Row} row */
export function addRow(row) {
  const last = rows.at(-1);
  if (last !== undefined && row[0] <= last[0]) {
    return;
  }
  rows.push(row);
  if (rows.length > MOST_ROWS) {
    rows.shift();
  }
  drawCurve();
}

/** Redraws the curve: after a change of data, size or theme. */
export function drawCurve() {
  const canvas = byId("curve", HTMLCanvasElement);
  const box = canvas.parentElement?.getBoundingClientRect();
  if (box === undefined || box.width < 20) {
    return;
  }
  const { width, height } = box;
  const context = prepare(canvas, width, height);
  const end = Math.max(1, rows.at(-1)?.[0] ?? 1);
  const most = Math.max(1, ...rows.map((row) => Math.max(row[1], row[2])));
  const [top, bottom] = [20, height - 22];
  const x = (/** @type {number} */ ms) => (ms / end) * width;
  const y = (/** @type {number} */ value) => bottom - (value / most) * (bottom - top);

  const area = (/** @type {1 | 2} */ column, /** @type {string} */ color) => {
    context.fillStyle = themed(color);
    context.beginPath();
    context.moveTo(x(rows[0]?.[0] ?? 0), bottom);
    for (const row of rows) {
      context.lineTo(x(row[0]), y(row[column]));
    }
    context.lineTo(x(end), bottom);
    context.fill();
  };
  area(1, "--curve-rss");
  area(2, "--curve-heap");
  context.strokeStyle = themed("--curve-own");
  context.lineWidth = 1.5;
  context.beginPath();
  rows.forEach((row, nth) => (nth === 0 ? context.moveTo(x(row[0]), y(row[3])) : context.lineTo(x(row[0]), y(row[3]))));
  context.stroke();

  const letter = parseFloat(getComputedStyle(document.documentElement).fontSize) * 0.86;
  context.font = `${letter}px system-ui, sans-serif`;
  context.fillStyle = themed("--muted");
  context.strokeStyle = themed("--line");
  context.lineWidth = 1;
  context.strokeRect(0, Math.round(bottom) + 0.5, width, 0);
  if (rows.length > 1) {
    drawAxes(context, { x, y, end, most, width, bottom, letter });
  } else {
    context.textAlign = "center";
    context.fillText("Nothing recorded yet", width / 2, height / 2);
  }
  drawMarks(context, x, width, top, bottom);
  if (picked !== undefined && rows[picked] !== undefined) {
    context.fillStyle = themed("--ink");
    context.fillRect(x(rows[picked][0]), top, 1, bottom - top);
  }
  describe(canvas);
}

/**
 * Sizes on the left, with lines through the curve; times below it.
 * @param {CanvasRenderingContext2D} context
 * @param {{ x: (ms: number) => number, y: (value: number) => number, end: number, most: number, width: number, bottom: number,
 *   letter: number }} plot in pixels
 */
function drawAxes(context, { x, y, end, most, width, bottom, letter }) {
  context.textAlign = "left";
  for (const { value, text } of sizeTicks(most, Math.max(1, Math.floor(y(0) / (3 * letter))))) {
    context.globalAlpha = 0.6;
    context.strokeRect(0, Math.round(y(value)) + 0.5, width, 0);
    context.globalAlpha = 1;
    context.fillText(text, 2, y(value) - 3);
  }
  const below = bottom + letter + 5;
  context.fillText("0", 0, below);
  const whole = `after ${duration(end)}`;
  const room = width - context.measureText(whole).width - letter;
  context.textAlign = "center";
  for (const { value, text } of timeTicks(end, Math.max(1, Math.floor(width / (8 * letter))))) {
    if (x(value) + context.measureText(text).width / 2 < room) {
      context.strokeRect(Math.round(x(value)) + 0.5, bottom, 0, 3);
      context.fillText(text, x(value), below);
    }
  }
  context.textAlign = "right";
  context.fillText(whole, width, below);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {(ms: number) => number} x
 * @param {number} width
 * @param {number} top
 * @param {number} bottom
 */
function drawMarks(context, x, width, top, bottom) {
  let free = -Infinity;
  for (const mark of marks) {
    const at = x(mark.at_ms);
    context.fillStyle = themed("--accent");
    context.fillRect(at, top - 2, 1.5, bottom - top + 2);
    const name = mark.name.length > 24 ? `${mark.name.slice(0, 23)}…` : mark.name;
    const length = context.measureText(name).width;
    const left = at + 5 + length > width ? at - 5 - length : at + 5;
    // A name that would cover another one is left out: the reading below the curve shows it.
    if (left > free) {
      context.textAlign = "left";
      context.fillStyle = themed("--ink");
      context.fillText(name, left, top + 10);
      free = left + length + 8;
    }
  }
}

/** @param {HTMLCanvasElement} canvas */
function describe(canvas) {
  const row = rows[picked ?? rows.length - 1];
  if (row === undefined) {
    canvas.setAttribute("aria-label", "Memory over time: nothing recorded yet");
    byId("reading", HTMLElement).textContent = "";
    return;
  }
  const near = marks.filter((mark) => picked !== undefined && Math.abs(mark.at_ms - row[0]) <= (rows.at(-1)?.[0] ?? 0) / 60);
  const named = near.length === 0 ? "" : ` · ${near.map((mark) => mark.name).join(", ")}`;
  const text = `${duration(row[0])}: ${bytes(row[1])} resident, ${bytes(row[2])} heap, ${bytes(row[3])} heapray itself${named}`;
  byId("reading", HTMLElement).textContent = text;
  canvas.setAttribute("aria-label", `Memory over time. At ${text}`);
}

/** Shows the reading at the pointer, or at the position of the arrow keys. */
export function setUpCurve() {
  const canvas = byId("curve", HTMLCanvasElement);
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * (rows.at(-1)?.[0] ?? 0);
    const next = rows.findIndex((row) => row[0] >= at);
    picked = next < 0 ? undefined : next;
    drawCurve();
  });
  for (const left of ["pointerleave", "blur"]) {
    canvas.addEventListener(left, () => {
      picked = undefined;
      drawCurve();
    });
  }
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined || rows.length === 0) {
      return;
    }
    event.preventDefault();
    const far = event.shiftKey ? 10 : 1;
    picked = Math.min(rows.length - 1, Math.max(0, (picked ?? rows.length - 1) + step * far));
    drawCurve();
  });
  new ResizeObserver(drawCurve).observe(byId("curve", HTMLElement).parentElement ?? document.body);
}
