// What differs between reports of Rust and those of Python, whose captures heapray reads too.

/**
 * @param {import("./decode.js").Profile} profile
 * @returns {"crate" | "package"} what a reader calls a library
 */
export function libraryWord({ strings, frames }) {
  return frames.file.some((file) => strings[file].endsWith(".py")) ? "package" : "crate";
}

/**
 * @param {string} command a command line
 * @returns {string} the program's name: of a script, not of what runs it
 */
export function programOf(command) {
  const words = command.split(" ").filter((word) => word !== "");
  const name = (/** @type {string | undefined} */ path) => path?.split("/").pop() ?? "";
  const first = name(words[0]);
  if (/^(python[\d.]*|memray[\d.]*|__main__\.py)$/.test(first)) {
    // The last one: `python -m memray run -m shop` runs `shop`.
    const module = words.lastIndexOf("-m");
    const script = words.slice(1).find((word) => word.endsWith(".py"));
    return name(script) || (module > 0 ? name(words[module + 1]) : "") || first;
  }
  return first || "unknown program";
}
