// Start, stop, and marks.

import { byId } from "../../../../../report/page/js/dom.js";
import { bytes, duration } from "../../../../../report/page/js/format.js";
import { Failure, call } from "./connection.js";
import { showFacts, showTrouble } from "./facts.js";

/** True while a call is running; the buttons do not change until it ends. */
let busy = false;
/** @type {string} */
let state = "";

/** @param {string} now the profiler's state */
export function setState(now) {
  state = now;
  showControls();
}

function showControls() {
  const recording = state === "recording";
  byId("start", HTMLButtonElement).disabled = busy || state !== "stopped";
  byId("sample", HTMLSelectElement).disabled = busy || state !== "stopped";
  byId("stop", HTMLButtonElement).disabled = busy || !recording;
  byId("mark", HTMLInputElement).disabled = !recording;
  byId("set-mark", HTMLButtonElement).disabled = busy || !recording;
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

/** Connects the buttons. */
export function setUpControls() {
  byId("start", HTMLButtonElement).addEventListener("click", () =>
    doing(async () => {
      const sample = byId("sample", HTMLSelectElement).value;
      const status = await call(sample === "" ? "start" : `start?sample=${sample}`, "POST");
      showFacts(status);
      setState(status.state);
      // The button that had the focus is disabled now.
      byId("stop", HTMLButtonElement).focus();
      return status.sampling === null ? "Recording: every allocation from now on." : "Recording: samples from now on.";
    }),
  );
  byId("stop", HTMLButtonElement).addEventListener("click", () =>
    doing(async () => {
      byId("done", HTMLElement).textContent = "Writing the report…";
      const status = await call("stop", "POST");
      showFacts(status);
      setState(status.state);
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
