// A room through the client in Node, against the real program.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AisekiError, Person } from "../index.js";
import { Program } from "../../e2e/program.js";
import { WebSocket } from "./socket.js";

/** @import { Room, RoomView } from "../index.js" */

/** Somebody in a room, and what has come of it. */
class Guest {
  /** @type {Room | undefined} */
  room;
  #ring = () => {};

  /** @param {Program} program */
  constructor(program) {
    this.person = new Person({ url: program.url, WebSocket });
  }

  /** @param {string} roomId */
  enter(roomId) {
    this.room = this.person.enter(roomId, { change: () => this.#ring() });
  }

  /** @param {(view: RoomView) => boolean} holds */
  async sees(holds) {
    while (!(this.room && holds(this.room.view))) {
      await new Promise((resolve) => (this.#ring = () => resolve(undefined)));
    }
  }

  get said() {
    return this.room?.view.messages.map(({ text }) => text);
  }
}

/**
 * @param {string} name
 * @param {(ann: Guest, bob: Guest, program: Program) => Promise<void>} play
 */
function conversation(name, play) {
  test(name, { timeout: 60_000 }, async () => {
    const program = await Program.start();
    const [ann, bob] = [new Guest(program), new Guest(program)];
    try {
      await ann.person.join(1, 2);
      const state = await bob.person.join(1, 2);
      assert.ok(state.status === "matched");
      ann.enter(state.room_id);
      bob.enter(state.room_id);
      for (const guest of [ann, bob]) {
        await guest.sees(({ seats }) => seats.length === 2 && seats.every((seat) => seat.state === "here"));
      }
      await play(ann, bob, program);
    } finally {
      ann.room?.stop();
      bob.room?.stop();
      await program.end();
    }
  });
}

conversation("what one says, both hear, and nothing is pending then", async (ann, bob) => {
  ann.room?.say("こんにちは 𠮷");
  bob.room?.say("hello");
  for (const guest of [ann, bob]) await guest.sees(({ messages }) => messages.length === 2);
  assert.deepEqual(ann.said, bob.said);
  assert.deepEqual(ann.room?.view.pending, []);
  bob.room?.typing();
  await ann.sees(({ typing }) => typing.includes(2));
});

conversation("what is said while the server is dead is said once, afterwards", async (ann, bob, program) => {
  ann.room?.say("one");
  for (const guest of [ann, bob]) await guest.sees(({ messages }) => messages.length === 1);
  await program.kill();
  await ann.sees(({ status }) => status === "offline");
  ann.room?.say("two");
  ann.room?.say("three");
  assert.equal(ann.room?.view.pending.length, 2);
  await program.start();
  for (const guest of [ann, bob]) await guest.sees(({ messages }) => messages.length === 3);
  assert.deepEqual(bob.said, ["one", "two", "three"]);
  assert.deepEqual(ann.room?.view.pending, []);
});

conversation("a connection that is given up again and again loses and repeats nothing", async (ann, bob) => {
  for (let n = 1; n <= 20; n += 1) {
    ann.room?.say(String(n));
    if (n % 3 === 0) ann.room?.reconnect();
    if (n % 4 === 0) bob.room?.reconnect();
  }
  for (const guest of [ann, bob]) await guest.sees(({ messages }) => messages.length === 20);
  const expected = Array.from({ length: 20 }, (_, i) => String(i + 1));
  assert.deepEqual(bob.said, expected);
  assert.deepEqual(ann.said, expected);
  assert.deepEqual(ann.room?.view.messages.map(({ seq }) => seq), expected.map(Number));
});

conversation("who leaves ends a room of two", async (ann, bob) => {
  await ann.room?.leave();
  assert.equal(ann.room?.view.status, "closed");
  await bob.sees(({ status }) => status === "closed");
  assert.equal(bob.room?.view.reason, "left");
});

conversation("a room that is not one's own is refused", async (ann, _bob, program) => {
  const eve = new Guest(program);
  await eve.person.session();
  eve.enter(ann.room?.roomId ?? "");
  await eve.sees(({ status }) => status === "refused");
  assert.ok(eve.room?.view.error instanceof AisekiError);
  assert.equal(eve.room?.view.error?.code, "not_found", "nobody else learns that it exists");
});

conversation("what cannot be said is refused before it is sent", async (ann) => {
  assert.throws(() => ann.room?.say("x".repeat(2001)), { code: "too_long" });
  assert.throws(() => ann.room?.say("a\u0007"), { code: "invalid_frame" });
  assert.deepEqual(ann.room?.view.pending, []);
});
