// Start, stop, the rate, and marks.

import { byId, el } from "../../../../../report/page/js/dom.js";
import { bytes, duration } from "../../../../../report/page/js/format.js";
import { Failure, call } from "./connection.js";
import { isRunning, showFacts, showTrouble } from "./facts.js";
import { outputs } from "./links.js";

/** True while a call is running; the buttons do not change until it ends. */
let busy = false;
/** @type {import("./facts.js").Status | null} the latest; null while the service does not answer */
let latest = null;
/** Whether the user has chosen a rate that is not in force yet. */
let chosen = false;

/** @param {import("./facts.js").Status | null} now */
export function setState(now) {
  latest = now;
  showControls();
}

function showControls() {
  const state = latest?.state;
  const recording = state === "recording";
  const running = isRunning(latest);
  const startable = state === "stopped" || state === "background";
  showRate(recording);
  const start = byId("start", HTMLButtonElement);
  start.textContent = recording ? "Change" : "Start recording";
  start.title = recording ? "Record what the list says from now on" : "";
  start.disabled = busy || !(startable || (recording && chosen));
  byId("sample", HTMLSelectElement).disabled = busy || !(startable || recording);
  byId("stop", HTMLButtonElement).disabled = busy || !recording;
  byId("mark", HTMLInputElement).disabled = !running;
  byId("set-mark", HTMLButtonElement).disabled = busy || !running;
  byId("so-far", HTMLElement).hidden = !running;
}

/** @returns {string} the rate in force, as the list has it */
const rateInForce = () => String(latest?.sampling?.current_mean_bytes ?? 0);

/**
 * Lets the list of rates say what is recorded, unless the user has chosen something else.
 * @param {boolean} recording
 */
function showRate(recording) {
  const list = byId("sample", HTMLSelectElement);
  const asConfigured = list.options[0];
  if (asConfigured !== undefined) {
    asConfigured.hidden = recording;
    asConfigured.disabled = recording;
  }
  if (!recording) {
    chosen = chosen && list.value !== "";
    choose(list, chosen ? list.value : "");
    return;
  }
  const rate = rateInForce();
  if (![...list.options].some(({ value }) => value === rate)) {
    const option = el("option", "", `A sample each ${bytes(Number(rate))}`);
    option.value = rate;
    list.append(option);
  }
  chosen = chosen && list.value !== rate;
  if (!chosen) {
    choose(list, rate);
  }
}

/**
 * @param {HTMLSelectElement} list which may be open: it is left alone if it has the value
 * @param {string} value
 */
function choose(list, value) {
  if (list.value !== value) {
    list.value = value;
  }
}

/** @returns {boolean} whether another kind of recording than the running one is chosen, which must be one of its own */
function endsSession() {
  return latest?.state === "recording" && (byId("sample", HTMLSelectElement).value === "0") !== (rateInForce() === "0");
}

/**
 * @param {() => Promise<string>} work its text is shown below the buttons
 */
async function doing(work) {
  busy = true;
  showControls();
  const done = byId("done", HTMLElement);
  try {
    done.textContent = "";
    done.textContent = await work();
  } catch (failure) {
    showTrouble(failure instanceof Failure ? failure.message : String(failure));
  } finally {
    busy = false;
    showControls();
  }
}

/** @param {import("./facts.js").Status} now what a call answered */
function show(now) {
  chosen = false;
  showFacts(now);
  setState(now);
}

/** Connects the buttons. */
export function setUpControls() {
  const sample = byId("sample", HTMLSelectElement);
  byId("session-outputs", HTMLElement).append(...outputs("", "the recording so far", "?session=running"));
  sample.addEventListener("change", () => {
    chosen = true;
    showControls();
    const ends = chosen && endsSession();
    byId("done", HTMLElement).textContent = ends
      ? "Exact and estimated figures cannot be in one report: “Change” ends this recording, writes its report, and begins another."
      : "";
  });
  byId("start", HTMLButtonElement).addEventListener("click", () =>
    doing(async () => {
      const { value } = sample;
      const ends = endsSession();
      show(await call(value === "" ? "start" : `start?sample=${value}`, "POST"));
      // The button that had the focus is disabled now.
      byId("stop", HTMLButtonElement).focus();
      const what = sample.selectedOptions[0]?.textContent ?? "";
      return `From now on: ${what.charAt(0).toLowerCase()}${what.slice(1)}.${ends ? " The report of the recording before is written: see below." : ""}`;
    }),
  );
  byId("stop", HTMLButtonElement).addEventListener("click", () =>
    doing(async () => {
      byId("done", HTMLElement).textContent = "Writing the report…";
      show(await call("stop", "POST"));
      return "The report is written: see below.";
    }),
  );
  byId("mark-form", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    const input = byId("mark", HTMLInputElement);
    void doing(async () => {
      const mark = await call(`mark?name=${encodeURIComponent(input.value)}`, "POST");
      input.value = "";
      return `Marked “${mark.name}” at ${duration(mark.at_ms)}, with ${bytes(mark.live.bytes)} live.`;
    });
  });
}
