// The data of the report in the page: base64 of zlib of columns. `report/src/page/payload.rs` writes them and shows the
// layout.

import { Shape } from "./shape.js";

/** @typedef {import("./spread.js").Spread} Spread */

/**
 * @typedef {[number, number]} Pair blocks, bytes
 *
 * @typedef {object} Head
 * @property {string} producer
 * @property {string} command_line
 * @property {number} pid
 * @property {number} start_ms since the Unix epoch
 * @property {number} end_ms since the Unix epoch
 * @property {number} events recorded allocations and frees
 * @property {{name: string, tid: number, threads: number}[]} threads
 * @property {{allocated: Pair, freed: Pair, live: Pair, high_water: Pair, high_water_ms: number | null,
 *   sizes_rounded: boolean}} totals
 * @property {[string, Pair][]} by_allocator
 * @property {[number, string][]} allocators number and name of all possible ones
 * @property {Conditions} conditions
 * @property {[string, number][]} packages name and kind: {@link OWN}, …
 * @property {[string, string][][]} contexts key and value of each label, by the number of the context less 1
 * @property {Runs[]} runs of the same contexts
 * @property {{name: string, at_ms: number, live: Pair}[]} marks
 * @property {number[]} generations of the survivors: where each begins, in milliseconds since the start
 * @property {number[]} generation_allocated bytes of the whole session in each; empty where not known
 * @property {Leaks} leaks
 * @property {Known} known
 * @property {number[] | null} slots of the intervals: where each begins; null: there are none
 * @property {boolean} has_log whether the capture has an event log
 * @property {Memory | null} memory of the process, at the end
 * @property {import("./source.js").Source} source
 * @property {string | null} fragmentation what is free but resident, and what to do about it
 * @property {{strings: number, frames: number, nodes: number, rows: number, survivors: number, intervals: number,
 *   sizes: number, moments: number}} counts
 *
 * @typedef {object} Runs requests or futures of a context that have ended
 * @property {Spread} allocated_bytes of each
 * @property {Spread} allocated_blocks of each
 * @property {Spread} most_bytes that each held at one time; empty where only samples were recorded
 * @property {Spread} held_bytes that each left behind; empty where only samples were recorded
 * @property {Amount} freed_of_others
 *
 * @typedef {object} Known memory that rules make known
 * @property {{title: string, pattern: string, bytes: number, blocks: number}[]} list most live bytes first
 * @property {number[]} frames that a rule matches
 */

/**
 * @typedef {object} Leaks what `views::leaks` in Rust found
 * @property {string | null} unknown why it is not known what leaks
 * @property {RankedLine[]} list the likeliest leak first
 * @property {number} left_out number of further lines
 *
 * @typedef {object} RankedLine of code that keeps more the more the service does
 * @property {number} frame
 * @property {boolean} own whether it is the service's own code
 * @property {number} blocks still live
 * @property {number} bytes still live
 * @property {number} per_hour bytes
 * @property {number | null} survival part of the allocated bytes that is kept, from 0 to 1
 * @property {"high" | "medium" | "low"} confidence
 * @property {string[]} evidence
 * @property {string[]} against
 *
 * @typedef {{count: number, bytes: number}} Amount
 *
 * @typedef {object} Sampling margins: the true value of a sum is within its margin with 95 % confidence
 * @property {number} mean_bytes between two samples
 * @property {number} samples that were recorded
 * @property {Amount} asked requested memory, counted exactly
 * @property {Amount} live_margin
 * @property {Amount} high_water_margin
 * @property {Amount} allocated_margin
 *
 * @typedef {object} Conditions
 * @property {boolean} still_recording
 * @property {string} hooks
 * @property {number} lost_events
 * @property {number | null} lost_since_ms
 * @property {number} stacks_cut
 * @property {number} stacks_incomplete
 * @property {number} unknown_frees
 * @property {string | null} log_given_up
 * @property {Sampling | null} [sampling] null where every allocation was recorded
 * @property {string[]} notes
 * @property {number} own_bytes
 * @property {number} collector_cpu_ns
 * @property {number} log_bytes
 *
 * @typedef {object} Memory in bytes, as in `model::ProcessMemory` in Rust
 * @property {number} rss
 * @property {number | null} anonymous
 * @property {number | null} files
 * @property {number | null} shared
 * @property {number | null} swapped
 * @property {number | null} stacks
 * @property {number} stack_count
 * @property {number} own_mapped
 * @property {number} own_heap
 * @property {[string, number, number][]} allocators name, in use, kept
 * @property {number | null} cgroup
 * @property {number | null} cgroup_limit
 *
 * @typedef {object} Rows allocations of one thread in one context with one function from one call stack, by node
 * @property {Int32Array} node 0 is the empty stack
 * @property {Int32Array} thread
 * @property {Int32Array} allocator its number
 * @property {Int32Array} context its number; 0 is none
 * @property {Float64Array[]} values by {@link measureOf}
 * @property {Float64Array} oldest milliseconds since the start of the oldest live block; -1 where unknown
 *
 * @typedef {object} Profile
 * @property {Head} head
 * @property {string[]} strings
 * @property {{function: Int32Array, full: Int32Array, file: Int32Array, line: Int32Array, package: Int32Array}} frames
 *   functions by plain names, or by full ones; frames that differ in full names alone are equal but for those
 * @property {Shape} shape
 * @property {Rows} rows
 * @property {Int32Array | null} source by row, its number among the rows of the whole report; null: the same
 * @property {{row: Int32Array, generation: Int32Array, count: Float64Array, bytes: Float64Array}} survivors of
 *   rows of the whole report
 * @property {{row: Int32Array, born: Int32Array, freed: Int32Array, count: Float64Array, bytes: Float64Array}}
 *   intervals of rows of the whole report; `freed` is -1 for never
 * @property {{size: Float64Array, count: Float64Array}} sizes
 * @property {{at: Float64Array, rss: Float64Array, heap: Float64Array, own: Float64Array}} timeline
 */

/** Kinds of packages, as `views::Kind` in Rust numbers them. */
export const OWN = 0;
export const PACKAGE = 1;
export const LANGUAGE = 2;
export const NATIVE = 3;

/** @typedef {"live" | "peak" | "total" | "temporary" | "range"} View */
/** @typedef {"bytes" | "count"} By */

/** @type {View[]} in the order of the columns; those of a range are computed when one is chosen */
export const VIEWS = ["live", "peak", "total", "temporary", "range"];

/** Number of columns of values in a page's data. */
const CARRIED = 8;

/** Number of columns of values. */
export const MEASURES = 10;

/**
 * @param {View} view
 * @param {By} by
 * @returns {number} the column
 */
export function measureOf(view, by) {
  return VIEWS.indexOf(view) * 2 + (by === "bytes" ? 1 : 0);
}

/** Reads LEB128 numbers one after the other. */
class Reader {
  /** @param {Uint8Array} data */
  constructor(data) {
    this.data = data;
    this.at = 0;
  }

  /** @returns {number} */
  number() {
    const data = this.data;
    let byte = data[this.at++];
    if (byte < 128) {
      return byte;
    }
    // Not shifts: those are limited to 32 bits.
    let value = byte & 127;
    let scale = 128;
    do {
      byte = data[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    return value;
  }

  /**
   * @param {number} length in bytes
   * @returns {Uint8Array}
   */
  slice(length) {
    this.at += length;
    if (this.at > this.data.length) {
      throw new Error("the page's data is cut short");
    }
    return this.data.subarray(this.at - length, this.at);
  }

  /**
   * @param {number} length
   * @returns {Int32Array}
   */
  integers(length) {
    return this.fill(new Int32Array(length));
  }

  /**
   * @param {number} length
   * @returns {Float64Array} exact up to 2^53
   */
  numbers(length) {
    return this.fill(new Float64Array(length));
  }

  /**
   * @param {number} length
   * @returns {Int32Array} from steps
   */
  ascending(length) {
    const column = this.integers(length);
    for (let i = 1; i < length; i += 1) {
      column[i] += column[i - 1];
    }
    return column;
  }

  /**
   * @param {number} length
   * @returns {Float64Array} from signed steps
   */
  steps(length) {
    const column = this.numbers(length);
    let value = 0;
    for (let i = 0; i < length; i += 1) {
      const zigzag = column[i];
      value += zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
      column[i] = value;
    }
    return column;
  }

  /**
   * @template {Int32Array | Float64Array} T
   * @param {T} column
   * @returns {T}
   */
  fill(column) {
    for (let i = 0; i < column.length; i += 1) {
      column[i] = this.number();
    }
    if (this.at > this.data.length) {
      throw new Error("the page's data is cut short");
    }
    return column;
  }
}

/**
 * @param {string} text base64
 * @returns {Promise<Profile>}
 */
export async function decode(text) {
  const binary = atob(text);
  const packed = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) {
    packed[i] = binary.charCodeAt(i);
  }
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return parse(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/**
 * @param {Uint8Array} data
 * @returns {Profile}
 */
function parse(data) {
  const reader = new Reader(data);
  const utf8 = new TextDecoder();
  /** @type {Head} */
  const head = JSON.parse(utf8.decode(reader.slice(reader.number())));
  const counts = head.counts;

  const lengths = reader.integers(counts.strings);
  const strings = Array.from(lengths, (length) => utf8.decode(reader.slice(length)));
  const frames = {
    function: reader.integers(counts.frames),
    full: reader.integers(counts.frames),
    file: reader.integers(counts.frames),
    line: reader.integers(counts.frames),
    package: reader.integers(counts.frames),
  };
  const closed = reader.integers(counts.nodes);
  const shape = Shape.of(closed, reader.integers(counts.nodes));
  const rows = parseRows(reader, counts.rows);
  const survivors = {
    row: reader.ascending(counts.survivors),
    generation: reader.integers(counts.survivors),
    count: reader.numbers(counts.survivors),
    bytes: reader.numbers(counts.survivors),
  };
  const intervals = {
    row: reader.ascending(counts.intervals),
    born: reader.integers(counts.intervals),
    freed: reader.integers(counts.intervals),
    count: reader.numbers(counts.intervals),
    bytes: reader.numbers(counts.intervals),
  };
  intervals.freed.forEach((steps, i) => {
    intervals.freed[i] = steps === 0 ? -1 : intervals.born[i] + steps - 1;
  });
  const sizes = { size: reader.steps(counts.sizes), count: reader.numbers(counts.sizes) };
  const timeline = {
    at: reader.steps(counts.moments),
    rss: reader.steps(counts.moments),
    heap: reader.steps(counts.moments),
    own: reader.steps(counts.moments),
  };
  return { head, strings, frames, shape, rows, source: null, survivors, intervals, sizes, timeline };
}

/**
 * @param {Reader} reader
 * @param {number} length
 * @returns {Rows}
 */
function parseRows(reader, length) {
  const node = reader.ascending(length);
  const thread = reader.integers(length);
  const allocator = reader.integers(length);
  const context = reader.integers(length);
  const values = [];
  for (let measure = 0; measure < CARRIED; measure += 1) {
    values.push(reader.numbers(length));
  }
  const none = new Float64Array(length);
  while (values.length < MEASURES) {
    values.push(none);
  }
  return { node, thread, allocator, context, values, oldest: reader.numbers(length).map((ms) => ms - 1) };
}
