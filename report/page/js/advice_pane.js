// Advice as a list. Each piece leads to its place in the graph.

import { adviceOn } from "./advice.js";
import { el } from "./dom.js";

/** @typedef {import("./model.js").Look} Look */

const ADVICE_HEADINGS = {
  growth: "Grows all the time",
  realloc: "Grows by realloc",
  temporary: "Lives for no time",
};

/**
 * @param {HTMLElement} box
 * @param {Look} look
 * @param {(nodes: number[]) => void} choose shows these in the graph
 */
export function showAdvice(box, look, choose) {
  const { names, whole: tree } = look;
  const advice = adviceOn(tree);
  /** @type {HTMLElement[]} */
  const children = [
    el("h2", "", "Advice"),
    el("p", "lead", "Only where the numbers are certain. Largest first, a dozen of each kind at most; filters apply."),
  ];
  let kind = "";
  for (const { kind: of, site, headline, text } of advice) {
    if (of !== kind) {
      kind = of;
      children.push(el("h3", "", ADVICE_HEADINGS[of]));
    }
    const button = el("button", "site", names.brief(site.frame));
    button.type = "button";
    button.title = `${names.full(site.frame)}\nShow in the graph`;
    button.addEventListener("click", () => choose(site.nodes));
    const place = el("span", "place", names.place(site.frame));
    place.title = names.fullPlace(site.frame);
    children.push(el("article", `advice ${of}`, el("p", "head", el("b", "", headline), button, place), el("p", "", text)));
  }
  if (advice.length === 0) {
    children.push(el("p", "", "Nothing stands out: no call site has survivors in every generation, none reallocates again and again, none makes mostly temporary blocks."));
  }
  box.replaceChildren(...children);
}
