// Links to a line of code in the flame graph. The live page writes them, and the report's page opens them.

/** @typedef {{ function: string, file: string, line: number }} Place */

/**
 * @param {Place} place
 * @returns {string} the hash of a page's address, with `#`
 */
export function hashOfLine({ function: name, file, line }) {
  return `#${new URLSearchParams({ in: name, file, line: String(line) })}`;
}

/**
 * @param {string} hash with or without `#`
 * @returns {Place | null} the line that it leads to, if it is such a link
 */
export function lineOfHash(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const [name, file, line] = [said.get("in"), said.get("file"), said.get("line")];
  return name === null || file === null || line === null || !/^\d{1,10}$/.test(line) ? null : { function: name, file, line: Number(line) };
}

/**
 * @param {import("./decode.js").Profile} profile
 * @param {Place} place
 * @returns {number[]} frames at that line, those in that very function first
 */
export function framesAt({ strings, frames }, place) {
  const at = [...frames.line.keys()].filter((frame) => frames.line[frame] === place.line && strings[frames.file[frame]] === place.file);
  const isIn = (/** @type {number} */ frame) => strings[frames.function[frame]] === place.function;
  return [...at.filter(isIn), ...at.filter((frame) => !isIn(frame))];
}
