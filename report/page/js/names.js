// Function names and paths made short enough to read. The full ones stay in tooltips and copied stacks.

/**
 * A name without generic arguments, trait casts and hash, as path segments:
 * `<hyper::Conn<T> as Future>::poll` gives `["hyper", "Conn", "poll"]`.
 * A name that is no path (hostile, or of another language) is one segment, unchanged.
 * @param {string} name
 * @returns {string[]}
 */
export function segments(name) {
  const plain = simplify(name.replace(/::h[0-9a-f]{16}$/, ""));
  return plain === "" ? [name] : plain.split("::");
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
 * @returns {string} empty where it is no name this can read
 */
function simplify(name) {
  if (/["';]|<\//.test(name)) {
    return "";
  }
  let rest = name;
  let head = "";
  if (rest.startsWith("<")) {
    const end = closing(rest, 0);
    if (end < 0) {
      return "";
    }
    const inner = rest.slice(1, end);
    const cast = topLevel(inner, " as ");
    head = simplify((cast < 0 ? inner : inner.slice(0, cast)).replace(/^(?:[&*(]|mut |const |dyn |impl )+/, ""));
    rest = rest.slice(end + 1);
    if (head === "") {
      return "";
    }
  }
  let plain = "";
  for (let at = 0; at < rest.length; at += 1) {
    if (rest[at] === "<") {
      const end = closing(rest, at);
      if (end < 0) {
        return "";
      }
      plain = plain.replace(/::$/, "");
      at = end;
    } else {
      plain += rest[at];
    }
  }
  return (head + plain).replaceAll("{{", "{").replaceAll("}}", "}");
}

/**
 * @param {string} text
 * @param {number} open where a `<` stands
 * @returns {number} where its `>` stands, or -1
 */
function closing(text, open) {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    if (text[at] === "<") {
      depth += 1;
    } else if (text[at] === ">" && text[at - 1] !== "-") {
      depth -= 1;
      if (depth === 0) {
        return at;
      }
    }
  }
  return -1;
}

/**
 * @param {string} text
 * @param {string} word
 * @returns {number} where `word` stands outside of angle brackets, or -1
 */
function topLevel(text, word) {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (depth === 0 && text.startsWith(word, at)) {
      return at;
    }
    depth += text[at] === "<" ? 1 : text[at] === ">" && text[at - 1] !== "-" ? -1 : 0;
  }
  return -1;
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
  // `{closure}` alone says nothing: the function it is in comes along, cut if it must be.
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

/** The names of a profile's functions and places, as the page writes them. */
export class Names {
  /**
   * @param {Profile} profile
   * @param {string} common what own files' paths begin with, as {@link commonDirectory} tells
   */
  constructor(profile, common) {
    this.profile = profile;
    this.common = common;
    /** Whether closures and generic arguments are left out. */
    this.plain = true;
    /** @type {(string[] | undefined)[][]} by whether they are plain, and by string */
    this.known = [[], []];
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
   * @returns {string} the whole name
   */
  full(frame) {
    return frame < 0 ? "no call stack" : this.profile.strings[this.profile.frames.function[frame]];
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
  const parts = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < name.length; at += 1) {
    if (depth === 0 && name.startsWith("::", at)) {
      parts.push(name.slice(from, at));
      from = at + 2;
      at += 1;
    } else {
      depth += name[at] === "<" ? 1 : name[at] === ">" && name[at - 1] !== "-" ? -1 : 0;
    }
  }
  return depth === 0 && !/["';]|<\//.test(name) ? [...parts, name.slice(from)] : [name];
}
