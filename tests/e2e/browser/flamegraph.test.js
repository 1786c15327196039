// The flame graph page that the running sample serves: it must lead to the leaking line.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browserIsMissing, openBrowser } from "./browser.js";
import { PROFILER, leakingLine, startService } from "./service.js";

const skip = browserIsMissing();
let service, browser, page;

before(async () => {
  if (skip) return;
  service = await startService();
  await service.perform(3);
  await fetch(`${service.origin}${PROFILER}/stop`, { method: "POST" });
  browser = await openBrowser();
  page = await browser.context.newPage();
  await page.goto(`${service.origin}${PROFILER}/flamegraph`);
  await page.locator("#sites tr").first().waitFor();
});

after(async () => {
  await browser?.close();
  await service?.stop();
});

test("the flame graph names the leaking line before anything is clicked", { skip }, async () => {
  assert.match(await page.locator("#program").innerText(), /memory-leak/);
  const first = await page.locator("#sites tr").first().innerText();
  assert.match(first, new RegExp(`leak\\.rs:${leakingLine()}\\b`));
  assert.match(first, /24\.0+\sMB/);
  await browser.picture(page, "flamegraph");
});

test("a click on the flame graph zooms, and Escape takes it back", { skip }, async () => {
  const crumbs = page.locator("#crumbs li");
  const before = await crumbs.count();
  const graph = await page.locator("#scroller").boundingBox();
  // The leak is nearly all that lives, so its stack lies below the middle.
  await page.mouse.click(graph.x + graph.width / 2, graph.y + 110);
  await page.waitForFunction((number) => document.querySelectorAll("#crumbs li").length > number, before);
  assert.match(page.url(), /zoom=/);
  await browser.picture(page, "flamegraph-zoomed");
  await page.locator("#scroller").press("Escape");
  await page.waitForFunction(() => !location.hash.includes("zoom="));
});

test("a search on the flame graph finds the leak and tells its share", { skip }, async () => {
  await page.locator("#search").fill("memory_leak");
  await page.waitForFunction(() => /\d/.test(document.querySelector("#search-result").textContent));
  assert.match(await page.locator("#search-result").innerText(), /(9\d|100)(\.\d+)? ?%/);
  await browser.picture(page, "flamegraph-search");
  await page.locator("#search").fill("");
});

test("every view and order of the flame graph is drawn without an error", { skip }, async () => {
  for (const name of ["peak", "total", "live"]) {
    await page.locator(`#view-${name}`).click();
  }
  await page.locator("#controls").getByText("Leaf first", { exact: true }).click();
  await page.locator("#controls").getByText("Blocks", { exact: true }).click();
  await browser.picture(page, "flamegraph-leaf-first");
  await page.locator("#theme").click();
  await browser.picture(page, "flamegraph-other-theme");
  assert.deepEqual(browser.troubles, []);
});
