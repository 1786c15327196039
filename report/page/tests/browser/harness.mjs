// What every scene in Chromium needs: the sample pages, a fresh tab that fails on any message, and words for what is
// on the page.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const out = resolve(process.argv[2] ?? mkdtempSync(join(tmpdir(), "heapray-page-")));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const repository = fileURLToPath(new URL("../../../..", import.meta.url));

if (!existsSync(executablePath)) {
  console.log(`skipped: there is no Chromium at ${executablePath}`);
  process.exit(process.env.CI ? 1 : 0);
}
const { chromium } = await import("playwright-core");
mkdirSync(out, { recursive: true });

/** Makes a page and reads what it must show. */
export function samplePage(name, nodes, ...more) {
  const file = join(out, `${name}.html`);
  const args = ["run", "--quiet", "--package", "heapray-report", "--example", "sample_page", "--", file];
  execFileSync("cargo", [...args, String(nodes), ...more], { cwd: repository, stdio: "inherit" });
  return { file, expected: JSON.parse(readFileSync(`${file}.json`, "utf8")) };
}

const profileDir = mkdtempSync(join(tmpdir(), "heapray-chromium-"));
const flags =
  "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
export const browser = await chromium.launchPersistentContext(profileDir, {
  executablePath,
  args: flags.split(" "),
  reducedMotion: "reduce",
  colorScheme: "light",
  permissions: [],
});

process.on("exit", () => rmSync(profileDir, { recursive: true, force: true }));

export let checks = 0;
/** Runs `check` on a fresh tab and fails if the page logged, asked the network, or opened a dialog. */
export async function scene(title, { file, width = 1440, height = 900, theme = "light", hash = "" }, check) {
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

export const text = (page, selector) => page.locator(selector).innerText();
/** All that match, as plain text, read at once: `allInnerTexts` finds first and reads then, and a pane may be made anew in between. */
export const texts = async (page, selector) =>
  (await page.evaluate((all) => Array.from(document.querySelectorAll(all), (one) => one.innerText), selector)).map(plain);
export const plain = (value) => value.replaceAll("\u00a0", " ").replaceAll(/\s+/g, " ").trim();

/** The numbers of the status line by name: `{Bytes: "24.0 MB", …}`. */
export async function status(page) {
  const pairs = await texts(page, "#status dl > div");
  return Object.fromEntries(pairs.map((pair) => /^(\D+?)\s+(.*)$/s.exec(pair)?.slice(1) ?? [pair, ""]));
}

export const press = (page, ...keys) => keys.reduce((done, key) => done.then(() => page.keyboard.press(key)), Promise.resolve());
export const radio = (page, value) => page.locator(`#controls input[value=${value}]`).check({ force: true });
export const hash = (page) => page.evaluate(() => location.hash);
export const shot = (page, name) => page.screenshot({ path: join(out, `${name}.png`) });

/** Sizes as the page writes them, computed here on its own. */
export function bytes(value) {
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
export const count = (value) => value.toLocaleString("en-US");

export const small = samplePage("small", 0);
export const middle = samplePage("nodes-20k", 20_000);
export const aggregated = samplePage("aggregated", 0, "aggregated");
export const sampled = samplePage("sampled", 0, "sampled");
/** One whose call sites belong to routes and tenants. */
export const routes = samplePage("routes", 2_000, "contexts");
/** One of a session in which nothing leaks, and one that does not tell what its call sites held meanwhile. */
export const still = samplePage("still", 0, "still");
export const untold = samplePage("untold", 0, "untold");
