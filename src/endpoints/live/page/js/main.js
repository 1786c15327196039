// Listens to the service as long as the page is visible, and shows its events.

import { byId, forgetTheme } from "../../../../../report/page/js/dom.js";
import { askForToken } from "./access.js";
import { Failure, listen } from "./connection.js";
import { setState, setUpControls } from "./controls.js";
import { addRow, drawCurve, setCurve, setUpCurve } from "./curve.js";
import { showFacts, showGone } from "./facts.js";
import { showLeaks } from "./leaks.js";
import { showLines } from "./lines.js";
import { showReports } from "./reports.js";
import { showRoutes } from "./routes.js";

/** @type {import("./facts.js").Status | undefined} the latest */
let status;
/** @type {import("./lines.js").Top | null} the latest */
let top = null;
/** @type {import("./leaks.js").Leak[]} the latest */
let leaks = [];
/** @type {import("./routes.js").Route[]} the latest */
let routes = [];

/**
 * @param {string} event
 * @param {any} data
 */
function heard(event, data) {
  switch (event) {
    case "status":
      status = data;
      showFacts(data);
      setState(data);
      break;
    case "curve":
      setCurve(data);
      break;
    case "now":
      addRow(data);
      break;
    case "top":
      top = data;
      break;
    case "leaks":
      leaks = data;
      break;
    case "routes":
      routes = data;
      break;
    case "reports":
      showReports(data);
      break;
    default:
  }
  if (status !== undefined && (event === "status" || event === "top")) {
    showLines(top, status);
  }
  if (status !== undefined && (event === "status" || event === "leaks")) {
    showLeaks(leaks, top !== null, status);
  }
  if (status !== undefined && (event === "status" || event === "routes")) {
    showRoutes(routes, status);
  }
}

/** @param {number} ms */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Resolves when the page is visible. */
function seen() {
  return new Promise((resolve) => {
    const look = () => {
      if (!document.hidden) {
        document.removeEventListener("visibilitychange", look);
        resolve(undefined);
      }
    };
    document.addEventListener("visibilitychange", look);
    look();
  });
}

/** Runs forever: each answer lasts some seconds. */
async function watch() {
  let failed = 0;
  for (;;) {
    await seen();
    const end = new AbortController();
    const hide = () => document.hidden && end.abort();
    document.addEventListener("visibilitychange", hide);
    try {
      await listen(end.signal, heard);
      failed = 0;
    } catch (failure) {
      if (failure instanceof Failure && failure.status === 401) {
        await askForToken();
        continue;
      }
      if (!end.signal.aborted) {
        failed += 1;
        const text = failure instanceof Failure && failure.status !== 0 ? failure.message : "The service does not answer; trying again…";
        showGone(text);
        setState(null);
        await pause(Math.min(15_000, 500 * 2 ** Math.min(failed, 5)));
      }
    } finally {
      document.removeEventListener("visibilitychange", hide);
    }
  }
}

function setUpTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const redraw = () => {
    forgetTheme();
    drawCurve();
  };
  dark.addEventListener("change", redraw);
  byId("theme", HTMLButtonElement).addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = (root.dataset["theme"] ?? (dark.matches ? "dark" : "light")) === "dark";
    root.dataset["theme"] = isDark ? "light" : "dark";
    redraw();
  });
}

setUpTheme();
setUpCurve();
setUpControls();
void watch();
