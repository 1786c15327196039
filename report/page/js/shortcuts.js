// Keys that work anywhere on the page, and the switch between light and dark.

import { byId } from "./dom.js";

/** @param {import("./page.js").Page} page */
export function listenToKeys(page) {
  addEventListener("keydown", (event) => {
    const { target } = event;
    const field = target instanceof HTMLInputElement && target.type !== "radio" && target.type !== "checkbox";
    const typing = field || target instanceof HTMLSelectElement;
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null) {
      return;
    }
    /** @type {Record<string, () => void>} */
    const deeds = {
      "/": () => byId("search", HTMLInputElement).focus(),
      "?": () => byId("help", HTMLDialogElement).showModal(),
      n: () => page.nextMatch(1),
      N: () => page.nextMatch(-1),
      o: () => page.openSource(),
    };
    page.model.tabs.forEach((tab, i) => {
      deeds[String(i + 1)] = () => page.change({ tab }, true);
    });
    if (event.key in deeds) {
      event.preventDefault();
      deeds[event.key]();
    }
  });
}

/** @param {import("./page.js").Page} page */
export function switchThemes(page) {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => page.retheme());
  byId("theme", HTMLButtonElement).addEventListener("click", () => {
    const isDark = root.dataset.theme === "dark" || (root.dataset.theme !== "light" && dark.matches);
    root.dataset.theme = isDark ? "light" : "dark";
    try {
      localStorage.setItem("heapray-theme", root.dataset.theme);
    } catch {
      // Pages from disk may have no storage.
    }
    page.retheme();
  });
}

/** The theme before it was that of paper. */
let themeOfScreen = "";

/**
 * Changes to the light theme, because paper is white, or back.
 * @param {import("./page.js").Page} page
 * @param {boolean} on
 */
export function themeForPaper(page, on) {
  const { dataset } = document.documentElement;
  if (on) {
    themeOfScreen = dataset.theme ?? "";
  }
  dataset.theme = on ? "light" : themeOfScreen;
  page.retheme();
}
