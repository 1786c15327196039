// Shortens function names and paths. The full ones are in tooltips and copied stacks.

/**
 * The parts of a function's plain name between `::`; what stands in parentheses, as parameters of C++ do, is not cut.
 * @param {string} plain as reports have it: `views::plain_name` in Rust
 * @returns {string[]}
 */
export function segments(plain) {
  return split(plain, "(", ")").parts;
}

/**
 * Without closures and the like: `shop::add::{closure}` is what the compiler calls the body of `async fn add`, and a
 * closure in `add`.
 * @param {string[]} parts of {@link segments}
 * @returns {string[]} a name of closures only stays
 */
export function logical(parts) {
  if (parts.length === 1 && !parts[0].endsWith("}")) {
    return parts;
  }
  const kept = parts.map((part) => (part.endsWith("}") ? part.replace(/\{.*$/s, "") : part)).filter((part) => part !== "");
  return kept.length > 0 ? kept : parts;
}

/**
 * @param {string} name
 * @param {string} open brackets between which nothing is cut
 * @param {string} close
 * @returns {{parts: string[], closed: boolean}} the parts between `::`, and whether all brackets are closed
 */
function split(name, open, close) {
  const parts = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < name.length; at += 1) {
    if (open.includes(name[at])) {
      depth += 1;
    } else if (close.includes(name[at]) && name[at - 1] !== "-") {
      depth = Math.max(0, depth - 1);
    } else if (depth === 0 && name.startsWith("::", at)) {
      parts.push(name.slice(from, at));
      from = at + 2;
      at += 1;
    }
  }
  parts.push(name.slice(from));
  return { parts, closed: depth === 0 };
}

/**
 * The longest way to write a function in `most` characters: leading segments go first, then the end.
 * @param {string[]} parts
 * @param {number} most
 * @returns {string}
 */
export function fit(parts, most) {
  let length = parts.reduce((sum, part) => sum + part.length + 2, -2);
  let first = 0;
  while (length > most && first < parts.length - 1) {
    length -= parts[first].length + 2;
    first += 1;
  }
  // `{closure}` alone means nothing: the function that contains it is added, shortened if necessary.
  if (first > 0 && first === parts.length - 1 && parts[first].startsWith("{")) {
    first -= 1;
  }
  const text = parts.slice(first).join("::");
  return text.length <= most ? text : `${text.slice(0, Math.max(0, most - 1))}…`;
}

/**
 * The longest way to write a function in `room`: by measuring, since letters differ in width.
 * @param {string[]} parts
 * @param {number} room in pixels
 * @param {number} size of the font in pixels
 * @param {(text: string) => number} measure in pixels
 * @returns {string} empty where nothing legible fits
 */
export function fitted(parts, room, size, measure) {
  // A first guess that is rarely too short.
  let most = Math.floor(room / (0.45 * size));
  for (let tries = 0; tries < 6 && most >= 2; tries += 1) {
    const text = fit(parts, most);
    if (text.length < 4 && text.endsWith("…")) {
      return "";
    }
    const width = measure(text);
    if (width <= room) {
      return text;
    }
    most = Math.min(most, text.length) - Math.max(1, Math.ceil((width - room) / 8));
  }
  return "";
}

/**
 * The longest way to write a place in `room`: leading directories go first, file and line never.
 * @param {string} place `src/shop/cart.rs:12`
 * @param {number} room in pixels
 * @param {(text: string) => number} measure in pixels
 * @returns {string}
 */
export function fittedPlace(place, room, measure) {
  const parts = place.split("/");
  const shorter = parts.slice(1).map((_, i) => `…/${parts.slice(i + 1).join("/")}`);
  return [place, ...shorter].find((text) => measure(text) <= room) ?? parts[parts.length - 1];
}

/**
 * @param {string[]} parts
 * @returns {string} the last two segments and closures in them: `SessionCache::remember`
 */
export function brief(parts) {
  let named = 0;
  let first = parts.length;
  while (first > 0 && named < 2) {
    first -= 1;
    named += parts[first].startsWith("{") ? 0 : 1;
  }
  return parts.slice(first).join("::");
}

/**
 * What all of `paths` begin with and a reader need not see: their common directory, up to a `src` in it.
 * @param {string[]} paths
 * @returns {string}
 */
export function commonDirectory(paths) {
  if (paths.length === 0) {
    return "";
  }
  let common = paths[0].split("/").slice(0, -1);
  for (const path of paths) {
    const parts = path.split("/");
    let same = 0;
    while (same < common.length && common[same] === parts[same]) {
      same += 1;
    }
    common = common.slice(0, same);
  }
  const source = common.findIndex((part) => ["src", "examples", "tests", "benches"].includes(part));
  if (source >= 0) {
    common = common.slice(0, source);
  }
  return common.length > 1 ? `${common.join("/")}/` : "";
}

/**
 * @param {string} path
 * @param {string} common {@link commonDirectory} of the service's own files
 * @returns {string} without registry, toolchain and common directories
 */
export function shortPath(path, common) {
  const rules = [/^.*\/registry\/src\/[^/]+\//, /^.*\/rustc\/[^/]+\//, /^.*\/lib\/rustlib\/src\/rust\//];
  for (const rule of rules) {
    const short = path.replace(rule, "");
    if (short !== path) {
      return short;
    }
  }
  return common !== "" && path.startsWith(common) ? path.slice(common.length) : path;
}

/** @typedef {import("./decode.js").Profile} Profile */

/** Characters of the longest full name that is shown without being asked for. */
const LONGEST_SHOWN = 240;

/** The names of a profile's functions and places, as the page writes them. */
export class Names {
  /**
   * @param {Profile} profile
   * @param {string} common what own files' paths begin with, as {@link commonDirectory} tells
   * @param {Int32Array | null} versions by frame, for how many that differ in full names it stands; null: for itself alone
   */
  constructor(profile, common, versions) {
    /** The functions of its frames are called by the chosen names. */
    this.profile = profile;
    this.common = common;
    this.versions = versions;
    this.frames = { plain: profile.frames, full: { ...profile.frames, function: profile.frames.full } };
    /** Whether closures and generic arguments are left out. */
    this.plain = true;
    /** @type {(string[] | undefined)[][]} by whether they are plain, and by string */
    this.known = [[], []];
  }

  /** @param {boolean} plain whether functions are called by their plain names, or by their full ones */
  choose(plain) {
    if (plain !== this.plain) {
      this.plain = plain;
      this.profile = { ...this.profile, frames: plain ? this.frames.plain : this.frames.full };
    }
  }

  /**
   * @param {number} name a string
   * @returns {string[]} its path segments
   */
  parts(name) {
    const known = this.known[this.plain ? 1 : 0];
    let parts = known[name];
    if (parts === undefined) {
      const text = this.profile.strings[name];
      const all = segments(text);
      parts = this.plain ? logical(all) : fullSegments(text);
      known[name] = parts;
    }
    return parts;
  }

  /**
   * @param {number} frame
   * @returns {string} the last segments
   */
  brief(frame) {
    return frame < 0 ? "no call stack" : brief(this.parts(this.profile.frames.function[frame]));
  }

  /**
   * @param {number} frame
   * @returns {string} without generic arguments, or with them where names are not plain
   */
  shown(frame) {
    return frame < 0 ? "no call stack" : this.parts(this.profile.frames.function[frame]).join("::");
  }

  /**
   * @param {number} frame
   * @returns {string} the whole name. Among plain names it is left out where it is not the only one, or too long to be read
   */
  full(frame) {
    if (frame < 0) {
      return "no call stack";
    }
    const { strings, frames } = this.profile;
    const full = strings[frames.full[frame]];
    const readable = full.length <= LONGEST_SHOWN && (this.versions === null || this.versions[frame] === 1);
    return !this.plain || readable ? full : strings[frames.function[frame]];
  }

  /**
   * @param {number} frame
   * @returns {string} `file:line` without directories that all own files share
   */
  place(frame) {
    return frame < 0 ? "" : this.at(frame, shortPath(this.profile.strings[this.profile.frames.file[frame]], this.common));
  }

  /**
   * @param {number} frame
   * @returns {string} the whole path and the line, if known
   */
  fullPlace(frame) {
    return frame < 0 ? "" : this.at(frame, this.profile.strings[this.profile.frames.file[frame]]);
  }

  /**
   * @param {number} frame
   * @param {string} path
   */
  at(frame, path) {
    const line = this.profile.frames.line[frame];
    return line > 0 ? `${path}:${line}` : path;
  }
}

/**
 * @param {string} name
 * @returns {string[]} its segments, each with its generic arguments
 */
function fullSegments(name) {
  const { parts, closed } = split(name, "<([", ">)]");
  return closed && !/[";]|<\//.test(name) ? parts : [name];
}
