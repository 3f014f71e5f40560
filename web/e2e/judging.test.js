// Reporting somebody, and never sitting with them again.

import assert from "node:assert/strict";
import { accessible } from "./access.js";
import { joins, meet, reads, says, scenario, sees, surely } from "./stage.js";
import { ADMIN_TOKEN } from "./program.js";

scenario("somebody is reported, and it reaches the operator", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person({ locale: "en-US" }), stage.person()]);
  await meet([ann, bob]);
  await says(bob, "よくない言葉");
  await reads(ann, "よくない言葉");
  await ann.getByRole("button", { name: "Persimmon" }).click();
  await accessible(ann, "about somebody");
  await ann.getByRole("button", { name: "Report" }).click();
  await ann.getByLabel("What happened?").fill("Rude words");
  await ann.getByRole("dialog").getByRole("button", { name: "Report" }).click();
  await ann.getByText("Reported. Thank you.").waitFor();
  const reports = await stage.program.operator("GET", "admin/reports");
  assert.match(JSON.stringify(reports), /Rude words/);
  assert.match(JSON.stringify(reports), /よくない言葉/);

  const page = await stage.person({ path: "console", locale: "en-US" });
  await page.getByLabel("Admin token").fill(ADMIN_TOKEN);
  await page.keyboard.press("Enter");
  await page.getByText("Persimmon: Rude words").waitFor();
  await page.getByText("1 message before it").click();
  await page.locator(".said-then").getByText("よくない言葉").waitFor();
  await accessible(page, "a report");
  const ban = page.getByRole("button", { name: /^Ban Persimmon: Rude words/ });
  await surely(ban);
  await page.getByText("There is nothing to judge.").waitFor();
  await page.getByRole("button", { name: /^Lift the ban/ }).waitFor();
  await bob.locator('main:not([data-screen="room"])').waitFor();
});

scenario("who is blocked is not met again", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person({ locale: "en-US" }), stage.person()]);
  await meet([ann, bob]);
  await ann.getByRole("button", { name: "Persimmon" }).click();
  await ann.getByRole("button", { name: "Do not seat us together again" }).click();
  await ann.getByRole("dialog").getByRole("button", { name: "Not again" }).click();
  await ann.getByText("You will not be seated with Persimmon again.").waitFor();
  await ann.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await ann.getByRole("button", { name: "Leave", exact: true }).click();
  await ann.getByRole("dialog").getByRole("button", { name: "Leave" }).click();
  await sees(bob, "ended");
  await ann.getByRole("button", { name: "Choose another topic" }).click();
  await joins(ann, 2);
  await sees(ann, "waiting");
  await bob.getByRole("button", { name: "ほかの人を探す" }).click();
  await sees(bob, "waiting");
  // Without the block the two would have this table already.
  const cai = await stage.person();
  await joins(cai, 2);
  await sees(ann, "room");
  await sees(cai, "room");
  await sees(bob, "waiting");
});

scenario("a report that needs no ban is done with", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person({ locale: "en-US" }), stage.person()]);
  await meet([ann, bob]);
  await ann.getByRole("button", { name: "Persimmon" }).click();
  await ann.getByRole("button", { name: "Report" }).click();
  await ann.getByLabel("What happened?").fill("Nothing much");
  await ann.getByRole("dialog").getByRole("button", { name: "Report" }).click();
  await ann.getByText("Reported. Thank you.").waitFor();
  const page = await stage.person({ path: "console", locale: "en-US" });
  await page.getByLabel("Admin token").fill(ADMIN_TOKEN);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: /^No ban for Persimmon/ }).click();
  await page.getByText("There is nothing to judge.").waitFor();
  const { bans } = await stage.program.operator("GET", "admin/bans");
  assert.deepEqual(bans, []);
  await sees(bob, "room");
});

scenario("a refusal is told in words, in the dialog itself", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person({ locale: "en-US" }), stage.person()]);
  await meet([ann, bob]);
  await ann.route(/\/report$/, (route) => route.abort());
  await ann.getByRole("button", { name: "Persimmon" }).click();
  await ann.getByRole("button", { name: "Report" }).click();
  await accessible(ann, "the report");
  await ann.getByLabel("What happened?").fill("Rude words");
  await ann.getByRole("dialog").getByRole("button", { name: "Report" }).click();
  await ann.getByRole("alert").getByText("The server cannot be reached").waitFor();
});
