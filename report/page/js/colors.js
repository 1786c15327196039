// A colour for each package: warm for the service's own crates, cool for its dependencies, greys for the standard library
// and native code. Orange and blue differ for every common kind of colour blindness, shades differ in lightness, and the
// legend, the tooltip and the status line always name the package.

import { LANGUAGE, NATIVE, OWN, measureOf } from "./decode.js";
import { libraryWord } from "./language.js";

/**
 * @typedef {object} Swatch
 * @property {string} name
 * @property {string} variable the CSS variable that holds its colour
 * @property {number[]} packages
 */

const WARM = 3;
const COOL = 6;

/**
 * @param {import("./call_tree.js").CallTree} tree of the whole report
 * @returns {Swatch[]} the legend, each package in exactly one swatch
 */
export function swatches(tree) {
  const { profile } = tree;
  const packages = profile.head.packages;
  // By the area that a package covers in the graph, the same for every view, so that colours never change.
  const area = new Float64Array(packages.length);
  for (const view of /** @type {const} */ (["live", "peak"])) {
    const total = tree.totalColumn(measureOf(view, "bytes"));
    for (let node = 1; node < tree.size; node += 1) {
      area[profile.frames.package[tree.frame[node]]] += total[0] > 0 ? total[node] / total[0] : 0;
    }
  }
  const ranked = (/** @type {number} */ kind) =>
    [...packages.keys()]
      .filter((index) => packages[index][1] === kind && area[index] > 0)
      .sort((a, b) => area[b] - area[a] || a - b);

  /** @type {Swatch[]} */
  const legend = [];
  const add = (/** @type {string} */ name, /** @type {string} */ variable, /** @type {number[]} */ members) => {
    if (members.length > 0) {
      legend.push({ name, variable, packages: members });
    }
  };
  const each = (/** @type {number[]} */ members, /** @type {string} */ prefix, /** @type {number} */ most) => {
    // A group of one is named like the others.
    const cut = members.length === most + 1 ? most + 1 : most;
    members.slice(0, cut).forEach((index, i) => add(packages[index][0], `--${prefix}-${Math.min(i, most - 1)}`, [index]));
    return members.slice(cut);
  };
  const otherOwn = each(ranked(OWN), "own", WARM);
  const libraries = `${libraryWord(profile)}s`;
  add(`${otherOwn.length} more of your ${libraries}`, "--own-more", otherOwn);
  const others = each(ranked(1), "dep", COOL);
  add(`${others.length} other ${libraries}`, "--dep-more", others);
  const language = ranked(LANGUAGE);
  add(language.map((index) => packages[index][0]).join(", "), "--language", language);
  add("native", "--native", ranked(NATIVE));
  return legend;
}
