// The conversation in a room: what was said, who is here, and saying something exactly once.

import { AisekiError } from "./errors.js";
import { Nap, delayMs } from "./backoff.js";

/** @import { Person } from "./person.js" */

/**
 * @typedef {{ seq: number, seat: number, text: string, at: string, id: string }} Message
 * Something that was said; `seq` counts 1, 2, 3 … in the room.
 *
 * @typedef {{ id: string, text: string }} Pending
 * Something that the room has not confirmed yet.
 *
 * @typedef {{ seat: number, state: "here" | "away" | "left", until?: string }} SeatView
 * `until`: when an empty seat is given up.
 *
 * @typedef {object} RoomView the room as it stands, a new object after each change
 * @property {"connecting" | "open" | "offline" | "closed" | "refused"} status `refused`: there is no
 *   entering, and `error` says why
 * @property {number} [me] one's own seat
 * @property {number} [roomType]
 * @property {SeatView[]} seats
 * @property {Message[]} messages
 * @property {Pending[]} pending in the order in which they were written
 * @property {number[]} typing the seats of those who write
 * @property {string} [reason] why it is closed
 * @property {AisekiError} [error]
 * @property {number} [retryAt] when the next attempt is made, as `Date.now()` tells time
 *
 * @typedef {object} RoomHandlers
 * @property {(view: RoomView) => void} [change]
 * @property {(message: Message) => void} [said] each message once, those from before too
 * @property {(code: string, detail: string) => void} [trouble] the room refused something: `too_fast`,
 *   `too_long`, `invalid_frame`, `unavailable`
 */

/** The most that can be said at once, in characters as people count them. */
export const MOST_CHARACTERS = 2000;
/** The room is told so often that somebody writes, and shows it so long. */
const TYPING_EVERY_MS = 2_500;
const TYPING_SHOWN_MS = 5_000;
/** A message that is not confirmed so soon: the connection is taken for dead. */
const CONFIRMED_MS = 8_000;
const OPEN_MS = 8_000;
/** After `too_fast`, so long until what is pending is said again. */
const SLOW_MS = 1_500;
const LASTING_MS = 5_000;

/** Control characters other than those that make lines. */
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/u;

/**
 * Why a text cannot be said, if it cannot.
 * @param {string} text
 * @returns {"empty" | "too_long" | "control" | undefined}
 */
export function problemOfText(text) {
  if (text.trim() === "") return "empty";
  if ([...text].length > MOST_CHARACTERS) return "too_long";
  if (CONTROL.test(text)) return "control";
  return undefined;
}

/** Somebody's end of a room. */
export class Room {
  #person;
  #handlers;
  /** @type {WebSocket | undefined} */
  #socket;
  #stopped = false;
  #nap = new Nap();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #confirming;
  /** @type {Map<number, ReturnType<typeof setTimeout>>} */
  #typing = new Map();
  #toldTyping = 0;

  /** @type {RoomView} */
  view = { status: "connecting", seats: [], messages: [], pending: [], typing: [] };

  /**
   * @param {Person} person
   * @param {string} roomId
   * @param {RoomHandlers} handlers
   * @throws {AisekiError} `no_websocket`
   */
  constructor(person, roomId, handlers) {
    if (!person.WebSocket) {
      const detail = "a room needs a WebSocket: give the Person one, as { url, WebSocket }";
      throw new AisekiError("no_websocket", detail);
    }
    this.#person = person;
    this.roomId = roomId;
    this.#handlers = handlers;
    void this.#run();
  }

  /**
   * Says something. It goes out when there is a connection, and is said once however often it has to
   * be sent.
   * @param {string} text 1 to 2,000 characters
   * @returns {string} the id of the message
   * @throws {AisekiError} `too_long`, `invalid_frame`
   */
  say(text) {
    const problem = problemOfText(text);
    if (problem) {
      const code = problem === "too_long" ? "too_long" : "invalid_frame";
      throw new AisekiError(code, `this cannot be said: ${problem}`);
    }
    const id = newId();
    this.#toldTyping = 0;
    this.#change({ pending: [...this.view.pending, { id, text }] });
    this.#send({ type: "say", id, text });
    this.#awaitConfirmation();
    return id;
  }

  /** Tells the others that one writes. May be called with every key. */
  typing() {
    const now = Date.now();
    if (now - this.#toldTyping < TYPING_EVERY_MS) return;
    this.#toldTyping = now;
    this.#send({ type: "typing" });
  }

  /** Gives up one's seat. */
  async leave() {
    await this.#person.leave(this.roomId);
    this.#change({ status: "closed", reason: "left" });
    this.stop();
  }

  /** Looks now: the page is seen again, or the network is back. */
  check() {
    this.#nap.wake();
  }

  /** Gives up a connection that only seems to be there, for a new one. */
  reconnect() {
    this.#drop();
    this.#nap.wake();
  }

  /** Ends the connection; the seat is kept for as long as the server keeps it. */
  stop() {
    this.#stopped = true;
    clearTimeout(this.#confirming);
    for (const timer of this.#typing.values()) clearTimeout(timer);
    this.#drop();
    this.#nap.wake();
  }

  async #run() {
    let failures = 0;
    while (!this.#stopped) {
      const begun = Date.now();
      const { opened, code } = await this.#connect();
      if (this.#stopped || this.view.status === "closed") return;
      if (opened && Date.now() - begun > LASTING_MS) failures = 0;
      const error = opened && code < 4400 ? undefined : await this.#ask();
      if (this.#stopped) return;
      if (error && !error.isPassing) {
        this.#change({ status: "refused", error, typing: [] });
        return;
      }
      failures += 1;
      const ms = delayMs(failures, code === 1008 ? SLOW_MS : error?.retryAfterMs);
      this.#change({ status: "offline", error, retryAt: Date.now() + ms, typing: [] });
      await this.#nap.sleep(ms);
    }
  }

  /** @returns {Promise<{ opened: boolean, code: number }>} */
  #connect() {
    const after = this.view.messages.at(-1)?.seq ?? 0;
    const query = after > 0 ? `?after=${after}` : "";
    return new Promise((resolve) => {
      const path = `ws/rooms/${encodeURIComponent(this.roomId)}${query}`;
      const socket = this.#person.socket(path);
      this.#socket = socket;
      let opened = false;
      /** @param {number} code */
      const end = (code) => {
        clearTimeout(opening);
        if (this.#socket === socket) this.#socket = undefined;
        resolve({ opened, code });
      };
      const opening = setTimeout(() => {
        socket.close();
        end(1006);
      }, OPEN_MS);
      socket.onmessage = ({ data }) => {
        // A connection that was given up has nothing to say any more.
        if (this.#socket !== socket) return;
        const frame = parsed(data);
        if (!frame) return;
        if (frame.type === "welcome") {
          opened = true;
          clearTimeout(opening);
        }
        this.#arrived(frame);
      };
      socket.onclose = ({ code }) => end(code);
      socket.onerror = () => {};
      // A close that has to be agreed to may take for ever on a network that is gone.
      this.#abandon = () => end(1006);
    });
  }

  /** @type {(() => void) | undefined} */
  #abandon;

  #drop() {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
    this.#abandon?.();
  }

  /**
   * Why there is no connection. A page is not told what a socket was refused with, so the same is
   * asked without one; nothing means that it may be tried again.
   * @returns {Promise<AisekiError | undefined>}
   */
  async #ask() {
    const path = `ws/rooms/${encodeURIComponent(this.roomId)}`;
    try {
      await this.#person.http.call("GET", path).catch((error) => {
        // There are rooms here, and this call was no socket.
        if (error.code !== "upgrade_required") throw error;
      });
      const { me, seats, status } = await this.#person.room(this.roomId);
      const seated = seats.some(({ seat, state }) => seat === me && state !== "left");
      if (status === "live" && seated) return undefined;
      return new AisekiError("not_a_member", "there is no seat for this person", { status: 403 });
    } catch (error) {
      if (!(error instanceof AisekiError)) throw error;
      return error.code === "too_many_connections" ? undefined : error;
    }
  }

  /** @param {any} frame */
  #arrived(frame) {
    switch (frame.type) {
      case "welcome":
        this.#welcome(frame);
        break;
      case "said":
        this.#said([frame]);
        break;
      case "typing":
        this.#showTyping(frame.seat);
        break;
      case "here":
      case "away":
      case "left":
        this.#seat({ seat: frame.seat, state: frame.type, until: frame.until });
        break;
      case "closed":
        this.#change({ status: "closed", reason: frame.reason, typing: [] });
        this.stop();
        break;
      case "error":
        this.#trouble(frame);
        break;
    }
  }

  /** @param {any} frame */
  #welcome({ me, room_type: roomType, seats, history }) {
    const status = "open";
    this.#change({ status, me, roomType, seats, error: undefined, retryAt: undefined });
    this.#said(history);
    this.#sendPending();
  }

  #sendPending() {
    for (const { id, text } of this.view.pending) this.#send({ type: "say", id, text });
    this.#awaitConfirmation();
  }

  /** @param {Message[]} frames */
  #said(frames) {
    const last = this.view.messages.at(-1)?.seq ?? 0;
    const messages = frames
      .filter((frame) => frame.seq > last)
      .map(({ seq, seat, text, at, id }) => ({ seq, seat, text, at, id }));
    const confirmed = new Set(frames.map(({ id }) => id));
    const pending = this.view.pending.filter(({ id }) => !confirmed.has(id));
    for (const { seat } of messages) this.#hideTyping(seat);
    this.#change({ messages: [...this.view.messages, ...messages], pending });
    this.#awaitConfirmation();
    for (const message of messages) this.#handlers.said?.(message);
  }

  /** @param {SeatView} changed */
  #seat(changed) {
    if (changed.state !== "here") this.#hideTyping(changed.seat);
    const seats = this.view.seats.map((seat) => (seat.seat === changed.seat ? changed : seat));
    this.#change({ seats });
  }

  /** @param {any} frame */
  #trouble({ code, detail, id }) {
    const [first] = this.view.pending;
    const refused = this.view.pending.find((each) => each.id === id) ?? first;
    if (refused && (code === "too_long" || code === "invalid_frame")) {
      // It will never be said; what comes after it may be.
      this.#change({ pending: this.view.pending.filter((each) => each !== refused) });
    } else if (code === "too_fast" || code === "unavailable") {
      setTimeout(() => this.#stopped || this.#sendPending(), SLOW_MS);
    }
    this.#handlers.trouble?.(code, detail);
  }

  #awaitConfirmation() {
    clearTimeout(this.#confirming);
    if (this.view.pending.length === 0 || this.#stopped) return;
    this.#confirming = setTimeout(() => this.reconnect(), CONFIRMED_MS);
  }

  /** @param {number} seat */
  #showTyping(seat) {
    if (seat === this.view.me) return;
    clearTimeout(this.#typing.get(seat));
    this.#typing.set(
      seat,
      setTimeout(() => this.#hideTyping(seat), TYPING_SHOWN_MS),
    );
    this.#change({ typing: [...this.#typing.keys()] });
  }

  /** @param {number} seat */
  #hideTyping(seat) {
    if (!this.#typing.has(seat)) return;
    clearTimeout(this.#typing.get(seat));
    this.#typing.delete(seat);
    this.#change({ typing: [...this.#typing.keys()] });
  }

  /** @param {object} frame */
  #send(frame) {
    const socket = this.#socket;
    // What cannot go out now is pending, and goes out after the next welcome.
    if (socket?.readyState === WebSocketState.open && this.view.status === "open") {
      socket.send(JSON.stringify(frame));
    }
  }

  /** @param {Partial<RoomView>} changes */
  #change(changes) {
    if (this.view.status === "closed") return;
    this.view = { ...this.view, ...changes };
    this.#handlers.change?.(this.view);
  }
}

/** The states of a socket that matter here; the class that names them is not everywhere. */
const WebSocketState = { open: 1 };

/**
 * A name for a message that nobody else's of this person has. Nobody gains by guessing one, so that chance
 * of any kind will do: a page that came by plain HTTP has no `randomUUID`, and Node 18 no `crypto`.
 */
function newId() {
  const part = () => Math.random().toString(36).slice(2).padEnd(10, "0");
  return globalThis.crypto?.randomUUID?.() ?? `${Date.now().toString(36)}-${part()}-${part()}`;
}

/**
 * @param {unknown} data
 * @returns {any} a frame, or nothing for what is none
 */
function parsed(data) {
  try {
    const frame = JSON.parse(String(data));
    return typeof frame?.type === "string" ? frame : undefined;
  } catch {
    return undefined;
  }
}
