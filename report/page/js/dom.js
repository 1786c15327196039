// Makes elements from plain data. Text is always text: nothing here or elsewhere on the page parses markup.

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} className
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className !== "") {
    element.className = className;
  }
  element.append(...children);
  return element;
}

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T} the template's element of that id
 */
export function byId(id, type) {
  const element = document.getElementById(id);
  if (!(element instanceof type)) {
    throw new Error(`the template has no ${type.name} #${id}`);
  }
  return element;
}

/** Pixels of a canvas for each of the screen. */
let sharpness = 1;

/** @param {number} factor by which canvases are sharper than the screen from now on: paper shows more */
export function sharpen(factor) {
  sharpness = factor;
}

/**
 * Sizes a canvas for its box and the screen's pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width in CSS pixels
 * @param {number} height in CSS pixels
 * @returns {CanvasRenderingContext2D} cleared, in CSS pixels
 */
export function prepare(canvas, width, height) {
  const ratio = (window.devicePixelRatio || 1) * sharpness;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  if (context === null) {
    throw new Error("this browser has no 2d canvas");
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** @type {Map<string, string>} kept, because reading a style costs a pass over the page's styles */
const known = new Map();

/**
 * @param {string} name of a CSS variable that holds a colour
 * @returns {string} the colour under the present theme, as a canvas takes it
 */
export function themed(name) {
  let color = known.get(name);
  if (color === undefined) {
    // Only a real property resolves `light-dark()`.
    const probe = byId("probe", HTMLElement);
    probe.style.color = `var(${name})`;
    color = getComputedStyle(probe).color;
    known.set(name, color);
  }
  return color;
}

/** Call this when the theme has changed. */
export function forgetTheme() {
  known.clear();
}

/**
 * @param {string} text
 * @returns {Promise<boolean>} whether the clipboard holds it now
 */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // There is no clipboard API without https, so use a selection.
    const focused = document.activeElement;
    const area = el("textarea", "hidden", text);
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    if (focused instanceof HTMLElement) {
      focused.focus();
    }
    return copied;
  }
}
