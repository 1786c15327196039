// The frames that are left out, so that a stack reads like the source code.

import { LANGUAGE, NATIVE, OWN, PACKAGE } from "./decode.js";
import { logical, segments } from "./names.js";
import { HIDDEN, HIDDEN_BETWEEN, HIDDEN_FIRST, VISIBLE } from "./shape.js";

/** @typedef {import("./decode.js").Profile} Profile */
/** @typedef {"none" | "runtime" | "crates" | "own"} Fold what is hidden: nothing; the runtime; other crates; all but own code */

/** @type {readonly Fold[]} */
export const FOLDS = ["none", "runtime", "crates", "own"];

/** Crates that run services, and their families (`tower_http`): those of `views::Fold::Runtime` in Rust. */
const RUNTIME =
  /^(tokio|hyper|axum|tower|http|h2|mio|futures|tracing|async_std|async_executor|async_io|async_task|smol|polling|actix|warp|rocket|poem|salvo|tonic|rayon|crossbeam|pin_project_lite)(_|$)/;

/** Native code of the system, which does not belong to any library. */
const SYSTEM = /^(libc|libpthread|libgcc_s|ld-linux-x86-64|ld-linux-aarch64|ld-musl)\b/;

/** Functions that only poll, call or catch the code of others, by their last segment. */
const PLUMBING =
  /^(poll(_.*)?|call|call_mut|call_once|call_once_force|with|with_mut|try_with|catch_unwind|do_call|do_catch|try_call|__rust_try|__rust_(begin|end)_short_backtrace|in_scope|budget|with_budget|enter_runtime|block_on)$/;

/**
 * @param {string} name a plain one
 * @returns {boolean} whether a function only passes a call on; `views::is_plumbing` in Rust
 */
export function isPlumbing(name) {
  const parts = logical(segments(name));
  const whole = parts.join("::");
  return PLUMBING.test(parts[parts.length - 1]) || whole === "std::panicking::try" || whole === "core::future::from_generator";
}

/**
 * @param {string} name
 * @returns {string} the explanation of an odd name, or empty
 */
export function explained(name) {
  if (name.includes("{vtable.shim}") || name.includes("{shim:vtable")) {
    return "The compiler’s entry for a call through dyn.";
  }
  const inside = /\{(closure|async)[^}]*\}/.test(name);
  return inside ? "Code inside this function: the body of an async fn, an async block or a closure." : "";
}

/**
 * @param {Profile} profile
 * @param {Fold} fold
 * @param {boolean} plain whether plumbing is hidden as well
 * @returns {Uint8Array | null} by frame, as `Shape.without` takes it; null: nothing is hidden
 */
export function hiding(profile, fold, plain) {
  if (fold === "none" && !plain) {
    return null;
  }
  const { head, frames, strings } = profile;
  const names = new Int8Array(strings.length).fill(-1);
  return Uint8Array.from(frames.line, (_, frame) => {
    const [crate, kind] = head.packages[frames.package[frame]] ?? ["", NATIVE];
    const how = folding(fold, crate, kind);
    // The service's own `poll` is real code.
    if (how !== VISIBLE || !plain || kind === OWN) {
      return how;
    }
    const name = frames.function[frame];
    if (names[name] < 0) {
      names[name] = isPlumbing(strings[name]) ? HIDDEN_BETWEEN : VISIBLE;
    }
    return names[name];
  });
}

/**
 * The names by which neighbours are one box: a function, the closures in it, and its generic versions look the same.
 * @param {Profile} profile
 * @returns {Int32Array} by frame, the number of its name; -1: a box of its own, since recursion of own code means something
 */
export function namesOfBoxes({ head, frames, strings }) {
  /** @type {Map<string, number>} */
  const numbers = new Map();
  const known = new Int32Array(strings.length).fill(-1);
  return frames.function.map((name, frame) => {
    const [, kind] = head.packages[frames.package[frame]] ?? ["", NATIVE];
    if (kind === OWN) {
      return -1;
    }
    if (known[name] < 0) {
      const text = logical(segments(strings[name])).join("::");
      known[name] = numbers.get(text) ?? numbers.size;
      numbers.set(text, known[name]);
    }
    return known[name];
  });
}

/**
 * @param {Fold} fold
 * @param {string} crate
 * @param {number} kind
 * @returns {number} as `Shape.without` takes it
 */
function folding(fold, crate, kind) {
  if (kind === OWN || fold === "none") {
    return VISIBLE;
  }
  if (fold === "own" || (fold === "crates" && kind === PACKAGE)) {
    return HIDDEN;
  }
  if (fold === "crates") {
    return VISIBLE;
  }
  if (kind === LANGUAGE || (kind === PACKAGE && RUNTIME.test(crate)) || (kind === NATIVE && SYSTEM.test(crate))) {
    return HIDDEN;
  }
  // The code that starts a program is native, and belongs to the runtime.
  return kind === NATIVE ? HIDDEN_FIRST : VISIBLE;
}
