// Copies the libraries of the page from what npm installed into `vendor`, each with its licence:
// `npm run vendor`. A test says when the copies and the lock file differ.

import { readFile, writeFile, mkdir } from "node:fs/promises";
import { pathToFileURL } from "node:url";

/** Source below node_modules, and its name in `vendor`. */
const COPIES = [
  ["preact/dist/preact.mjs", "preact.js"],
  ["preact/hooks/dist/hooks.mjs", "hooks.js"],
  ["preact/LICENSE", "preact.LICENSE"],
  ["htm/dist/htm.mjs", "htm.js"],
  ["htm/LICENSE", "htm.LICENSE"],
];

/**
 * What the copies have to hold. Browsers know no package names, so an import of "preact" becomes one
 * of the file beside it; and the maps are not kept.
 * @returns {Promise<[string, string][]>}
 */
export async function copies() {
  return Promise.all(
    COPIES.map(async ([source, name]) => {
      const text = await readFile(new URL(`node_modules/${source}`, import.meta.url), "utf8");
      const own = text
        .replace(/from\s*"preact"/g, 'from "./preact.js"')
        .replace(/\/\/# sourceMappingURL=.*\n?/, "");
      return /** @type {[string, string]} */ ([name, own.trimEnd() + "\n"]);
    }),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await mkdir(new URL("vendor/", import.meta.url), { recursive: true });
  for (const [name, text] of await copies()) {
    await writeFile(new URL(`vendor/${name}`, import.meta.url), text);
  }
}
