// The kept reports, with links to all their outputs.

import { byId, el } from "../../../../../report/page/js/dom.js";
import { bytes, clock, duration, plural } from "../../../../../report/page/js/format.js";
import { Failure, call, linkable, token } from "./connection.js";
import { showTrouble } from "./facts.js";
import { named, tail } from "./lines.js";

/**
 * @typedef {{ count: number, bytes: number }} Sum
 * @typedef {object} Kept
 * @property {string} id
 * @property {number} session
 * @property {number} pid
 * @property {string} started
 * @property {string} ended
 * @property {boolean} present
 * @property {number} report_bytes
 * @property {Sum} live
 * @property {Sum} high_water
 * @property {number} lost_events
 * @property {{ kind: string, reason: string } | null} trigger
 * @property {{ function: string, file: string, line: number, live: Sum } | null} largest
 * @property {{ function: string, file: string, line: number, live: Sum, growth_bytes_per_hour: number,
 *   confidence: string } | null} leak
 */

/** @type {ReadonlyArray<readonly [string, string, boolean]>} name, path below the report, whether it is saved */
const VIEWS = [
  ["Flame graph", "flamegraph", false],
  ["Statistics", "stats", false],
  ["memray file", "report", true],
  ["pprof", "pprof", true],
];

/** @type {Readonly<Record<string, string>>} */
const KINDS = {
  allocation_failed: "allocation failed",
  control_group: "container’s limit",
  host: "machine’s memory",
  address_space: "address space",
  size: "size",
  step: "step",
  slope: "growth",
  signal: "signal",
  killed: "killed while recording",
  unwritten: "written later",
  overhead: "profiler’s memory",
};

/** @param {Kept[]} kept */
export function showReports(kept) {
  const lead = byId("reports-lead", HTMLElement);
  lead.textContent =
    kept.length === 0
      ? "None yet: a report is written when a recording is stopped."
      : "Of the last few recordings, and of moments when memory ran short, the latest first. Older ones make room by themselves.";
  const list = byId("reports", HTMLElement);
  // The focused element keeps the focus: the list changes without the user.
  const focused = document.activeElement?.getAttribute("data-key");
  list.replaceChildren(...kept.map(entry));
  if (focused !== null && focused !== undefined) {
    for (const element of list.querySelectorAll("[data-key]")) {
      if (element instanceof HTMLElement && element.dataset["key"] === focused) {
        element.focus();
      }
    }
  }
}

/** @param {Kept} kept */
function entry(kept) {
  const began = Date.parse(kept.started);
  // A report that the flight recorder wrote shows its own moment.
  const title = el("h3", "", clock(kept.trigger === null ? began : Date.parse(kept.ended)));
  if (kept.present) {
    title.append(el("span", "tag", "latest"));
  }
  if (kept.trigger !== null) {
    title.append(el("span", "tag", KINDS[kept.trigger.kind] ?? kept.trigger.kind));
  }
  const sums = `${duration(Date.parse(kept.ended) - began)} · ${bytes(kept.high_water.bytes)} at the high-water mark · ${bytes(kept.live.bytes)} not freed · file of ${bytes(kept.report_bytes)}`;
  const what = el("div", "", title, el("p", "what", sums), el("p", "what", largest(kept)));
  if (kept.leak !== null) {
    what.append(el("p", "what", probable(kept.leak)));
  }
  if (kept.trigger !== null) {
    what.append(el("p", "what", `Written because ${kept.trigger.reason}.`));
  }
  const links = el("div", "links", ...VIEWS.map((view) => link(kept, view)), remover(kept));
  return el("li", "", what, links);
}

/** @param {NonNullable<Kept["leak"]>} leak */
function probable(leak) {
  const growth = `${bytes(leak.live.bytes)} (${leak.confidence} confidence)`;
  return el("span", "", "Probably leaks: ", named(leak.function), ` ${tail(leak.file)}:${leak.line}, ${growth}`);
}

/** @param {Kept} kept */
function largest(kept) {
  if (kept.largest === null) {
    return "Everything was freed.";
  }
  const { function: name, file, line, live } = kept.largest;
  return el("span", "", `Most not freed: ${bytes(live.bytes)} in ${plural(live.count, "block")}, `, named(name), ` ${tail(file)}:${line}`);
}

/**
 * @param {Kept} kept
 * @param {readonly [string, string, boolean]} view
 */
function link(kept, [name, path, saved]) {
  const address = `reports/${kept.id}/${path}`;
  const anchor = el("a", "button", name);
  anchor.href = address;
  anchor.dataset["key"] = address;
  anchor.setAttribute("aria-label", `${name} of ${clock(Date.parse(kept.started))}`);
  if (saved) {
    anchor.setAttribute("download", "");
  } else {
    anchor.target = "_blank";
    anchor.rel = "noopener";
  }
  anchor.addEventListener("click", (event) => {
    if (token() !== "") {
      event.preventDefault();
      void follow(address, saved);
    }
  });
  return anchor;
}

/**
 * Opens a path that needs a token: a browser sends no token with a link, so a ticket is put into the address.
 * @param {string} address
 * @param {boolean} saved
 */
async function follow(address, saved) {
  // Opened while the click is being handled; otherwise the browser would block it as an advertisement.
  const tab = saved ? null : window.open("", "_blank");
  try {
    const ticketed = await linkable(address);
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

/** @param {Kept} kept */
function remover(kept) {
  const button = el("button", "grave", "Delete");
  button.type = "button";
  button.dataset["key"] = `delete ${kept.id}`;
  const when = clock(Date.parse(kept.started));
  button.setAttribute("aria-label", `Delete the report of ${when}`);
  button.addEventListener("click", async () => {
    const dialog = byId("confirm", HTMLDialogElement);
    byId("confirm-text", HTMLElement).textContent = `Delete the report of ${when} (${bytes(kept.report_bytes)})? It cannot be made again.`;
    dialog.returnValue = "no";
    dialog.showModal();
    await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
    if (dialog.returnValue !== "yes") {
      return;
    }
    try {
      await call(`reports/${kept.id}`, "DELETE");
      showReports(await call("reports", "GET"));
      byId("reports-heading", HTMLElement).scrollIntoView({ block: "nearest" });
    } catch (failure) {
      showTrouble(failure instanceof Failure ? failure.message : String(failure));
    }
  });
  return button;
}
