// Pointer and keyboard on the flame graph.

/** @typedef {import("./graph.js").Graph} Graph */

/**
 * Actions of the graph's user.
 * @typedef {object} Wishes
 * @property {(node: number) => void} zoom
 * @property {(node: number) => void} select with words for a screen reader
 * @property {(box: import("./graph.js").Box | null, x: number, y: number) => void} point
 * @property {() => void} copy the selected stack
 * @property {() => void} sandwich the selected function
 */

/**
 * @param {Graph} graph
 * @param {Wishes} wishes
 */
export function listen(graph, wishes) {
  const { scroller } = graph;
  const boxOf = (/** @type {MouseEvent} */ event) => {
    const frame = scroller.getBoundingClientRect();
    return graph.boxUnder(event.clientX - frame.left - scroller.clientLeft, event.clientY - frame.top);
  };
  scroller.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch") {
      const box = boxOf(event);
      graph.hover(box);
      scroller.classList.toggle("pointing", box !== null);
      wishes.point(box, event.clientX, event.clientY);
    }
  });
  const leave = () => {
    graph.hover(null);
    wishes.point(null, 0, 0);
  };
  scroller.addEventListener("pointerleave", leave);
  scroller.addEventListener("scroll", leave);
  scroller.addEventListener("click", (event) => {
    const box = boxOf(event);
    if (box !== null) {
      leave();
      wishes.zoom(box.node);
    }
  });
  scroller.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && press(graph, wishes, event.key)) {
      event.preventDefault();
    }
  });
  scroller.addEventListener("focus", () => graph.paintSoon());
  scroller.addEventListener("blur", () => graph.paintSoon());
}

/**
 * @param {Graph} graph
 * @param {Wishes} wishes
 * @param {string} key
 * @returns {boolean} whether the key means something here
 */
function press(graph, wishes, key) {
  const { scene, selected } = graph;
  if (scene === null) {
    return false;
  }
  const { tree, measure } = scene;
  const parent = tree.parentOf(selected);
  const step = (/** @type {number} */ by) => {
    const siblings = parent < 0 ? [] : [...tree.childrenOf(parent, measure)];
    return siblings[siblings.indexOf(selected) + by] ?? -1;
  };
  const inward = scene.grow === "down" ? "ArrowDown" : "ArrowUp";
  const outward = scene.grow === "down" ? "ArrowUp" : "ArrowDown";
  /** @type {Record<string, () => number>} */
  const moves = {
    [inward]: () => tree.childrenOf(selected, measure)[0] ?? -1,
    [outward]: () => parent,
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    Home: () => 0,
  };
  if (key in moves) {
    const node = moves[key]();
    if (node >= 0) {
      wishes.select(node);
    }
    return true;
  }
  /** @type {Record<string, () => void>} */
  const deeds = {
    Enter: () => wishes.zoom(selected),
    "+": () => wishes.zoom(selected),
    "=": () => wishes.zoom(selected),
    "-": () => wishes.zoom(Math.max(0, tree.parentOf(scene.zoom))),
    Escape: () => wishes.zoom(0),
    0: () => wishes.zoom(0),
    c: () => wishes.copy(),
    s: () => wishes.sandwich(),
  };
  deeds[key]?.();
  return key in deeds;
}
