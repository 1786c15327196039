// The live page of the running sample: recording, marks, reports, at three sizes, light and dark, with a token, and behind
// a proxy that strips a prefix.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { after, before, beforeEach, test } from "node:test";
import { browserIsMissing, openBrowser } from "./browser.js";
import { PROFILER, leakingLine, startProxy, startService } from "./service.js";

const skip = browserIsMissing();
const AXE = skip ? "" : readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SIZES = [
  { name: "small", width: 360, height: 740 },
  { name: "usual", width: 1280, height: 900 },
  { name: "large", width: 3840, height: 2160 },
];
let service, browser;

before(async () => {
  if (skip) return;
  service = await startService();
  browser = await openBrowser();
});

beforeEach(() => {
  if (browser) browser.troubles.length = 0;
});

after(async () => {
  await browser?.close();
  await service?.stop();
});

const post = (path) => fetch(`${service.origin}${PROFILER}/${path}`, { method: "POST" });

async function open(origin = service.origin) {
  const page = await browser.context.newPage();
  await page.goto(`${origin}${PROFILER}`);
  assert.equal(page.url(), `${origin}${PROFILER}/`);
  return page;
}

test("a person starts, sets a mark, stops, opens the report and deletes it", { skip }, async () => {
  await post("stop");
  const page = await open();
  await page.locator("#start:enabled").click();
  // Not a text: those match in any case, and "Not recording" has it too.
  await page.locator("#state-text", { hasText: /^Recording/ }).waitFor();
  await service.perform(3);
  const line = page.locator("#lines tr").first();
  await page.waitForFunction(() => document.querySelector("#lines tr")?.textContent.includes("24.0"));
  assert.match(await line.innerText(), new RegExp(`leak\\.rs:${leakingLine()}\\b`));
  assert.match(await page.title(), /^memory-leak · process \d+ on \S+ · live memory$/);
  await page.locator("#mark").fill("after three <b>calls</b>");
  await page.locator("#mark").press("Enter");
  await page.locator("#done", { hasText: "Marked “after three <b>calls</b>”" }).waitFor();
  await service.perform(1);
  await page.waitForFunction(() => document.querySelector("#lines tr")?.textContent.includes("+8.00"));
  await browser.picture(page, "live-recording");

  await page.locator("#stop").click();
  await page.locator("#state-text", { hasText: "Not recording" }).waitFor();
  const report = page.locator("#reports > li").first();
  // The report of the session before is the latest one until this one's is listed.
  await page.waitForFunction(() => /32\.0\sMB in \d+ blocks/.test(document.querySelector("#reports > li")?.innerText));
  await report.locator(".tag", { hasText: "latest" }).waitFor();
  await browser.picture(page, "live-stopped");

  const opened = browser.context.waitForEvent("page");
  await report.getByRole("link", { name: /^Flame graph/ }).click();
  const graph = await opened;
  await graph.locator("#program", { hasText: "memory-leak" }).waitFor();
  await graph.close();
  const download = page.waitForEvent("download");
  await report.getByRole("link", { name: /^pprof/ }).click();
  assert.match((await download).suggestedFilename(), /\.pb\.gz$/);

  // What was shown last stays, also for those who come later.
  assert.match(await line.innerText(), new RegExp(`leak\\.rs:${leakingLine()}\\b`));
  const later = await open();
  await later.locator("#lines tr", { hasText: `leak.rs:${leakingLine()}` }).waitFor();
  assert.equal(await later.locator("#lines-heading").innerText(), "What held the most at the end");
  await later.close();

  const before = await page.locator("#reports > li").count();
  await report.getByRole("button", { name: /^Delete/ }).click();
  await browser.picture(page, "live-delete");
  await page.locator("#confirm-no").click();
  assert.equal(await page.locator("#reports > li").count(), before);
  await report.getByRole("button", { name: /^Delete/ }).click();
  await page.locator("#confirm-yes").click();
  await page.waitForFunction((number) => document.querySelectorAll("#reports > li").length === number - 1, before);
  assert.deepEqual(browser.troubles, []);
  await page.close();
});

test("a service that records by route shows which routes hold the most", { skip }, async () => {
  const other = await startService({ MEMRAY_PROFILER_BY_ROUTE: "true" });
  await other.perform(2);
  const page = await open(other.origin);
  const first = page.locator("#routes tr").first();
  await page.waitForFunction(() => document.querySelector("#routes tr")?.textContent.includes("16.0"));
  assert.match((await first.innerText()).replaceAll(/\s+/g, " "), /^POST \/api\/v1\/perform 16\.0 MB \d+ 2 8\.00 MB$/);
  await page.setViewportSize({ width: 1280, height: 1400 });
  await browser.picture(page, "live-routes");
  const opened = browser.context.waitForEvent("page");
  await page.getByRole("link", { name: "Flame graph by route" }).click();
  const graph = await opened;
  await graph.locator("#program", { hasText: "memory-leak" }).waitFor();
  await graph.locator("#sites").waitFor();
  await graph.close();
  await page.close();
  await other.stop();
  assert.equal(await (await open()).locator("#routes-section").isVisible(), false);
  assert.deepEqual(browser.troubles, []);
});

/** Opens the flame graph at the leaking line by the link of the first row. */
async function openFirstLine(page) {
  await page.locator("#lines tr", { hasText: `leak.rs:${leakingLine()}` }).waitFor();
  const opened = browser.context.waitForEvent("page");
  await page.locator("#lines tr").first().getByRole("link").click();
  const graph = await opened;
  await graph.locator("#program", { hasText: "memory-leak" }).waitFor();
  return graph;
}

test("the running session's outputs and lines are one click away", { skip }, async () => {
  await post("stop");
  await post("start");
  await service.perform(2);
  const page = await open();
  const graph = await openFirstLine(page);
  await graph.locator("#crumbs [aria-current]", { hasText: "leak_a_million_numbers" }).waitFor();
  await browser.picture(graph, "live-line");
  await graph.close();
  for (const [name, saved] of [["Statistics", null], ["memray file", /\.bin$/], ["pprof", /\.pb\.gz$/]]) {
    const link = page.locator("#so-far").getByRole("link", { name: new RegExp(`^${name}`) });
    if (saved === null) {
      const opened = browser.context.waitForEvent("page");
      await link.click();
      await (await opened).getByText("High-water mark", { exact: false }).first().waitFor();
    } else {
      const download = page.waitForEvent("download");
      await link.click();
      assert.match((await download).suggestedFilename(), saved);
    }
  }
  assert.deepEqual(browser.troubles, []);
  await page.close();
});

test("two reports are compared", { skip }, async () => {
  for (let calls = 1; calls <= 2; calls++) {
    await post("stop");
    await post("start");
    await service.perform(calls);
  }
  await post("stop");
  const page = await open();
  const lists = page.locator("#reports > li select");
  await lists.first().waitFor();
  const opened = browser.context.waitForEvent("page");
  await lists.first().selectOption({ index: 1 });
  const graph = await opened;
  assert.match(graph.url(), /flamegraph\?since=\d+$/);
  await graph.locator("#banners", { hasText: "only what grew is shown" }).waitFor();
  assert.match(await graph.locator("#facts").innerText(), /8\.\d\d\sMB/);
  await browser.picture(graph, "live-growth");
  await browser.picture(page, "live-compare");
  assert.deepEqual(browser.troubles, []);
  await graph.close();
  await page.close();
});

test("the rate is changed while it records", { skip }, async () => {
  await post("stop");
  await post("start?sample=100000");
  const page = await open();
  const list = page.locator("#sample");
  const change = page.locator("#start:enabled", { hasText: "Change" });
  await page.waitForFunction(() => document.querySelector("#sample").value === "100000");
  assert.equal(await page.locator("#start:enabled").count(), 0, "nothing to change yet");
  await list.selectOption("65536");
  await change.click();
  await page.locator("#done", { hasText: "From now on: a sample each 64 KiB." }).waitFor();
  const status = async () => (await fetch(`${service.origin}${PROFILER}/status`)).json();
  assert.equal((await status()).sampling.current_mean_bytes, 65536);
  const since = (await status()).recording_since;
  await list.selectOption("0");
  await page.locator("#done", { hasText: "ends this recording" }).waitFor();
  await change.click();
  await page.locator("#done", { hasText: "From now on: every allocation. The report" }).waitFor();
  assert.notEqual((await status()).recording_since, since);
  assert.equal(await list.inputValue(), "0");
  assert.deepEqual(browser.troubles, []);
  await page.close();
});

for (const { name, width, height } of SIZES) {
  for (const scheme of ["light", "dark"]) {
    test(`the live page is whole and accessible: ${name}, ${scheme}`, { skip }, async () => {
      await post("start");
      await service.perform(2);
      await post("mark?name=deployed");
      await post("stop");
      await post("start");
      await service.perform(1);
      const page = await open();
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: scheme });
      await page.locator("#lines tr").first().waitFor();
      await page.locator("#reports > li").first().waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(wide, 0, "nothing is wider than the window");
      await browser.picture(page, `live-${name}-${scheme}`);
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => window.axe.run());
      const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
      assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(" ")}`), []);
      assert.deepEqual(browser.troubles, []);
      await page.close();
    });
  }
}

test("the live page is used with the keyboard alone", { skip }, async () => {
  await post("stop");
  const page = await open();
  await page.locator("#start:enabled").waitFor();
  const press = async (key, until) => {
    for (let times = 0; times < 40; times++) {
      await page.keyboard.press(key);
      if (await page.evaluate((id) => document.activeElement?.id === id, until)) return;
    }
    assert.fail(`no ${until} after 40 times ${key}`);
  };
  await press("Tab", "start");
  await page.keyboard.press("Enter");
  await page.locator("#state-text", { hasText: /^Recording/ }).waitFor();
  await press("Tab", "curve");
  await page.waitForFunction(() => /resident/.test(document.querySelector("#reading").textContent));
  await page.keyboard.press("ArrowLeft");
  assert.match(await page.locator("#curve").getAttribute("aria-label"), /heap/);
  assert.deepEqual(browser.troubles, []);
  await page.close();
});

test("a live page that nobody sees is quiet, and goes on when it is seen", { skip }, async () => {
  const page = await open();
  await page.locator("#facts dd").first().waitFor();
  const hide = (hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => value });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await hide(true);
  let asked = 0;
  page.on("request", (request) => (asked += Number(request.url().endsWith("/live"))));
  await page.waitForTimeout(2500);
  assert.equal(asked, 0);
  const again = page.waitForRequest((request) => request.url().endsWith("/live"));
  await hide(false);
  await again;
  await page.close();
});

test("behind a proxy that strips a prefix, and below the job's prefix, the live page works", { skip }, async () => {
  const proxy = await startProxy("/gateway/team-7", service.port);
  for (const origin of [`${proxy.origin}/gateway/team-7`, `${service.origin}/pub/job/memory-leak/1`]) {
    const page = await open(origin);
    await page.locator("#facts dd").first().waitFor();
    await page.getByRole("link", { name: "API" }).click();
    await page.locator(".swagger-ui .info .title").waitFor();
    assert.equal(page.url(), `${origin}/docs/`);
    const back = page.getByRole("link", { name: "The live page" }).first();
    assert.equal(new URL(await back.getAttribute("href"), page.url()).href, `${origin}${PROFILER}/`);
    await page.close();
  }
  assert.deepEqual(browser.troubles, []);
  await proxy.stop();
});

test("with a token the live page asks for it, and its links work", { skip }, async () => {
  const guarded = await startService({ MEMRAY_PROFILER_TOKEN: "s3cret" });
  try {
    const page = await open(guarded.origin);
    await page.locator("#token").fill("wrong");
    await page.locator("#token").press("Enter");
    await page.locator("#access-note", { hasText: "not the token" }).waitFor();
    await browser.picture(page, "live-token");
    await page.locator("#token").fill("s3cret");
    await page.locator("#token").press("Enter");
    await guarded.perform(1);
    const running = await openFirstLine(page);
    assert.ok(!running.url().includes("s3cret"));
    await running.locator("#crumbs [aria-current]", { hasText: "leak_a_million_numbers" }).waitFor();
    await running.close();
    await page.locator("#stop:enabled").click();
    const report = page.locator("#reports > li").first();
    await report.waitFor();
    const opened = browser.context.waitForEvent("page");
    await report.getByRole("link", { name: /^Flame graph/ }).click();
    const graph = await opened;
    await graph.locator("#program", { hasText: "memory-leak" }).waitFor();
    assert.ok(!graph.url().includes("s3cret"));
    const download = page.waitForEvent("download");
    await report.getByRole("link", { name: /^memray file/ }).click();
    assert.match((await download).suggestedFilename(), /\.bin$/);
    const other = browser.troubles.filter((trouble) => !trouble.includes("401"));
    assert.deepEqual(other, []);
    await page.close();
    await graph.close();
  } finally {
    await guarded.stop();
  }
});

test("with a session in the background, a person looks at it, starts an exact one and comes back", { skip }, async () => {
  const TOKEN = "only-for-this-test";
  const watched = await startService({ MEMRAY_PROFILER_CONTINUOUS: "true", MEMRAY_PROFILER_TOKEN: TOKEN });
  try {
    await watched.perform(3);
    const page = await open(watched.origin);
    await page.locator("#token").fill(TOKEN);
    await page.locator("#token").press("Enter");
    await page.locator("#state-text", { hasText: /^Recording in the background for/ }).waitFor();
    const graph = await openFirstLine(page);
    assert.match(graph.url(), /[?&]session=running/);
    await graph.locator("#crumbs [aria-current]", { hasText: "leak_a_million_numbers" }).waitFor();
    await graph.close();
    await browser.picture(page, "live-background");
    await page.locator("#start:enabled").click();
    await page.locator("#state-text", { hasText: /^Recording for/ }).waitFor();
    await watched.perform(1);
    await page.locator("#stop:enabled").click();
    await page.locator("#done", { hasText: "The report is written" }).waitFor();
    await page.locator("#state-text", { hasText: /^Recording in the background for/ }).waitFor();
    await page.locator("#stop:disabled").waitFor();
    const opened = browser.context.waitForEvent("page");
    await page.locator("#so-far").getByRole("link", { name: /^Statistics/ }).click();
    await (await opened).getByText("estimates", { exact: false }).first().waitFor();
    // Before the token was given.
    const other = browser.troubles.filter((trouble) => !trouble.includes("401"));
    assert.deepEqual(other, []);
    await page.close();
  } finally {
    await watched.stop();
  }
});
