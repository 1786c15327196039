// Headless Chromium with the network cut off: a page may talk to 127.0.0.1 and to nobody else.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { PICTURES } from "./service.js";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

function findChromium() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of NAMES) {
    try {
      return execFileSync("which", [name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    } catch {
      // not this one
    }
  }
  return undefined;
}

const EXECUTABLE = findChromium();

/** Why there is no browser, if there is none. In CI there must be one. */
export function browserIsMissing() {
  if (EXECUTABLE) return false;
  const reason = "no Chromium found; set CHROMIUM to the path of one";
  if (process.env.CI) throw new Error(reason);
  console.log(`skipped: ${reason}`);
  return reason;
}

/** Opens a browser with a fresh profile. `troubles` fills with console errors, failed pages and forbidden requests. */
export async function openBrowser() {
  const profile = mkdtempSync(join(tmpdir(), "heapray-chromium-"));
  mkdirSync(PICTURES, { recursive: true });
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: EXECUTABLE,
    headless: true,
    viewport: { width: 1280, height: 860 },
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  const troubles = [];
  await context.route("**/*", (route) => {
    const url = new URL(route.request().url());
    if (url.hostname === "127.0.0.1" || ["data:", "blob:"].includes(url.protocol)) return route.continue();
    troubles.push(`asked for ${url.href}`);
    return route.abort();
  });
  context.on("weberror", (error) => troubles.push(`uncaught: ${error.error()}`));
  context.on("console", (message) => {
    if (message.type() === "error") troubles.push(`console: ${message.text()} (${message.location().url})`);
  });
  context.on("response", (response) => {
    if (response.status() >= 400) troubles.push(`${response.status()} for ${response.url()}`);
  });
  return {
    context,
    troubles,
    picture: (page, name) => page.screenshot({ path: join(PICTURES, `${name}.png`) }),
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
