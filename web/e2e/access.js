// What axe finds on a page.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

/** @import { Page } from "playwright-core" */

const AXE = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/**
 * What axe finds on the page as it is, in both themes.
 * @param {Page} page
 * @param {string} what
 */
export async function accessible(page, what) {
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.evaluate(AXE);
    const violations = await page.evaluate(async () => {
      const results = await axe.run(document, {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      });
      return results.violations.map(
        (/** @type {any} */ { id, nodes }) =>
          `${id}: ${nodes.map((/** @type {any} */ node) => `${node.html} ${node.failureSummary}`).join("\n")}`,
      );
    });
    assert.deepEqual(violations, [], `${what} (${colorScheme})`);
  }
}
