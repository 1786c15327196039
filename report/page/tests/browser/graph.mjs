// The flame graph, its search, its keys and the table beside it, against the report they were made from.

import assert from "node:assert/strict";

import { bytes, count, hash, middle, plain, press, radio, scene, shot, small, status, text, texts } from "./harness.mjs";

await scene("the header and the first table answer what leaks", small, async (page) => {
  const { expected } = small;
  assert.equal(plain(await text(page, ".fact.lead dd")).split(" ").slice(0, 2).join(" "), bytes(expected.live[1]));
  const rows = page.locator("#sites tr");
  const shown = await rows.count();
  assert.ok(shown >= 6);
  for (let i = 0; i < shown; i += 1) {
    const site = expected.sites[i];
    const cells = await texts(page, `#sites tr:nth-child(${i + 1}) td`);
    assert.ok(cells[1].startsWith(bytes(site.bytes)), `${cells[1]} is ${bytes(site.bytes)}`);
    assert.ok(cells[1].includes(`${count(site.count)} block`), cells[1]);
    assert.equal(cells[2].split(" ").slice(0, 2).join(" "), `${((100 * site.bytes) / expected.live[1]).toFixed(1)} %`);
    const title = await rows.nth(i).locator(".site").getAttribute("title");
    assert.equal(title?.split("\n")[0], site.function);
    assert.equal(await rows.nth(i).locator(".place").getAttribute("title"), `${site.file}:${site.line}`);
  }
  assert.equal(await page.locator(".banner").count(), 3);
  await shot(page, "light");
});

await scene("every call site of a large report is that of the Rust view", middle, async (page) => {
  const { expected } = middle;
  await page.locator("#more-sites").click();
  const titles = await page.locator("#sites .place").evaluateAll((all) => all.map((place) => place.title));
  const names = await page.locator("#sites .site").evaluateAll((all) => all.map((site) => site.title.split("\n")[0]));
  const amounts = await texts(page, "#sites td.amount");
  const live = expected.sites.filter((site) => site.bytes > 0);
  assert.equal(titles.length, live.length);
  const row = (name, place, size, blocks) => `${name} ${place} ${size} ${blocks}`;
  const found = titles.map((place, i) => row(names[i], place, ...amounts[i].split(/ (?=[\d,]+ block)/)));
  const wanted = live.map((s) =>
    row(s.function, `${s.file}:${s.line}`, bytes(s.bytes), `${count(s.count)} block${s.count === 1 ? "" : "s"}`),
  );
  // Equal sizes may stand in either order.
  assert.deepEqual(found.sort(), wanted.sort());
});

await scene("a hostile name is text everywhere", small, async (page) => {
  const { hostile } = small.expected;
  await page.locator("#search").fill("alert");
  await page.locator("#search").press("Enter");
  assert.ok((await text(page, "#status .name")).includes(hostile));
  assert.ok((await text(page, "#crumbs")).includes(hostile.slice(0, 20)));
  assert.equal(await page.locator("img, body script:not([type])").count(), 0);
  assert.equal(await page.locator("script").count(), 1, "the page's own, its data being read");
});

await scene("views switch without reloading and show the report's sums", small, async (page) => {
  const { expected } = small;
  await page.evaluate(() => (window.same = true));
  for (const [view, [blocks, size]] of [
    ["peak", expected.high_water],
    ["total", expected.allocated],
    ["live", expected.live],
  ]) {
    await radio(page, view);
    const shown = await status(page);
    assert.equal(shown.Bytes, bytes(size));
    assert.equal(shown.Blocks, count(blocks));
  }
  await radio(page, "count");
  assert.equal(await text(page, "#sites-amount"), "Blocks");
  assert.match(plain(await text(page, "#sites tr:first-child td.amount")), /^18,400 /);
  assert.equal(await page.evaluate(() => window.same), true);
  await radio(page, "leaf");
  assert.equal((await status(page)).Blocks, count(expected.live[0]));
  assert.match(await hash(page), /by=count&order=leaf/);
});

await scene("a click on a call site zooms there, and back leads back", small, async (page) => {
  await page.locator("#sites .site").first().click();
  const site = small.expected.sites[0];
  const shown = await status(page);
  assert.equal(shown.Bytes, bytes(site.bytes));
  assert.equal(shown.Blocks, count(site.count));
  assert.equal(await text(page, "#status .name"), site.function);
  assert.ok((await text(page, "#crumbs [aria-current]")).includes("cache::numbers"));
  const zoomed = await hash(page);
  assert.match(zoomed, /zoom=/);
  await shot(page, "zoomed");
  await page.goBack();
  assert.equal((await status(page)).Bytes, bytes(small.expected.live[1]));
  await page.goForward();
  assert.equal(await hash(page), zoomed);
  assert.equal((await status(page)).Bytes, bytes(site.bytes));
});

await scene("a linked view opens as it was", { ...small, hash: "#view=peak&by=count&grow=up&search=shop" }, async (page) => {
  assert.equal(await page.locator("#controls input[value=peak]").isChecked(), true);
  assert.equal(await page.locator("#controls input[value=up]").isChecked(), true);
  assert.equal(await page.locator("#search").inputValue(), "shop");
  assert.equal((await status(page)).Blocks, count(small.expected.high_water[0]));
  await shot(page, "flame");
});

await scene("a wrong link opens at the start", { ...small, hash: "#view=x&zoom=zzzz.1.-3&order=__proto__" }, async (page) => {
  assert.equal((await status(page)).Bytes, bytes(small.expected.live[1]));
});

await scene("a search counts nested matches once and explains a wrong expression", small, async (page) => {
  const search = page.locator("#search");
  const { live } = small.expected;
  await search.fill("tokio::runtime");
  assert.match(plain(await text(page, "#search-result")), new RegExp(`^100 % · ${bytes(live[1])}$`));
  await search.fill("SessionCache|cache::numbers");
  const cache = small.expected.sites[0].bytes;
  const share = ((100 * cache) / live[1]).toFixed(1);
  assert.equal(plain(await text(page, "#search-result")), `${share} % · ${bytes(cache)}`);
  await shot(page, "searched");
  await search.fill("cache.rs:112$");
  assert.equal(plain(await text(page, "#search-result")), `${share} % · ${bytes(cache)}`);
  await search.fill("Vec<(");
  assert.match(await text(page, "#search-result"), /^Not a regular expression: \S/);
  assert.equal(await search.getAttribute("aria-invalid"), "true");
  await shot(page, "search-wrong");
  await search.fill("nothing like this");
  assert.equal(await text(page, "#search-result"), "No match");
  await search.press("Escape");
  assert.equal(await search.inputValue(), "");
});

await scene("the keyboard alone walks, zooms and copies", small, async (page) => {
  await page.locator("#scroller").focus();
  await press(page, "ArrowDown", "ArrowDown");
  assert.equal(await text(page, "#status .name"), "start_thread");
  assert.match(await text(page, "#live"), /^start_thread, \.\/nptl\/pthread_create\.c:442: .* of all, .* of its parent$/);
  await press(page, "Enter");
  assert.match(await hash(page), /zoom=/);
  let first = "";
  for (let steps = 0; steps < 30 && !first.startsWith("shop::routes"); steps += 1) {
    await press(page, "ArrowDown");
    first = await text(page, "#status .name");
  }
  await press(page, "ArrowRight");
  assert.notEqual(await text(page, "#status .name"), first);
  await press(page, "ArrowLeft", "ArrowUp", "ArrowDown");
  assert.equal(await text(page, "#status .name"), first);
  const overlap = await page.evaluate(() => {
    const box = (/** @type {string} */ selector) => document.querySelector(selector).getBoundingClientRect();
    return box("#status .place").right - box("#status dl").left;
  });
  assert.ok(overlap <= 0, `the place covers ${overlap} px of the numbers`);
  await press(page, "c");
  await page.waitForFunction(() => document.getElementById("toast")?.textContent !== "");
  await shot(page, "keyboard");
  await press(page, "-");
  assert.equal(await text(page, "#crumbs [aria-current]"), "__clone3");
  await press(page, "Escape");
  assert.equal(await hash(page), "");
  await press(page, "?");
  assert.equal(await page.locator("#help").isVisible(), true);
  await shot(page, "help");
  await press(page, "Escape");
});

await scene("the pointer reads boxes and moments", small, async (page) => {
  const box = await page.locator("#scroller").boundingBox();
  await page.mouse.move(box.x + 40, box.y + 30);
  const tip = plain(await text(page, "#tooltip"));
  assert.match(tip, /^__clone3 .*Bytes 44\.9 MB/);
  assert.match(tip, /Of all 100 %/);
  await page.mouse.move(box.x + 40, box.y + 30 + 18 * 20);
  await shot(page, "tooltip");
  const curve = await page.locator("#curve").boundingBox();
  await page.mouse.move(curve.x + curve.width / 2, curve.y + 20);
  assert.match(plain(await text(page, "#reading")), /^at 1 min 32 s RSS [\d.]+ MB Heap [\d.]+ MB/);
  assert.equal(await page.locator("#tooltip").isVisible(), false);
});

await scene("leaf first shows callers below", { ...middle, hash: "#order=leaf" }, async (page) => {
  assert.equal((await status(page)).Bytes, bytes(middle.expected.live[1]));
  await page.locator("#scroller").focus();
  await press(page, "ArrowDown");
  assert.equal(await text(page, "#status .name"), "shop::cache::numbers");
  await press(page, "ArrowDown");
  assert.equal(await text(page, "#status .name"), "shop::cache::SessionCache::remember");
  await shot(page, "leaf-first");
});

await scene("a crate of the legend stands out", { ...middle, theme: "dark" }, async (page) => {
  await shot(page, "dark");
  await page.locator("#legend button", { hasText: "tokio" }).first().click();
  assert.match(await hash(page), /crate=tokio/);
  await shot(page, "dark-crate");
  await page.locator("#theme").click();
  assert.equal(await page.locator("html").getAttribute("data-theme"), "light");
  await page.locator("#theme").click();
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
  await page.evaluate(() => localStorage.clear());
});
