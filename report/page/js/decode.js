// The report as it lies in the page: base64 of zlib of columns. `report/src/page/payload.rs` is the writer and shows
// the layout.

/**
 * @typedef {[number, number]} Pair blocks, bytes
 *
 * @typedef {object} Head
 * @property {string} producer
 * @property {string} command_line
 * @property {number} pid
 * @property {number} start_ms since the Unix epoch
 * @property {number} end_ms since the Unix epoch
 * @property {number} events allocations and frees that were seen
 * @property {number} threads
 * @property {{allocated: Pair, freed: Pair, live: Pair, high_water: Pair, high_water_ms: number | null}} totals
 * @property {[string, Pair][]} by_allocator
 * @property {Conditions} conditions
 * @property {[string, number][]} packages name and kind: {@link OWN}, …
 * @property {{strings: number, frames: number, nodes: number, own: number, moments: number}} counts
 *
 * @typedef {object} Conditions
 * @property {boolean} still_recording
 * @property {string} hooks
 * @property {number} lost_events
 * @property {number} stacks_cut
 * @property {number} stacks_incomplete
 * @property {number} unknown_frees
 * @property {string | null} log_given_up
 * @property {string[]} notes
 * @property {number} own_bytes
 * @property {number} collector_cpu_ns
 * @property {number} log_bytes
 *
 * @typedef {object} Profile
 * @property {Head} head
 * @property {string[]} strings
 * @property {{function: Int32Array, file: Int32Array, line: Int32Array, package: Int32Array}} frames
 * @property {{closed: Int32Array, frame: Int32Array}} nodes in preorder
 * @property {{node: Int32Array, values: Float64Array[], oldest: Float64Array}} own what stacks hold themselves;
 *   `values` by {@link measureOf}; node 0 is the empty stack; `oldest` is -1 where unknown
 * @property {{at: Float64Array, rss: Float64Array, heap: Float64Array, own: Float64Array}} timeline
 */

/** Kinds of packages, as `views::Kind` in Rust numbers them. */
export const OWN = 0;
export const PACKAGE = 1;
export const LANGUAGE = 2;
export const NATIVE = 3;

/** @typedef {"live" | "peak" | "total"} View */
/** @typedef {"bytes" | "count"} By */

/** @type {View[]} in the order of the columns */
export const VIEWS = ["live", "peak", "total"];

/** How many columns of values there are. */
export const MEASURES = 6;

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
    // Not shifts: those end at 32 bits.
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
    file: reader.integers(counts.frames),
    line: reader.integers(counts.frames),
    package: reader.integers(counts.frames),
  };
  const nodes = { closed: reader.integers(counts.nodes), frame: reader.integers(counts.nodes) };

  const node = reader.integers(counts.own);
  for (let i = 1; i < node.length; i += 1) {
    node[i] += node[i - 1];
  }
  const values = [];
  for (let measure = 0; measure < MEASURES; measure += 1) {
    values.push(reader.numbers(counts.own));
  }
  const oldest = reader.numbers(counts.own).map((ms) => ms - 1);
  const timeline = {
    at: reader.steps(counts.moments),
    rss: reader.steps(counts.moments),
    heap: reader.steps(counts.moments),
    own: reader.steps(counts.moments),
  };
  return { head, strings, frames, nodes, own: { node, values, oldest }, timeline };
}
