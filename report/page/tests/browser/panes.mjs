// Tabs, filters, folding, ranges and files to keep, against the report they were made from.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { aggregated, bytes, count, hash, middle, plain, press, radio, routes, sampled, scene, shot, small, status, still, text, texts, untold } from "./harness.mjs";

const tab = (page, name) => page.locator(`#tab-${name}`).click();
const pick = (page, name, value) => page.locator(`#${name}`).selectOption(value);

/** Turns what the page writes back into a number of bytes, as exact as it was written. */
function near(written, exact) {
  assert.equal(plain(written), bytes(exact));
}

await scene("filters by thread and allocator show what the call sites add up to", small, async (page) => {
  const { threads } = small.expected;
  const choices = await texts(page, "#thread option");
  assert.ok(choices.includes("<i>pool</i> (4)") && choices.includes("rates"), String(choices));
  for (const [select, label, key] of [
    ["thread", "rates", "rates"],
    ["thread", "<i>pool</i> (4)", "<i>pool</i>"],
    ["thread", "tokio-runtime-w (8)", "tokio-runtime-w"],
    ["allocator", "realloc", "REALLOC"],
    ["allocator", "malloc", "MALLOC"],
  ]) {
    await pick(page, select, { label });
    near((await status(page)).Bytes, threads[key]);
    assert.match(await text(page, "#filter-note"), /of \d+ call sites/);
    await page.locator("#clear-filters").click();
  }
  assert.equal(await hash(page), "");
  await pick(page, "thread", { label: "rates" });
  const linked = await hash(page);
  await page.goto(page.url().replace(/#.*/, "") + linked);
  near((await status(page)).Bytes, threads.rates);
});

await scene("a crate, and a search that is made a filter, keep the stacks that hold them", small, async (page) => {
  await pick(page, "only", "rustls");
  const rustls = small.expected.sites.find((site) => site.function.startsWith("rustls"));
  near((await status(page)).Bytes, rustls.bytes);
  await pick(page, "only", "");
  await page.locator("#search").fill("cache::numbers");
  await page.locator("#matching").check();
  near((await status(page)).Bytes, small.expected.sites[0].bytes);
  assert.equal(await page.locator("#sites tr").count(), 1);
});

await scene("memory by route, and by tenant, and what one of them holds", routes, async (page) => {
  const { by_route: byRoute, by_tenant: byTenant } = routes.expected;
  assert.equal(await text(page, "#tab-contexts"), "By route");
  await tab(page, "contexts");
  assert.equal(await text(page, "#context-count"), `${byRoute.length} rows`);
  const rows = () => texts(page, "#contexts tbody tr");
  (await rows()).forEach((row, i) => {
    const { value, live } = byRoute[i];
    assert.ok(row.startsWith(`${value ?? "no route"} `) && row.includes(` ${bytes(live.bytes)} `), row);
    assert.match(row, /\.rs:\d+ /, "where most of it is");
  });
  await shot(page, "by-route");
  await radio(page, "peak");
  const most = byRoute.toSorted((a, b) => b.high_water.bytes - a.high_water.bytes)[0];
  const [first] = await rows();
  assert.ok(first.startsWith(`${most.value} `) && first.includes(` ${bytes(most.high_water.bytes)} `), first);
  await page.locator("#contexts [data-sort=context]").click();
  assert.match(await hash(page), /sort=context/);
  assert.match((await rows())[0], /^<b>GET<\/b> \/search/);
  await radio(page, "live");
  await page.locator("#contexts .site", { hasText: "GET /rates" }).click();
  const rates = byRoute.find(({ value }) => value === "GET /rates");
  near((await status(page)).Bytes, rates.live.bytes);
  assert.equal(await text(page, "#status .name"), "route=GET /rates: still live");
  assert.equal(await text(page, "#filter-count"), " (1)");
  const linked = await hash(page);
  assert.match(linked, /where=route%3DGET/);
  await page.goto(page.url().replace(/#.*/, "") + linked);
  near((await status(page)).Bytes, rates.live.bytes);
  await pick(page, "where", { label: "acme" });
  near((await status(page)).Bytes, byTenant.find(({ value }) => value === "acme").live.bytes);
  await pick(page, "where", { label: "no tenant" });
  near((await status(page)).Bytes, byTenant.find(({ value }) => value === null).live.bytes);
  await page.locator("#clear-filters").click();
  await tab(page, "contexts");
  await pick(page, "context-key", "tenant");
  assert.equal(await text(page, "#tab-contexts"), "By tenant");
  assert.equal((await rows()).length, 2);
  const download = page.waitForEvent("download");
  await page.locator("#save-contexts").click();
  const lines = readFileSync(await (await download).path(), "utf8").trim().split("\r\n");
  assert.equal(lines.length, 3);
  assert.ok(lines.some((line) => line.startsWith("acme,") && line.includes(`,${byTenant.find(({ value }) => value === "acme").live.bytes},`)), lines.join("\n"));
});

await scene("the graph and the tree are grouped by route, and a path through one order of frames is not taken for another", routes, async (page) => {
  const byRoute = routes.expected.by_route.filter(({ live }) => live.bytes > 0);
  await tab(page, "graph");
  assert.deepEqual(await texts(page, "#root option"), ["nothing", "route", "tenant"]);
  await pick(page, "root", "route");
  assert.match(await hash(page), /root=route/);
  near((await status(page)).Bytes, routes.expected.live[1]);
  await shot(page, "grouped-by-route");
  await tab(page, "tree");
  const roots = await texts(page, "#outline [aria-level='2']");
  assert.equal(roots.length, byRoute.length, roots.join("\n"));
  byRoute.forEach(({ value, live }, i) => {
    assert.ok(roots[i].includes(`[${value ?? "no route"}]`) && roots[i].includes(bytes(live.bytes)), roots[i]);
  });
  assert.equal(await text(page, "#filter-count"), " (1)");
  await page.locator("#clear-filters").click();
  assert.doesNotMatch(await hash(page), /root=/);
  assert.equal(await page.locator("#root-choice").isVisible(), true);
});

await scene("a report without contexts has no view of them", { ...small, hash: "#tab=contexts&where=route%3DGET&key=tenant" }, async (page) => {
  assert.equal(await hash(page), "#tab=contexts&where=route%3DGET&key=tenant");
  assert.equal(await page.locator("#pane-graph").isVisible(), true);
  assert.equal(await page.locator("#tab-contexts").isVisible(), false);
  assert.equal(await page.locator("#where-filter").isVisible(), false);
  assert.equal(await page.locator("#root-choice").isVisible(), false);
  near((await status(page)).Bytes, small.expected.live[1]);
});

await scene("folding hides frames and loses no byte, and says how many boxes it hid", small, async (page) => {
  const rows = () => texts(page, "#sites tr");
  const before = await rows();
  for (const fold of ["runtime", "crates", "own"]) {
    await pick(page, "fold", fold);
    near((await status(page)).Bytes, small.expected.live[1]);
    assert.deepEqual(await rows(), before, "call sites stay as they are");
    assert.match(await text(page, "#filter-note"), /boxes folded/);
  }
  await page.locator("#scroller").focus();
  await press(page, "ArrowDown");
  assert.match(await text(page, "#status .name"), /^shop::/);
  await page.locator("#sites .site").first().click();
  assert.equal(await text(page, "#status .name"), small.expected.sites[0].function);
  await pick(page, "fold", "none");
  assert.equal(await text(page, "#status .name"), small.expected.sites[0].function);
  await page.locator("#plain").uncheck();
  assert.equal(await text(page, "#filter-note"), "");
});

await scene("temporary blocks are a view of their own", small, async (page) => {
  await radio(page, "temporary");
  const shown = await status(page);
  near(shown.Bytes, small.expected.temporary[1]);
  assert.equal(shown.Blocks, count(small.expected.temporary[0]));
});

await scene("a range is dragged, chosen by keys, linked and cleared", small, async (page) => {
  const curve = await page.locator("#curve").boundingBox();
  await page.mouse.move(curve.x, curve.y + 30);
  await page.mouse.down();
  await page.mouse.move(curve.x + curve.width / 2, curve.y + 30, { steps: 4 });
  await page.mouse.move(curve.x + curve.width, curve.y + 30, { steps: 4 });
  await page.mouse.up();
  assert.match(await hash(page), /view=range&range=0-184200/);
  near((await status(page)).Bytes, small.expected.live[1]);
  await pick(page, "until", "all");
  near((await status(page)).Bytes, small.expected.allocated[1]);
  await pick(page, "until", "end");
  near((await status(page)).Bytes, small.expected.live[1]);
  await page.locator("#clear-range").click();
  assert.equal(await page.locator("#view-live input").isChecked(), true);
  await page.locator("#curve").focus();
  await press(page, "Home");
  await press(page, ...Array(12).fill("Shift+ArrowRight"));
  const chosen = await hash(page);
  assert.match(chosen, /range=0-\d+/);
  const linked = (await status(page)).Bytes;
  assert.notEqual(plain(linked), bytes(small.expected.live[1]));
  await page.goto(page.url().replace(/#.*/, "") + chosen);
  assert.equal((await status(page)).Bytes, linked);
  await page.locator("#curve").focus();
  await press(page, "Escape");
  assert.equal(await page.locator("#range").isVisible(), false);
});

await scene("a sampled report says that it estimates, and how well", sampled, async (page) => {
  const live = sampled.expected.live[1];
  assert.match(plain(await text(page, "#banners")), /Estimates: 1,000 of 2,000,000 allocations were recorded, one sample each 524 kB/);
  assert.equal(plain((await status(page)).Bytes), `${bytes(live)} ± 3.00 MB`);
  await page.locator("#sites .site").first().click();
  assert.match(plain((await status(page)).Bytes), /^24\.0 MB ± 8\.\d\d MB$/);
  await tab(page, "stats");
  const all = plain(await text(page, "#pane-stats"));
  assert.ok(all.includes("1,000 samples, one each 524 kB on average") && all.includes("none: only samples"), all);
});

await scene("without an event log ranges snap to generations and the page says why", aggregated, async (page) => {
  assert.match(await page.locator("#range-note").textContent(), /reached its limit of 512 MiB/);
  await radio(page, "range");
  assert.match(await text(page, "#range-text"), /by generation/);
  assert.deepEqual(await page.locator("#until option").count(), 1);
  near((await status(page)).Bytes, aggregated.expected.live[1]);
});

await scene("the table sorts, filters, groups, jumps to the graph and is kept as CSV", middle, async (page) => {
  const { expected } = middle;
  await tab(page, "table");
  const live = expected.sites.filter((site) => site.bytes > 0);
  assert.equal(await text(page, "#table-count"), `${count(live.length)} rows`);
  const top = page.locator("#grid tbody tr").first();
  assert.match(plain(await top.innerText()), new RegExp(`shop::cache::numbers .* ${bytes(live[0].bytes)} `));
  await page.locator("[data-sort=other]").click();
  assert.equal(await page.locator("th[aria-sort=descending]").innerText(), "Blocks");
  const most = live.toSorted((a, b) => b.count - a.count)[0];
  assert.ok(plain(await top.innerText()).includes(count(most.count)));
  await page.locator("[data-sort=other]").click();
  assert.match(await hash(page), /sort=-other/);
  await page.locator("#find").fill("audit.rs");
  assert.equal(await page.locator("#grid tbody tr").count(), 1);
  const download = page.waitForEvent("download");
  await page.locator("#save-csv").click();
  const csv = readFileSync(await (await download).path(), "utf8").trim().split("\r\n");
  assert.equal(csv.length, 2);
  assert.match(csv[1], /^shop::audit::Trail::push,\/build\/shop\/src\/audit\.rs:33,1766400,/);
  await page.locator("#find").fill("");
  await page.locator("input[name=group][value=leaf]").check({ force: true });
  assert.match(await hash(page), /group=leaf/);
  await page.locator("input[name=group][value=function]").check({ force: true });
  await page.locator("#find").fill("__clone3");
  assert.ok(plain(await top.innerText()).includes(bytes(expected.live[1])));
  await top.locator(".site").click();
  assert.equal(await text(page, "#status .name"), "__clone3");
});

await scene("places lead to their sources, and own code is shown where it is at hand", small, async (page) => {
  await tab(page, "growth");
  const leak = page.locator(".leaks a.place").first();
  assert.equal(await leak.getAttribute("href"), "https://git.example/shop/blob/v2.1/src/index/mod.rs#L203");
  assert.equal(await leak.getAttribute("rel"), "noopener noreferrer");
  assert.equal(await page.locator(".source").count(), 0, "the sample’s sources are nowhere");
  await tab(page, "table");
  const places = await page.locator("#grid a.place").evaluateAll((found) => found.map((place) => place.getAttribute("href")));
  assert.ok(places.length > 0 && places.every((url) => url.startsWith("https://")), places.join(" "));
});

await scene("the outline opens along what is largest and is walked by keys, in both orders", small, async (page) => {
  await tab(page, "tree");
  const lines = page.locator("#outline [role=treeitem]");
  assert.ok((await texts(page, "#outline [role=treeitem]")).some((line) => line.includes("shop::cache::numbers")));
  await page.locator("#outline").focus();
  await press(page, "ArrowDown", "ArrowDown");
  assert.equal(await text(page, "#status .name"), "start_thread");
  const open = await lines.count();
  await press(page, "ArrowLeft");
  assert.ok((await lines.count()) < open);
  await press(page, "ArrowRight", "Enter");
  assert.equal(await text(page, "#crumbs [aria-current]"), "start_thread");
  await tab(page, "tree");
  await radio(page, "leaf");
  assert.match(plain(await lines.nth(1).innerText()), /^shop::cache::numbers/);
});

await scene("the sandwich puts a function between its callers and what it calls", small, async (page) => {
  await tab(page, "sandwich");
  await page.locator("#function-filter").fill("Index::query");
  await page.locator("#functions button").first().click();
  assert.equal(await text(page, "#sandwich-name"), "shop::index::Index::query");
  const query = small.expected.sites.find((site) => site.function === "shop::index::Index::query");
  assert.ok(plain(await text(page, "#sandwich-facts")).startsWith(`${bytes(query.bytes)} with what it calls`));
  await page.locator("#callers").focus();
  await press(page, "ArrowUp");
  assert.equal(await text(page, "#status .name"), "shop::routes::search::{{closure}}");
  await page.locator("#callees").focus();
  await press(page, "ArrowDown");
  assert.match(await text(page, "#status .name"), /Extend/);
  await press(page, "Enter");
  assert.match(await text(page, "#sandwich-name"), /Vec::extend$/);
  await page.goBack();
  assert.equal(await text(page, "#sandwich-name"), "shop::index::Index::query");
  await page.locator("#tab-graph").click();
  await page.locator("#sites .site").first().click();
  await page.locator("#scroller").focus();
  await press(page, "s");
  assert.equal(await text(page, "#sandwich-name"), small.expected.sites[0].function);
});

await scene("a leak is named first in the note, in Growth and in Advice, though the service has been idle since", small, async (page) => {
  const { leaks } = small.expected;
  const [{ function: name, file, line, bytes: size }] = leaks;
  const brief = name.split("::").slice(-2).join("::");
  const place = `${file.replace("/build/shop/", "")}:${line}`;
  const note = plain(await text(page, "#banners .banner.leak"));
  assert.ok(note.includes(`Probably leaks: ${brief}, ${place}, ${bytes(size)}, +`), note);
  assert.ok(note.includes(`and ${leaks.length - 1} other lines`), note);
  await page.locator("#banners .site").click();
  assert.equal(await page.locator("#pane-growth").isVisible(), true);
  const items = await texts(page, ".leaks li");
  assert.equal(items.length, leaks.length);
  for (const [i, leak] of leaks.entries()) {
    assert.ok(items[i].includes(`:${leak.line} `) && items[i].includes(`${leak.confidence} confidence ${bytes(leak.bytes)} live in `), items[i]);
  }
  assert.ok(items[0].startsWith(`${brief} ${place} `), items[0]);
  assert.match(items[0], /Grew by [\d.]+ ?MB in \d+ blocks within .* Against: it began after/);
  await tab(page, "advice");
  const advice = await texts(page, "#pane-advice .head");
  assert.equal(advice[0], `Probably leaks ${brief} ${place}`);
  await page.locator("#pane-advice .site").first().click();
  assert.equal(await text(page, "#status .name"), name);
});

await scene("filters do not change the ranking, and a line that they hide is shown without them", { ...small, hash: "#tab=growth&view=peak" }, async (page) => {
  const before = await texts(page, ".leaks li");
  await pick(page, "only", "rustls");
  assert.deepEqual(await texts(page, ".leaks li"), before);
  assert.match(await text(page, "#pane-growth"), /Filters do not change this ranking/);
  await page.locator(".leaks .site").nth(1).click();
  assert.equal(await text(page, "#status .name"), small.expected.leaks[1].function);
  near((await status(page)).Bytes, small.expected.leaks[1].bytes);
  assert.equal(await page.locator("#only").inputValue(), "");
  await page.goBack();
  assert.equal(await page.locator("#only").inputValue(), "rustls");
  const rustls = small.expected.leaks.findIndex((leak) => leak.function.startsWith("rustls"));
  await page.locator(".leaks .site").nth(rustls).click();
  assert.equal(await page.locator("#only").inputValue(), "rustls");
  await page.goBack();
  await page.locator("#clear-filters").click();
  await page.locator("#open-help").focus();
  await page.locator("#plain").uncheck();
  await page.locator(".leaks .site").last().click();
  near((await status(page)).Bytes, small.expected.leaks.at(-1).bytes);
});

await scene("nothing is accused where nothing leaks", still, async (page) => {
  assert.equal(await page.locator(".banner.leak").count(), 0);
  await tab(page, "growth");
  assert.match(plain(await text(page, "#pane-growth")), /Nothing grows with the work: no line keeps more the more the service does\. Looked at: \d+ call sites in 24 parts of 3 min 4 s, in which/);
  assert.equal(await page.locator(".leaks li").count(), 0);
  await tab(page, "advice");
  assert.equal(await page.locator(".advice.growth").count(), 0);
});

await scene("a report that does not tell what call sites held says why it ranks nothing", untold, async (page) => {
  assert.equal(await page.locator(".banner.leak").count(), 0);
  for (const pane of ["growth", "advice"]) {
    await tab(page, pane);
    assert.match(await text(page, `#pane-${pane}`), /what grows is not known/);
  }
});

await scene("generations are compared, and one is shown in the graph", small, async (page) => {
  await tab(page, "growth");
  const columns = await texts(page, ".generations button");
  assert.equal(columns.length, 16);
  const [warm, loaded] = ["warmed up", "after <b>load</b>"].map((name) => columns.findIndex((column) => column.includes(name)));
  assert.ok(warm > 0 && loaded > warm, String(columns));
  // By default two with work: not start-up, and not the idle end.
  assert.equal(await page.locator("#growth-from").inputValue(), "1");
  assert.equal(Number(await page.locator("#growth-to").inputValue()), loaded - 1);
  const rows = await texts(page, "#pane-growth .wide .site");
  assert.deepEqual(rows.slice(0, 2).map((row) => row.split(" ")[0]), ["cache::numbers", "Index::query"], "by the larger of the two");
  await pick(page, "growth-from", String(warm));
  await pick(page, "growth-to", String(loaded));
  assert.ok((await hash(page)).includes(`growth=${warm}-${loaded}`));
  assert.match(plain(await text(page, "#pane-growth thead")), /Kept from warmed up Kept from after <b>load<\/b> Difference/);
  await page.locator(".generations button").nth(warm).click();
  assert.equal(await page.locator("#pane-graph").isVisible(), true);
  assert.match(await hash(page), /range=30000-\d+/);
  assert.equal(columns[warm].split(" ").slice(0, 2).join(" "), plain((await status(page)).Bytes));
});

await scene("on a phone the strip shows every generation, and no place of the ranking is cut", { ...small, width: 390, height: 844, hash: "#tab=growth" }, async (page) => {
  const cut = await page.evaluate(() => {
    const boxes = Array.from(document.querySelectorAll(".generations li, .generations button, .leaks .place, .banner.leak .place"));
    return boxes
      .filter((box) => {
        const { left, right } = box.getBoundingClientRect();
        return left < 0 || right > window.innerWidth || box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0;
      })
      .map((box) => box.textContent);
  });
  assert.deepEqual(cut, []);
  assert.equal(await page.locator(".generations li").count(), 16);
});

await scene("the RSS is explained, and the report's figures are all there", small, async (page) => {
  await tab(page, "memory");
  const rows = await texts(page, "#pane-memory tr");
  for (const name of ["Live blocks", "Kept by the allocator", "Thread stacks", "Mapped files", "heapray", "Unexplained", "RSS"]) {
    assert.ok(rows.some((row) => row.startsWith(name)), name);
  }
  await tab(page, "stats");
  const all = plain(await text(page, "#pane-stats"));
  assert.ok(all.includes(`${count(small.expected.allocated[1])} bytes`));
  for (const words of ["/usr/local/bin/shop --port 7000", "Allocations by size", "<i>pool</i> (4)", "heapray’s own cost", "none left out", "warmed up"]) {
    assert.ok(all.includes(words), words);
  }
  await tab(page, "advice");
  assert.match(await text(page, "#pane-advice"), /Grows with the work\s+Probably leaks/);
  assert.match(await text(page, "#pane-advice"), /with_capacity\(n\)/);
  await page.locator("#pane-advice .site").first().click();
  assert.equal(await page.locator("#pane-graph").isVisible(), true);
});

await scene("the graph is kept as SVG and PNG, with names as text", { ...small, hash: "#search=alert" }, async (page) => {
  const kept = async (button) => {
    const download = page.waitForEvent("download");
    await page.locator(button).click();
    return readFileSync(await (await download).path());
  };
  const svg = (await kept("#save-svg")).toString();
  assert.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  assert.ok(svg.includes("shop::cache::numbers") && svg.includes("&lt;/script&gt;") && !svg.includes("<script"));
  // Elsewhere: this page's policy lets nobody parse markup.
  const elsewhere = await page.context().newPage();
  const parsed = await elsewhere.evaluate(
    (source) => new DOMParser().parseFromString(source, "image/svg+xml").querySelectorAll("parsererror").length,
    svg,
  );
  await elsewhere.close();
  assert.equal(parsed, 0);
  const png = await kept("#save-png");
  assert.equal(png.subarray(1, 4).toString(), "PNG");
});

await scene("a zoomed graph has a map that leads elsewhere", middle, async (page) => {
  assert.equal(await page.locator("#minimap").isVisible(), false);
  await page.locator("#sites .site").nth(1).click();
  assert.equal(await page.locator("#minimap").isVisible(), true);
  const map = await page.locator("#minimap").boundingBox();
  const before = await hash(page);
  await page.mouse.click(map.x + 30, map.y + 40);
  assert.notEqual(await hash(page), before);
});

await scene("the keyboard alone reaches every tab", small, async (page) => {
  for (const [i, name] of ["graph", "table", "tree", "sandwich", "growth", "memory", "advice", "stats"].entries()) {
    await press(page, String(i + 1));
    assert.equal(await page.locator(`#pane-${name}`).isVisible(), true, name);
    assert.equal(await page.locator(".pane:visible").count(), 1);
  }
  await page.locator("#tab-stats").focus();
  await press(page, "ArrowRight");
  assert.equal(await page.locator("#tab-graph").getAttribute("aria-selected"), "true");
  await press(page, "ArrowLeft", "ArrowLeft");
  assert.equal(await page.locator("#pane-advice").isVisible(), true);
  await page.goBack();
  assert.equal(await page.locator("#pane-stats").isVisible(), true);
});
