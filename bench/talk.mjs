// How long from said to heard, and what open rooms cost: two servers that share their stores, the two people of each
// room at different ones. Run by scripts/bench-shared with TALK=1, or by hand:
//   node bench/talk.mjs URL1 URL2 [ROOMS] [MESSAGES PER SECOND] [SECONDS] [PIDS]
// The servers need rate and message limits off, and topics. Messages are due at fixed times, and each counts from when it
// was due. `npm ci` in web/ brings `ws`.
import fs from "node:fs";
import { createRequire } from "node:module";

const WebSocket = createRequire(new URL("../web/package.json", import.meta.url))("ws");
const [one, two, rooms = "100", rate = "500", seconds = "20", pids = ""] = process.argv.slice(2);
if (!two) {
  console.error("usage: node bench/talk.mjs URL1 URL2 [ROOMS] [MESSAGES PER SECOND] [SECONDS] [PIDS]");
  process.exit(2);
}
const servers = [one, two].map((url) => url.replace(/\/$/, ""));

async function call(server, method, path, token, body) {
  const answer = await fetch(server + path, {
    method,
    headers: { ...(token && { authorization: `Bearer ${token}` }), ...(body && { "content-type": "application/json" }) },
    body: body && JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? undefined : answer.json();
}

const { topics } = await call(servers[0], "GET", "/api/topics");

function enter(server, token, room) {
  return new Promise((resolve, reject) => {
    const url = `${server.replace("http", "ws")}/ws/rooms/${room}`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` }, perMessageDeflate: false });
    socket.once("error", reject);
    socket.once("close", (code) => reject(new Error(`a socket was closed with ${code}`)));
    socket.once("message", () => resolve(socket));
  });
}

/** Two people seated together, each with a connection at another server. */
async function pair(number) {
  const topic = topics[number % topics.length].id;
  const tokens = [];
  for (const server of servers) tokens.push((await call(server, "POST", "/api/session")).token);
  for (const i of [0, 1]) {
    await call(servers[i], "POST", "/api/matching", tokens[i], { topic_id: topic, room_type: 2 });
  }
  const room = async (i) => {
    for (;;) {
      const state = await call(servers[i], "GET", "/api/matching?wait=20", tokens[i]);
      if (state.status === "matched") return state.room_id;
    }
  };
  return Promise.all([0, 1].map(async (i) => enter(servers[i], tokens[i], await room(i))));
}

const sockets = [];
for (let made = 0; made < Number(rooms); ) {
  // Fewer at once than there are topics, so that pairs mostly find each other; who sits with whom does not matter.
  const some = Math.min(32, Number(rooms) - made);
  sockets.push(...(await Promise.all(Array.from({ length: some }, (_, i) => pair(made + i)))).flat());
  made += some;
}

function memory() {
  let kib = 0;
  for (const pid of pids.split(",").filter(Boolean)) {
    try {
      // What processes share counts once.
      const rollup = fs.readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
      kib += Number(/^Pss:\s+(\d+)/m.exec(rollup)[1]);
    } catch {
      // It has ended.
    }
  }
  return kib / 1024;
}

const due = new Map();
const heard = [];
for (const socket of sockets) {
  socket.on("message", (data) => {
    const frame = JSON.parse(data);
    if (frame.type !== "said") return;
    const message = due.get(frame.id);
    // The speaker hears it too; what counts is the other one.
    if (message && message.by !== socket) heard.push(performance.now() - message.at);
  });
}
const begun = performance.now() + 100;
const count = Number(rate) * Number(seconds);
for (let n = 0; n < count; ) {
  const now = performance.now();
  for (; n < count && begun + (n * 1000) / Number(rate) <= now; n++) {
    const socket = sockets[n % sockets.length];
    due.set(String(n), { at: begun + (n * 1000) / Number(rate), by: socket });
    socket.send(JSON.stringify({ type: "say", id: String(n), text: `message ${n}` }));
  }
  await new Promise((resolve) => setTimeout(resolve, 0.5));
}
for (let i = 0; i < 100 && heard.length < count; i++) await new Promise((resolve) => setTimeout(resolve, 100));
heard.sort((a, b) => a - b);
const at = (quantile) => heard[Math.min(heard.length - 1, Math.floor(heard.length * quantile))]?.toFixed(2);
console.log(`${sockets.length} sockets in ${rooms} rooms, ${rate} messages/s for ${seconds} s; ${count - heard.length} not heard`);
console.log(`said to heard at the other server: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, p99.9 ${at(0.999)} ms, most ${at(1)} ms`);
if (pids) console.log(`memory of all processes: ${memory().toFixed(0)} MiB`);
process.exit(heard.length === count ? 0 : 1);
