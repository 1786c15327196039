// Swagger UI of the running sample: at the root, below the job prefix, and behind a proxy that strips a prefix.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browserIsMissing, openBrowser } from "./browser.js";
import { PROFILER, startProxy, startService } from "./service.js";

const skip = browserIsMissing();
const STRIPPED = "/gateway/team-7";
let service, proxy, browser;

before(async () => {
  if (skip) return;
  service = await startService({ JOB_NAME: "memory-leak", JOB_VERSION: "0.1.0" });
  proxy = await startProxy(STRIPPED, service.port);
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await proxy?.stop();
  await service?.stop();
});

const places = [
  { name: "the home page", open: () => `${service.origin}/`, base: () => service.origin },
  { name: "docs at the root", open: () => `${service.origin}/docs`, base: () => service.origin },
  {
    name: "the job's home page",
    open: () => `${service.origin}/pub/job/memory-leak/0.1.0`,
    base: () => `${service.origin}/pub/job/memory-leak/0.1.0`,
  },
  {
    name: "docs below a prefix of another version",
    open: () => `${service.origin}/pub/job/other/latest/docs/`,
    base: () => `${service.origin}/pub/job/other/latest`,
  },
  {
    name: "docs behind a proxy that strips its prefix",
    open: () => `${proxy.origin}${STRIPPED}/docs`,
    base: () => `${proxy.origin}${STRIPPED}`,
  },
];

test("links of Swagger UI can be read on a dark ground", { skip }, async () => {
  const page = await browser.context.newPage();
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(`${service.origin}/docs/`);
  const link = page.getByRole("link", { name: "The live page" }).first();
  await link.waitFor();
  assert.equal(await link.evaluate((element) => getComputedStyle(element).color), "rgb(138, 180, 240)");
  await page.close();
});

for (const { name, open, base } of places) {
  test(`Swagger UI: start, stop and status are executed from ${name}`, { skip }, async () => {
    browser.troubles.length = 0;
    const page = await browser.context.newPage();
    await page.goto(open());
    await page.locator(".swagger-ui .info .title").waitFor();
    assert.equal(await page.title(), "Job - memory-leak");

    for (const [method, operation, state] of [
      ["post", "start", "recording"],
      ["post", "stop", "stopped"],
      ["get", "status", "stopped"],
    ]) {
      const block = page.locator(`.opblock-${method}`, {
        has: page.locator(`[data-path="${PROFILER}/${operation}"]`),
      });
      await block.locator(".opblock-summary-control").first().click();
      await block.getByRole("button", { name: "Try it out" }).click();
      const answered = page.waitForResponse((response) => response.url().includes(`${PROFILER}/${operation}`));
      await block.getByRole("button", { name: "Execute" }).click();
      const response = await answered;
      assert.equal(response.url(), `${base()}${PROFILER}/${operation}`);
      assert.equal(response.status(), 200);
      assert.equal((await response.json()).state, state);
      await block.locator(".live-responses-table .response-col_status", { hasText: "200" }).waitFor();
    }
    await browser.picture(page, `swagger ${name}`.replaceAll(/\W+/g, "-"));
    assert.deepEqual(browser.troubles, []);
    await page.close();
  });
}

test("Swagger UI describes every profiler route with its true kind of answer", { skip }, async () => {
  const document = await (await fetch(`${service.origin}/openapi.json`)).json();
  const kinds = Object.fromEntries(
    Object.entries(document.paths)
      .filter(([path]) => path.startsWith(PROFILER))
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => [
          `${method} ${path.slice(PROFILER.length + 1)}`,
          Object.keys(operation.responses["200"]?.content ?? { nothing: "" })[0],
        ]),
      ),
  );
  assert.deepEqual(kinds, {
    "post start": "application/json",
    "post stop": "application/json",
    "get status": "application/json",
    "post mark": "application/json",
    "get report": "application/octet-stream",
    "get flamegraph": "text/html; charset=utf-8",
    "get flamegraph.svg": "image/svg+xml",
    "get stats": "application/json",
    "get table": "text/plain; charset=utf-8",
    "get timeline": "application/json",
    "get tree": "text/plain; charset=utf-8",
    "get summary": "text/plain; charset=utf-8",
    "get pprof": "application/octet-stream",
    "get reports": "application/json",
    "get reports/{id}": "application/json",
    "delete reports/{id}": "nothing",
    "get reports/{id}/report": "application/octet-stream",
    "get reports/{id}/flamegraph": "text/html; charset=utf-8",
    "get reports/{id}/flamegraph.svg": "image/svg+xml",
    "get reports/{id}/stats": "application/json",
    "get reports/{id}/table": "text/plain; charset=utf-8",
    "get reports/{id}/tree": "text/plain; charset=utf-8",
    "get reports/{id}/summary": "text/plain; charset=utf-8",
    "get reports/{id}/pprof": "application/octet-stream",
    "get live": "text/event-stream",
    "post ticket": "application/json",
  });
});
