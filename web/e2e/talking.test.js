// Reloads, lost servers and networks, and two tabs, in the middle of a conversation.

import assert from "node:assert/strict";
import { Person } from "../client/index.js";
import { joins, meet, reads, says, scenario, sees, transcript, until } from "./stage.js";

scenario("a reload in the room brings back the seat and what was said", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person(), stage.person({ locale: "en-US" })]);
  await meet([ann, bob]);
  await says(ann, "いち");
  await says(bob, "two");
  await reads(ann, "two");
  await ann.reload();
  await sees(ann, "room");
  await reads(ann, "two");
  assert.deepEqual(await transcript(ann), ["いち", "two"]);
  await says(ann, "さん");
  await reads(bob, "さん");
});

scenario("a server that is killed while people talk", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person({ locale: "en-US" }), stage.person()]);
  await meet([ann, bob]);
  await says(ann, "before");
  await reads(bob, "before");
  await stage.program.kill();
  await ann.getByText("The connection is gone. Reconnecting").waitFor();
  await says(ann, "meanwhile");
  await ann.locator("ol.pending").getByText("meanwhile").waitFor();
  await says(bob, "そのあいだに");
  await stage.program.start();
  for (const page of [ann, bob]) {
    await reads(page, "meanwhile");
    await reads(page, "そのあいだに");
    assert.equal((await transcript(page)).length, 3);
    await until(async () => (await page.locator("ol.pending li").count()) === 0, "nothing is pending");
  }
  assert.deepEqual(await transcript(ann), await transcript(bob));
});

scenario("a network that is gone while people talk", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person({ locale: "en-US" }), stage.person()]);
  await meet([ann, bob]);
  await says(bob, "one");
  await reads(ann, "one");
  /** @type {import("playwright-core").WebSocketRoute[]} */
  const open = [];
  await ann.routeWebSocket(/ws\/rooms/, (socket) => {
    socket.connectToServer();
    open.push(socket);
  });
  await ann.reload();
  await reads(ann, "one");
  for (const socket of open) await socket.close({ code: 1001 });
  await says(bob, "two");
  await reads(ann, "two");
  await says(ann, "three");
  await reads(bob, "three");
  assert.deepEqual(await transcript(ann), ["one", "two", "three"]);
});

scenario("two tabs of one person in the room", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person(), stage.person({ locale: "en-US" })]);
  await meet([ann, bob]);
  await says(ann, "one");
  const second = await stage.person({ tabOf: ann.context() });
  await sees(second, "room");
  await reads(second, "one");
  await says(second, "two");
  for (const page of [ann, second, bob]) await reads(page, "two");
  assert.equal(await ann.locator('[role="log"] li.mine').count(), 2, "both are Ann's own");
  await second.close();
  await says(ann, "three");
  await reads(bob, "three");
  assert.equal(await bob.locator(".people li.away").count(), 0, "one tab is enough to be here");
});

scenario(
  "somebody goes away, comes back, and in the end does not",
  async (stage) => {
    const [ann, bob] = await Promise.all([stage.person({ locale: "en-US" }), stage.person()]);
    await meet([ann, bob]);
    const address = bob.url();
    await bob.goto("about:blank");
    await ann.locator(".people").getByText(/stepped away \(0:0\d left\)/).waitFor();
    await bob.goto(address);
    await sees(bob, "room");
    await ann.locator(".people li.away").waitFor({ state: "detached" });
    await bob.goto("about:blank");
    await sees(ann, "ended");
    await ann.getByRole("heading", { name: "They did not come back" }).waitFor();
  },
  { AWAY_TIMEOUT: "8s" },
);

scenario(
  "who came to a table to which the other never did goes back to the front",
  async (stage) => {
    const ann = await stage.person({ locale: "en-US" });
    const bob = new Person({ url: stage.program.url });
    await bob.session();
    await joins(ann, 2);
    await sees(ann, "waiting");
    // Bob is seated and never opens the table.
    const seat = await bob.join((await bob.topics())[0].id, 2);
    assert.equal(seat.status, "matched");
    await sees(ann, "ended");
    const back = ann.getByRole("button", { name: "Back to the front of the queue" });
    await back.waitFor();
    await ann.getByText(/you had waited counts/).waitFor();
    await ann.reload();
    await back.click();
    await sees(ann, "waiting");
    const state = await ann.evaluate(async () => (await fetch("api/matching")).json());
    assert.equal(state.ahead, 0);
    assert.equal(state.status, "waiting");
  },
  { AWAY_TIMEOUT: "3s" },
);

scenario("an operator closes the room", async (stage) => {
  const [ann, bob] = await Promise.all([stage.person({ locale: "en-US" }), stage.person()]);
  await meet([ann, bob]);
  const { rooms } = await stage.program.operator("GET", "admin/rooms");
  await stage.program.operator("POST", `admin/rooms/${rooms[0].room_id}/close`);
  await ann.getByRole("heading", { name: "This table was closed" }).waitFor();
  await bob.getByRole("heading", { name: "運営がこの席を閉じました" }).waitFor();
});
