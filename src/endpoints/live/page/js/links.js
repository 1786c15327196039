// Links to the outputs of a session, which work where a token is needed too.

import { el } from "../../../../../report/page/js/dom.js";
import { Failure, linkable, token } from "./connection.js";
import { showTrouble } from "./facts.js";

/** @type {ReadonlyArray<readonly [string, string, boolean]>} name, path below the session's, whether it is saved */
const VIEWS = [
  ["Flame graph", "flamegraph", false],
  ["Statistics", "stats", false],
  ["memray file", "report", true],
  ["pprof", "pprof", true],
];

/**
 * @param {string} base path of the session: empty for the running one
 * @param {string} whose what screen readers say the outputs are of
 * @param {string} [query] with `?`
 * @returns {HTMLElement[]} a link to each output
 */
export function outputs(base, whose, query = "") {
  return VIEWS.map(([name, path, saved]) => {
    const anchor = link(base + path + query, "", saved);
    anchor.className = "button";
    anchor.append(name);
    anchor.setAttribute("aria-label", `${name} of ${whose}`);
    return anchor;
  });
}

/**
 * @param {string} path of an output, which may have a query
 * @param {string} hash what to show of it: empty, or with `#`
 * @param {boolean} saved as a file; otherwise shown in a new tab
 * @returns {HTMLAnchorElement} without text
 */
export function link(path, hash, saved) {
  const anchor = el("a", "");
  anchor.href = path + hash;
  anchor.dataset["key"] = path + hash;
  if (saved) {
    anchor.setAttribute("download", "");
  } else {
    anchor.target = "_blank";
    anchor.rel = "noopener";
  }
  anchor.addEventListener("click", (event) => {
    if (token() !== "") {
      event.preventDefault();
      void follow(path, hash, saved);
    }
  });
  return anchor;
}

/**
 * Opens an output in a new tab.
 * @param {string} path
 * @param {string} query of the output, without `?`
 */
export function openTab(path, query) {
  if (token() === "") {
    window.open(`${path}?${query}`, "_blank", "noopener");
  } else {
    void follow(path, "", false, query);
  }
}

/**
 * Opens a path that needs a token: a browser sends no token with a link, so a ticket is put into the address.
 * @param {string} path
 * @param {string} hash
 * @param {boolean} saved
 * @param {string} [query] of the output, without `?`
 */
async function follow(path, hash, saved, query) {
  // Opened while the click is being handled; otherwise the browser would block it as an advertisement.
  const tab = saved ? null : window.open("", "_blank");
  try {
    const [plain = "", own] = path.split("?");
    const queries = [own, query].filter((one) => one !== undefined).map((one) => `&${one}`);
    const ticketed = (await linkable(plain)) + queries.join("") + hash;
    if (tab !== null) {
      tab.opener = null;
      tab.location.replace(new URL(ticketed, document.baseURI).href);
    } else {
      const anchor = el("a", "hidden");
      anchor.href = ticketed;
      anchor.setAttribute("download", "");
      document.body.append(anchor);
      anchor.click();
      anchor.remove();
    }
  } catch (failure) {
    tab?.close();
    showTrouble(failure instanceof Failure ? failure.message : String(failure));
  }
}

/**
 * Fills a list that changes without the user: what has the focus keeps it.
 * @param {HTMLElement} list
 * @param {HTMLElement[]} items
 */
export function refill(list, items) {
  const { activeElement } = document;
  const focused = activeElement instanceof HTMLElement && list.contains(activeElement) ? activeElement.dataset["key"] : undefined;
  list.replaceChildren(...items);
  const again = [...list.querySelectorAll("[data-key]")].find((element) => element instanceof HTMLElement && element.dataset["key"] === focused);
  if (again instanceof HTMLElement) {
    again.focus();
  }
}
