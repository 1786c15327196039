// The page's trees, layout, search and words against naive models, in node alone: `node --test tests/*.test.mjs`.

import assert from "node:assert/strict";
import test from "node:test";

import { CallTree } from "../js/call_tree.js";
import { measureOf } from "../js/decode.js";
import { bytes, duration, percent } from "../js/format.js";
import { InvertedTree } from "../js/inverted_tree.js";
import { boxAt, layout, spanOf } from "../js/layout.js";
import { sizeTicks, timeTicks } from "../js/axis.js";
import { programOf } from "../js/language.js";
import { framesAt, hashOfLine, lineOfHash } from "../js/line_link.js";
import { isContextFrame } from "../js/contexts.js";
import { groupedBy, withContextFrames } from "../js/grouped.js";
import { brief, commonDirectory, fit, fittedPlace, segments, shortPath } from "../js/names.js";
import { compile, matchedTotal } from "../js/search.js";
import { ownSites } from "../js/sites.js";
import { FRAMES, randomProfile } from "./profiles.mjs";
import { formatHash, parseHash, START } from "../js/state.js";

/** Every node of a tree below `node` as "frame.frame" → value. */
function read(tree, measure, node = 0, path = [], found = new Map()) {
  found.set(path.join("."), tree.valueOf(node, measure));
  let below = 0;
  let before = Infinity;
  for (const child of tree.childrenOf(node, measure)) {
    const value = tree.valueOf(child, measure);
    assert.ok(value > 0 && value <= before, "largest first, none empty");
    assert.equal(tree.parentOf(child), node);
    assert.equal(tree.depthOf(child), path.length + 1);
    assert.equal(tree.childOf(node, tree.frameOf(child)), child);
    before = value;
    below += value;
    read(tree, measure, child, [...path, tree.frameOf(child)], found);
  }
  assert.equal(tree.ownOf(node, measure), tree.valueOf(node, measure) - below);
  return found;
}

/** The same by brute force. */
function sums(stacks, measure, leafFirst) {
  const found = new Map([["", 0]]);
  for (const { path, values } of stacks) {
    const frames = leafFirst ? [...path].reverse() : path;
    for (let length = 0; length <= frames.length; length += 1) {
      const key = frames.slice(0, length).join(".");
      found.set(key, (found.get(key) ?? 0) + values[measure]);
    }
  }
  return new Map([...found].filter(([key, value]) => key === "" || value > 0));
}

const sorted = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

test("both trees hold what a map by path holds, in every measure", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const { profile, stacks } = randomProfile(seed);
    const tree = new CallTree(profile);
    const inverted = new InvertedTree(tree);
    for (const measure of [1, 0, 3, 5]) {
      assert.deepEqual(sorted(read(tree, measure)), sorted(sums(stacks, measure, false)));
      assert.deepEqual(sorted(read(inverted, measure)), sorted(sums(stacks, measure, true)));
    }
  }
});

test("a search adds up the stacks that have a match, each once", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const { profile, stacks } = randomProfile(seed);
    const hits = Uint8Array.from({ length: FRAMES }, (_, i) => (i % 3 === seed % 3 ? 1 : 0));
    const expected = stacks.reduce((sum, { path, values }) => sum + (path.some((f) => hits[f]) ? values[1] : 0), 0);
    assert.equal(matchedTotal(new CallTree(profile), hits, 1).value, expected);
  }
});

test("call sites charge every byte to one frame: the own one nearest the leaf", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const { profile, stacks } = randomProfile(seed);
    const expected = new Map();
    for (const { path, values } of stacks) {
      const upwards = [...path].reverse();
      const frame = upwards.find((f) => f % 4 === 0) ?? upwards.find((f) => f % 4 === 1) ?? upwards[0] ?? -1;
      expected.set(frame, (expected.get(frame) ?? 0) + values[measureOf("peak", "bytes")]);
    }
    const found = ownSites(new CallTree(profile), "peak", "bytes").map((site) => [site.frame, site.bytes]);
    const positive = (pairs) => pairs.filter(([, value]) => value > 0).sort(([a], [b]) => a - b);
    assert.deepEqual(positive(found), positive([...expected]));
  }
});

test("boxes are as wide as their values, lie inside their parents, and what is too narrow is one box", () => {
  for (let seed = 1; seed <= 100; seed += 1) {
    const { profile } = randomProfile(seed);
    const tree = new CallTree(profile);
    const whole = tree.valueOf(0, 1);
    if (whole === 0) {
      assert.deepEqual(layout(tree, 1, { from: 0, to: 1 }, 300), []);
      continue;
    }
    for (const [depth, row] of layout(tree, 1, { from: 0, to: 1 }, 300).entries()) {
      row.node.forEach((node, i) => {
        const rest = row.more[i] > 0;
        assert.ok(i === 0 || row.left[i] >= row.right[i - 1] - 1e-9, "no overlap");
        if (!rest) {
          assert.equal(tree.depthOf(node), depth);
          assert.ok(Math.abs(row.right[i] - row.left[i] - (300 * tree.valueOf(node, 1)) / whole) < 1e-6);
          const span = spanOf(tree, 1, node);
          assert.ok(Math.abs(span.from * 300 - row.left[i]) < 1e-6 && Math.abs(span.to * 300 - row.right[i]) < 1e-6);
        }
        assert.equal(boxAt(row, (row.left[i] + row.right[i]) / 2), i);
      });
    }
  }
});

test("plain names are cut between their segments, parameters are not", () => {
  const cases = [
    ["tokio::runtime::task::harness::Harness::poll", 6],
    ["alloc::vec::Vec::go::{closure}", 5],
    ["std::vector::push_back(std::string const&)", 3],
    ["malloc", 1],
    ["libc.so.6+0x1234", 1],
    ["a<b", 1],
    ["</script><script>alert(1)</script>", 1],
    ["", 1],
  ];
  for (const [name, count] of cases) {
    assert.equal(segments(name).length, count, name);
    assert.equal(segments(name).join("::"), name);
  }
  assert.equal(brief(["a", "b", "c", "{closure}"]), "b::c::{closure}");
  assert.equal(fit(["shop", "cache", "get"], 30), "shop::cache::get");
  assert.equal(fit(["shop", "cache", "get"], 12), "cache::get");
  assert.equal(fit(["shop", "cache", "remember"], 5), "reme…");
  assert.equal(fit(["shop", "perform", "{closure}"], 12), "perform::{c…");
});

test("paths lose what is not worth reading", () => {
  assert.equal(commonDirectory(["/build/shop/src/a.rs", "/build/model/src/b.rs"]), "/build/");
  assert.equal(commonDirectory(["/build/shop/src/a/b.rs", "/build/shop/src/a/c.rs"]), "/build/shop/");
  assert.equal(commonDirectory(["src/main.rs"]), "");
  assert.equal(shortPath("/r/registry/src/i-1/tokio-1.0.0/src/x.rs", ""), "tokio-1.0.0/src/x.rs");
  assert.equal(shortPath("/rustc/abc/library/std/src/x.rs", ""), "library/std/src/x.rs");
  assert.equal(shortPath("/build/shop/src/a.rs", "/build/"), "shop/src/a.rs");
});

test("of a place that is too long directories go, file and line never", () => {
  const measure = (text) => text.length;
  const place = "library/std/src/sys/stack_overflow.rs:227";
  for (const [room, text] of [
    [99, place],
    [40, "…/std/src/sys/stack_overflow.rs:227"],
    [27, "…/sys/stack_overflow.rs:227"],
    [24, "…/stack_overflow.rs:227"],
    [22, "stack_overflow.rs:227"],
    [3, "stack_overflow.rs:227"],
  ]) {
    assert.equal(fittedPlace(place, room, measure), text);
  }
  assert.equal(fittedPlace("main.rs:1", 2, measure), "main.rs:1");
});

test("a page is named after the program, and after the script that Python runs", () => {
  for (const [command, program] of [
    ["/srv/shop --port 80", "shop"],
    ["/usr/bin/python3.12 -X dev app/serve.py --all", "serve.py"],
    ["/venv/bin/memray run -o out.bin app/serve.py", "serve.py"],
    ["memray run -m shop.serve", "shop.serve"],
    ["python -m shop.serve", "shop.serve"],
    ["python3", "python3"],
    ["", "unknown program"],
  ]) {
    assert.equal(programOf(command), program, command);
  }
});

test("axes have round values, as many as there is room for", () => {
  assert.deepEqual(sizeTicks(39_500_000, 3).map(({ text }) => text), ["20\u00a0MB"]);
  assert.deepEqual(sizeTicks(40_700_000, 2).map(({ text }) => text), ["20\u00a0MB", "40\u00a0MB"]);
  assert.deepEqual(sizeTicks(40_700_000, 1).map(({ text }) => text), ["20\u00a0MB"]);
  assert.deepEqual(sizeTicks(1_500, 3).map(({ text }) => text), ["500\u00a0B", "1\u00a0kB", "1.5\u00a0kB"]);
  assert.deepEqual(sizeTicks(0.5, 3), []);
  assert.deepEqual(timeTicks(90_000, 4).map(({ text }) => text), ["30 s", "1 min"]);
  assert.deepEqual(timeTicks(4e8, 5).map(({ text }) => text), ["1 d", "2 d", "3 d", "4 d"]);
  for (let most = 1; most < 1e15; most *= 7) {
    for (const room of [1, 3, 10]) {
      assert.ok(sizeTicks(most, room).length >= 1 && sizeTicks(most, room).length <= room && timeTicks(most, room).length <= room, `${most} ${room}`);
    }
  }
});

test("a link to a line is read as it was written, and finds the line's frames", () => {
  const place = { function: "<a::B as c&d=#>::e", file: "src/ü %.rs", line: 12 };
  assert.deepEqual(lineOfHash(hashOfLine(place)), place);
  for (const other of ["", "#", "#in=f&file=a.rs", "#in=f&file=a.rs&line=x", "#tab=growth"]) {
    assert.equal(lineOfHash(other), null, other);
  }
  const strings = ["f", "g", "a.rs"];
  const frames = { function: Int32Array.of(1, 0, 0), file: Int32Array.of(2, 2, 2), line: Int32Array.of(7, 7, 8) };
  assert.deepEqual(framesAt({ strings, frames }, { function: "f", file: "a.rs", line: 7 }), [1, 0]);
  assert.deepEqual(framesAt({ strings, frames }, { function: "f", file: "a.rs", line: 9 }), []);
});

test("numbers keep three digits and never round something to nothing or all", () => {
  const plain = (text) => text.replace("\u00a0", " ");
  const sizes = [0, 999, 1000, 9_994, 9_996, 99_960, 999_499, 999_600, 24_000_000, 64 * 2 ** 30];
  const texts = ["0 B", "999 B", "1.00 kB", "9.99 kB", "10.0 kB", "100 kB", "999 kB", "1.00 MB", "24.0 MB", "68.7 GB"];
  assert.deepEqual(sizes.map((size) => plain(bytes(size))), texts);
  assert.deepEqual([percent(0, 5), percent(1, 1e6), percent(999_999, 1e6), percent(5, 5)], ["0.0 %", "<0.1 %", ">99.9 %", "100 %"]);
  const times = [5, 59_900, 59_960, 3_600_000, 90_061_000].map(duration);
  assert.deepEqual(times, ["5 ms", "59.9 s", "1 min", "1 h", "1 d 1 h"]);
});

test("a state comes back from its hash, and nonsense is the start", () => {
  const state = {
    ...START,
    where: "route=GET /a&b=c",
    key: "tenant",
    tab: "sandwich",
    view: "range",
    range: "100-2000",
    until: "all",
    order: "leaf",
    zoom: [0, 35, 1296],
    search: "a&b=#c",
    crate: "x, y",
    thread: "3",
    only: "tokio",
    fold: "own",
    sort: "-age",
    growth: "0-4",
  };
  assert.deepEqual(parseHash(formatHash(state)), state);
  assert.deepEqual(parseHash("#view=a&zoom=!&by=&order=constructor&range=5&thread=-1&sort=%3C&tab=main&function=!"), START);
  assert.equal(formatHash(START), "#");
});

test("a wrong expression is explained in words", () => {
  assert.match(compile("(").error, /^Not a regular expression: \S/);
  assert.equal(compile("").regex, null);
  assert.equal(compile("tokio").regex?.test("Tokio"), true);
  assert.equal(compile("Vec").regex?.test("vec"), false);
});

test("grouped by a key, each stack is below a frame of its context's value", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const { profile: report, stacks } = randomProfile(seed);
    const { profile, frameOf } = withContextFrames(report);
    assert.deepEqual([...frameOf.keys()], ["route", "tenant"]);
    for (const [key, frames] of frameOf) {
      const below = stacks.map((stack) => {
        const value = stack.labels.find(([known]) => known === key)?.[1] ?? `no ${key}`;
        const frame = profile.frames.function.findIndex((name) => profile.strings[name] === `[${value}]`);
        assert.ok(isContextFrame(profile, frame));
        return { ...stack, path: [frame, ...stack.path] };
      });
      const grouped = groupedBy(profile, frames);
      const tree = new CallTree(grouped);
      for (const measure of [1, 5]) {
        assert.deepEqual(sorted(read(tree, measure)), sorted(sums(below, measure, false)));
        assert.deepEqual(sorted(read(new InvertedTree(tree), measure)), sorted(sums(below, measure, true)));
      }
      // It is a profile like any other: a part of it can be folded or chosen.
      assert.deepEqual([...grouped.rows.node], [...grouped.rows.node].sort((a, b) => a - b));
      assert.equal(grouped.rows.node.length, report.rows.node.length);
    }
  }
});
