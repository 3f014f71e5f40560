// Two and three people meet and talk.

import assert from "node:assert/strict";
import { joins, meet, reads, says, scenario, sees, transcript, until } from "./stage.js";
import { accessible } from "./access.js";

scenario("two people meet and talk, each in their language", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person(), stage.person({ locale: "en-US" })]);
  await meet([ann, bob]);
  await says(ann, "こんばんは。");
  await reads(bob, "こんばんは。");
  await Promise.all([
    ann.getByText("柿さんが書いています").waitFor(),
    bob.locator("#composer").pressSequentially("Hel"),
  ]);
  await says(bob, "Hello! 𠮷野家 👋\nsecond line");
  await reads(ann, "second line");
  await bob.locator('[role="log"]').getByText("Indigo").first().waitFor();
  for (const page of [ann, bob]) {
    assert.deepEqual(await transcript(page), ["こんばんは。", "Hello! 𠮷野家 👋\nsecond line"]);
  }
  // While a word is being composed, Enter belongs to the input method.
  await ann.locator("#composer").fill("へんかん");
  await ann.locator("#composer").dispatchEvent("keydown", { key: "Enter", isComposing: true });
  assert.equal(await ann.locator("#composer").inputValue(), "へんかん");
  await accessible(ann, "the room");
});

scenario("three people talk at once and read the same", async (stage) => {
  const people = await Promise.all([stage.person(), stage.person(), stage.person({ locale: "en-US" })]);
  await meet(people, 2);
  const said = 5;
  await Promise.all(
    people.map(async (page, i) => {
      for (let n = 0; n < said; n += 1) await says(page, `${i}:${n}`);
    }),
  );
  for (const page of people) {
    await until(async () => (await transcript(page)).length === 3 * said, "all is there");
  }
  const [first, ...others] = await Promise.all(people.map(transcript));
  for (const other of others) assert.deepEqual(other, first);
  for (const i of [0, 1, 2]) {
    const own = first.filter((text) => text.startsWith(`${i}:`));
    assert.deepEqual(own, Array.from({ length: said }, (_, n) => `${i}:${n}`));
  }
});

scenario(
  "the third never comes",
  async (stage) => {
    const [ann, bob] = await Promise.all([stage.person({ locale: "en-US" }), stage.person()]);
    await joins(ann, 3);
    await sees(ann, "waiting");
    await ann.getByText(/you begin with fewer/).waitFor();
    await joins(bob, 3);
    await sees(ann, "room");
    await sees(bob, "room");
    await ann.getByText("The table is set for 2").waitFor();
    await says(ann, "Just the two of us");
    await reads(bob, "Just the two of us");
  },
  { FALLBACK_AFTER: "2s" },
);

scenario("somebody leaves, and both find what to do next", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person({ locale: "en-US" }), stage.person()]);
  await meet([ann, bob]);
  await says(ann, "Bye");
  await reads(bob, "Bye");
  await ann.getByRole("button", { name: "Leave", exact: true }).click();
  await ann.getByRole("dialog").getByText("You cannot come back").waitFor();
  await accessible(ann, "leaving");
  await ann.keyboard.press("Escape");
  await sees(ann, "room");
  await ann.getByRole("button", { name: "Leave", exact: true }).click();
  await ann.getByRole("dialog").getByRole("button", { name: "Leave" }).click();
  await sees(ann, "ended");
  await ann.getByRole("heading", { name: "You left the table" }).waitFor();
  await sees(bob, "ended");
  await bob.getByRole("heading", { name: "おひらきになりました" }).waitFor();
  await accessible(bob, "the end");
  await bob.reload();
  await sees(bob, "ended");
  await bob.getByRole("button", { name: "ほかの人を探す" }).click();
  await sees(bob, "waiting");
  await ann.getByRole("button", { name: "Choose another topic" }).click();
  await sees(ann, "topics");
});

scenario("somebody is called who looks elsewhere", async (stage) => {
  const ann = await stage.person({ locale: "en-US" });
  await ann.addInitScript(() => {
    Object.defineProperty(document, "hidden", { get: () => globalThis.__hidden === true });
  });
  await ann.reload();
  await joins(ann, 2);
  await sees(ann, "waiting");
  await ann.evaluate(() => void (globalThis.__hidden = true));
  const bob = await stage.person();
  await joins(bob, 2);
  await until(async () => (await ann.title()) === "● Your table is ready", "the title calls");
  await bob.locator("#composer").waitFor();
  await says(bob, "いますか");
  await until(async () => (await ann.title()).startsWith("(1)"), "the title counts");
});
