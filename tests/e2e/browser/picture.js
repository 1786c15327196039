// Makes the README's picture: node picture.js docs/flamegraph.png

import { setTimeout as pause } from "node:timers/promises";
import { openBrowser } from "./browser.js";
import { PROFILER, startService } from "./service.js";

const [target] = process.argv.slice(2);
const service = await startService();
const browser = await openBrowser();
try {
  // A capture that a person might have made: some requests, a leak now and then.
  for (let call = 0; call < 3; call++) {
    for (let look = 0; look < 40; look++) await fetch(`${service.origin}/health`);
    await service.perform(1);
    await pause(700);
  }
  await fetch(`${service.origin}${PROFILER}/stop`, { method: "POST" });
  const page = await browser.context.newPage();
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${service.origin}${PROFILER}/flamegraph`);
  await page.locator("#sites tr").first().waitFor();
  await page.screenshot({ path: target });
} finally {
  await browser.close();
  await service.stop();
}
