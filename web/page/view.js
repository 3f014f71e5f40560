// What all parts of the page draw with.

import { h, render } from "../vendor/preact.js";
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/hooks.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);
export { render, useEffect, useLayoutEffect, useRef, useState };

/**
 * Draws again each time that something changes.
 * @param {Set<() => void>} listeners
 */
export function useChanges(listeners) {
  const [, again] = useState(0);
  useLayoutEffect(() => {
    const listener = () => again((n) => n + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, [listeners]);
}

/** Draws again each second, for what counts time. */
export function useSeconds() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/**
 * What was remembered on this device. Where storage is forbidden, nothing is.
 * @param {string} key
 */
export function recall(key) {
  try {
    return localStorage.getItem(`aiseki.${key}`) ?? undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {string} key
 * @param {string} value
 */
export function remember(key, value) {
  try {
    localStorage.setItem(`aiseki.${key}`, value);
  } catch {
    // The page works without.
  }
}

/** What lasts as long as this tab: a reload shows the same again. */
export const tab = {
  /** @param {string} key */
  get(key) {
    try {
      return JSON.parse(sessionStorage.getItem(`aiseki.${key}`) ?? "null");
    } catch {
      return null;
    }
  },
  /**
   * @param {string} key
   * @param {unknown} value
   */
  set(key, value) {
    try {
      if (value === null) sessionStorage.removeItem(`aiseki.${key}`);
      else sessionStorage.setItem(`aiseki.${key}`, JSON.stringify(value));
    } catch {
      // The page works without.
    }
  },
};
