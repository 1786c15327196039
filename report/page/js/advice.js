// Advice, only if the numbers are certain: lines that probably leak, as ranked for the whole report, a line that holds most
// of the live memory though it is not one of them, blocks that grow by `realloc` again and again, and blocks that live for no
// time. There is none about memory that is known. And requests that leave memory behind.

import { contextSums, keysOf, valuesOf } from "./contexts.js";
import { measureOf } from "./decode.js";
import { bytes, count, percent, plural, sentence } from "./format.js";
import { knownNodes } from "./known.js";
import { VERDICTS } from "./leaks.js";
import { ownSites, responsibleNodes } from "./sites.js";
import { countOf } from "./spread.js";

/** @typedef {import("./call_tree.js").CallTree} CallTree */

/**
 * @typedef {object} Advice
 * @property {"growth" | "left" | "holds" | "realloc" | "temporary"} kind
 * @property {number} frame
 * @property {number[]} nodes where it stands in the call tree; none: wherever the ranked line does
 * @property {string} headline
 * @property {string} text
 * @property {number} weight within its kind; a larger one is more urgent
 */

/** Numbers of `realloc` among the allocators. */
const REALLOC = [4, 7];
/** Smallest part of the live bytes, and fewest bytes, with which one line holds most of them. */
const MOST_HELD = 0.5;
const LEAST_HELD = 1_000_000;
/** Fewest requests, or futures, with which what they leave behind is worth advice. */
const LEAST_RUNS = 10;
/** Smallest number that is worth advice. */
const ENOUGH = 1000;
/** Largest number of pieces of advice of each kind. */
const MOST_ADVICE = 12;

/**
 * @param {CallTree} tree
 * @returns {Advice[]} leaks first
 */
export function adviceOn(tree) {
  const known = knownNodes(tree);
  const answers = responsibleNodes(tree);
  const all = [...growing(tree), ...leavingBehind(tree, answers), ...holdingMost(tree, known), ...reallocating(tree, answers, known), ...shortLived(tree, answers, known)];
  const kinds = /** @type {const} */ (["growth", "left", "holds", "realloc", "temporary"]);
  return kinds.flatMap((kind) =>
    all
      .filter((advice) => advice.kind === kind)
      .sort((a, b) => b.weight - a.weight)
      .slice(0, MOST_ADVICE),
  );
}

/**
 * @param {CallTree} tree
 * @returns {Advice[]}
 */
function growing(tree) {
  const { list } = tree.profile.head.leaks;
  return list
    .filter(({ confidence }) => confidence !== "low")
    .map(({ frame, confidence, blocks, bytes: size, evidence, against }, i) => ({
      kind: "growth",
      frame,
      nodes: [],
      headline: VERDICTS[confidence],
      text:
        `${bytes(size)} in ${plural(blocks, "block")} are live. ${sentence(evidence)} ` +
        (against.length > 0 ? `${sentence(against, "against a leak: ")} ` : "") +
        "What is added for as long as the service runs and never removed is a leak, or a cache without a limit.",
      weight: list.length - i,
    }));
}

/**
 * @param {CallTree} tree
 * @param {Int32Array} answers by node, the node whose frame answers for it
 * @returns {Advice[]} about lines that probably leak: for which route, or other value of a key, and how much each time
 */
function leavingBehind(tree, answers) {
  const { head, rows, frames } = tree.profile;
  const [key] = keysOf(head);
  const ranked = head.leaks.list.filter(({ confidence }) => confidence !== "low");
  if (key === undefined || ranked.length === 0) {
    return [];
  }
  // Frames of one place may be one among plain names.
  const placeOfFrame = (/** @type {number} */ frame) => `${frames.function[frame]} ${frames.file[frame]} ${frames.line[frame]}`;
  const rankOf = new Map(ranked.map(({ frame }, rank) => [placeOfFrame(frame), rank]));
  const sums = contextSums(tree, key, "live", "bytes");
  const rankOfNode = answers.map((at) => (at === 0 ? -1 : (rankOf.get(placeOfFrame(tree.frame[at])) ?? -1)));
  const valueOf = valuesOf(head, key);
  const live = rows.values[measureOf("live", "bytes")];
  /** @type {Map<string | null, Map<number, number>[]>} by value and rank, live bytes by node */
  const held = new Map(sums.map(({ value }) => [value, ranked.map(() => new Map())]));
  for (let row = 0; row < rows.node.length; row += 1) {
    const byNode = held.get(valueOf[rows.context[row]])?.[rankOfNode[rows.node[row]]];
    if (byNode !== undefined && live[row] > 0) {
      const node = answers[rows.node[row]];
      byNode.set(node, (byNode.get(node) ?? 0) + live[row]);
    }
  }
  /** @type {Advice[]} */
  const advice = [];
  for (const { value, each } of sums.filter(({ value, each }) => value !== null && countOf(each) >= LEAST_RUNS)) {
    held.get(value)?.forEach((byNode, rank) => {
      const weight = [...byNode.values()].reduce((sum, size) => sum + size, 0);
      const runs = countOf(each);
      if (weight >= MOST_HELD * ranked[rank].bytes) {
        const nodes = [...byNode].sort(([, a], [, b]) => b - a).map(([node]) => node);
        const headline = `${value} leaves ${bytes(weight / runs)} behind each time`;
        const text = `${plural(runs, "run")} allocated ${bytes(each.sum)}. ${bytes(weight)} that this line allocated for them are live.`;
        advice.push({ kind: "left", frame: ranked[rank].frame, nodes, headline, text, weight });
      }
    });
  }
  return advice;
}

/**
 * @param {CallTree} tree
 * @param {Uint8Array | null} known by node, whether it is
 * @returns {Advice[]} about the line that holds the most, if that is most of all and it does not probably leak
 */
function holdingMost(tree, known) {
  const { head, rows } = tree.profile;
  const [site] = ownSites(tree, "live", "bytes");
  if (site === undefined || !site.own || site.nodes.some((node) => known?.[node])) {
    return [];
  }
  const ranked = head.leaks.list.find(({ frame }) => frame === site.frame);
  const all = rows.values[measureOf("live", "bytes")].reduce((sum, size) => sum + size, 0);
  if (ranked !== undefined && ranked.confidence !== "low") {
    return [];
  }
  const held = site.values[measureOf("live", "bytes")];
  if (held < LEAST_HELD || held < MOST_HELD * all) {
    return [];
  }
  const made = site.values[measureOf("total", "bytes")];
  const blocks = site.values[measureOf("live", "count")];
  const steady =
    ranked === undefined && head.leaks.unknown === null
      ? "It does not grow with the work of the service, so it may be set-up, or a cache that is full. "
      : "";
  return [
    {
      kind: "holds",
      frame: site.frame,
      nodes: site.nodes,
      headline: `Holds ${percent(held, all)} of what is live`,
      text:
        `${bytes(held)} in ${plural(blocks, "block")}, ${percent(held, made)} of what was allocated here. ${steady}` +
        "If it should be gone by now, this is the line to look at.",
      weight: held,
    },
  ];
}

/**
 * @param {CallTree} tree
 * @param {Int32Array} answers by node, the node whose frame answers for it
 * @param {Uint8Array | null} known by node, whether it is
 * @returns {Advice[]}
 */
function reallocating(tree, answers, known) {
  const { rows } = tree.profile;
  /** @type {Map<number, {grown: number, made: number, bytes: number}>} */
  const found = new Map();
  const allocated = rows.values[measureOf("total", "count")];
  const sizes = rows.values[measureOf("total", "bytes")];
  for (let row = 0; row < rows.node.length; row += 1) {
    if (known?.[rows.node[row]]) {
      continue;
    }
    const frame = tree.frame[answers[rows.node[row]]];
    const sums = found.get(frame) ?? { grown: 0, made: 0, bytes: 0 };
    if (REALLOC.includes(rows.allocator[row])) {
      sums.grown += allocated[row];
      sums.bytes += sizes[row];
    } else {
      sums.made += allocated[row];
    }
    found.set(frame, sums);
  }
  /** @type {Advice[]} */
  const advice = [];
  for (const site of ownSites(tree, "total", "bytes")) {
    const sums = found.get(site.frame);
    if (sums === undefined || sums.grown < ENOUGH || sums.grown < 2 * sums.made) {
      continue;
    }
    const times = sums.made > 0 ? sums.grown / sums.made : 0;
    const text =
      (times > 0
        ? `${plural(sums.made, "block")} made here went through ${plural(sums.grown, "realloc")}. `
        : `${plural(sums.grown, "realloc")} of blocks that were made elsewhere. `) +
      `Each may copy the block: ${bytes(sums.bytes)} were asked for in all. ` +
      `Where the final size is known, with_capacity(n) or reserve(n) saves up to ${count(sums.grown)} of them.`;
    const headline = times > 0 ? `Grew ${count(Math.round(times * 10) / 10)} times on average` : "Grows again and again";
    advice.push({ kind: "realloc", frame: site.frame, nodes: site.nodes, headline, text, weight: sums.bytes });
  }
  return advice;
}

/**
 * @param {CallTree} tree
 * @param {Int32Array} answers by node, the node whose frame answers for it
 * @param {Uint8Array | null} known by node, whether it is
 * @returns {Advice[]}
 */
function shortLived(tree, answers, known) {
  const { rows } = tree.profile;
  const measures = [measureOf("temporary", "count"), measureOf("temporary", "bytes"), measureOf("total", "count")];
  /** @type {Map<number, number[]>} */
  const knownOf = new Map();
  for (let row = 0; known !== null && row < rows.node.length; row += 1) {
    if (known[rows.node[row]]) {
      const frame = tree.frame[answers[rows.node[row]]];
      const sums = knownOf.get(frame) ?? [0, 0, 0];
      knownOf.set(frame, sums.map((sum, i) => sum + rows.values[measures[i]][row]));
    }
  }
  /** @type {Advice[]} */
  const advice = [];
  for (const site of ownSites(tree, "temporary", "count")) {
    const left = knownOf.get(site.frame) ?? [0, 0, 0];
    const [short, shortBytes, made] = measures.map((measure, i) => site.values[measure] - left[i]);
    if (short >= ENOUGH && short >= made / 2) {
      advice.push({
        kind: "temporary",
        frame: site.frame,
        nodes: site.nodes,
        headline: `${percent(short, made)} of its blocks live for no time`,
        text:
          `${count(short)} of ${plural(made, "block")} were freed by the same thread before its next but one allocation, ` +
          `${bytes(shortBytes)} in all. ` +
          "A buffer that is kept and reused, or a borrowed value, saves these calls.",
        weight: short,
      });
    }
  }
  return advice;
}
