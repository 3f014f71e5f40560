// The ways in which a person's state arrives. Each runs until it breaks or is stopped, and says
// whether it ever worked.

import { Nap } from "./backoff.js";

/** @import { Person, State } from "./person.js" */

/**
 * @typedef {object} Line what a transport is given
 * @property {Person} person
 * @property {AbortSignal} signal ends it
 * @property {(state: State) => void} arrived a state has come, and so the transport works
 */

/** @typedef {(line: Line) => Promise<void>} Transport rejects with what broke it, where that is known */

/** The server shows every 15 s that a stream is alive. */
const SILENCE_MS = 40_000;
/** A socket that has not opened by then does not go through. */
const OPEN_MS = 8_000;
/** What a long poll asks for, in seconds, and how much longer its answer may take. */
const HOLD_SECONDS = 25;
const HOLD_GRACE_MS = 10_000;
/** How often somebody who does not wait asks by a transport that cannot be told. */
const IDLE_POLL_MS = 4_000;
/** A makeshift is given up after so long for another attempt with what is better. */
const MAKESHIFT_MS = 60_000;

/** @type {Transport} */
function socket({ person, signal, arrived }) {
  return new Promise((resolve) => {
    const socket = person.socket("ws/matching");
    const opening = setTimeout(() => socket.close(), OPEN_MS);
    const stop = () => {
      socket.close();
      resolve();
    };
    socket.onopen = () => clearTimeout(opening);
    socket.onmessage = ({ data }) => {
      const state = parsed(data);
      if (state && !signal.aborted) arrived(state);
    };
    socket.onclose = () => {
      clearTimeout(opening);
      signal.removeEventListener("abort", stop);
      resolve();
    };
    // What went wrong is hidden from pages; the close that follows says all that can be known.
    socket.onerror = () => {};
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
  });
}

/** @type {Transport} */
async function stream({ person, signal, arrived }) {
  const cut = new AbortController();
  const stop = () => cut.abort();
  signal.addEventListener("abort", stop, { once: true });
  let silence = setTimeout(stop, SILENCE_MS);
  /** @param {Response} response */
  const read = async ({ body }) => {
    if (!body) return;
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      clearTimeout(silence);
      silence = setTimeout(stop, SILENCE_MS);
      text += value;
      const events = text.split(/\r?\n\r?\n/);
      text = events.pop() ?? "";
      for (const event of events) {
        const state = parsed(dataOf(event));
        if (state) arrived(state);
      }
    }
  };
  try {
    const options = { signal: cut.signal, timeoutMs: 2 ** 31 - 1 };
    await person.http.answer("GET", "api/matching/events", read, options);
  } finally {
    // However it ended, nothing is left of it.
    stop();
    clearTimeout(silence);
    signal.removeEventListener("abort", stop);
  }
}

/**
 * What a server-sent event carries.
 * @param {string} event
 */
function dataOf(event) {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(5)).join("\n");
}

/**
 * Asks again and again, for a while.
 * @param {Line} line
 * @param {(options: { signal: AbortSignal }) => Promise<State>} ask
 * @param {(state: State) => number} pauseMs
 */
async function asking({ signal, arrived }, ask, pauseMs) {
  const until = Date.now() + MAKESHIFT_MS;
  const nap = new Nap();
  const stop = () => nap.wake();
  signal.addEventListener("abort", stop);
  try {
    while (!signal.aborted && Date.now() < until) {
      const state = await ask({ signal });
      if (signal.aborted) return;
      arrived(state);
      // Who is told may have had enough.
      if (!signal.aborted) await nap.sleep(pauseMs(state));
    }
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** @type {Transport} */
function longPoll(line) {
  const { http } = line.person;
  const timeoutMs = HOLD_SECONDS * 1000 + HOLD_GRACE_MS;
  let waits = false;
  return asking(
    line,
    // The first answer comes at once, so that what is shown is true from the start.
    ({ signal }) => {
      const path = waits ? `api/matching?wait=${HOLD_SECONDS}` : "api/matching";
      return http.call("GET", path, { signal, timeoutMs });
    },
    (state) => {
      waits = state.status === "waiting";
      return waits ? 0 : IDLE_POLL_MS;
    },
  );
}

/** @type {Transport} */
function poll(line) {
  return asking(
    line,
    (options) => line.person.state(options),
    (state) => (state.status === "waiting" ? state.poll_after_ms : IDLE_POLL_MS),
  );
}

/**
 * A state, or nothing for what is none.
 * @param {unknown} data
 * @returns {State | undefined}
 */
function parsed(data) {
  try {
    const state = JSON.parse(String(data));
    return typeof state?.status === "string" ? state : undefined;
  } catch {
    return undefined;
  }
}

/** All of them by name, the best first. */
export const TRANSPORTS = { socket, stream, longPoll, poll };
