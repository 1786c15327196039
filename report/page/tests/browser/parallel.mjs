// The page of a parallel profile, driven and looked at: `node tests/browser/parallel.mjs OUT` does it alone.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { out, plain, press, repository, scene, text, texts } from "./harness.mjs";

function page(name, ...more) {
  const file = join(out, `${name}.html`);
  const args = ["run", "--quiet", "--package", "heapray-report", "--example", "sample_parallel", "--", file];
  execFileSync("cargo", [...args, ...more], { cwd: repository, stdio: "inherit" });
  return { file };
}

const few = page("parallel", "900");
const many = page("parallel-100k", "100000");
const none = page("parallel-empty", "0", "empty");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const reading = async (tab) => plain(await text(tab, "#stream-reading"));
/** How much of the stream is painted in colours of tasks, roughly: pixels with some colour in them. */
const colored = (tab) =>
  tab.evaluate(() => {
    const canvas = document.querySelector("#stream");
    // Of a copy: Chromium complains of a canvas that is drawn and read by turns.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let at = 0; at < data.length; at += 4) {
      found += Math.max(data[at], data[at + 1], data[at + 2]) - Math.min(data[at], data[at + 1], data[at + 2]) > 24 ? 1 : 0;
    }
    return found;
  });

for (const [name, width, height] of [
  ["phone", 360, 740],
  ["desk", 1440, 900],
]) {
  for (const theme of ["light", "dark"]) {
    await scene(`a parallel profile fits ${width} px and is accessible (${theme})`, { ...few, width, height, theme }, async (tab) => {
      await tab.screenshot({ path: join(out, `parallel-${name}-${theme}.png`), fullPage: true });
      assert.ok((await colored(tab)) > 5000, "tasks are painted");
      assert.ok((await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)) <= 0, "nothing is wider than the window");
      await tab.evaluate(axe);
      const { violations } = await tab.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)}`), []);
    });
  }
}

await scene("a parallel profile tells its sums", few, async (tab) => {
  assert.equal(await text(tab, "#title"), "granule::process_all");
  const facts = (await texts(tab, "#facts > div")).join(" | ");
  assert.match(facts, /Duration 12\.6 s returned/);
  assert.match(facts, /Workers 8 8 ran tasks/);
  assert.match(facts, /Allocated 17\.0 GB 296,000 blocks/);
  assert.equal(await tab.locator("#workers tbody tr").count(), 8);
  assert.match((await texts(tab, "#functions tbody tr"))[0], /step_0 .*3\.00 s/);
  assert.match((await texts(tab, "#allocations tbody tr"))[0], /with_0 .*4\.20 GB/);
});

await scene("the task stream zooms, moves and comes back by mouse and by key", few, async (tab) => {
  assert.match(await reading(tab), /^The whole run: 12\.6 s/);
  const box = await tab.locator("#stream").boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + 60];
  await tab.mouse.move(x, y);
  await tab.mouse.down();
  await tab.mouse.move(x + 120, y, { steps: 4 });
  await tab.mouse.up();
  const zoomed = await reading(tab);
  assert.match(zoomed, /: 1\.2\d s of 12\.6 s$/);
  await tab.screenshot({ path: join(out, "parallel-zoomed.png") });
  await tab.locator("#stream").focus();
  await press(tab, "ArrowRight");
  assert.notEqual(await reading(tab), zoomed);
  await press(tab, "+", "+");
  assert.match(await reading(tab), /: 30\d ms of 12\.6 s$/);
  await press(tab, "0");
  assert.match(await reading(tab), /^The whole run/);
  await tab.locator("#zoom-in").click();
  assert.match(await reading(tab), /: 6\.30 s of/);
  await tab.keyboard.down("Control");
  await tab.mouse.move(x, y);
  await tab.mouse.wheel(0, -400);
  await tab.keyboard.up("Control");
  await tab.waitForFunction(() => !document.querySelector("#stream-reading").textContent.includes("6.30"));
  await tab.locator("#zoom-all").click();
  assert.match(await reading(tab), /^The whole run/);
});

await scene("a task under the pointer is named, and a hostile name is text", few, async (tab) => {
  const box = await tab.locator("#stream").boundingBox();
  const seen = new Set();
  for (let x = 200; x < box.width - 10; x += 40) {
    await tab.mouse.move(box.x + x, box.y + 31);
    if (await tab.locator("#tooltip").isVisible()) {
      seen.add(plain(await text(tab, "#tooltip")));
    }
  }
  assert.ok(seen.size > 8, [...seen].join("\n"));
  assert.ok([...seen].every((one) => / on worker-0\.0, from /.test(one)), [...seen].join("\n"));
  assert.ok((await texts(tab, "#task-table tbody tr")).some((row) => row.includes("<img src=x")));
});

await scene("a name in the legend lets its tasks stand out", few, async (tab) => {
  const before = await colored(tab);
  await tab.locator("#names button").first().click();
  await tab.waitForFunction(() => document.querySelector("#names button").ariaPressed === "true");
  await tab.waitForTimeout(50);
  assert.ok((await colored(tab)) < before * 0.8);
});

await scene("functions are searched and sorted", few, async (tab) => {
  await tab.locator("#function-search").fill("step_17");
  assert.equal(await tab.locator("#functions tbody tr").count(), 11);
  await tab.locator("#function-search").fill("");
  await tab.locator("#functions .more").click();
  assert.equal(await tab.locator("#functions tbody tr").count(), 180);
  await tab.locator("#functions th button", { hasText: "With callees" }).click();
  assert.match(await tab.locator("#functions th[aria-sort]").innerText(), /With callees/);
});

await scene("100,000 tasks are zoomed and moved without a pause", many, async (tab) => {
  const times = await tab.evaluate(async () => {
    const stream = document.querySelector("#stream");
    const key = (name) => stream.dispatchEvent(new KeyboardEvent("keydown", { key: name, cancelable: true }));
    const found = [];
    for (const name of ["+", "+", "ArrowRight", "+", "ArrowLeft", "-", "+", "+", "+", "0", "+", "ArrowRight"]) {
      const began = performance.now();
      key(name);
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      found.push(performance.now() - began);
    }
    return found.sort((a, b) => a - b);
  });
  console.log(`note: 100,000 tasks: a step takes ${times[6].toFixed(0)} ms (median), ${times[11].toFixed(0)} ms (longest)`);
  await tab.screenshot({ path: join(out, "parallel-100k.png") });
});

await scene("a run of which nothing is known says what is missing", none, async (tab) => {
  assert.match(await text(tab, "#stream-lead"), /No task was seen/);
  assert.match(await text(tab, "#allocations-lead"), /MEMRAY_PROFILER=true/);
  assert.match(await text(tab, "#notes"), /panicked/);
});

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { browser } = await import("./harness.mjs");
  await browser.close();
}
