// Waiting between attempts.

const FIRST_MS = 250;
const LONGEST_MS = 8_000;

/**
 * How long to wait before the next attempt. It doubles, and is spread out so that clients who lost
 * the same server do not come back as one.
 * @param {number} failures attempts that failed in a row, from 1
 * @param {number} [atLeastMs] what the server asked for
 * @param {() => number} [random] a number from 0 to 1
 */
export function delayMs(failures, atLeastMs = 0, random = Math.random) {
  const most = Math.min(FIRST_MS * 2 ** Math.min(failures - 1, 16), LONGEST_MS);
  return Math.max(most / 2 + (most / 2) * random(), atLeastMs);
}

/**
 * A sleep that can be cut short.
 */
export class Nap {
  /** @type {(() => void) | undefined} */
  #wake;

  /**
   * @param {number} ms
   * @returns {Promise<void>}
   */
  sleep(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  wake() {
    this.#wake?.();
  }
}
