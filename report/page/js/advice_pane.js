// Advice as a list. Each piece leads to its place in the graph.

import { adviceOn } from "./advice.js";
import { el } from "./dom.js";
import { knownList } from "./known.js";
import { excerptOf, placeOf, sourceText } from "./source.js";

/** @typedef {import("./model.js").Look} Look */

const ADVICE_HEADINGS = {
  growth: "Grows with the work",
  left: "Leaves memory behind",
  holds: "Holds the most",
  realloc: "Grows by realloc",
  temporary: "Lives for no time",
};

/**
 * @param {HTMLElement} box
 * @param {Look} look
 * @param {(nodes: number[]) => void} choose shows these in the graph
 * @param {(frame: number) => void} show shows a ranked line in the graph
 */
export function showAdvice(box, look, choose, show) {
  const { names, whole: tree } = look;
  const advice = adviceOn(tree);
  /** @type {HTMLElement[]} */
  const children = [
    el("h2", "", "Advice"),
    el("p", "lead", "Only where the numbers are certain. Largest first, a dozen of each kind at most. Filters apply, but not to what grows: that is judged by the whole report."),
  ];
  let kind = "";
  for (const { kind: of, frame, nodes, headline, text } of advice) {
    if (of !== kind) {
      kind = of;
      children.push(el("h3", "", ADVICE_HEADINGS[of]));
    }
    const button = el("button", "site", names.brief(frame));
    button.type = "button";
    button.title = `${names.full(frame)}\nShow in the graph`;
    button.addEventListener("click", () => (of === "growth" ? show(frame) : choose(nodes)));
    const head = el("p", "head", el("b", "", headline), button, placeOf(names, frame));
    const excerpt = excerptOf(names.profile, frame);
    const lines = excerpt === null ? [] : [sourceText(excerpt, false)];
    children.push(el("article", `advice ${of}`, head, ...lines, el("p", "", text)));
  }
  const { leaks, fragmentation } = names.profile.head;
  const { unknown } = leaks;
  if (fragmentation !== null) {
    children.push(el("h3", "", "Free, but resident"), el("article", "advice", el("p", "", fragmentation)));
  }
  if (advice.length === 0) {
    const growing = unknown === null ? "no line keeps more the more the service does, none" : "no line";
    children.push(el("p", "", `Nothing stands out: ${growing} holds most of what is live, none reallocates again and again, none makes mostly temporary blocks.`));
  }
  if (unknown !== null) {
    children.push(el("p", "lead", unknown));
  }
  box.replaceChildren(...children, ...knownList(names.profile.head));
}
