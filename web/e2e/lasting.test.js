// Reloads, lost servers, two tabs, a base path: the person is where they were.

import assert from "node:assert/strict";
import { joins, scenario, sees, until } from "./stage.js";

scenario("a reload keeps the place, and the time waited", async (stage) => {
  const ann = await stage.person();
  await joins(ann, 3, 1);
  await sees(ann, "waiting");
  await until(async () => /0:0[2-9]/.test((await ann.locator(".digits").textContent()) ?? ""), "2 s");
  await ann.reload();
  await sees(ann, "waiting");
  assert.doesNotMatch((await ann.locator(".digits").textContent()) ?? "", /0:0[01]/);
  assert.equal(await ann.locator(".what .topic").textContent(), "A book that changed my mind");
});

scenario("a server that is killed while one waits", async (stage) => {
  const ann = await stage.person({ locale: "en-US" });
  await joins(ann, 2, 1);
  await sees(ann, "waiting");
  await stage.program.kill();
  await ann.getByText("The server cannot be reached").waitFor();
  await sees(ann, "waiting");
  await ann.getByText("Your place is kept").waitFor();
  await stage.program.start();
  await ann.getByText("The server cannot be reached").waitFor({ state: "detached" });
  await sees(ann, "waiting");
  const bob = await stage.person();
  await joins(bob, 2, 1);
  await sees(ann, "room");
  await sees(bob, "room");
});

scenario("a server that is away when one chooses", async (stage) => {
  const ann = await stage.person({ locale: "en-US" });
  await stage.program.kill();
  await joins(ann, 2);
  await ann.locator(".strip").first().getByText("Looking for a table").waitFor();
  await stage.program.start();
  // Whichever attempt comes through first: the person waits, or is told that they may try again.
  await ann.locator('main[data-screen="waiting"], .notice').first().waitFor();
  if ((await ann.locator(".notice").count()) > 0) {
    await ann.getByText("The server cannot be reached").last().waitFor();
    await until(async () => (await ann.locator(".away-place .away").count()) === 0, "the server is back");
    await joins(ann, 2);
  }
  await sees(ann, "waiting");
});

scenario("a network that is gone and comes back", async (stage) => {
  const ann = await stage.person({ locale: "en-US" });
  await joins(ann, 2, 1);
  await sees(ann, "waiting");
  await ann.context().setOffline(true);
  await ann.getByText("The server cannot be reached").waitFor();
  await ann.getByText("Checking your network").waitFor();
  await ann.context().setOffline(false);
  await ann.getByText("The server cannot be reached").waitFor({ state: "detached" });
  await sees(ann, "waiting");
});

scenario("two tabs of one person agree", async (stage) => {
  const one = await stage.person();
  const two = await stage.person({ tabOf: one.context() });
  await joins(one, 2, 3);
  await sees(one, "waiting");
  await sees(two, "waiting");
  await two.getByRole("button", { name: "待つのをやめる" }).click();
  await sees(two, "topics");
  await sees(one, "topics");
  await joins(two, 3, 0);
  await sees(one, "waiting");
  const { queues } = await stage.program.operator("GET", "admin/queues");
  assert.equal(queues.length, 1);
  assert.equal(queues[0].waiting, 1);
});

scenario("two tabs that open at once are one person", async (stage) => {
  const one = await stage.person({ bare: true });
  const two = await stage.person({ tabOf: one.context() });
  await joins(two, 2, 0);
  await sees(two, "waiting");
  await sees(one, "waiting");
});

scenario(
  "below a base path",
  async (stage) => {
    const ann = await stage.person({ locale: "en-US" });
    assert.match(ann.url(), /\/talk\/$/);
    await joins(ann, 2);
    await sees(ann, "waiting");
    await ann.goto(ann.url().replace(/\/$/, ""));
    await sees(ann, "waiting");
    assert.match(ann.url(), /\/talk\/$/);
    const bob = await stage.person();
    await joins(bob, 2);
    await sees(ann, "room");
  },
  { BASE_PATH: "/talk" },
);

scenario("where sockets do not go through, the state comes in other ways", async (stage) => {
  const ann = await stage.person({ locale: "en-US", bare: true });
  await ann.routeWebSocket(/ws\/matching/, (socket) => void socket.close());
  const stream = ann.waitForRequest(/api\/matching\/events/);
  await ann.reload();
  await sees(ann, "topics");
  await stream;
  await joins(ann, 2);
  await sees(ann, "waiting");
  const bob = await stage.person();
  await joins(bob, 2);
  await sees(ann, "room");
});
