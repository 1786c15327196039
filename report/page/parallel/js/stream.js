// The task stream: a row of boxes for each worker, which zooms and moves smoothly with any number of tasks. Boxes on pixels
// that are painted already are skipped.

import { short } from "./data.js";
import { niceStep } from "../../js/axis.js";
import { el, prepare, themed } from "../../js/dom.js";
import { plural } from "../../js/format.js";

const LANE = 19;
const GAP = 7;
const TOP = 22;
const LEFT = 128;
const LEAST_ROWS = 1;
/** Shorter drags are clicks, in pixels. */
const DRAG = 5;
/** The shortest stretch that fills the width, in milliseconds. */
const SHORTEST = 1e-4;

export class Stream {
  /**
   * @param {import("./data.js").Run} run
   * @param {{canvas: HTMLCanvasElement, overview: HTMLCanvasElement, reading: HTMLElement, tooltip: HTMLElement, names: HTMLElement}} parts
   */
  constructor(run, parts) {
    this.run = run;
    this.parts = parts;
    this.from = 0;
    this.to = run.ms;
    /** The highlighted name; -1 for all. */
    this.chosen = -1;
    /** @type {{from: number, to: number} | null} what a drag has marked, in pixels */
    this.marked = null;
    this.asked = false;
    /** @type {{kind: string, canvas: HTMLCanvasElement} | null} the strip below */
    this.kept = null;
    // Workers with tasks, one lane for each depth.
    const depths = run.data.workers.map(() => 0);
    for (const row of run.rows) {
      depths[row.worker] = Math.max(depths[row.worker], row.depth + 1);
    }
    /** @type {{worker: number, top: number, lanes: number}[]} */
    this.lanes = [];
    let top = TOP;
    depths.forEach((lanes, worker) => {
      if (lanes > 0) {
        this.lanes.push({ worker, top, lanes });
        top += Math.max(lanes, LEAST_ROWS) * LANE + GAP;
      }
    });
    this.height = Math.max(top + 2, TOP + LANE);
    /** @type {Map<number, number>} where a worker's lanes begin */
    this.tops = new Map(this.lanes.map((lane) => [lane.worker, lane.top]));
    this.listen();
    this.legend();
    new ResizeObserver(() => this.paint()).observe(parts.canvas.parentElement ?? parts.canvas);
    this.say();
  }

  get left() {
    return Math.min(LEFT, this.parts.canvas.clientWidth * 0.26);
  }

  get width() {
    return Math.max(1, this.parts.canvas.clientWidth - this.left);
  }

  /** @param {number} x @returns {number} milliseconds */
  msAt(x) {
    return this.from + ((x - this.left) / this.width) * (this.to - this.from);
  }

  /** @param {number} from @param {number} to both in milliseconds */
  show(from, to) {
    const length = Math.min(this.run.ms, Math.max(SHORTEST, to - from));
    this.from = Math.max(0, Math.min(from, this.run.ms - length));
    this.to = this.from + length;
    this.say();
    this.ask();
  }

  /** @param {number} factor below 1 zooms in @param {number} at milliseconds that stay where they are */
  zoom(factor, at = (this.from + this.to) / 2) {
    const length = Math.min(this.run.ms, Math.max(SHORTEST, (this.to - this.from) * factor));
    const share = (at - this.from) / (this.to - this.from);
    this.show(at - share * length, at - share * length + length);
  }

  /** @param {number} share of what is seen */
  move(share) {
    const by = share * (this.to - this.from);
    this.show(this.from + by, this.to + by);
  }

  ask() {
    if (!this.asked) {
      this.asked = true;
      requestAnimationFrame(() => {
        this.asked = false;
        this.paint();
      });
    }
  }

  listen() {
    const { canvas, overview, tooltip } = this.parts;
    let began = -1;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && event.offsetX >= this.left && event.pointerType !== "touch") {
        canvas.setPointerCapture(event.pointerId);
        began = event.offsetX;
      }
    });
    canvas.addEventListener("pointermove", (event) => {
      if (began >= 0 && Math.abs(event.offsetX - began) > DRAG) {
        this.marked = { from: Math.max(this.left, Math.min(began, event.offsetX)), to: Math.max(began, event.offsetX) };
        tooltip.hidden = true;
        this.ask();
      } else if (began < 0) {
        this.point(event);
      }
    });
    const end = () => {
      if (this.marked !== null) {
        const { from, to } = this.marked;
        this.marked = null;
        this.show(this.msAt(from), this.msAt(to));
      }
      began = -1;
    };
    canvas.addEventListener("pointerup", (event) => {
      end();
      this.point(event);
    });
    canvas.addEventListener("pointercancel", () => {
      this.marked = null;
      began = -1;
    });
    canvas.addEventListener("pointerleave", () => {
      tooltip.hidden = true;
    });
    canvas.addEventListener("dblclick", (event) => this.zoom(0.35, this.msAt(event.offsetX)));
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (event.ctrlKey || event.metaKey) {
          this.zoom(Math.exp(event.deltaY * 0.003), this.msAt(event.offsetX));
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          this.move((event.deltaX || event.deltaY) / this.width);
        } else {
          return;
        }
        event.preventDefault();
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => {
      const keys = /** @type {Record<string, () => void>} */ ({
        "+": () => this.zoom(0.5),
        "=": () => this.zoom(0.5),
        "-": () => this.zoom(2),
        ArrowLeft: () => this.move(-0.15),
        ArrowRight: () => this.move(0.15),
        Home: () => this.show(0, this.to - this.from),
        End: () => this.show(this.run.ms, this.run.ms + this.to - this.from),
        0: () => this.show(0, this.run.ms),
        Escape: () => this.show(0, this.run.ms),
      });
      if (event.key in keys && !event.ctrlKey && !event.metaKey) {
        keys[event.key]();
        event.preventDefault();
      }
    });
    let held = false;
    const follow = (/** @type {PointerEvent} */ event) => {
      const at = (event.offsetX / overview.clientWidth) * this.run.ms;
      const half = (this.to - this.from) / 2;
      this.show(at - half, at + half);
    };
    overview.addEventListener("pointerdown", (event) => {
      overview.setPointerCapture(event.pointerId);
      held = true;
      follow(event);
    });
    overview.addEventListener("pointermove", (event) => held && follow(event));
    overview.addEventListener("pointerup", () => {
      held = false;
    });
  }

  legend() {
    const { names, ranked } = this.run;
    this.parts.names.replaceChildren(
      ...ranked.slice(0, 14).map((index) => {
        const swatch = el("span", "swatch");
        swatch.style.background = `var(${names[index].color})`;
        const button = el("button", "", swatch, el("span", "", names[index].name));
        button.type = "button";
        button.title = `${plural(names[index].count, "task")}, ${short(names[index].ms)}`;
        button.setAttribute("aria-pressed", "false");
        button.addEventListener("click", () => {
          this.chosen = this.chosen === index ? -1 : index;
          for (const other of this.parts.names.querySelectorAll("button")) {
            other.setAttribute("aria-pressed", String(other === button && this.chosen === index));
          }
          this.ask();
        });
        return el("li", "", button);
      }),
    );
  }

  /** @param {number} x @param {number} y @returns {{row: import("./data.js").Row, at: number} | null} the task there */
  find(x, y) {
    const lane = this.lanes.findLast((one) => one.top <= y);
    const depth = lane ? Math.floor((y - lane.top) / LANE) : -1;
    const row = this.run.rows.find((one) => lane && one.worker === lane.worker && one.depth === depth);
    if (row === undefined || x < this.left) {
      return null;
    }
    const slack = (1.5 / this.width) * (this.to - this.from);
    const at = firstBehind(row.end, this.msAt(x) - slack);
    return at < row.start.length && row.start[at] <= this.msAt(x) + slack ? { row, at } : null;
  }

  /** @param {PointerEvent} event */
  point(event) {
    const { tooltip } = this.parts;
    const found = this.find(event.offsetX, event.offsetY);
    tooltip.hidden = found === null;
    if (found === null) {
      return;
    }
    const { row, at } = found;
    const worker = this.run.data.workers[row.worker];
    const length = row.end[at] - row.start[at];
    tooltip.replaceChildren(
      el("b", "", this.run.names[row.name[at]].name),
      `${short(length)} on ${worker.name}, from ${short(row.start[at])}`,
    );
    const box = tooltip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const below = event.clientY + 18 + box.height < window.innerHeight;
    tooltip.style.left = `${Math.max(8, x)}px`;
    tooltip.style.top = `${below ? event.clientY + 18 : event.clientY - box.height - 12}px`;
  }

  say() {
    const whole = this.from <= 0 && this.to >= this.run.ms;
    const seen = `${short(this.from)} to ${short(this.to)}`;
    this.parts.reading.textContent = whole ? `The whole run: ${short(this.run.ms)}` : `${seen}: ${short(this.to - this.from)} of ${short(this.run.ms)}`;
    this.parts.canvas.setAttribute("aria-label", `Tasks by worker, ${seen}`);
  }

  paint() {
    const { canvas } = this.parts;
    const width = canvas.parentElement?.clientWidth ?? 0;
    if (width === 0) {
      return;
    }
    const context = prepare(canvas, width, this.height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.axis(context, width);
    for (const { worker, top, lanes } of this.lanes) {
      context.fillStyle = themed("--panel");
      context.fillRect(this.left, top, width - this.left, lanes * LANE);
      context.fillStyle = themed("--ink");
      context.fillText(clipped(context, this.run.data.workers[worker].name, this.left - 16), 10, top + LANE / 2);
    }
    context.save();
    context.beginPath();
    context.rect(this.left, 0, width - this.left, this.height);
    context.clip();
    for (const row of this.run.rows) {
      this.row(context, row);
    }
    context.restore();
    if (this.marked !== null) {
      context.fillStyle = themed("--select");
      context.fillRect(this.marked.from, 0, this.marked.to - this.marked.from, this.height);
    }
    this.strip();
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width */
  axis(context, width) {
    const step = niceStep((this.to - this.from) / Math.max(2, this.width / 110));
    context.textAlign = "center";
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = Math.round(this.left + ((at - this.from) / (this.to - this.from)) * this.width) + 0.5;
      context.strokeStyle = themed("--line");
      context.beginPath();
      context.moveTo(x, TOP - 5);
      context.lineTo(x, this.height);
      context.stroke();
      context.fillStyle = themed("--muted");
      if (x > this.left + 18 && x < width - 24) {
        context.fillText(tick(at, step), x, 9);
      }
    }
    context.textAlign = "left";
  }

  /** @param {CanvasRenderingContext2D} context @param {import("./data.js").Row} row */
  row(context, row) {
    const top = (this.tops.get(row.worker) ?? 0) + row.depth * LANE + 1;
    const scale = this.width / (this.to - this.from);
    const { names } = this.run;
    let painted = -1;
    for (let at = firstBehind(row.end, this.from); at < row.start.length && row.start[at] < this.to; at += 1) {
      const x = this.left + (row.start[at] - this.from) * scale;
      const end = this.left + (row.end[at] - this.from) * scale;
      const name = row.name[at];
      const faded = this.chosen >= 0 && this.chosen !== name;
      if (end <= painted && this.chosen < 0) {
        // All tasks that end on painted pixels are skipped at once.
        at = Math.max(at, firstBehind(row.end, this.from + (painted - this.left) / scale) - 1);
        continue;
      }
      if (end <= painted && faded) {
        continue;
      }
      const from = Math.max(x, this.left - 2, this.chosen < 0 ? painted : 0);
      const length = Math.max(1, end - from - (end - x > 3 ? 1 : 0));
      context.globalAlpha = faded ? 0.18 : 1;
      context.fillStyle = themed(names[name].color);
      context.fillRect(from, top, length, LANE - 2);
      painted = from + length;
      if (length > 34 && !faded) {
        context.fillStyle = themed("--box-text");
        context.fillText(clipped(context, names[name].name, Math.min(length, this.left + this.width - from) - 10), from + 5, top + (LANE - 2) / 2);
      }
    }
    context.globalAlpha = 1;
  }

  /**
   * Returns the miniature of the whole run, painted when its size or the theme has changed.
   * @param {number} width
   * @param {number} height
   * @returns {HTMLCanvasElement}
   */
  whole(width, height) {
    const kind = `${width} ${window.devicePixelRatio} ${themed("--ink")}`;
    if (this.kept?.kind === kind) {
      return this.kept.canvas;
    }
    const canvas = document.createElement("canvas");
    const context = prepare(canvas, width, height);
    const outer = this.run.rows.filter((row) => row.depth === 0);
    const each = (height - 4) / Math.max(1, outer.length);
    const scale = width / this.run.ms;
    outer.forEach((row, nth) => {
      let painted = -1;
      for (let at = 0; at < row.start.length; at += 1) {
        const end = row.end[at] * scale;
        if (end > painted) {
          const from = Math.max(painted, row.start[at] * scale);
          const length = Math.max(1, end - from);
          context.fillStyle = themed(this.run.names[row.name[at]].color);
          context.fillRect(from, 2 + nth * each, length, Math.max(1, each - 0.5));
          painted = from + length;
        }
      }
    });
    this.kept = { kind, canvas };
    return canvas;
  }

  /** Paints the miniature of the whole run, with the visible range. */
  strip() {
    const { overview } = this.parts;
    const width = overview.parentElement?.clientWidth ?? 0;
    const height = 26;
    const context = prepare(overview, width, height);
    context.drawImage(this.whole(width, height), 0, 0, width, height);
    const scale = width / this.run.ms;
    const [from, to] = [this.from * scale, this.to * scale];
    if (to - from < width - 1) {
      context.fillStyle = themed("--ground");
      context.globalAlpha = 0.72;
      context.fillRect(0, 0, from, height);
      context.fillRect(to, 0, width - to, height);
      context.globalAlpha = 1;
      context.strokeStyle = themed("--accent");
      context.strokeRect(from + 0.5, 0.5, Math.max(2, to - from - 1), height - 1);
    }
  }
}

/**
 * @param {Float64Array} ends ascending
 * @param {number} at
 * @returns {number} the first index whose end is not before `at`
 */
export function firstBehind(ends, at) {
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] < at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/**
 * @param {number} ms
 * @param {number} step between two ticks
 * @returns {string} as many digits as tell neighbours apart
 */
function tick(ms, step) {
  const [scale, unit] = step >= 1000 ? [1000, "s"] : step >= 1 || ms === 0 ? [1, "ms"] : [1e-3, "µs"];
  const digits = Math.max(0, Math.min(3, Math.ceil(-Math.log10(step / scale) - 1e-9)));
  return `${(ms / scale).toFixed(digits)} ${unit}`;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} width
 * @returns {string} as much of it as fits
 */
function clipped(context, text, width) {
  if (width < 12) {
    return "";
  }
  let short = text.slice(0, 120);
  if (context.measureText(short).width <= width) {
    return short;
  }
  let [low, high] = [0, short.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${short.slice(0, middle)}…`).width <= width) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low === 0 ? "" : `${short.slice(0, low)}…`;
}
