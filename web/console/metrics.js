// Reading what the server counts (OpenMetrics text).

/** @typedef {{ labels: Record<string, string>, value: number }} Sample */

/**
 * All samples by name.
 * @param {string} text
 * @returns {Map<string, Sample[]>}
 */
export function parse(text) {
  /** @type {Map<string, Sample[]>} */
  const samples = new Map();
  for (const line of text.split("\n")) {
    const found = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!found) continue;
    const [, name, given = "", value] = found;
    /** @type {Record<string, string>} */
    const labels = {};
    for (const [, label, content] of given.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[label] = content;
    }
    samples.set(name, [...(samples.get(name) ?? []), { labels, value: Number(value) }]);
  }
  return samples;
}

/**
 * The sum over all labels.
 * @param {Map<string, Sample[]>} samples
 * @param {string} name
 */
export function sum(samples, name) {
  return (samples.get(name) ?? []).reduce((total, { value }) => total + value, 0);
}

/**
 * The greatest over all labels.
 * @param {Map<string, Sample[]>} samples
 * @param {string} name
 */
export function greatest(samples, name) {
  return Math.max(0, ...(samples.get(name) ?? []).map(({ value }) => value));
}

/**
 * How many fell into each bucket of a histogram, not counting those below.
 * @param {Map<string, Sample[]>} samples
 * @param {string} name
 * @returns {{ limit: number, count: number }[]}
 */
export function buckets(samples, name) {
  let before = 0;
  return (samples.get(`${name}_bucket`) ?? []).map(({ labels, value }) => {
    const count = value - before;
    before = value;
    const limit = labels.le === "+Inf" ? Infinity : Number(labels.le);
    return { limit, count };
  });
}

/**
 * About where the middle lies, if there is anything.
 * @param {{ limit: number, count: number }[]} histogram
 * @returns {number | undefined}
 */
export function median(histogram) {
  const all = histogram.reduce((total, { count }) => total + count, 0);
  if (all === 0) return undefined;
  let below = 0;
  let lower = 0;
  for (const { limit, count } of histogram) {
    if (below + count >= all / 2) {
      if (limit === Infinity) return lower;
      return lower + ((limit - lower) * (all / 2 - below)) / count;
    }
    below += count;
    lower = limit;
  }
  return lower;
}
