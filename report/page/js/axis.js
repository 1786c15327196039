// Round values for the axes of curves.

import { UNITS, duration } from "./format.js";

/** Distances in time that people count in, in milliseconds. */
const TIMES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4, 1.2e5, 3e5, 6e5, 9e5, 1.8e6, 3.6e6, 7.2e6, 1.08e7, 2.16e7, 4.32e7, 8.64e7];
const DAY = 8.64e7;

/** @typedef {{ value: number, text: string }} Tick */

/**
 * @param {number} most bytes at the top of the axis
 * @param {number} room the number of ticks that there is room for
 * @returns {Tick[]} without 0; at least one, if there is a byte
 */
export function sizeTicks(most, room) {
  const wanted = niceStep(Math.max(1, most / Math.max(1, room)));
  // A round number above the top is no tick: the next smaller one is.
  const step = wanted <= most ? wanted : Math.max(1, niceStep(0.4 * wanted));
  return Array.from({ length: Math.min(Math.max(1, room), Math.floor(most / step)) }, (_, i) => {
    const value = (i + 1) * step;
    const unit = Math.min(UNITS.length - 1, Math.floor(Math.log10(value) / 3 + 1e-9));
    return { value, text: `${Number((value / 1000 ** unit).toPrecision(3))}\u00a0${UNITS[unit]}` };
  });
}

/**
 * @param {number} last milliseconds at the end of the axis
 * @param {number} room the number of ticks that there is room for
 * @returns {Tick[]} without 0 and the end
 */
export function timeTicks(last, room) {
  const least = last / Math.max(1, room);
  const step = TIMES.find((time) => time >= least) ?? DAY * niceStep(least / DAY);
  const ticks = [];
  for (let value = step; value < last; value += step) {
    ticks.push({ value, text: duration(value).replace(/\.0 s$/, " s") });
  }
  return ticks;
}

/**
 * @param {number} least more than 0
 * @returns {number} 1, 2 or 5 times a power of ten, no less than that
 */
export function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= least * 0.999) ?? 10);
}
