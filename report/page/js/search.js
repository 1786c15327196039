// Search by regular expression over functions and places.

/** @typedef {import("./decode.js").Profile} Profile */
/** @typedef {import("./call_tree.js").CallTree} CallTree */

/**
 * @param {string} text
 * @returns {{regex: RegExp | null, error: string}} no expression for an empty text; an error in words
 */
export function compile(text) {
  if (text === "") {
    return { regex: null, error: "" };
  }
  try {
    return { regex: new RegExp(text, /[A-Z]/.test(text) ? "" : "i"), error: "" };
  } catch (failure) {
    // Engines write "Invalid regular expression: /…/: " and the reason.
    const message = failure instanceof Error ? failure.message : String(failure);
    const reason = message.slice(message.lastIndexOf(": ") + 1).trim();
    return { regex: null, error: `Not a regular expression: ${reason.toLowerCase()}` };
  }
}

/**
 * @param {Profile} profile
 * @param {RegExp} regex
 * @returns {Uint8Array} by frame, 1 where its function or `file:line` matches
 */
export function matchingFrames(profile, regex) {
  const { strings, frames } = profile;
  const byFunction = new Int8Array(strings.length).fill(-1);
  return Uint8Array.from(frames.function, (name, frame) => {
    if (byFunction[name] < 0) {
      byFunction[name] = regex.test(strings[name]) ? 1 : 0;
    }
    return byFunction[name] || regex.test(`${strings[frames.file[frame]]}:${frames.line[frame]}`) ? 1 : 0;
  });
}

/**
 * What all matching frames hold together. A match below another match is not counted again.
 * @param {CallTree} tree
 * @param {Uint8Array} frames from {@link matchingFrames}
 * @param {number} measure
 * @returns {{value: number, nodes: number[]}} and the outermost matching nodes, largest first
 */
export function matchedTotal(tree, frames, measure) {
  const total = tree.totalColumn(measure);
  const nodes = [];
  let value = 0;
  let node = 1;
  while (node < tree.size) {
    if (frames[tree.frame[node]]) {
      value += total[node];
      if (total[node] > 0) {
        nodes.push(node);
      }
      node = tree.end[node];
    } else {
      node += 1;
    }
  }
  return { value, nodes: nodes.sort((a, b) => total[b] - total[a] || a - b) };
}
