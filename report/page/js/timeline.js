// Memory over time: resident size as a surface, live heap as a line, the high-water mark, and the user's marks. A range is
// selected by dragging, or with Shift and the arrow keys.

import { sizeTicks, timeTicks } from "./axis.js";
import { el, prepare, themed } from "./dom.js";
import { bytes, duration } from "./format.js";

const TOP = 8;
/** Height of the axis below the curve, in sizes of its font. */
const AXIS = 1.35;
/** Shorter drags are clicks, in pixels. */
const DRAG = 4;

/**
 * @typedef {object} TimelineWishes
 * @property {(from: number, to: number, done: boolean) => void} range in milliseconds; not done while dragging
 * @property {() => void} clear
 */

export class Timeline {
  /**
   * @param {HTMLElement} box
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLElement} reading where the values under the pointer are written
   * @param {import("./decode.js").Profile} profile
   * @param {TimelineWishes} wishes
   */
  constructor(box, canvas, reading, profile, wishes) {
    this.canvas = canvas;
    this.reading = reading;
    this.wishes = wishes;
    this.curves = profile.timeline;
    this.marks = profile.head.marks;
    this.peak = profile.head.totals.high_water_ms;
    this.peakBytes = profile.head.totals.high_water[1];
    /** The moment whose reading is shown; -1 if there is none. */
    this.at = -1;
    /** @type {{from: number, to: number} | null} in milliseconds */
    this.range = null;
    /** Start of a drag or a selection by keys, in milliseconds; -1 if there is none. */
    this.anchor = -1;
    const { at, rss, heap } = this.curves;
    this.first = Math.min(0, at[0] ?? 0);
    this.last = Math.max(at[at.length - 1] ?? 0, profile.head.end_ms - profile.head.start_ms, this.first + 1);
    this.most = 1;
    for (let i = 0; i < at.length; i += 1) {
      this.most = Math.max(this.most, rss[i], heap[i]);
    }
    box.hidden = at.length < 2;
    this.describe();
    this.write();

    // Also reports the first size.
    new ResizeObserver(() => this.paint()).observe(box);
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.anchor = this.msAt(event.offsetX);
      this.from = event.offsetX;
    });
    canvas.addEventListener("pointermove", (event) => {
      this.read(this.momentAt(event.offsetX));
      if (this.anchor >= 0 && event.buttons > 0 && Math.abs(event.offsetX - (this.from ?? 0)) > DRAG) {
        wishes.range(this.anchor, this.msAt(event.offsetX), false);
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      if (this.anchor >= 0 && Math.abs(event.offsetX - (this.from ?? 0)) > DRAG) {
        wishes.range(this.anchor, this.msAt(event.offsetX), true);
      }
      this.anchor = -1;
    });
    canvas.addEventListener("pointercancel", () => {
      this.anchor = -1;
    });
    canvas.addEventListener("pointerleave", () => this.read(-1));
    canvas.addEventListener("blur", () => {
      this.anchor = -1;
      this.read(-1);
    });
    canvas.addEventListener("keydown", (event) => this.press(event));
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const { at } = this.curves;
    const steps = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowRight: 1, Home: -at.length, End: at.length });
    if (event.key in steps) {
      const step = steps[event.key] * Math.max(1, Math.round(at.length / 100));
      const before = this.at < 0 ? (step < 0 ? at.length - 1 : 0) : this.at;
      this.read(Math.min(at.length - 1, Math.max(0, before + step)));
      if (!event.shiftKey) {
        this.anchor = -1;
      } else {
        this.anchor = this.anchor < 0 ? at[before] : this.anchor;
        this.wishes.range(this.anchor, at[this.at], true);
      }
      event.preventDefault();
    } else if (event.key === "Escape") {
      this.anchor = -1;
      this.wishes.clear();
    }
  }

  /** @param {{from: number, to: number} | null} range in milliseconds */
  show(range) {
    this.range = range;
    this.paint();
  }

  /**
   * @param {number} x in pixels
   * @returns {number} milliseconds since the start
   */
  msAt(x) {
    const ms = this.first + (x / this.canvas.clientWidth) * (this.last - this.first);
    return Math.min(this.last, Math.max(0, ms));
  }

  describe() {
    const { rss, heap } = this.curves;
    if (rss.length > 0) {
      const end = rss.length - 1;
      this.canvas.ariaLabel =
        `Memory over ${duration(this.last)}: resident size from ${bytes(rss[0])} to ${bytes(rss[end])}, ` +
        `heap from ${bytes(heap[0])} to ${bytes(heap[end])}.${this.marks.length > 0 ? ` Marks: ${this.marks.map(({ name, at_ms }) => `${name} at ${duration(at_ms)}`).join(", ")}.` : ""} ` +
        "Arrow keys read single moments, with Shift they choose a range, Escape clears it.";
    }
  }

  /**
   * @param {number} x in pixels
   * @returns {number} the nearest moment
   */
  momentAt(x) {
    const { at } = this.curves;
    const ms = this.msAt(x);
    let low = 0;
    let high = at.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (at[middle] < ms) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return ms - at[low] < at[high] - ms ? low : high;
  }

  /** @param {number} moment its index, or -1 for the end of the capture */
  read(moment) {
    this.at = moment;
    this.write();
    this.paint();
  }

  write() {
    const { at, rss, heap, own } = this.curves;
    const moment = this.at;
    const shown = moment < 0 ? at.length - 1 : moment;
    if (shown < 0) {
      return;
    }
    const value = (/** @type {string} */ name, /** @type {number} */ size, /** @type {string} */ key) =>
      el("span", `reading ${key}`, el("i", "key"), `${name} `, el("b", "", bytes(size)));
    const when = moment < 0 ? `end, ${duration(at[shown])}` : `at ${duration(at[shown])}`;
    const values = [el("span", "when", when), value("RSS", rss[shown], "rss"), value("Heap", heap[shown], "heap")];
    if (own[shown] > 0) {
      values.push(value("Profiler", own[shown], "own"));
    }
    this.reading.replaceChildren(...values);
  }

  paint() {
    const { canvas } = this;
    const box = canvas.parentElement;
    if (box === null || box.clientWidth === 0 || this.curves.at.length < 2) {
      return;
    }
    const width = box.clientWidth;
    const height = box.clientHeight;
    const context = prepare(canvas, width, height);
    const { rss, heap, own } = this.curves;
    const letter = Math.round(0.85 * Number.parseFloat(getComputedStyle(document.documentElement).fontSize));
    const floor = height - Math.round(AXIS * letter);
    const x = (/** @type {number} */ ms) => ((ms - this.first) / (this.last - this.first)) * width;
    const y = (/** @type {number} */ size) => floor - (size / this.most) * (floor - TOP);

    context.fillStyle = themed("--curve-rss");
    this.trace(context, rss, x, y);
    context.lineTo(x(this.curves.at[rss.length - 1]), floor);
    context.lineTo(x(this.curves.at[0]), floor);
    context.fill();
    if (own.some((size) => size > 0)) {
      context.strokeStyle = themed("--curve-own");
      context.lineWidth = 1;
      this.trace(context, own, x, y);
      context.stroke();
    }
    context.strokeStyle = themed("--curve-heap");
    context.lineWidth = 1.75;
    context.lineJoin = "round";
    this.trace(context, heap, x, y);
    context.stroke();

    context.font = `${letter}px system-ui, sans-serif`;
    this.paintAxes(context, x, y, { width, floor, letter });
    this.paintMarks(context, x, floor);
    if (this.range !== null) {
      this.paintRange(context, x(this.range.from), x(this.range.to), floor);
    }
    if (this.peak !== null) {
      this.paintPeak(context, x(this.peak), y(this.peakBytes), width);
    }
    if (this.at >= 0) {
      this.paintReading(context, x(this.curves.at[this.at]), y(rss[this.at]), y(heap[this.at]), floor);
    }
  }

  /**
   * A path through a curve. Of the moments that share a pixel, the highest and the lowest are drawn, so that no spike is lost.
   * @param {CanvasRenderingContext2D} context
   * @param {Float64Array} curve
   * @param {(ms: number) => number} x
   * @param {(size: number) => number} y
   */
  trace(context, curve, x, y) {
    const { at } = this.curves;
    context.beginPath();
    let i = 0;
    while (i < at.length) {
      const pixel = Math.floor(x(at[i]));
      let high = i;
      let low = i;
      let end = i;
      while (end < at.length && Math.floor(x(at[end])) === pixel) {
        high = curve[end] > curve[high] ? end : high;
        low = curve[end] < curve[low] ? end : low;
        end += 1;
      }
      for (const moment of [i, Math.min(high, low), Math.max(high, low), end - 1]) {
        context.lineTo(x(at[moment]), y(curve[moment]));
      }
      i = end;
    }
  }

  /**
   * Sizes on the left, with lines through the curve; times below it.
   * @param {CanvasRenderingContext2D} context
   * @param {(ms: number) => number} x
   * @param {(size: number) => number} y
   * @param {{ width: number, floor: number, letter: number }} plot in pixels
   */
  paintAxes(context, x, y, { width, floor, letter }) {
    context.fillStyle = themed("--muted");
    context.strokeStyle = themed("--line");
    context.lineWidth = 1;
    context.textAlign = "left";
    context.textBaseline = "bottom";
    context.strokeRect(0, floor + 0.5, width, 0);
    for (const { value, text } of sizeTicks(this.most, Math.max(1, Math.floor((floor - TOP) / (2.2 * letter))))) {
      context.globalAlpha = 0.7;
      context.strokeRect(0, Math.round(y(value)) + 0.5, width, 0);
      context.globalAlpha = 1;
      context.fillText(text, 4, y(value) + letter + 3);
    }
    context.textBaseline = "top";
    context.textAlign = "center";
    for (const { value, text } of timeTicks(this.last, Math.max(1, Math.floor(width / (8 * letter))))) {
      const half = context.measureText(text).width / 2;
      if (x(value) - half > 0 && x(value) + half < width) {
        context.strokeRect(Math.round(x(value)) + 0.5, floor, 0, 3);
        context.fillText(text, x(value), floor + 3);
      }
    }
    context.textAlign = "left";
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {(ms: number) => number} x
   * @param {number} height
   */
  paintMarks(context, x, height) {
    context.textBaseline = "bottom";
    const width = this.canvas.clientWidth;
    const moments = [{ name: "start", at_ms: 0 }, ...this.marks, { name: "stop", at_ms: this.last }];
    moments.forEach(({ name, at_ms }, i) => {
      const at = Math.min(width - 1, Math.max(0, Math.round(x(at_ms)))) + 0.5;
      const next = moments[i + 1] === undefined ? width : x(moments[i + 1].at_ms);
      context.strokeStyle = themed("--muted");
      context.lineWidth = 1;
      context.setLineDash(i === 0 || i === moments.length - 1 ? [] : [3, 3]);
      context.beginPath();
      context.moveTo(at, 0);
      context.lineTo(at, height);
      context.stroke();
      context.setLineDash([]);
      // The end's name stands left of its line.
      const end = i === moments.length - 1;
      let text = name.slice(0, 40);
      const room = end ? 40 : next - at - (i === moments.length - 2 ? 42 : 8);
      while (text.length > 1 && context.measureText(text).width > room) {
        text = `${text.slice(0, -2)}…`;
      }
      if (room > 14) {
        context.textAlign = end ? "right" : "left";
        context.lineJoin = "round";
        context.lineWidth = 3;
        context.strokeStyle = themed("--curve-rss");
        context.strokeText(text, at + (end ? -4 : 4), height - 2);
        context.fillStyle = themed("--ink");
        context.fillText(text, at + (end ? -4 : 4), height - 2);
      }
    });
    context.textAlign = "left";
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} from in pixels
   * @param {number} to
   * @param {number} height
   */
  paintRange(context, from, to, height) {
    context.fillStyle = themed("--accent");
    context.globalAlpha = 0.18;
    context.fillRect(from, 0, to - from, height);
    context.globalAlpha = 1;
    for (const edge of [from, to - 2]) {
      context.fillRect(edge, 0, 2, height);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} x
   * @param {number} y
   * @param {number} width
   */
  paintPeak(context, x, y, width) {
    context.fillStyle = themed("--curve-heap");
    context.strokeStyle = themed("--panel");
    context.lineWidth = 2;
    context.beginPath();
    context.arc(Math.min(Math.max(x, 4), width - 4), Math.max(y, 5), 4, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
    const size = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    context.font = `600 ${Math.round(size * 0.85)}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    const text = `peak ${bytes(this.peakBytes)}`;
    const length = context.measureText(text).width;
    const left = x - 10 - length > 0;
    context.textAlign = left ? "right" : "left";
    context.lineWidth = 4;
    context.lineJoin = "round";
    const at = x + (left ? -9 : 9);
    const line = Math.max(y, 8);
    context.strokeText(text, at, line);
    context.fillStyle = themed("--ink");
    context.fillText(text, at, line);
    context.textAlign = "left";
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} x
   * @param {number} rss
   * @param {number} heap
   * @param {number} floor
   */
  paintReading(context, x, rss, heap, floor) {
    context.strokeStyle = themed("--muted");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, 0);
    context.lineTo(Math.round(x) + 0.5, floor);
    context.stroke();
    for (const y of [rss, heap]) {
      context.fillStyle = themed("--ink");
      context.beginPath();
      context.arc(x, y, 2.5, 0, 2 * Math.PI);
      context.fill();
    }
  }
}
