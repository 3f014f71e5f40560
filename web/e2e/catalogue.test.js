// The two catalogues say the same, and what the page asks for is in them.

import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { test } from "node:test";
import en from "../i18n/en.js";
import ja from "../i18n/ja.js";
import { copies } from "../vendor.mjs";

/** @import { Entry } from "../page/language.js" */

/** @param {Entry} entry */
const forms = (entry) => (typeof entry === "string" ? [entry] : Object.values(entry));
/** @param {string} text */
const values = (text) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();

test("both catalogues have the same keys", () => {
  assert.deepEqual(Object.keys(en).sort(), Object.keys(ja).sort());
});

test("a sentence takes the same values in both, and in each of its forms", () => {
  for (const key of Object.keys(ja)) {
    const all = [...forms(ja[key]), ...forms(en[key])].map(values);
    for (const each of all) assert.deepEqual(each, all[0], key);
    assert.equal(typeof ja[key], typeof en[key], key);
  }
});

test("no sentence is left in the other language or empty", () => {
  for (const key of Object.keys(ja)) {
    for (const text of forms(en[key])) {
      assert.ok(text.trim(), key);
      assert.doesNotMatch(text, /[\u3040-\u30ff\u4e00-\u9fff]/, key);
    }
  }
});

test("what the page says is in the catalogue, and the catalogue has nothing else", async () => {
  /** @type {string[]} */
  const sources = [];
  for (const folder of ["page", "console"]) {
    for (const name of await readdir(new URL(`../${folder}/`, import.meta.url))) {
      if (name.endsWith(".js")) {
        sources.push(await readFile(new URL(`../${folder}/${name}`, import.meta.url), "utf8"));
      }
    }
  }
  const source = sources.join("\n");
  const asked = [...source.matchAll(/["`]((?:[a-z_]+\.)+[a-z_0-9]+)["`]/g)].map(([, key]) => key);
  const files = /\.(js|css|html|svg)$/;
  for (const key of asked.filter((key) => /^(app|topics|waiting|matched|room|report|block|ended|notice|away|console|seat)\./.test(key))) {
    if (!files.test(key)) assert.ok(key in en || `${key}.body` in en, `nothing is said for ${key}`);
  }
  // Keys that are put together from a code, a seat or a reason have only their beginning in the source.
  for (const key of Object.keys(en)) {
    const parts = key.split(".");
    const beginnings = parts.map((_, i) => parts.slice(0, i + 1).join("."));
    const whole = [`"${key}"`, `\`${key}\``];
    const used =
      whole.some((quoted) => source.includes(quoted)) ||
      beginnings.slice(0, -1).some((beginning) => source.includes(`\`${beginning}.\${`)) ||
      /\.(body|named)$/.test(key);
    assert.ok(used, `nothing asks for ${key}`);
  }
});

test("the libraries of the page are those of the lock file", async () => {
  for (const [name, text] of await copies()) {
    const kept = await readFile(new URL(`../vendor/${name}`, import.meta.url), "utf8");
    assert.equal(kept, text, `web/vendor/${name} differs: npm run vendor`);
  }
});
