// What the page says, in the language that the browser or the person prefers.

import en from "../i18n/en.js";
import ja from "../i18n/ja.js";
import { recall, remember } from "./view.js";

/**
 * @typedef {string | { one?: string, other: string }} Entry a sentence, or one for each number
 * @typedef {Record<string, Entry>} Catalogue
 * @typedef {"ja" | "en"} Language
 */

/** @type {Record<Language, Catalogue>} */
const CATALOGUES = { ja, en };

/** @type {Language[]} */
export const LANGUAGES = ["ja", "en"];

/** @returns {Language} */
function preferred() {
  const wanted = [recall("language"), ...(navigator.languages ?? [])];
  for (const each of wanted) {
    const found = LANGUAGES.find((language) => each?.toLowerCase().startsWith(language));
    if (found) return found;
  }
  return "en";
}

/** The language in use, and those who want to know when it changes. */
class Speaker {
  language = preferred();
  #plural = new Intl.PluralRules(this.language);
  #number = new Intl.NumberFormat(this.language);
  /** @type {Set<() => void>} */
  listeners = new Set();

  constructor() {
    document.documentElement.lang = this.language;
    // Another tab of the same person has switched.
    addEventListener("storage", ({ key }) => {
      if (key === "aiseki.language") this.use(preferred());
    });
  }

  /** @param {Language} language */
  use(language) {
    this.language = language;
    this.#plural = new Intl.PluralRules(language);
    this.#number = new Intl.NumberFormat(language);
    document.documentElement.lang = language;
    for (const listener of this.listeners) listener();
  }

  /**
   * A sentence of the catalogue with what belongs into it.
   * @param {string} key
   * @param {Record<string, string | number>} [values]
   */
  say(key, values = {}) {
    const entry = CATALOGUES[this.language][key] ?? key;
    const n = Number(values.n);
    const form =
      typeof entry === "string"
        ? entry
        : ((this.#plural.select(n) === "one" ? entry.one : undefined) ?? entry.other);
    return form.replace(/\{(\w+)\}/g, (whole, name) => {
      const value = values[name];
      if (value === undefined) return whole;
      return typeof value === "number" ? this.#number.format(value) : value;
    });
  }

  /** @param {string} key */
  knows(key) {
    return key in CATALOGUES[this.language];
  }

  /**
   * What a person is called who has this seat.
   * @param {number} seat
   */
  name(seat) {
    return this.say(`seat.${((seat - 1) % 8) + 1}`);
  }

  /**
   * A time of day.
   * @param {string | number} at
   */
  clock(at) {
    return new Date(at).toLocaleTimeString(this.language, { hour: "numeric", minute: "2-digit" });
  }
}

export const speaker = new Speaker();

/**
 * @param {string} key
 * @param {Record<string, string | number>} [values]
 */
export const say = (key, values) => speaker.say(key, values);

/** @param {Language} language */
export function choose(language) {
  remember("language", language);
  speaker.use(language);
}

/**
 * A duration as a clock shows it: 0:42.
 * @param {number} ms
 */
export function minutes(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
