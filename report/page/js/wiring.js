// Connects the search field, the buttons and the browser's back and forward to the page.

import { byId, sharpen } from "./dom.js";
import { savePng, saveSvg } from "./pictures.js";
import { themeForPaper } from "./shortcuts.js";
import { parseHash } from "./state.js";

/** @param {import("./page.js").Page} page */
export function wire(page) {
  const search = byId("search", HTMLInputElement);
  search.addEventListener("input", () => {
    page.match = -1;
    page.change({ search: search.value }, false);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      page.nextMatch(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      page.change({ search: "" }, false);
      byId("scroller", HTMLElement).focus();
    }
  });
  const click = (/** @type {string} */ id, /** @type {() => void} */ deed) =>
    byId(id, HTMLButtonElement).addEventListener("click", deed);
  click("copy", () => {
    const node = page.state.tab === "tree" ? page.outline.at : page.graph.selected;
    page.copyStack(page.look.ordered, node, page.state.order === "leaf");
  });
  click("to-sandwich", () => page.openSandwich());
  click("reset", () => page.zoom(0));
  click("save-svg", () => saveSvg(page));
  click("save-png", () => savePng(page));
  const restore = () => {
    page.state = page.model.possible(parseHash(location.hash));
    page.render();
  };
  addEventListener("popstate", restore);
  addEventListener("hashchange", restore);
  const print = (/** @type {boolean} */ on) => {
    themeForPaper(page, on);
    // Canvases do not change with the paper, so they are painted for its width before.
    document.body.classList.toggle("printing", on);
    sharpen(on ? 3 : 1);
    page.timeline.paint();
    page.graph.printing(on);
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
}
