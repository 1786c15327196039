// Which frames are left out so that a stack reads like the code was written.

import { LANGUAGE, NATIVE, OWN, PACKAGE } from "./decode.js";

/** @typedef {import("./decode.js").Profile} Profile */
/** @typedef {"none" | "runtime" | "crates" | "own"} Fold what is hidden: nothing; the runtime; the runtime and other crates; all but own code */

/** @type {readonly Fold[]} each hides what those before it hide */
export const FOLDS = ["none", "runtime", "crates", "own"];

/** Crates that carry a service's work to its own code. */
const RUNTIME =
  /^(tokio(_.*)?|hyper(_.*)?|h2|h3|axum(_.*)?|tower(_.*)?|futures?(_.*)?|async_.*|mio|tonic|actix(_.*)?|warp|rocket|matchit|pin_project(_.*)?|tracing(_.*)?|rayon(_.*)?|crossbeam(_.*)?|smol|backtrace)$/;

/** What the system and the C library put below `main`. */
const ENTRY = /^(__?clone3?|(__)?start_thread|_start|__libc_start(_call)?_main(@.*)?|main|start_thread@.*)$/;

/** Functions that only call another one: poll plumbing, closures' entries, what keeps panics and locals apart. */
const PLUMBING = [
  / as core::future::(future::)?Future>::poll$/,
  / as (futures_core::|futures_util::)?[\w:]*(Stream|TryFuture)>::(try_)?poll(_next)?$/,
  /(^|[ <:])core::ops::function::/,
  /\{\{vtable\.shim\}\}/,
  /(^|::)(catch_unwind|do_call|__rust_(begin|end)_short_backtrace|__rust_try|lang_start(_internal)?)(::\{\{closure\}\})?$/,
  /core::panic::unwind_safe::AssertUnwindSafe/,
  /std::thread::local::LocalKey<.*>::(try_)?with$/,
];

/** Closures are part of the function that they are written in. */
const CLOSURES = /(::\{\{?(closure|async_block|async_closure|async_fn)([#$]\d+|:[^}]*)?\}?\})+(::h[0-9a-f]{16})?$/;

/**
 * @param {string} name
 * @returns {string} of the function that a closure or an `async` body was written in; any other name as it is
 */
export function logicalName(name) {
  return name.replace(CLOSURES, "");
}

/**
 * @param {string} name
 * @returns {string} what an odd name means, or empty
 */
export function explained(name) {
  const inside = logicalName(name);
  if (inside !== name) {
    return "Code inside this function: the body of an async fn, an async block or a closure.";
  }
  if (name.includes("{{vtable.shim}}")) {
    return "The compiler’s entry for a call through dyn.";
  }
  return "";
}

/**
 * @param {Profile} profile
 * @param {Fold} fold
 * @param {boolean} plain whether plumbing is hidden as well
 * @returns {Uint8Array | null} by frame, 1: hidden; null: nothing is
 */
export function hiding(profile, fold, plain) {
  if (fold === "none" && !plain) {
    return null;
  }
  const level = FOLDS.indexOf(fold);
  return Uint8Array.from(profile.frames.line, (_, frame) =>
    isHidden(profile, frame, level) || (plain && isPlumbing(profile, frame)) ? 1 : 0,
  );
}

/**
 * @param {Profile} profile
 * @param {number} frame
 * @param {number} level
 */
function isHidden({ head, frames, strings }, frame, level) {
  const [name, kind] = head.packages[frames.package[frame]] ?? ["", NATIVE];
  if (level === 0 || kind === OWN) {
    return false;
  }
  if (level >= FOLDS.indexOf("own")) {
    return true;
  }
  const entry = kind === NATIVE && ENTRY.test(strings[frames.function[frame]]);
  const runtime = kind === LANGUAGE || entry || RUNTIME.test(name);
  return runtime || (level >= FOLDS.indexOf("crates") && kind === PACKAGE);
}

/**
 * @param {Profile} profile
 * @param {number} frame
 */
function isPlumbing({ head, frames, strings }, frame) {
  const kind = head.packages[frames.package[frame]]?.[1] ?? NATIVE;
  // A service's own `poll` is code that somebody wrote.
  return kind !== OWN && PLUMBING.some((pattern) => pattern.test(strings[frames.function[frame]]));
}
