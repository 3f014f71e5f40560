// Pictures of each screen in target/screenshots, for people to look at.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { joins, meet, reads, says, scenario, sees, until } from "./stage.js";
import { ADMIN_TOKEN, ROOT } from "./program.js";

/** @import { Page } from "playwright-core" */

const FOLDER = join(ROOT, "target/screenshots");
mkdirSync(FOLDER, { recursive: true });

/** Each width in one language and theme, so that four looks show all. */
const LOOKS = /** @type {const} */ ([
  { width: 360, height: 720, locale: "ja-JP", colorScheme: "light" },
  { width: 360, height: 720, locale: "en-US", colorScheme: "dark" },
  { width: 1280, height: 800, locale: "ja-JP", colorScheme: "dark" },
  { width: 1280, height: 800, locale: "en-US", colorScheme: "light" },
]);

for (const { width, height, locale, colorScheme } of LOOKS) {
  scenario(`pictures at ${width} pixels, ${colorScheme}, ${locale}`, async (stage) => {
    const look = { locale, colorScheme, viewport: { width, height }, reducedMotion: /** @type {const} */ ("reduce") };
    /**
     * @param {Page} page
     * @param {string} name
     */
    const picture = (page, name) =>
      page.screenshot({
        path: join(FOLDER, `${name}-${width}-${colorScheme}-${locale.slice(0, 2)}.png`),
        fullPage: true,
      });
    const [ann, bob, cai, other] = await Promise.all([
      stage.person(look),
      stage.person(look),
      stage.person(look),
      stage.person(look),
    ]);
    await joins(other, 2, 1);
    await sees(other, "waiting");
    await ann.locator(".seal").waitFor();
    await picture(ann, "1-topics");
    await joins(bob, 3, 0);
    await sees(bob, "waiting");
    await joins(ann, 3, 0);
    await sees(ann, "waiting");
    await ann.locator(".table .here").first().waitFor();
    await picture(ann, "2-waiting");
    await bob.locator("button.quiet").click();
    await ann.locator("button.quiet").click();
    await Promise.all([sees(ann, "topics"), sees(bob, "topics")]);
    await meet([ann, bob, cai], 4);
    await picture(cai, "3-room-begins");
    await says(ann, "こんばんは。最近は静かなピアノばかり聴いています。");
    await reads(bob, "静かなピアノ");
    await says(bob, "Hi! I have been on a city pop trip.");
    await reads(cai, "city pop");
    await says(bob, "It started with one song, as it does.");
    await reads(cai, "as it does");
    await says(cai, "わかります。雨の日にぴったりですね。\n\n作業用の一枚、よかったら教えてください。");
    await reads(ann, "雨の日");
    // As slowly as people write: who goes on writing is told of again.
    await until(async () => {
      await bob.locator("#composer").pressSequentially("If you ", { delay: 50 });
      return ann.locator(".typing .dots").isVisible();
    }, "somebody is seen writing");
    await picture(ann, "4-room");
    await ann.locator("button.person").first().click();
    await ann.locator("dialog button.quiet").first().click();
    await picture(ann, "5-report");
    await ann.keyboard.press("Escape");
    await ann.locator(".room-head button").click();
    await picture(ann, "6-leaving");
    await ann.locator("dialog .strong").click();
    await sees(ann, "ended");
    await picture(ann, "7-ended");
    await stage.program.kill();
    await cai.locator(".offline").waitFor();
    await picture(cai, "8-away");
    await stage.program.start();
    const page = await stage.person({ ...look, path: "console" });
    await page.locator("input[type=password]").fill(ADMIN_TOKEN);
    await page.keyboard.press("Enter");
    await page.locator(".tiles").waitFor();
    await picture(page, "9-console");
  });
}
