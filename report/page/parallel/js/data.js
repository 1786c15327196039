// The data of the report in the page: base64 of zlib of JSON. `report/src/parallel/` writes them and explains the fields.

/**
 * @typedef {[number, number]} Tally samples and nanoseconds, or blocks and bytes
 *
 * @typedef {object} Data
 * @property {string} title
 * @property {string} producer
 * @property {string} command_line
 * @property {number} pid
 * @property {number} start_ms
 * @property {number} duration_ns
 * @property {string} pool
 * @property {"returned" | "panicked" | "cancelled"} outcome
 * @property {{name: string, tid: number, cpu_ns: number, allocated: Tally | null}[]} workers
 * @property {string[]} task_names
 * @property {{worker: number[], depth: number[], name: number[], start: number[], length: number[]}} tasks
 * @property {number} tasks_dropped
 * @property {{at: number[], rss: number[], cpu: number[][]}} moments
 * @property {{name: string, file: string, line: number, own: Tally, cumulative: Tally}[]} functions
 * @property {number} samples
 * @property {{total: Tally, sites: {name: string, file: string, line: number, count: number, bytes: number}[]} | null} allocations
 * @property {string[]} notes
 *
 * @typedef {object} Row the tasks of one worker at one depth, which never overlap; times in milliseconds
 * @property {number} worker
 * @property {number} depth
 * @property {Float64Array} start
 * @property {Float64Array} end
 * @property {Uint32Array} name
 *
 * @typedef {{name: string, count: number, ms: number, longest: number, color: string}} Named tasks of one name
 *
 * @typedef {object} Run
 * @property {Data} data
 * @property {number} ms its duration
 * @property {Row[]} rows
 * @property {Named[]} names by index, as tasks have it
 * @property {number[]} ranked names, the most time first
 * @property {{tasks: number, busy: number}[]} busy by worker; time in its outermost tasks
 */

const COLORS = 10;

/**
 * @param {string} text
 * @returns {Promise<Run>}
 */
export async function decode(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  /** @type {Data} */
  const data = await new Response(stream).json();
  const { tasks } = data;
  /** @type {Row[]} */
  const rows = [];
  const names = data.task_names.map((name) => ({ name, count: 0, ms: 0, longest: 0, color: "--task-rest" }));
  const busy = data.workers.map(() => ({ tasks: 0, busy: 0 }));
  for (let from = 0; from < tasks.start.length; ) {
    const [worker, depth] = [tasks.worker[from], tasks.depth[from]];
    let to = from;
    while (to < tasks.start.length && tasks.worker[to] === worker && tasks.depth[to] === depth) {
      to += 1;
    }
    const row = { worker, depth, start: new Float64Array(to - from), end: new Float64Array(to - from), name: new Uint32Array(to - from) };
    let at = 0;
    for (let i = from; i < to; i += 1) {
      at += tasks.start[i];
      const ms = tasks.length[i] / 1e6;
      row.start[i - from] = at / 1e6;
      row.end[i - from] = at / 1e6 + ms;
      row.name[i - from] = tasks.name[i];
      const named = names[tasks.name[i]];
      named.count += 1;
      named.ms += ms;
      named.longest = Math.max(named.longest, ms);
      if (depth === 0) {
        busy[worker].tasks += 1;
        busy[worker].busy += ms;
      }
    }
    rows.push(row);
    from = to;
  }
  const ranked = [...names.keys()].sort((a, b) => names[b].ms - names[a].ms || a - b);
  ranked.slice(0, COLORS).forEach((name, rank) => {
    names[name].color = `--task-${rank}`;
  });
  return { data, ms: Math.max(data.duration_ns / 1e6, 1e-3), rows, names, ranked, busy };
}

/**
 * @param {number} ms
 * @returns {string} `12.3 ms`, `4.50 µs`
 */
export function short(ms) {
  const [value, unit] = ms >= 1000 ? [ms / 1000, "s"] : ms >= 1 || ms === 0 ? [ms, "ms"] : [ms * 1000, "µs"];
  const digits = value === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)}\u00a0${unit}`;
}
