// Drives pages in headless Chromium and compares what they show with the reports they were made from.
//
//   node tests/browser.mjs OUT      writes pages and screenshots into the directory OUT
//
// Needs cargo, `npm install` in the folder above, and a Chromium (CHROMIUM, default /usr/bin/chromium).

import { browser, checks, out } from "./browser/harness.mjs";

await import("./browser/graph.mjs");
await import("./browser/panes.mjs");
await import("./browser/looks.mjs");
await import("./browser/parallel.mjs");
await import("./browser/speed.mjs");

await browser.close();
console.log(`${checks} checks passed; screenshots in ${out}`);
