// How numbers are spread over buckets, two of which are an octave. The rules are those of `model::Spread` in Rust.

/**
 * @typedef {object} Spread
 * @property {number[]} counts the numbers in each bucket, up to the last that has any
 * @property {number} sum
 * @property {number} largest
 */

/** @returns {Spread} without numbers */
export function emptySpread() {
  return { counts: [], sum: 0, largest: 0 };
}

/**
 * @param {Spread} into
 * @param {Spread} more
 */
export function addSpread(into, more) {
  more.counts.forEach((count, bucket) => {
    into.counts[bucket] = (into.counts[bucket] ?? 0) + count;
  });
  into.sum += more.sum;
  into.largest = Math.max(into.largest, more.largest);
}

/**
 * @param {Spread} spread
 * @returns {number} of the numbers
 */
export function countOf({ counts }) {
  return counts.reduce((sum, count) => sum + count, 0);
}

/**
 * @param {number} bucket
 * @returns {number} the largest number in it
 */
export function largestIn(bucket) {
  if (bucket < 3) {
    return bucket;
  }
  return bucket % 2 === 0 ? 2 ** (bucket / 2) : 3 * 2 ** ((bucket - 3) / 2);
}

/**
 * @param {Spread} spread
 * @param {number} part of all numbers that the result is to be as large as: 0.5 for the median
 * @returns {number} wrong by a quarter at most; 0 without numbers
 */
export function quantile(spread, part) {
  const rank = Math.max(1, Math.ceil(part * countOf(spread)));
  let below = 0;
  for (const [bucket, count] of spread.counts.entries()) {
    if (count > 0 && below + count >= rank) {
      const from = bucket === 0 ? 0 : largestIn(bucket - 1);
      const to = Math.max(from, Math.min(largestIn(bucket), spread.largest));
      return from + Math.ceil((to - from) / 2);
    }
    below += count;
  }
  return 0;
}
