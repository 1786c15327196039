// Reads the report in the page and shows it, or says why it cannot.

import { decode } from "./data.js";
import { Stream } from "./stream.js";
import { System } from "./system.js";
import { allocations, functions, taskNames, workers } from "./tables.js";
import { summarize } from "./summary.js";
import { byId, forgetTheme } from "../../js/dom.js";

try {
  document.documentElement.dataset.theme = localStorage.getItem("heapray-theme") ?? "";
} catch {
  // Pages from disk may have no storage. Then the system's theme is used.
}
try {
  const lies = byId("data", HTMLScriptElement);
  const run = await decode(lies.textContent ?? "");
  lies.remove();
  summarize(run);
  const stream = new Stream(run, {
    canvas: byId("stream", HTMLCanvasElement),
    overview: byId("overview", HTMLCanvasElement),
    reading: byId("stream-reading", HTMLElement),
    tooltip: byId("tooltip", HTMLElement),
    names: byId("names", HTMLElement),
  });
  const system = new System(run, byId("cpu", HTMLCanvasElement), byId("memory", HTMLCanvasElement), byId("system-reading", HTMLElement));
  byId("zoom-in", HTMLElement).addEventListener("click", () => stream.zoom(0.5));
  byId("zoom-out", HTMLElement).addEventListener("click", () => stream.zoom(2));
  byId("zoom-all", HTMLElement).addEventListener("click", () => stream.show(0, run.ms));
  workers(run, byId("workers", HTMLElement));
  taskNames(run, byId("task-table", HTMLElement));
  allocations(run, byId("allocations", HTMLElement));
  const search = byId("function-search", HTMLInputElement);
  const list = () => functions(run, byId("functions", HTMLElement), search.value);
  search.addEventListener("input", list);
  list();
  const repaint = () => {
    forgetTheme();
    stream.paint();
    system.paint();
  };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", repaint);
  byId("theme", HTMLElement).addEventListener("click", () => {
    const { dataset } = document.documentElement;
    const isDark = dataset.theme === "dark" || (dataset.theme !== "light" && dark.matches);
    dataset.theme = isDark ? "light" : "dark";
    try {
      localStorage.setItem("heapray-theme", dataset.theme);
    } catch {
      // The choice then lasts as long as the page.
    }
    repaint();
  });
  document.documentElement.dataset.ready = "true";
} catch (failure) {
  const text = failure instanceof Error ? failure.message : String(failure);
  byId("failure", HTMLElement).textContent = `This page cannot show its report: ${text}`;
  throw failure;
}
