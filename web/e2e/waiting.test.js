// Choosing, waiting, stopping; what a person is told.

import assert from "node:assert/strict";
import { joins, scenario, sees, until } from "./stage.js";

scenario("somebody chooses, waits and stops", async (stage) => {
  const ann = await stage.person();
  await sees(ann, "topics");
  assert.equal(await ann.locator(".strip").count(), 6);
  await joins(ann, 2, 1);
  await sees(ann, "waiting");
  const title = "A book that changed my mind";
  assert.equal(await ann.locator(".what .topic").textContent(), title);
  assert.match(await ann.title(), /お待ちください/);
  await until(async () => (await ann.locator(".digits").textContent()) !== "0:00", "the clock goes");
  await ann.getByRole("button", { name: "待つのをやめる" }).click();
  await sees(ann, "topics");
  assert.equal(await ann.locator(".notice").count(), 0, "nobody is told what they did themselves");
  const { queues } = await stage.program.operator("GET", "admin/queues");
  assert.deepEqual(queues, []);
});

scenario("others see that somebody waits, and that a table would be complete", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person(), stage.person({ locale: "en-US" })]);
  await joins(ann, 2, 2);
  await sees(ann, "waiting");
  const strip = bob.locator(".strip").nth(2);
  await strip.getByText("1 waiting").waitFor();
  await strip.getByText("Starts at once").waitFor();
});

scenario("the page follows the browser's language, and can be switched", async (stage) => {
  const ann = await stage.person({ locale: "en-US" });
  await ann.getByRole("heading", { name: "On the menu today" }).waitFor();
  assert.equal(await ann.evaluate(() => document.documentElement.lang), "en");
  await ann.getByRole("button", { name: "日本語" }).click();
  await ann.getByRole("heading", { name: "本日の話題" }).waitFor();
  await ann.reload();
  await ann.getByRole("heading", { name: "本日の話題" }).waitFor();
  assert.equal(await ann.evaluate(() => document.documentElement.lang), "ja");
});

scenario(
  "a wait that ends is explained, and once",
  async (stage) => {
    const ann = await stage.person({ locale: "en-US" });
    await joins(ann, 2);
    await sees(ann, "waiting");
    await ann.getByText("If nobody comes within").waitFor();
    await sees(ann, "topics");
    await ann.getByRole("alert").getByText("Nobody came in time").waitFor();
    await ann.getByRole("button", { name: "Dismiss" }).click();
    await ann.reload();
    await sees(ann, "topics");
    assert.equal(await ann.locator(".notice").count(), 0);
  },
  { WAIT_TIMEOUT: "6s" },
);

scenario("a topic that is closed while one waits", async (stage) => {
  const ann = await stage.person({ locale: "en-US" });
  await joins(ann, 3, 0);
  await sees(ann, "waiting");
  await stage.program.operator("PUT", "admin/topics/1", { active: false });
  await sees(ann, "topics");
  await ann.getByText("This topic is over").waitFor();
  await until(async () => (await ann.locator(".strip").count()) === 5, "the topic is gone");
});

scenario("a banned person is told so", async (stage) => {
  const ann = await stage.person({ locale: "en-US" });
  await joins(ann, 2);
  await sees(ann, "waiting");
  await stage.program.operator("POST", "admin/bans", { address: "127.0.0.1", reason: "test" });
  await ann.getByText("You cannot take part right now").waitFor();
  await ann.getByRole("button", { name: "Dismiss" }).click();
  await joins(ann, 2, 1);
  await ann.getByText("You cannot take part right now").waitFor();
  await sees(ann, "topics");
});

scenario(
  "somebody too fast is told how long to wait",
  async (stage) => {
    const ann = await stage.person({ locale: "en-US" });
    await joins(ann, 2);
    await sees(ann, "waiting");
    await ann.getByRole("button", { name: "Stop waiting" }).click();
    await sees(ann, "topics");
    await joins(ann, 2, 1);
    await ann.getByText(/You can choose again in 0:\d\d/).waitFor();
    await ann.getByText("You can choose again.").waitFor();
    await joins(ann, 2, 1);
    await sees(ann, "waiting");
  },
  { RATE_LIMIT: "1/9s" },
);
