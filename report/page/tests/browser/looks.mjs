// Every tab in three sizes and both themes: nothing is wider than the window, axe-core finds nothing serious, and a
// picture is kept to be looked at.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { middle, out, routes, scene } from "./harness.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TABS = ["graph", "table", "tree", "sandwich", "growth", "memory", "advice", "stats"];

/** What axe finds serious, in words. */
async function serious(page) {
  // Not a script element: the page's policy lets none in.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary?.slice(0, 300)}`).join(" | ")}`);
}

/** Looks at the tabs of the page that is open. */
async function looked(page, tabs, name, theme) {
  const found = [];
  for (const tab of tabs) {
    await page.locator(`#tab-${tab}`).click();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    found.push(...(wide > 0 ? [`${tab}: ${wide} px too wide`] : []));
    found.push(...(name === "4k" ? [] : (await serious(page)).map((fault) => `${tab}: ${fault}`)));
    await page.screenshot({ path: join(out, `${name}-${theme}-${tab}.png`), fullPage: name === "phone" });
  }
  assert.deepEqual(found, []);
}

for (const [name, width, height] of [
  ["phone", 360, 740],
  ["desk", 1440, 900],
  ["4k", 3840, 2160],
]) {
  for (const theme of ["light", "dark"]) {
    await scene(`every tab fits ${width} px and is accessible (${theme})`, { ...middle, width, height, theme }, async (page) => {
      await looked(page, TABS, name, theme);
    });
    await scene(`memory by route fits ${width} px and is accessible (${theme})`, { ...routes, width, height, theme }, async (page) => {
      await looked(page, ["contexts"], name, theme);
    });
  }
}

await scene("a range, a search and open filters are accessible as well", { ...middle, hash: "#view=range&range=30000-95000&search=sqlx&thread=1" }, async (page) => {
  assert.deepEqual(await serious(page), []);
  await page.locator("#open-help").click();
  assert.deepEqual(await serious(page), []);
});

await scene("paper shows the graph in light colours and no controls", { ...middle, theme: "dark" }, async (page) => {
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  assert.equal(await page.locator("#controls").isVisible(), false);
  assert.equal(await page.locator("#graph").isVisible(), true);
  const shade = await page.evaluate(() => {
    dispatchEvent(new Event("beforeprint"));
    const canvas = document.querySelector("#graph");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    dispatchEvent(new Event("afterprint"));
    let [sum, painted] = [0, 0];
    for (let at = 0; at < data.length; at += 4) {
      sum += data[at + 3] > 0 ? data[at + 1] : 0;
      painted += data[at + 3] > 0;
    }
    return sum / painted;
  });
  assert.ok(shade > 128, `the boxes have a shade of ${shade} of 255`);
});
