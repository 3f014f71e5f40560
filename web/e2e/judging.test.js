// Reporting somebody, and never sitting with them again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible } from "./access.js";
import { meet, reads, says, scenario } from "./stage.js";
import { Program } from "./program.js";

const program = await Program.start();
const { paths } = await (await fetch(new URL("openapi.json", program.url))).json();
await program.end();

if ("/api/rooms/{room_id}/report" in paths) {
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
  });

  scenario("who is blocked is not met again", async (stage) => {
    const [ann, bob] = await Promise.all([stage.person({ locale: "en-US" }), stage.person()]);
    await meet([ann, bob]);
    await ann.getByRole("button", { name: "Persimmon" }).click();
    await ann.getByRole("button", { name: "Do not seat us together again" }).click();
    await ann.getByRole("dialog").getByRole("button", { name: "Not again" }).click();
    await ann.getByText("You will not be seated with Persimmon again.").waitFor();
  });
} else {
  test("reports and blocks", { skip: "this server has none yet" }, () => {});
}

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
