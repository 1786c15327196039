// Random profiles for the tests, each with its stacks as plain paths beside it.

import { Shape } from "../js/shape.js";
import { largestIn } from "../js/spread.js";

/** Numbers below `below`, the same at every run. */
export function dice(seed) {
  let state = BigInt(seed);
  return (below) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number((state >> 33n) % BigInt(below));
  };
}

export const FRAMES = 7;

/** Labels of contexts 1 to 3. */
const CONTEXTS = [
  [["route", "GET /a"]],
  [["route", "GET /b"], ["tenant", "acme"]],
  [["tenant", "acme"]],
];

/** A spread of a few numbers. */
export function spreadOf(numbers) {
  const counts = [];
  for (const number of numbers) {
    const bucket = Array.from({ length: 97 }, (_, i) => i).find((i) => number <= largestIn(i));
    for (let i = counts.length; i <= bucket; i += 1) {
      counts.push(0);
    }
    counts[bucket] += 1;
  }
  return { counts, sum: numbers.reduce((sum, number) => sum + number, 0), largest: Math.max(0, ...numbers) };
}

/** What runs did of which each allocated so many bytes, and left half of them behind. */
export const runsOf = (numbers) => ({
  allocated_bytes: spreadOf(numbers),
  allocated_blocks: spreadOf(numbers.map(() => 1)),
  most_bytes: spreadOf(numbers),
  held_bytes: spreadOf(numbers.map((number) => number / 2)),
  freed_of_others: { count: 0, bytes: 0 },
});

/** A random profile and, beside it, its stacks as plain paths: [frames from the root, values by measure]. */
export function randomProfile(seed) {
  const roll = dice(seed);
  const closed = [];
  const frame = [];
  const paths = [[]];
  const path = [];
  const taken = new Set();
  for (let i = 0; i < 3 + roll(120); i += 1) {
    const keep = roll(path.length + 1);
    const next = roll(FRAMES);
    const key = [...path.slice(0, keep), next].join();
    // A tree has each stack once; a preorder never comes back to a closed one.
    if (taken.has(key)) {
      continue;
    }
    taken.add(key);
    closed.push(path.length - keep);
    frame.push(next);
    path.length = keep;
    path.push(next);
    paths.push([...path]);
  }
  // Some nodes have no row, some have several.
  const node = [...paths.keys()].flatMap((at) => new Array(at === 0 ? 1 : [0, 1, 1, 2, 3][roll(5)]).fill(at));
  const values = Array.from({ length: 10 }, () => Float64Array.from(node, () => roll(4) * roll(50)));
  const thread = Int32Array.from(node, () => roll(3));
  const allocator = Int32Array.from(node, () => 6 + roll(2));
  const context = Int32Array.from(node, () => roll(4));
  const all = Int32Array.from({ length: FRAMES }, (_, i) => i);
  const profile = {
    head: {
      contexts: CONTEXTS,
      runs: [runsOf([100, 300]), runsOf([5000]), runsOf([])],
      packages: ["own", "dep", "std", "native"].map((name, kind) => [name, kind]),
      generations: [0, 100, 250],
      generation_allocated: [600, 300, 0],
      leaks: { unknown: null, list: [], left_out: 0 },
      known: { list: [], frames: [] },
      slots: [0, 50, 100, 200],
      start_ms: 1_000,
      end_ms: 1_400,
      marks: [{ name: "warm", at_ms: 100, live: [1, 1] }],
      threads: [],
      conditions: { log_given_up: null },
    },
    strings: Array.from({ length: FRAMES }, (_, i) => `f${i}`),
    frames: { function: all, full: all, file: all, line: all, package: all.map((i) => i % 4) },
    shape: Shape.of(Int32Array.from(closed), Int32Array.from(frame)),
    rows: { node: Int32Array.from(node), thread, allocator, context, values, oldest: new Float64Array(node.length) },
    source: null,
    survivors: survivorsOf(table(node.length, roll, 3)),
    intervals: table(node.length, roll, 4),
    timeline: {},
  };
  const stacks = node.map((at, i) => ({
    path: paths[at],
    thread: thread[i],
    allocator: allocator[i],
    labels: context[i] === 0 ? [] : CONTEXTS[context[i] - 1],
    values: values.map((column) => column[i]),
  }));
  return { profile, stacks };
}

const survivorsOf = ({ row, generation, count, bytes }) => ({ row, generation, count, bytes });

/** What belongs to rows by slot or generation: every column that either table has. */
function table(rows, roll, slots) {
  const row = Int32Array.from({ length: rows * 2 }, (_, i) => Math.floor(i / 2));
  const born = row.map(() => roll(slots));
  return {
    row,
    generation: born,
    born,
    freed: born.map((slot) => (roll(2) === 0 ? -1 : slot + roll(slots - slot))),
    count: Float64Array.from(row, () => roll(9)),
    bytes: Float64Array.from(row, () => roll(900)),
  };
}
