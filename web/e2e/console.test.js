// The operator's page.

import assert from "node:assert/strict";
import { joins, meet, scenario, sees, surely, until } from "./stage.js";
import { ADMIN_TOKEN } from "./program.js";

/** @import { Page } from "playwright-core" */
/** @import { Stage } from "./stage.js" */

/**
 * @param {Stage} stage
 * @returns {Promise<Page>}
 */
async function enters(stage) {
  const page = await stage.person({ path: "console", locale: "en-US", viewport: { width: 1280, height: 900 } });
  await page.getByLabel("Admin token").fill(ADMIN_TOKEN);
  await page.getByRole("button", { name: "Enter" }).click();
  await page.locator(".tiles").waitFor();
  return page;
}

scenario("the door opens to the token alone, and forgets it", async (stage) => {
  const page = await stage.person({ path: "console", locale: "en-US" });
  await page.getByLabel("Admin token").fill("something-else-entirely");
  await page.keyboard.press("Enter");
  await page.getByText("This token does not open the door.").waitFor();
  await page.getByLabel("Admin token").fill(ADMIN_TOKEN);
  await page.keyboard.press("Enter");
  await page.locator(".tiles").waitFor();
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert.doesNotMatch(kept, new RegExp(ADMIN_TOKEN));
  await page.reload();
  await page.getByLabel("Admin token").waitFor();
});

scenario("who waits and who talks is seen, and a table is closed", async (stage) => {
  const page = await enters(stage);
  const people = await Promise.all([stage.person(), stage.person(), stage.person()]);
  await meet(people.slice(0, 2), 1);
  await joins(people[2], 3, 2);
  await sees(people[2], "waiting");
  const queues = page.getByRole("region", { name: "Queues" });
  await queues.getByText("旅に出るならどこへ").waitFor();
  const close = page.getByRole("button", { name: /^Close the table at A book/ });
  await surely(close);
  await sees(people[0], "ended");
  await page.getByText("There are no live tables.").waitFor();
  await until(async () => (await page.locator(".tiles dd").first().textContent()) === "1", "one waits");
});

scenario("topics are added, renamed and closed", async (stage) => {
  const page = await enters(stage);
  const ann = await stage.person();
  await page.getByLabel("Title").fill("雨の日の過ごし方");
  await page.getByRole("button", { name: "Add" }).click();
  await ann.locator(".strip").getByText("雨の日の過ごし方").waitFor();
  await page.getByRole("button", { name: "Rename 雨の日の過ごし方" }).click();
  await page.getByLabel("Title").first().fill("雪の日");
  await page.getByRole("button", { name: "Save" }).click();
  await ann.locator(".strip").getByText("雪の日").waitFor();
  await surely(page.getByRole("button", { name: "Close 雪の日" }));
  await ann.locator(".strip").getByText("雪の日").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Open 雪の日" }).waitFor();
});

scenario("somebody is banned and forgiven", async (stage) => {
  const page = await enters(stage);
  await page.getByLabel("Session or address").fill("192.0.2.0/24");
  await page.getByLabel("Reason").fill("noise");
  await page.getByLabel("Until").selectOption("day");
  await page.getByRole("button", { name: "Ban", exact: true }).click();
  await page.getByText("192.0.2.0/24").waitFor();
  const { bans } = await stage.program.operator("GET", "admin/bans");
  assert.equal(bans[0].reason, "noise");
  assert.ok(bans[0].expires_at);
  await page.getByLabel("Session or address").fill("nonsense");
  await page.getByRole("button", { name: "Ban", exact: true }).click();
  await page.getByRole("alert").getByText("That did not work").waitFor();
  const lift = page.getByRole("button", { name: /^Lift the ban of 192/ });
  await surely(lift);
  await page.getByText("Nobody is banned.").waitFor();
});
