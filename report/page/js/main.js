// Reads the report in the page and shows it, or says why it cannot.

import { decode } from "./decode.js";
import { byId } from "./dom.js";
import { lineOfHash } from "./line_link.js";
import { Page } from "./page.js";
import { listenToKeys, switchThemes } from "./shortcuts.js";

try {
  document.documentElement.dataset.theme = localStorage.getItem("heapray-theme") ?? "";
} catch {
  // Pages from disk may have no storage. Then the system's theme is used.
}
try {
  const data = byId("data", HTMLScriptElement);
  const profile = await decode(data.textContent ?? "");
  // The text is the largest string of the page and is not needed any more.
  data.remove();
  performance.mark("decoded");
  const { opens } = document.documentElement.dataset;
  if (opens && location.hash === "") {
    history.replaceState(null, "", `#${opens}`);
  }
  const line = lineOfHash(location.hash);
  const page = new Page(profile);
  if (line !== null) {
    page.openLine(line);
  }
  listenToKeys(page);
  switchThemes(page);
  performance.mark("shown");
  document.documentElement.dataset.ready = "true";
} catch (failure) {
  const text = failure instanceof Error ? failure.message : String(failure);
  byId("failure", HTMLElement).textContent = `This page cannot show its report: ${text}`;
  throw failure;
}
