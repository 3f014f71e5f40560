// The client in Node, against the real program.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AisekiError, Operator, Person, problemOfText } from "../index.js";
import { ADMIN_TOKEN, Program } from "../../e2e/program.js";
import { delayMs } from "../backoff.js";
import { WebSocket } from "./socket.js";

/** @import { State, PersonOptions } from "../index.js" */
/** @import { TransportName } from "../watch.js" */

/**
 * @param {string} name
 * @param {(program: Program) => Promise<void>} play
 * @param {Record<string, string>} [settings]
 */
function scenario(name, play, settings) {
  test(name, { timeout: 40_000 }, async () => {
    const program = await Program.start(settings);
    try {
      await play(program);
    } finally {
      await program.end();
    }
  });
}

/**
 * @param {Program} program
 * @param {Partial<PersonOptions>} [options]
 */
async function person(program, options) {
  const somebody = new Person({ url: program.url, WebSocket, ...options });
  await somebody.session();
  return somebody;
}

/**
 * The first state that is wanted.
 * @param {AsyncGenerator<State, void, void>} states
 * @param {State["status"]} status
 */
async function first(states, status) {
  for (;;) {
    const { value, done } = await states.next();
    if (done || !value) throw new Error("the states have ended");
    if (value.status === status) return value;
  }
}

/** @param {string} code */
const refused = (code) => (/** @type {unknown} */ error) => error instanceof AisekiError && error.code === code;

scenario("a session is renewed, and a token makes the same person again", async (program) => {
  const ann = new Person({ url: program.url });
  assert.deepEqual(await ann.session(), { isNew: true });
  assert.match(ann.token ?? "", /^v1\./);
  assert.deepEqual(await ann.session(), { isNew: false });
  await ann.join(1, 2);
  const again = new Person({ url: program.url, token: ann.token });
  assert.equal((await again.state()).status, "waiting");
});

scenario("topics, joining, cancelling", async (program) => {
  const ann = await person(program);
  const topics = await ann.topics();
  assert.equal(topics.length, 6);
  assert.deepEqual(topics[0].waiting, { 2: 0, 3: 0 });
  const state = await ann.join(topics[0].id, 3);
  assert.equal(state.status, "waiting");
  assert.deepEqual(await ann.join(topics[0].id, 3), state, "a repetition keeps the place");
  assert.deepEqual(await ann.cancel(), { status: "idle" });
  assert.equal((await ann.state()).status, "idle");
});

scenario(
  "a place that is kept is taken up again",
  async (program) => {
    const [ann, bob] = [await person(program), await person(program)];
    await ann.join(1, 2);
    const seat = await bob.join(1, 2);
    assert.ok(seat.status === "matched");
    const closed = new Promise((resolve) => {
      ann.enter(seat.room_id, { change: ({ status }) => status === "closed" && resolve(undefined) });
    });
    await closed;
    const states = ann.states();
    const idle = await first(states, "idle");
    await states.return();
    assert.ok(idle.status === "idle" && idle.resume);
    const { room_id, topic_id, room_type, waited_ms } = idle.resume;
    assert.deepEqual([room_id, topic_id, room_type], [seat.room_id, 1, 2]);
    const waiting = await ann.join(topic_id, room_type, { resume: room_id });
    assert.ok(waiting.status === "waiting");
    assert.ok(ann.now() - Date.parse(waiting.waiting_since) >= waited_ms);
    assert.deepEqual(await ann.join(topic_id, room_type, { resume: room_id }), waiting);
  },
  { AWAY_TIMEOUT: "1s" },
);

scenario("somebody without a session becomes somebody by joining", async (program) => {
  const ann = new Person({ url: program.url });
  assert.equal((await ann.join(1, 2)).status, "waiting");
  const forged = new Person({ url: program.url, token: "v1.of.no.worth" });
  assert.equal((await forged.join(2, 2)).status, "waiting");
});

scenario("errors are known by their code", async (program) => {
  const ann = await person(program);
  await assert.rejects(ann.join(999, 2), refused("unknown_topic"));
  await assert.rejects(ann.join(1, 7), refused("invalid_room_type"));
  await ann.join(1, 2);
  await assert.rejects(ann.join(2, 2), (error) => {
    assert.ok(error instanceof AisekiError);
    assert.equal(error.code, "already_waiting");
    assert.equal(error.state?.status, "waiting");
    return true;
  });
  await assert.rejects(ann.room("00000000-0000-0000-0000-000000000000"), refused("not_found"));
  const nobody = new Person({ url: "http://127.0.0.1:1/" });
  await assert.rejects(nobody.state(), refused("network"));
});

scenario(
  "a limit says how long to wait",
  async (program) => {
    const ann = await person(program);
    await ann.join(1, 2);
    await ann.cancel();
    await assert.rejects(ann.join(1, 2), (error) => {
      assert.ok(error instanceof AisekiError);
      assert.equal(error.code, "rate_limited");
      assert.ok((error.retryAfterMs ?? 0) >= 1000);
      return true;
    });
  },
  { RATE_LIMIT: "1/10s" },
);

for (const transport of /** @type {TransportName[]} */ (["socket", "stream", "longPoll", "poll"])) {
  scenario(`states come by ${transport}`, async (program) => {
    const [ann, bob] = await Promise.all([person(program), person(program)]);
    const states = ann.states({ transports: [transport] });
    await first(states, "idle");
    await ann.join(1, 2);
    await first(states, "waiting");
    const seat = await bob.join(1, 2);
    assert.equal(seat.status, "matched");
    const state = await first(states, "matched");
    assert.equal(state.status === "matched" && state.room_id, seat.status === "matched" && seat.room_id);
    await states.return();
  });

  scenario(`by ${transport}, a server that is killed is found again`, async (program) => {
    const ann = await person(program);
    /** @type {string[]} */
    const seen = [];
    let ring = () => {};
    const watch = ann.watch(
      {
        state: ({ status }) => (seen.push(status), ring()),
        link: ({ status }) => (seen.push(status), ring()),
      },
      { transports: [transport] },
    );
    const until = async (/** @type {string} */ what) => {
      while (!seen.includes(what)) await new Promise((resolve) => (ring = () => resolve(undefined)));
      seen.length = 0;
    };
    await until("online");
    await ann.join(1, 2);
    await until("waiting");
    await program.kill();
    await until("offline");
    await program.start();
    await until("online");
    assert.equal(watch.state?.status, "waiting");
    await (await person(program)).join(1, 2);
    await until("matched");
    watch.stop();
  });
}

/**
 * Waits until nobody holds a long poll, a stream or a socket open.
 * @param {Program} program
 */
async function quiet(program) {
  const operator = new Operator({ url: program.url, token: ADMIN_TOKEN });
  // Sooner than any time limit of the client or the server would end it.
  const deadline = Date.now() + 5_000;
  while (!/^aiseki_push_subscriptions 0$/m.test(await operator.metrics())) {
    assert.ok(Date.now() < deadline, "a connection is still held open");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// The head of a stream had come, and from then on nothing could end it: the process of who had
// stopped long ago went on for ever.
for (const transport of /** @type {TransportName[]} */ (["socket", "stream", "longPoll"])) {
  scenario(`who stops following by ${transport} holds nothing open`, async (program) => {
    const ann = await person(program);
    await ann.join(1, 2);
    const operator = new Operator({ url: program.url, token: ADMIN_TOKEN });
    for await (const { status } of ann.states({ transports: [transport] })) {
      assert.equal(status, "waiting");
      while (!/^aiseki_push_subscriptions 1$/m.test(await operator.metrics())) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      break;
    }
    await quiet(program);
    await new Promise((resolve) => {
      const state = () => (watch.stop(), resolve(undefined));
      const watch = ann.watch({ state }, { transports: [transport] });
    });
    await quiet(program);
  });
}

scenario("without any WebSocket one is told at once that a room cannot be entered", async (program) => {
  const [ann, bob] = await Promise.all([person(program), person(program)]);
  await ann.join(1, 2);
  const state = await bob.join(1, 2);
  assert.ok(state.status === "matched");
  ann.WebSocket = /** @type {any} */ (undefined);
  assert.throws(() => ann.enter(state.room_id, { said: () => {} }), refused("no_websocket"));
});

scenario("without any socket the next best way is taken", async (program) => {
  class Closed extends EventTarget {
    /** @type {((event: { code: number }) => void) | undefined} */
    onclose;
    constructor() {
      super();
      setTimeout(() => this.onclose?.({ code: 1006 }), 1);
    }
    close() {}
  }
  const ann = await person(program, { WebSocket: /** @type {any} */ (Closed) });
  const states = ann.states();
  await first(states, "idle");
  await ann.join(1, 2);
  await first(states, "waiting");
  await (await person(program)).join(1, 2);
  await first(states, "matched");
  await states.return();
});

scenario("operators", async (program) => {
  const operator = new Operator({ url: program.url, token: ADMIN_TOKEN });
  const topic = await operator.addTopic({ title: "雨の日" });
  assert.ok((await operator.topics()).some(({ title, active }) => title === "雨の日" && active));
  await operator.changeTopic(topic.id, { active: false });
  const ban = await operator.ban({ address: "192.0.2.0/24", reason: "test" });
  assert.equal((await operator.bans()).length, 1);
  await operator.lift(ban.id);
  assert.deepEqual(await operator.bans(), []);
  const [ann, bob] = await Promise.all([person(program), person(program)]);
  await ann.join(1, 2);
  assert.equal((await operator.queues())[0].waiting, 1);
  await bob.join(1, 2);
  const { rooms } = await operator.rooms({ topic: 1 });
  await operator.closeRoom(rooms[0].room_id);
  assert.equal((await operator.rooms()).rooms.length, 0);
  assert.match(await operator.metrics(), /aiseki_joins_total 2/);
  const wrong = new Operator({ url: program.url, token: "wrong" });
  await assert.rejects(wrong.topics(), refused("unauthenticated"));
});

test("what can be said is counted in characters", () => {
  assert.equal(problemOfText("𠮷".repeat(2000)), undefined);
  assert.equal(problemOfText("𠮷".repeat(2001)), "too_long");
  assert.equal(problemOfText(" \n"), "empty");
  assert.equal(problemOfText("a\u0000b"), "control");
  assert.equal(problemOfText("two\nlines\tand a tab"), undefined);
});

test("attempts spread out, and wait as long as the server asks", () => {
  assert.equal(delayMs(1, 0, () => 1), 250);
  assert.equal(delayMs(1, 0, () => 0), 125);
  assert.equal(delayMs(100, 0, () => 1), 8000);
  assert.equal(delayMs(1, 3000, () => 0), 3000);
});
