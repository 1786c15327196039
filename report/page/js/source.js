// Where a line of code can be read: its address in a browser, and its text where the report has it.

import { OWN } from "./decode.js";
import { el } from "./dom.js";
import { kindOf } from "./sites.js";

/**
 * @typedef {object} Source
 * @property {string} root the directory in which the service's own crate was compiled
 * @property {string} url template of the addresses of its sources, or empty
 * @property {[number, number, string[]][]} excerpts frames, each with the number of the first of these lines
 *
 * @typedef {{first: number, line: number, lines: string[]}} Excerpt
 */

/** The hash of Rust's sources, and the rest of a path below its library. */
const RUST_LIBRARY = /(?:^|\/)rustc\/([0-9a-f]{40})\/(library\/.+)$/;
/** Package, version and the rest of a path below cargo's copy of crates.io. */
const CRATES_IO = /\/registry\/src\/(?:index\.crates\.io|github\.com)-[^/]+\/([A-Za-z0-9_-]+)-(\d+\.\d+\.\d+[^/]*)\/(.+)$/;

/** @param {string} path */
function encoded(path) {
  return path.split("/").map(encodeURIComponent).join("/");
}

/**
 * @param {string} path
 * @param {number} line 0 if unknown
 * @param {boolean} own whether it is the service's own code
 * @param {Pick<Source, "root" | "url">} source
 * @returns {string} its address; empty if it has none that is known
 */
export function sourceUrl(path, line, own, { root, url }) {
  if (line === 0 || path.split("/").includes("..")) {
    return "";
  }
  const rust = RUST_LIBRARY.exec(path);
  if (rust !== null) {
    return `https://github.com/rust-lang/rust/blob/${rust[1]}/${encoded(rust[2])}#L${line}`;
  }
  const found = CRATES_IO.exec(path);
  if (found !== null) {
    const [, name, version, rest] = found;
    return `https://docs.rs/crate/${name}/${encoded(version)}/source/${encoded(rest)}#${line}`;
  }
  // The template is a report's: it may be hostile.
  if (!own || !/^https?:\/\//.test(url)) {
    return "";
  }
  const below = root !== "" && path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
  return below.startsWith("/") ? "" : url.replaceAll("{file}", () => encoded(below)).replaceAll("{line}", String(line));
}

/**
 * @param {import("./names.js").Names} names
 * @param {number} frame
 * @returns {string} the address of its source, or empty
 */
export function sourceOf({ profile }, frame) {
  if (frame < 0) {
    return "";
  }
  const { strings, frames, head } = profile;
  return sourceUrl(strings[frames.file[frame]], frames.line[frame], kindOf(profile, frame) === OWN, head.source);
}

/**
 * @param {import("./names.js").Names} names
 * @param {number} frame
 * @returns {HTMLElement} its place, which leads to its source where that has an address
 */
export function placeOf(names, frame) {
  return placeLink(names.place(frame), sourceOf(names, frame), names.fullPlace(frame));
}

/**
 * @param {string} text
 * @param {string} url empty for none
 * @param {string} title
 */
export function placeLink(text, url, title) {
  const inner = el("bdi", "", text);
  if (url === "") {
    const place = el("span", "place", inner);
    place.title = title;
    return place;
  }
  const place = el("a", "place", inner);
  place.href = url;
  place.target = "_blank";
  place.rel = "noopener noreferrer";
  place.title = `${title}\nShow the source: ${url}`;
  return place;
}

/**
 * @param {import("./decode.js").Profile} profile
 * @param {number} frame
 * @returns {Excerpt | null} the lines around its own
 */
export function excerptOf({ head, frames }, frame) {
  const found = head.source.excerpts.find(([of]) => of === frame);
  return found === undefined ? null : { first: found[1], line: frames.line[frame], lines: found[2] };
}

/**
 * @param {Excerpt} excerpt
 * @param {boolean} around whether to show the lines around it as well
 * @returns {HTMLElement} with numbers, and without the indentation that all lines share
 */
export function sourceText({ first, line, lines }, around) {
  const numbered = lines.map((text, i) => ({ text, number: first + i })).filter(({ number }) => around || number === line);
  const indents = numbered.filter(({ text }) => text.trim() !== "").map(({ text }) => text.length - text.trimStart().length);
  const indent = Math.min(...indents);
  const rows = numbered.map(({ text, number }) =>
    el("span", number === line ? "here" : "", el("i", "", String(number)), `${text.slice(indent)}\n`),
  );
  return el("pre", "source", ...rows);
}
