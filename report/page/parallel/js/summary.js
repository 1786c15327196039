// The process, the time and the size of the run, and notes for the reader.

import { short } from "./data.js";
import { byId, el } from "../../js/dom.js";
import { bytes, clock, count, percent, plural } from "../../js/format.js";

/** @param {import("./data.js").Run} run */
export function summarize(run) {
  const { data, ms, busy } = run;
  byId("title", HTMLElement).textContent = data.title;
  byId("when", HTMLElement).textContent = `${clock(data.start_ms)} · ${data.pool} · process ${data.pid} · ${data.producer}`;
  const command = byId("command", HTMLElement);
  command.textContent = data.command_line;
  command.title = data.command_line;

  const cpu = data.workers.reduce((sum, worker) => sum + worker.cpu_ns, 0) / 1e6;
  const pieces = busy.reduce((sum, of) => sum + of.tasks, 0);
  const inTasks = busy.reduce((sum, of) => sum + of.busy, 0);
  const working = busy.filter((of) => of.tasks > 0).length;
  const peak = Math.max(0, ...data.moments.rss);
  /** @type {[string, string, string][]} */
  const facts = [
    ["Duration", short(ms), data.outcome],
    ["CPU time", short(cpu), `${(cpu / ms).toFixed(2)} cores on average`],
    ["Workers", count(data.workers.length), `${working} ran tasks`],
    ["Tasks", count(pieces), `of ${plural(run.names.length, "name")}, ${short(inTasks)}`],
    ["In tasks", working === 0 ? "–" : percent(inTasks, ms * working), "of the time of those workers"],
    ["Peak memory", peak === 0 ? "–" : bytes(peak), "resident, whole process"],
  ];
  if (data.allocations !== null) {
    facts.push(["Allocated", bytes(data.allocations.total[1]), plural(data.allocations.total[0], "block")]);
  }
  byId("facts", HTMLElement).append(
    ...facts.map(([name, value, note]) => el("div", "", el("dt", "", name), el("dd", "", value, el("small", "", note)))),
  );

  const notes = data.notes.map((text) => el("p", "", text));
  if (data.outcome !== "returned") {
    notes.unshift(el("p", "wrong", data.outcome === "panicked" ? "The function panicked." : "The function’s future was dropped before it was done."));
  }
  if (data.tasks_dropped > 0) {
    notes.push(el("p", "wrong", `${plural(data.tasks_dropped, "task")} more were not kept: there were too many.`));
  }
  byId("notes", HTMLElement).append(...notes);

  byId("stream-lead", HTMLElement).textContent =
    run.rows.length > 0
      ? "What ran on which thread, and when: one row a worker, tasks within tasks below them."
      : "No task was seen. Add heapray’s tracing layer, or name tasks with heapray::parallel_profile::task.";
  byId("system-lead", HTMLElement).textContent =
    data.moments.at.length > 1 ? "Each worker’s CPU clock and the process’s memory, read in steps." : "The run was too short for a curve.";
  byId("functions-lead", HTMLElement).textContent =
    data.samples > 0
      ? `${plural(data.samples, "sample")} of the workers’ stacks, by the CPU time between them. What waits has no samples.`
      : "No samples: the workers used too little CPU time, or this system cannot sample threads.";
  byId("allocations-lead", HTMLElement).textContent =
    data.allocations === null
      ? "Nothing recorded allocations meanwhile. Set MEMRAY_PROFILER=true, or call heapray::start(), before the function runs."
      : "What was allocated while the function ran, by all threads of the process, freed or not.";
}
