// CPU and memory over time: how many cores the workers used, one on top of the other, and the process's resident size.

import { short } from "./data.js";
import { niceStep } from "../../js/axis.js";
import { prepare, themed } from "../../js/dom.js";
import { bytes } from "../../js/format.js";

const ABOVE = 6;
const BELOW = 18;
const BESIDE = 60;

export class System {
  /**
   * @param {import("./data.js").Run} run
   * @param {HTMLCanvasElement} cpu
   * @param {HTMLCanvasElement} memory
   * @param {HTMLElement} reading
   */
  constructor(run, cpu, memory, reading) {
    this.run = run;
    this.cpu = cpu;
    this.memory = memory;
    this.reading = reading;
    /** The moment whose reading is shown; -1 if there is none. */
    this.at = -1;
    const { at, rss, cpu: used } = run.data.moments;
    /** Cores by worker and moment. */
    this.cores = used.map((of) => of.map((ns, nth) => ns / Math.max(1, at[nth] - (at[nth - 1] ?? 0))));
    this.mostCores = Math.max(0.25, ...at.map((_, nth) => this.sum(nth))) * 1.08;
    this.mostBytes = Math.max(1, ...rss) * 1.12;
    const read = (/** @type {PointerEvent} */ event) => this.read(this.momentAt(event.offsetX, cpu.clientWidth));
    for (const canvas of [cpu, memory]) {
      canvas.addEventListener("pointermove", read);
      canvas.addEventListener("pointerleave", () => this.read(-1));
      canvas.addEventListener("keydown", (event) => {
        const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
        if (step !== 0) {
          this.read(Math.min(at.length - 1, Math.max(0, this.at + step)));
          event.preventDefault();
        }
      });
      new ResizeObserver(() => this.paint()).observe(canvas.parentElement ?? canvas);
    }
    this.read(-1);
  }

  /** @param {number} nth @returns {number} cores that all workers used */
  sum(nth) {
    return this.cores.reduce((sum, of) => sum + of[nth], 0);
  }

  /** @param {number} x @param {number} width @returns {number} */
  momentAt(x, width) {
    const { at } = this.run.data.moments;
    const ns = ((x - BESIDE) / (width - BESIDE)) * this.run.data.duration_ns;
    const found = at.findIndex((moment) => moment >= ns);
    return found < 0 ? at.length - 1 : found;
  }

  /** @param {number} nth */
  read(nth) {
    const { at, rss } = this.run.data.moments;
    this.at = nth;
    if (nth < 0 || at.length === 0) {
      this.reading.textContent = "";
    } else {
      const busiest = this.cores
        .map((of, worker) => ({ cores: of[nth], name: this.run.data.workers[worker].name }))
        .filter(({ cores }) => cores >= 0.005)
        .sort((a, b) => b.cores - a.cores)
        .slice(0, 4)
        .map(({ cores, name }) => `${name} ${cores.toFixed(2)}`);
      this.reading.textContent = `At ${short(at[nth] / 1e6)}: ${this.sum(nth).toFixed(2)} cores${busiest.length > 0 ? ` (${busiest.join(", ")})` : ""}, ${bytes(rss[nth])} resident`;
    }
    this.paint();
  }

  paint() {
    const { at, rss } = this.run.data.moments;
    /** @type {number[]} */
    let below = at.map(() => 0);
    this.draw(this.cpu, this.mostCores, (value) => `${Number(value.toFixed(2))}`, (context, x, y) => {
      // Two greys in turn: the palette is that of the tasks.
      this.cores.forEach((of, worker) => {
        const above = below.map((sum, nth) => sum + of[nth]);
        context.fillStyle = themed(`--worker-${worker % 2}`);
        context.beginPath();
        steps(context, at, above, x, y, false);
        steps(context, at, below, x, y, true);
        context.fill();
        below = above;
      });
    });
    this.draw(this.memory, this.mostBytes, bytes, (context, x, y) => {
      context.beginPath();
      at.forEach((moment, nth) => context[nth === 0 ? "moveTo" : "lineTo"](x(moment), y(rss[nth])));
      context.strokeStyle = themed("--worker-0");
      context.lineWidth = 1.5;
      context.stroke();
      context.lineTo(x(at[at.length - 1] ?? 0), y(0));
      context.lineTo(x(at[0] ?? 0), y(0));
      context.fillStyle = themed("--curve-rss");
      context.globalAlpha = 0.5;
      context.fill();
      context.globalAlpha = 1;
      context.lineWidth = 1;
    });
  }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {number} most
   * @param {(value: number) => string} write
   * @param {(context: CanvasRenderingContext2D, x: (ns: number) => number, y: (value: number) => number) => void} curves
   */
  draw(canvas, most, write, curves) {
    const box = canvas.parentElement;
    const [width, height] = [box?.clientWidth ?? 0, box?.clientHeight ?? 0];
    if (width === 0) {
      return;
    }
    const context = prepare(canvas, width, height);
    const x = (/** @type {number} */ ns) => BESIDE + (ns / this.run.data.duration_ns) * (width - BESIDE);
    const y = (/** @type {number} */ value) => height - BELOW - (value / most) * (height - ABOVE - BELOW);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const step = niceStep(most / Math.max(2, height / 45));
    for (let value = 0; value <= most; value += step) {
      context.strokeStyle = themed("--line");
      context.beginPath();
      context.moveTo(BESIDE, Math.round(y(value)) + 0.5);
      context.lineTo(width, Math.round(y(value)) + 0.5);
      context.stroke();
      context.fillStyle = themed("--muted");
      context.textAlign = "right";
      context.fillText(write(value), BESIDE - 6, Math.max(6, y(value)));
    }
    curves(context, x, y);
    context.fillStyle = themed("--muted");
    const ticks = Math.max(2, Math.floor(width / 160));
    for (let nth = 0; nth <= ticks; nth += 1) {
      const ns = (nth / ticks) * this.run.data.duration_ns;
      context.textAlign = nth === 0 ? "left" : nth === ticks ? "right" : "center";
      context.fillText(short(ns / 1e6), x(ns), height - 7);
    }
    if (this.at >= 0) {
      context.strokeStyle = themed("--accent");
      context.beginPath();
      context.moveTo(x(this.run.data.moments.at[this.at]), ABOVE);
      context.lineTo(x(this.run.data.moments.at[this.at]), height - BELOW);
      context.stroke();
    }
  }
}

/**
 * Draws values that are valid since the moment before.
 * @param {CanvasRenderingContext2D} context
 * @param {number[]} at
 * @param {number[]} values
 * @param {(ns: number) => number} x
 * @param {(value: number) => number} y
 * @param {boolean} backwards
 */
function steps(context, at, values, x, y, backwards) {
  for (let i = 0; i < at.length; i += 1) {
    const nth = backwards ? at.length - 1 - i : i;
    const [from, to] = [x(at[nth - 1] ?? 0), x(at[nth])];
    context.lineTo(backwards ? to : from, y(values[nth]));
    context.lineTo(backwards ? from : to, y(values[nth]));
  }
}
