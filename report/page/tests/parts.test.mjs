// Parts of a report against naive models: filters, folding, ranges, the sandwich, sums by function, generations.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { adviceOn } from "../js/advice.js";
import { CallTree, nodeAt } from "../js/call_tree.js";
import { contextSums, contextsWhere, keysOf, leftEach, valuesOf } from "../js/contexts.js";
import { measureOf } from "../js/decode.js";
import { eachSurvivor, filtered, foldedBy, sameByName, withNames, withRange } from "../js/derive.js";
import { explained, hiding, isPlumbing, namesOfBoxes } from "../js/fold.js";
import { functionSums } from "../js/functions.js";
import { compared, generationsOf, joinedGenerations, worthComparing } from "../js/generations.js";
import { InvertedTree } from "../js/inverted_tree.js";
import { placesOfLine } from "../js/leaks.js";
import { memoryParts } from "../js/memory_parts.js";
import { brief, logical, segments } from "../js/names.js";
import { rangeColumns, rangeSource, snap, whyNone } from "../js/ranges.js";
import { sandwich } from "../js/sandwich.js";
import { csvText, escaped } from "../js/save.js";
import { Shape } from "../js/shape.js";
import { leafSites, ownSites, responsibleNodes } from "../js/sites.js";
import { sourceUrl } from "../js/source.js";
import { addSpread, countOf, quantile } from "../js/spread.js";
import { FRAMES, randomProfile, runsOf, spreadOf } from "./profiles.mjs";

const LIVE = measureOf("live", "bytes");

/** Values of every path of a tree, by brute force from stacks. */
function sums(stacks, measure) {
  const found = new Map();
  for (const { path, values } of stacks) {
    for (let length = 0; length <= path.length; length += 1) {
      const key = path.slice(0, length).join(".");
      found.set(key, (found.get(key) ?? 0) + values[measure]);
    }
  }
  return [...found].filter(([key, value]) => key !== "" && value > 0).sort();
}

/** The same of a tree. */
function read(tree, measure) {
  const found = [];
  const walk = (node, path) => {
    for (const child of tree.childrenOf(node, measure)) {
      const below = [...path, tree.frameOf(child)];
      found.push([below.join("."), tree.valueOf(child, measure)]);
      walk(child, below);
    }
  };
  walk(0, []);
  return found.sort();
}

const everySeed = (check) => {
  for (let seed = 1; seed <= 150; seed += 1) {
    check(seed, randomProfile(seed));
  }
};

test("a filter keeps the stacks of a thread, an allocator, a context, a crate and a search, and no others", () => {
  everySeed((seed, { profile, stacks }) => {
    const thread = (seed % 4) - 1;
    const allocator = seed % 3 === 0 ? 6 : -1;
    const frames = seed % 2 === 0 ? null : Uint8Array.from({ length: FRAMES }, (_, i) => (i === seed % FRAMES ? 1 : 0));
    const crate = seed % 5 !== 0 ? null : Uint8Array.from({ length: FRAMES }, (_, i) => (i < 3 ? 1 : 0));
    const contexts = seed % 7 < 4 ? null : contextsWhere(profile.head, "tenant=acme");
    const kept = stacks.filter(
      (stack) =>
        (contexts === null || stack.labels.some(([, value]) => value === "acme")) &&
        (thread < 0 || stack.thread === thread) &&
        (allocator < 0 || stack.allocator === allocator) &&
        (frames === null || stack.path.some((frame) => frames[frame])) &&
        (crate === null || stack.path.some((frame) => crate[frame])),
    );
    const part = filtered(profile, { thread, allocator, contexts, frames, crate });
    assert.deepEqual(read(new CallTree(part), LIVE), sums(kept, LIVE));
    assert.deepEqual(read(new InvertedTree(new CallTree(part)), LIVE).length > 0, sums(kept, LIVE).length > 0);
  });
});

test("the values of a key have the sums of their call sites, and a condition chooses the same", () => {
  everySeed((seed, { profile, stacks }) => {
    const tree = new CallTree(profile);
    assert.deepEqual(keysOf(profile.head), ["route", "tenant"]);
    for (const key of ["route", "tenant"]) {
      const by = seed % 2 === 0 ? "bytes" : "count";
      const rows = contextSums(tree, key, "peak", by);
      const valueOf = ({ labels }) => labels.find(([known]) => known === key)?.[1] ?? null;
      assert.deepEqual(new Set(rows.map(({ value }) => value)), new Set(stacks.map(valueOf)));
      let before = Infinity;
      let grown = 0;
      for (const row of rows) {
        const members = stacks.filter((stack) => valueOf(stack) === row.value);
        for (let measure = 0; measure < 8; measure += 1) {
          assert.equal(row.values[measure], members.reduce((sum, { values }) => sum + values[measure], 0));
        }
        assert.equal(row.bytes, row.values[measureOf("peak", "bytes")]);
        assert.ok(row[by] <= before, "largest first");
        before = row[by];
        grown += row.grown.reduce((sum, size) => sum + size, 0);
        const contexts = contextsWhere(profile.head, row.value === null ? key : `${key}=${row.value}`);
        const part = new CallTree(filtered(profile, { thread: -1, allocator: -1, contexts, frames: null, crate: null }));
        assert.equal(part.valueOf(0, LIVE), row.values[LIVE]);
        const sites = ownSites(part, "peak", by);
        const most = sites.find(({ frame }) => frame === row.frame);
        assert.equal(most?.[by] ?? 0, sites[0]?.[by] ?? 0, "the line with the most");
      }
      assert.equal(grown, profile.survivors.bytes.reduce((sum, size) => sum + size, 0));
    }
    assert.deepEqual(valuesOf(profile.head, "tenant"), [null, null, "acme", "acme"]);
    assert.equal(contextsWhere(profile.head, "tenant=other"), null);
    assert.equal(contextsWhere(profile.head, "color"), null);
  });
});

test("the runs of a value are those of all its contexts", () => {
  const { profile } = randomProfile(7);
  profile.rows.context.forEach((_, row) => {
    profile.rows.context[row] = row % 4;
  });
  const rows = contextSums(new CallTree(profile), "tenant", "live", "bytes");
  const acme = rows.find(({ value }) => value === "acme");
  const none = rows.find(({ value }) => value === null);
  assert.deepEqual([countOf(acme.each), acme.each.largest, leftEach(acme)], [1, 5000, acme.values[LIVE]]);
  assert.deepEqual([countOf(none.each), none.held.sum, leftEach(none)], [2, 200, none.values[LIVE] / 2]);
  assert.equal(leftEach({ ...none, each: spreadOf([]) }), -1);
});

test("a quantile is within a quarter, and never past the largest", () => {
  const numbers = Array.from({ length: 5000 }, (_, i) => i * 7);
  const spread = spreadOf(numbers);
  for (const part of [0.01, 0.5, 0.9, 0.99, 1]) {
    const exact = part * 34_993;
    assert.ok(Math.abs(quantile(spread, part) - exact) <= exact / 4, `${part}: ${quantile(spread, part)}`);
  }
  assert.ok(quantile(spread, 1) <= 34_993);
  assert.equal(quantile(spreadOf([]), 0.5), 0);
  const both = spreadOf([1, 900]);
  addSpread(both, spreadOf([0, 5, 2 ** 40]));
  assert.deepEqual(both, spreadOf([900, 0, 2 ** 40, 5, 1]));
});

test("folding takes frames out of every stack and loses no byte", () => {
  everySeed((seed, { profile, stacks }) => {
    const hidden = Uint8Array.from({ length: FRAMES }, (_, frame) => (frame % 3 === seed % 3 ? 1 : 0));
    const folded = stacks.map((stack) => ({ ...stack, path: stack.path.filter((frame) => !hidden[frame]) }));
    const part = foldedBy(profile, hidden);
    const tree = new CallTree(part);
    assert.deepEqual(read(tree, LIVE), sums(folded, LIVE));
    assert.equal(tree.valueOf(0, LIVE), new CallTree(profile).valueOf(0, LIVE));
    for (let node = 1; node < tree.size; node += 1) {
      assert.ok(tree.parent[node] < node && tree.end[node] > node && tree.end[node] <= tree.end[tree.parent[node]]);
    }
    const started = foldedBy(profile, hidden.map((how) => how * 3));
    const first = stacks.map(({ path, ...stack }) => {
      const from = path.findIndex((frame) => !hidden[frame]);
      return { ...stack, path: from < 0 ? [] : path.slice(from) };
    });
    assert.deepEqual(read(new CallTree(started), LIVE), sums(first, LIVE));
    const between = foldedBy(profile, hidden.map((how) => how * 2));
    const leaves = new Set(stacks.map(({ path }) => path.join(".")));
    const kept = stacks.map(({ path, ...stack }) => ({
      ...stack,
      path: path.filter((frame, at) => !hidden[frame] || leaves.has(path.slice(0, at + 1).join("."))),
    }));
    assert.deepEqual(read(new CallTree(between), LIVE), sums(kept, LIVE));
    // And a filter on top of it is that of the folded stacks.
    const both = filtered(part, { thread: 1, allocator: -1, contexts: null, frames: null, crate: null });
    assert.deepEqual(read(new CallTree(both), LIVE), sums(folded.filter(({ thread }) => thread === 1), LIVE));
    // Rows know where they came from.
    let blocks = 0;
    let expected = 0;
    eachSurvivor(both, (row, _generation, count) => {
      assert.equal(both.rows.thread[row], 1);
      blocks += count;
    });
    profile.survivors.row.forEach((row, i) => {
      expected += stacks[row].thread === 1 ? profile.survivors.count[i] : 0;
    });
    assert.equal(blocks, expected);
  });
});

test("below a box of the same name there is another one only where it allocated itself", () => {
  everySeed((seed, { profile, stacks }) => {
    // Frames 0 and 3 have one name, 1 and 4 another, and 2 none.
    const name = Int32Array.from({ length: FRAMES }, (_, frame) => (frame % 3 === 2 ? -1 : frame % 3));
    const part = foldedBy(profile, new Uint8Array(FRAMES), null, name);
    const leaves = new Set(stacks.map(({ path }) => path.join(".")));
    const kept = stacks.map(({ path, ...stack }) => {
      const shown = [];
      path.forEach((frame, at) => {
        const again = shown.length > 0 && name[frame] >= 0 && name[frame] === name[shown[shown.length - 1]];
        if (!again || leaves.has(path.slice(0, at + 1).join("."))) {
          shown.push(frame);
        }
      });
      return { ...stack, path: shown };
    });
    assert.deepEqual(read(new CallTree(part), LIVE), sums(kept, LIVE), String(seed));
  });
  const frames = { function: Int32Array.of(0, 1, 2, 0), package: Int32Array.of(1, 1, 1, 0) };
  const strings = ["tokio::run", "tokio::run::{closure}", "tokio::stop"];
  const [run, closure, stop, own] = namesOfBoxes({ head: { packages: [["shop", 0], ["tokio", 1]] }, frames, strings });
  assert.ok(run === closure && run !== stop && own === -1);
});

test("a path of frames finds its node, whatever of it is folded", () => {
  const { profile } = randomProfile(7);
  const tree = new CallTree(profile);
  for (let node = 1; node < tree.size; node += 1) {
    const path = [];
    for (let at = node; at > 0; at = tree.parent[at]) {
      path.unshift(tree.frame[at]);
    }
    assert.equal(nodeAt(tree, path), node);
  }
  const folded = new CallTree(foldedBy(profile, Uint8Array.of(1)));
  for (let node = 1; node < folded.size; node += 1) {
    const path = [];
    for (let at = node; at > 0; at = folded.parent[at]) {
      path.unshift(folded.frame[at]);
    }
    assert.equal(nodeAt(folded, path.flatMap((frame) => [0, frame])), node);
  }
});

test("a range holds what was born in it and lives at the chosen moment", () => {
  everySeed((seed, { profile }) => {
    const source = rangeSource(profile);
    assert.deepEqual(source.bounds, [0, 50, 100, 200, 400]);
    const first = seed % 4;
    const last = first + 1 + (seed % (4 - first));
    for (const until of ["range", "end", "all"]) {
      const [count, bytes] = rangeColumns(source, { from: source.bounds[first], to: source.bounds[last], until }, profile.rows.node.length);
      const expected = [0, 0];
      const { born, freed } = profile.intervals;
      born.forEach((slot, i) => {
        const inside = slot >= first && slot < last;
        const lives = freed[i] < 0 || (until === "range" && freed[i] >= last) || until === "all";
        expected[0] += inside && lives ? profile.intervals.count[i] : 0;
        expected[1] += inside && lives ? profile.intervals.bytes[i] : 0;
      });
      const tree = new CallTree(withRange(profile, [count, bytes]));
      assert.deepEqual([tree.valueOf(0, measureOf("range", "count")), tree.valueOf(0, measureOf("range", "bytes"))], expected);
    }
  });
});

test("ranges snap to slots, and without a log to generations, or are not to be had", () => {
  const { profile } = randomProfile(1);
  const source = rangeSource(profile);
  assert.deepEqual(snap(source, 45, 130), [50, 100]);
  assert.deepEqual(snap(source, 160, 90), [100, 200]);
  assert.deepEqual(snap(source, 60, 61), [50, 100]);
  assert.deepEqual(snap(source, 399, 400), [200, 400]);
  const aggregated = { ...profile, head: { ...profile.head, slots: null, conditions: { log_given_up: "disk full" } } };
  const coarse = rangeSource(aggregated);
  assert.deepEqual(coarse.bounds, [0, 100, 250, 400]);
  assert.deepEqual(coarse.untils, ["end"]);
  assert.match(coarse.note, /disk full/);
  const untold = { ...aggregated.head, has_log: true, conditions: { log_given_up: null } };
  assert.match(whyNone({ ...profile, head: untold }), /--temporal/);
  assert.match(whyNone({ ...profile, head: { ...untold, has_log: false } }), /aggregated/);
  const [, bytes] = rangeColumns(coarse, { from: 100, to: 400, until: "end" }, profile.rows.node.length);
  const { generation, bytes: sizes } = profile.survivors;
  const later = sizes.reduce((sum, size, i) => sum + (generation[i] > 0 ? size : 0), 0);
  assert.equal(bytes.reduce((sum, size) => sum + size, 0), later);
  assert.equal(rangeSource({ ...aggregated, head: { ...aggregated.head, generations: [] } }), null);
});

test("a function's sums count recursion once, and the sandwich splits them among callers and callees", () => {
  everySeed((seed, { profile, stacks }) => {
    const tree = new CallTree(profile);
    const found = new Map(functionSums(tree, LIVE).map((row) => [row.name, row]));
    for (let frame = 0; frame < FRAMES; frame += 1) {
      const through = stacks.filter(({ path }) => path.includes(frame));
      const total = through.reduce((sum, { values }) => sum + values[LIVE], 0);
      const self = through.reduce((sum, { path, values }) => sum + (path.at(-1) === frame ? values[LIVE] : 0), 0);
      assert.equal(found.get(frame)?.total ?? 0, total);
      assert.equal(found.get(frame)?.self ?? 0, total > 0 ? self : 0);
      const { callers, callees } = sandwich(tree, frame);
      const below = through.map(({ path, values }) => ({ path: path.slice(path.indexOf(frame) + 1), values }));
      const above = through.map(({ path, values }) => ({ path: path.slice(0, path.indexOf(frame)).reverse(), values }));
      assert.deepEqual(read(callees, LIVE), sums(below, LIVE));
      assert.deepEqual(read(callers, LIVE), sums(above, LIVE));
    }
  });
});

test("a node's rows are those of its stacks, in either order", () => {
  everySeed((_seed, { profile }) => {
    const tree = new CallTree(profile);
    for (const order of [tree, new InvertedTree(tree)]) {
      const walk = (node) => {
        let sum = 0;
        for (const row of order.rowsOf(node)) {
          sum += profile.rows.values[LIVE][row];
        }
        assert.equal(sum, order.valueOf(node, LIVE));
        order.childrenOf(node, LIVE).forEach(walk);
      };
      walk(0);
    }
  });
});

test("call sites that differ in full names alone are one among plain names, and apart among full ones", () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const { profile } = randomProfile(seed);
    assert.equal(sameByName(profile), null, "names differ");
    // Every other frame is the one before it with another full name.
    const { frames } = profile;
    const plain = frames.function.map((name) => name - (name % 2));
    const both = { ...profile, frames: { ...frames, function: plain, file: plain, line: plain } };
    const { same, versions } = sameByName(both) ?? assert.fail("frames are equal");
    assert.deepEqual([...same], [...plain]);
    assert.ok(versions.every((count, frame) => count === (frame % 2 === 0 ? Math.min(2, plain.length - frame) : 0)));

    const full = new CallTree(withNames(both, false, same));
    assert.deepEqual(full.profile.frames.function, frames.function);
    assert.equal(full.size, new CallTree(profile).size);

    const one = new CallTree(withNames(both, true, same));
    assert.ok(one.size <= full.size);
    const sums = (/** @type {CallTree} */ tree) => {
      /** @type {Map<string, number[]>} */
      const found = new Map();
      for (let node = 0; node < tree.size; node += 1) {
        const path = [];
        for (let at = node; at > 0; at = tree.parentOf(at)) {
          path.push(plain[tree.frameOf(at)]);
        }
        const values = Array.from({ length: 8 }, (_, measure) => tree.valueOf(node, measure));
        const known = found.get(path.join()) ?? values.map(() => 0);
        found.set(path.join(), values.map((value, measure) => value + known[measure]));
      }
      return found;
    };
    assert.deepEqual(sums(one), sums(full));
    assert.equal(one.size, sums(full).size, "each path once");
  }
});

test("closures are part of their functions, and plumbing is hidden in others' code only", () => {
  const { cases } = JSON.parse(readFileSync(new URL("../../tests/names.json", import.meta.url), "utf8"));
  assert.ok(cases.length > 40);
  for (const { raw, plain, brief: short, logical: inside, plumbing } of cases) {
    assert.equal(segments(plain).join("::"), plain);
    assert.equal(brief(segments(plain)), short);
    assert.equal(logical(segments(plain)).join("::"), inside);
    assert.equal(isPlumbing(plain), plumbing, raw);
  }
  assert.match(explained("shop::a::{{closure}}"), /async fn/);
  assert.equal(explained("shop::a"), "");
  const names = [
    "shop::a",
    "shop::a::{closure}",
    "shop::X::poll",
    "tokio::X::poll",
    "core::ops::function::FnOnce::call_once{vtable.shim}",
    "tokio::runtime::Runtime::block_on",
    "serde_json::de::from_slice",
    "__clone3",
    "OPENSSL_malloc",
  ];
  const kinds = [0, 0, 0, 1, 2, 1, 3, 4, 4];
  const all = Int32Array.from(names.keys());
  const profile = {
    head: { packages: [["shop", 0], ["tokio", 1], ["core", 2], ["serde_json", 1], ["native", 3]] },
    strings: names,
    frames: { function: all, full: all, file: all, line: all, package: Int32Array.from(kinds) },
  };
  const hidden = (fold, plain) => {
    const fate = hiding(profile, fold, plain);
    return fate === null ? "" : fate.join("");
  };
  assert.equal(hidden("none", false), "");
  assert.equal(hidden("none", true), "000222000");
  assert.equal(hidden("runtime", false), "000111033");
  assert.equal(hidden("crates", false), "000101100");
  assert.equal(hidden("own", false), "000111111");
});

test("call sites carry every view's sums and their survivors by generation", () => {
  everySeed((_seed, { profile, stacks }) => {
    const tree = new CallTree(profile);
    const leaf = ({ path }) => path.at(-1) ?? -1;
    const own = ({ path }) => {
      const upwards = [...path].reverse();
      return upwards.find((f) => f % 4 === 0) ?? upwards.find((f) => f % 4 === 1) ?? upwards[0] ?? -1;
    };
    for (const [sites, frameOf] of [
      [ownSites(tree, "peak", "count"), own],
      [leafSites(tree, "peak", "count"), leaf],
    ]) {
      const frames = new Set(stacks.filter(({ values }) => values[2] > 0 || values[3] > 0).map(frameOf));
      assert.deepEqual(new Set(sites.map(({ frame }) => frame)), frames);
      for (const { frame, values, grown } of sites) {
        const mine = stacks.filter((stack) => frameOf(stack) === frame);
        assert.deepEqual(values, values.map((_, measure) => mine.reduce((sum, stack) => sum + stack.values[measure], 0)));
        const { row, bytes } = profile.survivors;
        const expected = bytes.reduce((sum, size, i) => sum + (mine.includes(stacks[row[i]]) ? size : 0), 0);
        assert.equal(grown.reduce((a, b) => a + b, 0), expected);
      }
    }
  });
});

test("generations are named after marks, and compared by what is left of them", () => {
  const { profile } = randomProfile(3);
  const generations = generationsOf(profile.head);
  assert.deepEqual(
    generations.map(({ name, from, to, allocated }) => [name, from, to, allocated]),
    [["start", 0, 100, 600], ["warm", 100, 250, 300], ["part 3", 250, 400, 0]],
  );
  const site = (grown) => ({ grown: Float64Array.from(grown), grownCount: Float64Array.from(grown) });
  const [steady, growing, gone] = [site([10, 0, 15]), site([0, 0, 3]), site([7, 1, 0])];
  const rows = compared([growing, steady, gone, site([0, 9, 0])], 0, 2, "bytes");
  assert.deepEqual(rows.map((row) => [row.site, row.change]), [[steady, 5], [gone, -7], [growing, 3]]);
});

test("many generations are joined to a few, not across marks, and an idle one is not compared", () => {
  const starts = Array.from({ length: 40 }, (_, i) => i * 10);
  const { profile } = randomProfile(3);
  // Busy until 300, then idle.
  const allocated = starts.map((ms) => (ms < 300 ? 100 : 0));
  const head = { ...profile.head, start_ms: 0, end_ms: 400, generations: starts, generation_allocated: allocated };
  const generations = generationsOf({ ...head, marks: [{ name: "warm", at_ms: 70, live: [1, 1] }] });
  assert.equal(generations.length, 16);
  assert.equal(generations.find(({ from }) => from === 70)?.name, "warm");
  assert.deepEqual(generations.slice(1).map(({ from }) => from), generations.slice(0, -1).map(({ to }) => to));
  assert.equal(generations.reduce((sum, { allocated: bytes }) => sum + bytes, 0), 3_000);
  const joined = joinedGenerations(head);
  const { row, generation } = profile.survivors;
  const sites = ownSites(new CallTree({ ...profile, head, survivors: { ...profile.survivors, generation: generation.map((i) => i * 13) } }), "live", "bytes");
  assert.ok(sites.every(({ grown }) => grown.length === generationsOf(head).length));
  const kept = sites.reduce((sum, { grown }) => sum + grown.reduce((a, b) => a + b, 0), 0);
  assert.ok(row.length > 0 && kept > 0 && joined.every((i, at) => at === 0 || i === joined[at - 1] || i === joined[at - 1] + 1));
  const [first, second] = worthComparing(generations);
  assert.equal(first, 1);
  assert.ok(generations[second].from < 300 && generations[second].to >= 290, JSON.stringify(generations[second]));
  // Each mark is seen, however many there are; and reports of other tools do not tell what was allocated.
  const marks = starts.map((at_ms) => ({ name: `m${at_ms}`, at_ms, live: [1, 1] }));
  assert.equal(generationsOf({ ...head, marks }).length, 40);
  const untold = generationsOf({ ...head, marks: [], generation_allocated: [] });
  assert.equal(untold.length, 16);
  assert.ok(untold.every(({ allocated: bytes }) => bytes === -1));
  assert.deepEqual(worthComparing(untold), [1, 15]);
});

test("a ranked line is found among plain names and among full ones, and not where a filter leaves it out", () => {
  everySeed((_seed, { profile }) => {
    const same = Int32Array.from({ length: FRAMES }, (_, frame) => (frame === 4 ? 0 : frame));
    const full = new CallTree(profile);
    const live = (tree, nodes) => nodes.reduce((sum, node) => sum + tree.profile.rows.values[LIVE].reduce((all, value, row) => all + (answers(tree)[tree.profile.rows.node[row]] === node ? value : 0), 0), 0);
    const answers = (tree) => responsibleNodes(tree);
    const plain = new CallTree(withNames(profile, true, same));
    assert.equal(live(full, placesOfLine(full, 0, same)), live(plain, placesOfLine(plain, 0, same)));
    const without = new CallTree(filtered(profile, { thread: 7, allocator: -1, contexts: null, frames: null, crate: null }));
    assert.deepEqual(placesOfLine(without, 0, same), []);
  });
});

const MEMORY = {
  rss: 1000, anonymous: 800, files: 150, shared: 50, swapped: 0, stacks: 40, stack_count: 2, own_mapped: 60,
  own_heap: 10, allocators: [["glibc", 400, 200]], cgroup: null, cgroup_limit: null,
};

test("the RSS is split without rest or overlap, and what cannot be resident is taken off", () => {
  const rows = { node: [0, 0], allocator: [6, 14], values: [[], [300, 30]] };
  const of = (memory) => memoryParts({ head: { memory, totals: { live: [2, 330] } }, rows });
  const whole = of(MEMORY);
  const size = (parts, key) => parts.parts.find((part) => part.key === key)?.bytes;
  assert.equal(whole.parts.reduce((sum, { bytes }) => sum + bytes, 0), 1000);
  assert.deepEqual(
    ["live", "mapped", "slack", "kept", "stacks", "files", "shared", "profiler", "rest"].map((key) => size(whole, key)),
    [300, 30, 90, 200, 40, 150, 50, 70, 70],
  );
  const tight = of({ ...MEMORY, rss: 700 });
  assert.equal(tight.over, 230);
  assert.equal(size(tight, "kept"), undefined);
  assert.equal(size(tight, "slack"), 60);
  assert.equal(tight.parts.reduce((sum, { bytes }) => sum + bytes, 0), 700);
  assert.equal(of(null), null);
});

test("a line that holds most of what is live is named though nothing grows", () => {
  const { profile } = randomProfile(1);
  const heldBy = (/** @type {number} */ size, /** @type {object} */ head = {}) => {
    const none = new Float64Array(2);
    const live = Float64Array.of(size, 400_000);
    const blocks = Float64Array.of(3, 1);
    return adviceOn(new CallTree({
      ...profile,
      head: { ...profile.head, leaks: { unknown: null, list: [], left_out: 0 }, known: { list: [], frames: [] }, ...head },
      shape: Shape.of(Int32Array.of(0, 1), Int32Array.of(0, 4)),
      rows: {
        node: Int32Array.of(1, 2),
        thread: new Int32Array(2),
        allocator: Int32Array.of(6, 6),
        context: Int32Array.of(0, 0),
        values: [blocks, live, none, none, blocks, Float64Array.of(2 * size, 400_000), none, none, none, none],
        oldest: none,
      },
      survivors: { row: new Int32Array(), generation: new Int32Array(), count: none, bytes: none },
    }));
  };
  const [only] = heldBy(3_600_000);
  assert.deepEqual([only.kind, only.frame, only.headline.replaceAll("\u00a0", " ")], ["holds", 0, "Holds 90.0 % of what is live"]);
  assert.match(only.text.replaceAll("\u00a0", " "), /^3.60 MB in 3 blocks, 50.0 % of what was allocated here. It does not grow with/);
  // Too little, or less than half.
  assert.deepEqual([...heldBy(900_000), ...heldBy(300_000)], []);
  assert.deepEqual(heldBy(3_600_000, { known: { list: [], frames: [0] } }), []);
  const leak = { frame: 0, own: true, blocks: 3, bytes: 8_000, per_hour: 2_000, survival: null, evidence: [], against: [] };
  const ranked = (/** @type {string} */ confidence) => ({ leaks: { unknown: null, list: [{ ...leak, confidence }], left_out: 0 } });
  assert.deepEqual(heldBy(3_600_000, ranked("high")).map(({ kind }) => kind), ["growth"]);
  const [low] = heldBy(3_600_000, ranked("low"));
  assert.equal(low.kind, "holds");
  assert.doesNotMatch(low.text, /does not grow/);
});

test("a route whose requests leave a leak behind is named with its line", () => {
  const none = Float64Array.of(0, 0);
  const { profile } = randomProfile(3);
  const leak = { frame: 0, own: true, blocks: 20, bytes: 62_000, per_hour: 2_000, survival: null, evidence: [], against: [] };
  const advice = (/** @type {number} */ runs, /** @type {string} */ confidence, /** @type {number} */ size) =>
    adviceOn(new CallTree({
      ...profile,
      head: {
        ...profile.head,
        contexts: [[["route", "GET /search"]]],
        runs: [runsOf(Array(runs).fill(6_200))],
        leaks: { unknown: null, list: [{ ...leak, confidence }], left_out: 0 },
      },
      shape: Shape.of(Int32Array.of(0, 1), Int32Array.of(0, 4)),
      rows: {
        node: Int32Array.of(1, 1),
        thread: new Int32Array(2),
        allocator: Int32Array.of(6, 6),
        context: Int32Array.of(1, 0),
        values: [Float64Array.of(20, 1), Float64Array.of(size, 62_000 - size), none, none, none, none, none, none, none, none],
        oldest: none,
      },
      survivors: { row: new Int32Array(), generation: new Int32Array(), count: none, bytes: none },
    })).filter(({ kind }) => kind === "left");
  const [left] = advice(20, "high", 60_000);
  assert.equal(left.headline.replaceAll("\u00a0", " "), "GET /search leaves 3.00 kB behind each time");
  assert.deepEqual([left.frame, left.nodes], [0, [1]]);
  assert.equal(left.text.replaceAll("\u00a0", " "), "20 runs allocated 124 kB. 60.0 kB that this line allocated for them are live.");
  assert.deepEqual(advice(9, "high", 60_000), [], "too few runs");
  assert.deepEqual(advice(20, "low", 60_000), [], "it may be a cache");
  assert.deepEqual(advice(20, "high", 10_000), [], "most of it is not theirs");
});

test("advice is given where the numbers are certain only", () => {
  const rows = [
    // frame, allocator, allocated blocks, temporary blocks, survivors by generation
    [0, 6, 500, 0, [1, 1, 1]],
    [0, 7, 7_000, 0, [1, 2, 3]],
    [4, 6, 5_000, 4_000, [0, 0, 9]],
    [4, 7, 100, 0, [0, 0, 0]],
  ];
  const { profile } = randomProfile(1);
  const column = (value) => Float64Array.from(rows, value);
  const none = column(() => 0);
  const total = column(([, , blocks]) => blocks);
  const short = column(([, , , blocks]) => blocks);
  const live = column(([, , , , grown]) => grown.reduce((a, b) => a + b));
  const survivors = rows.flatMap(([, , , , grown], row) => grown.map((count, generation) => ({ row, generation, count })));
  const leak = (frame, confidence, against) => ({
    frame, own: true, blocks: 8, bytes: 8_000, per_hour: 2_000, survival: null, confidence,
    evidence: ["grew by 8 kB", "keeps all"], against,
  });
  const leaks = { unknown: null, list: [leak(4, "high", []), leak(0, "medium", ["it began late"]), leak(1, "low", [])], left_out: 0 };
  const made = (/** @type {number[]} */ frames) => new CallTree({
    ...profile,
    head: { ...profile.head, leaks, known: { list: [], frames } },
    shape: Shape.of(Int32Array.of(0, 1), Int32Array.of(0, 4)),
    rows: {
      node: Int32Array.of(1, 1, 2, 2),
      thread: new Int32Array(4),
      context: new Int32Array(4),
      allocator: Int32Array.from(rows, ([, allocator]) => allocator),
      values: [live, live, none, none, total, total, short, short, none, none],
      oldest: none,
    },
    survivors: {
      row: Int32Array.from(survivors, ({ row }) => row),
      generation: Int32Array.from(survivors, ({ generation }) => generation),
      count: Float64Array.from(survivors, ({ count }) => count),
      bytes: Float64Array.from(survivors, ({ count }) => count),
    },
  });
  const given = adviceOn(made([]));
  const brief = (/** @type {typeof given} */ list) => list.map(({ kind, frame, headline }) => [kind, frame, headline]);
  // Rust leaves known lines out of the ranking.
  assert.deepEqual(brief(adviceOn(made([4]))).slice(2), [["realloc", 0, "Grew 14 times on average"]]);
  assert.deepEqual(brief(adviceOn(made([0]))).slice(2), [["temporary", 4, "78.4 % of its blocks live for no time"]]);
  assert.deepEqual(brief(given), [
    ["growth", 4, "Probably leaks"],
    ["growth", 0, "May leak"],
    ["realloc", 0, "Grew 14 times on average"],
    ["temporary", 4, "78.4 % of its blocks live for no time"],
  ]);
  assert.match(given[0].text.replaceAll("\u00a0", " "), /^8.00 kB in 8 blocks are live. Grew by 8 kB; keeps all. What/);
  assert.match(given[1].text, /Against a leak: it began late\./);
});

test("files to keep hold no markup and run nothing in a spreadsheet", () => {
  assert.equal(escaped("<script>&\"\u0001"), "&lt;script&gt;&amp;&quot;\ufffd");
  assert.equal(csvText([["=1+1", 'a"b', "x,y", 5], ["-f", "\n", "ok", -1]]), "'=1+1,\"a\"\"b\",\"x,y\",5\r\n'-f,\"\n\",ok,-1\r\n");
});

test("a line of Rust's library, of a package and of one's own leads to its source", () => {
  const source = { root: "/build/shop", url: "https://git.example/shop/blob/v1/{file}#L{line}" };
  const hash = "59807616e1fa2540724bfbac14d7976d7e4a3860";
  /** @type {[string, boolean, string][]} */
  const known = [
    [`/rustc/${hash}/library/alloc/src/vec/mod.rs`, false, `https://github.com/rust-lang/rust/blob/${hash}/library/alloc/src/vec/mod.rs#L7`],
    ["/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tokio-util-0.7.1+x/src/a b.rs", false, "https://docs.rs/crate/tokio-util/0.7.1%2Bx/source/src/a%20b.rs#7"],
    ["/build/shop/cart/src/lib.rs", true, "https://git.example/shop/blob/v1/cart/src/lib.rs#L7"],
    ["src/main.rs", true, "https://git.example/shop/blob/v1/src/main.rs#L7"],
    ["/build/shopping/src/lib.rs", true, ""],
    ["/build/shop/../../etc/lib.rs", true, ""],
    ["/usr/lib/libc.so.6", false, ""],
    ["src/main.rs", false, ""],
  ];
  for (const [path, own, url] of known) {
    assert.equal(sourceUrl(path, 7, own, source), url, path);
  }
  assert.equal(sourceUrl("src/main.rs", 0, true, source), "");
  assert.equal(sourceUrl("src/main.rs", 7, true, { root: "", url: "" }), "");
  assert.equal(sourceUrl("src/main.rs", 7, true, { root: "", url: "javascript:alert(1)//{file}" }), "");
});
