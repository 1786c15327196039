// Drives pages in headless Chromium and compares what they show with the reports they were made from.
//
//   node tests/browser.mjs OUT      writes pages and screenshots into the directory OUT
//
// Needs cargo, `npm install` in the folder above, and a Chromium (CHROMIUM, default /usr/bin/chromium).

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const out = resolve(process.argv[2] ?? mkdtempSync(join(tmpdir(), "heapray-page-")));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const repository = fileURLToPath(new URL("../../..", import.meta.url));

if (!existsSync(executablePath)) {
  console.log(`skipped: there is no Chromium at ${executablePath}`);
  process.exit(process.env.CI ? 1 : 0);
}
const { chromium } = await import("playwright-core");
mkdirSync(out, { recursive: true });

/** Makes a page and reads what it must show. */
function samplePage(name, nodes) {
  const file = join(out, `${name}.html`);
  const args = ["run", "--quiet", "--package", "heapray-report", "--example", "sample_page", "--", file];
  execFileSync("cargo", [...args, String(nodes)], { cwd: repository, stdio: "inherit" });
  return { file, expected: JSON.parse(readFileSync(`${file}.json`, "utf8")) };
}

const profileDir = mkdtempSync(join(tmpdir(), "heapray-chromium-"));
const flags =
  "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
const browser = await chromium.launchPersistentContext(profileDir, {
  executablePath,
  args: flags.split(" "),
  reducedMotion: "reduce",
  colorScheme: "light",
  permissions: [],
});

process.on("exit", () => rmSync(profileDir, { recursive: true, force: true }));

let checks = 0;
/** Runs `check` on a fresh tab and fails if the page logged, asked the network, or opened a dialog. */
async function scene(title, { file, width = 1440, height = 900, theme = "light", hash = "" }, check) {
  const page = await browser.newPage();
  const wrong = [];
  page.on("console", (message) => wrong.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error}`));
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(pathToFileURL(file).href)) {
      wrong.push(`request: ${request.url()}`);
    }
  });
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
  await page.goto(pathToFileURL(file).href + hash);
  await page.waitForSelector("html[data-ready]");
  try {
    await check(page);
    assert.deepEqual(wrong, [], "the page logged nothing, asked nobody and opened no dialog");
    checks += 1;
    console.log(`ok: ${title}`);
  } catch (failure) {
    await page.screenshot({ path: join(out, "failed.png") });
    throw new Error(`${title}: ${failure.stack}`);
  }
  await page.close();
}

const text = (page, selector) => page.locator(selector).innerText();
const plain = (value) => value.replaceAll("\u00a0", " ").replaceAll(/\s+/g, " ").trim();

/** The numbers of the status line by name: `{Bytes: "24.0 MB", …}`. */
async function status(page) {
  const pairs = await page.locator("#status dl > div").allInnerTexts();
  return Object.fromEntries(pairs.map((pair) => /^(\D+?)\s+(.*)$/s.exec(plain(pair))?.slice(1) ?? [pair, ""]));
}

const press = (page, ...keys) => keys.reduce((done, key) => done.then(() => page.keyboard.press(key)), Promise.resolve());
const radio = (page, value) => page.locator(`input[value=${value}]`).check({ force: true });
const hash = (page) => page.evaluate(() => location.hash);
const shot = (page, name) => page.screenshot({ path: join(out, `${name}.png`) });

/** Sizes as the page writes them, computed here on its own. */
function bytes(value) {
  const [size, unit] = [
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
    [1, "B"],
  ].find(([scale]) => value >= scale * 0.9995) ?? [1, "B"];
  const scaled = value / size;
  const digits = unit === "B" ? 0 : scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
  return `${scaled.toFixed(digits)} ${unit}`;
}
const count = (value) => value.toLocaleString("en-US");

const small = samplePage("small", 0);
const middle = samplePage("nodes-20k", 20_000);
const large = samplePage("nodes-100k", 100_000);

await scene("the header and the first table answer what leaks", small, async (page) => {
  const { expected } = small;
  assert.equal(plain(await text(page, ".fact.lead dd")).split(" ").slice(0, 2).join(" "), bytes(expected.live[1]));
  const rows = page.locator("#sites tr");
  const shown = await rows.count();
  assert.ok(shown >= 6);
  for (let i = 0; i < shown; i += 1) {
    const site = expected.sites[i];
    const cells = (await rows.nth(i).locator("td").allInnerTexts()).map(plain);
    assert.ok(cells[1].startsWith(bytes(site.bytes)), `${cells[1]} is ${bytes(site.bytes)}`);
    assert.ok(cells[1].includes(`${count(site.count)} block`), cells[1]);
    assert.equal(cells[2].split(" ").slice(0, 2).join(" "), `${((100 * site.bytes) / expected.live[1]).toFixed(1)} %`);
    const title = await rows.nth(i).locator(".site").getAttribute("title");
    assert.equal(title?.split("\n")[0], site.function);
    assert.equal(await rows.nth(i).locator(".place").getAttribute("title"), `${site.file}:${site.line}`);
  }
  assert.equal(await page.locator(".banner").count(), 2);
  await shot(page, "light");
});

await scene("every call site of a large report is that of the Rust view", middle, async (page) => {
  const { expected } = middle;
  await page.locator("#more-sites").click();
  const titles = await page.locator("#sites .place").evaluateAll((all) => all.map((place) => place.title));
  const names = await page.locator("#sites .site").evaluateAll((all) => all.map((site) => site.title.split("\n")[0]));
  const amounts = (await page.locator("#sites td.amount").allInnerTexts()).map(plain);
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
  assert.equal(await page.locator("input[value=peak]").isChecked(), true);
  assert.equal(await page.locator("input[value=up]").isChecked(), true);
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
  await press(page, ...Array(10).fill("ArrowDown"));
  const first = await text(page, "#status .name");
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
  await page.locator("#open-totals").click();
  assert.match(plain(await text(page, "#totals")), new RegExp(`${count(small.expected.allocated[1])} bytes`));
  await shot(page, "totals");
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

for (const [name, width, height] of [
  ["phone", 360, 740],
  ["tablet", 820, 1180],
  ["4k", 3840, 2160],
]) {
  for (const theme of name === "phone" ? ["light", "dark"] : ["light"]) {
    await scene(`nothing is wider than ${width} px (${theme})`, { ...middle, width, height, theme }, async (page) => {
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(wide <= 0, `${wide} px too wide`);
      await page.screenshot({ path: join(out, `${name}-${theme}.png`), fullPage: name !== "4k" });
    });
  }
}

// Times are printed, not asserted: they belong to the machine.
for (const { file, expected } of [middle, large]) {
  await scene(`${count(expected.nodes)} nodes open and answer`, { file }, async (page) => {
    // The machine is shared: the best of several openings says most about the page.
    const openings = [];
    for (let i = 0; i < 7; i += 1) {
      await page.reload();
      await page.waitForSelector("html[data-ready]");
      openings.push(
        await page.evaluate(() => {
          const at = (/** @type {string} */ name) => performance.getEntriesByName(name)[0].startTime;
          const parsed = performance.getEntriesByType("navigation")[0].domInteractive;
          return { parsed, decoded: at("decoded"), shown: at("shown") };
        }),
      );
    }
    const best = openings.sort((a, b) => a.shown - b.shown)[0];
    const answer = (selector) =>
      page.evaluate(async (chosen) => {
        const element = document.querySelector(chosen);
        const began = performance.now();
        element.click();
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        return performance.now() - began;
      }, selector);
    const times = {
      "zoom to a site": (await answer("#sites tr:nth-child(3) .site")).toFixed(0),
      "reset zoom": (await answer("#reset")).toFixed(0),
      "other view": (await answer("input[value=peak]")).toFixed(0),
      "leaf first": (await answer("input[value=leaf]")).toFixed(0),
    };
    const searched = await page.evaluate(async () => {
      const search = document.getElementById("search");
      const began = performance.now();
      search.value = "serde|sqlx";
      search.dispatchEvent(new Event("input", { bubbles: true }));
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      return performance.now() - began;
    });
    times.search = searched.toFixed(0);
    const open = `parsed ${best.parsed.toFixed(0)}, decoded ${best.decoded.toFixed(0)}, shown ${best.shown.toFixed(0)}`;
    console.log(`   ms after navigation, best of ${openings.length}: ${open}`);
    console.log(`   ms to answer: ${Object.entries(times).map((pair) => pair.join(" ")).join(", ")}`);
    console.log(`   page ${count(expected.page_bytes)} bytes, extra memory to write it ${count(expected.extra_kib)} KiB`);
  });
}

await browser.close();
console.log(`${checks} checks passed; screenshots in ${out}`);
