// People who use the keyboard, a screen reader, large contrast, less motion.

import assert from "node:assert/strict";
import { accessible } from "./access.js";
import { joins, scenario, sees } from "./stage.js";
import { ADMIN_TOKEN } from "./program.js";

scenario("axe finds nothing on the topics, the wait and the notices", async (stage) => {
  const ann = await stage.person();
  await accessible(ann, "topics");
  await joins(ann, 3);
  await sees(ann, "waiting");
  await accessible(ann, "waiting");
  await stage.program.operator("PUT", "admin/topics/1", { active: false });
  await ann.locator(".notice").waitFor();
  await accessible(ann, "a notice");
  await stage.program.kill();
  await ann.locator(".away-place .away").waitFor();
  await accessible(ann, "away");
});

scenario("axe finds nothing in the console", async (stage) => {
  const page = await stage.person({ path: "console", locale: "en-US" });
  await accessible(page, "the door of the console");
  await page.getByLabel("Admin token").fill(ADMIN_TOKEN);
  await page.keyboard.press("Enter");
  await page.locator(".tiles").waitFor();
  await accessible(page, "the console");
});

scenario("with the keyboard alone", async (stage) => {
  const ann = await stage.person({ locale: "en-US" });
  await ann.keyboard.press("Tab");
  assert.equal(await ann.evaluate(() => document.activeElement?.className), "skip");
  await ann.keyboard.press("Enter");
  await ann.keyboard.press("Tab");
  assert.equal(await ann.evaluate(() => /** @type {any} */ (document.activeElement).name), "size");
  await ann.keyboard.press("ArrowRight");
  assert.equal(await ann.locator('input[name="size"]:checked').inputValue(), "3");
  await ann.keyboard.press("Tab");
  await ann.keyboard.press("Enter");
  await sees(ann, "waiting");
  // The focus has moved to the heading of the new screen.
  assert.equal(await ann.evaluate(() => document.activeElement?.tagName), "H1");
  await ann.keyboard.press("Tab");
  await ann.keyboard.press("Enter");
  await sees(ann, "topics");
  assert.equal(await ann.evaluate(() => document.activeElement?.tagName), "H1");
});

scenario("who wants less motion has less", async (stage) => {
  const ann = await stage.person({ reducedMotion: "reduce" });
  await joins(ann, 3);
  await sees(ann, "waiting");
  const moving = await ann.evaluate(() => document.getAnimations().length);
  assert.equal(moving, 0);
});

scenario("at 360 pixels nothing has to be scrolled sideways", async (stage) => {
  for (const locale of /** @type {const} */ (["ja-JP", "en-US"])) {
    const ann = await stage.person({ locale, viewport: { width: 360, height: 640 } });
    const wide = () => ann.evaluate(() => document.documentElement.scrollWidth);
    assert.ok((await wide()) <= 360, "topics");
    await joins(ann, 3, locale === "ja-JP" ? 0 : 1);
    await sees(ann, "waiting");
    assert.ok((await wide()) <= 360, "waiting");
  }
});
