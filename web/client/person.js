// One anonymous person: who they are, what they wait for, where they sit.

import { AisekiError } from "./errors.js";
import { Http } from "./http.js";
import { Room } from "./room.js";
import { Watch } from "./watch.js";

/** @import { WatchHandlers, WatchOptions } from "./watch.js" */
/** @import { RoomHandlers } from "./room.js" */

/**
 * @typedef {object} Resume a place in a queue that may be taken up again: a room ended to which somebody
 *   else never came
 * @property {string} room_id for `join`
 * @property {number} topic_id
 * @property {number} room_type how many people were asked for
 * @property {number} waited_ms what counts as waited already
 * @property {string} until
 *
 * @typedef {{ status: "idle", reason?: string, resume?: Resume }} Idle
 * Neither waiting nor seated; `reason` says for ten minutes why.
 *
 * @typedef {object} Waiting
 * @property {"waiting"} status
 * @property {number} topic_id
 * @property {number} room_type how many people were asked for
 * @property {string} waiting_since
 * @property {string} expires_at
 * @property {string} [fallback_at] from when on a smaller room will do
 * @property {number} ahead people before this one, counted up to 1000
 * @property {number} poll_after_ms
 *
 * @typedef {object} Matched
 * @property {"matched"} status
 * @property {string} room_id
 * @property {number} topic_id
 * @property {number} room_type how many people were seated
 * @property {number} requested_room_type
 * @property {string} matched_at
 *
 * @typedef {Idle | Waiting | Matched} State
 *
 * @typedef {{ id: number, title: string, waiting: Record<string, number> }} Topic
 * How many people wait, by room type.
 *
 * @typedef {object} RoomRecord
 * @property {string} room_id
 * @property {number} topic_id
 * @property {string | null} topic
 * @property {number} room_type
 * @property {"live" | "ended"} status
 * @property {string} created_at
 * @property {string | null} ended_at
 * @property {number | null} me
 * @property {{ seat: number, state: string }[]} seats
 *
 * @typedef {object} PersonOptions
 * @property {string | URL} url where the server stands, with its base path
 * @property {string} [token] of an earlier session, to be the same person again
 * @property {"token" | "cookie"} [identity] how the person is known. `cookie` (for pages that the
 *   server itself serves): the browser keeps it, and all tabs are one person. `token`, the default:
 *   this object keeps it
 * @property {typeof fetch} [fetch]
 * @property {typeof WebSocket} [WebSocket] where there is none by that name, as in Node 20 and
 *   before; without one, states come by a stream, and rooms cannot be entered
 */

/** Further attempts of a call, when the server is away. */
const RETRIES = 3;

/** A person, as the server knows one by token or cookie. */
export class Person {
  /** @type {Promise<{ isNew: boolean }> | undefined} */
  #becoming;

  /** @param {PersonOptions} options */
  constructor({ url, token, identity = "token", fetch, WebSocket = globalThis.WebSocket }) {
    this.http = new Http({ url, token, fetch });
    this.identity = identity;
    this.WebSocket = WebSocket;
  }

  /** The token, to be kept where the person should be the same again. None with a cookie. */
  get token() {
    return this.http.token;
  }

  /** The time by the server's clock, in which all times of states are told. */
  now() {
    return Date.now() + this.http.aheadMs;
  }

  /**
   * Becomes somebody, or renews who one is for thirty days. Calls at the same time are one.
   * @returns {Promise<{ isNew: boolean }>} `isNew`: somebody who was nobody before, and so is idle
   * @throws {AisekiError} `rate_limited`: too many new people from this address
   */
  session() {
    this.#becoming ??= this.#become().finally(() => (this.#becoming = undefined));
    return this.#becoming;
  }

  async #become() {
    const call = async () => {
      const { status, token } = await this.http.call("POST", "api/session", {
        retries: RETRIES,
        read: async (response) => ({ ...(await response.json()), status: response.status }),
      });
      if (this.identity === "token") this.http.token = token;
      return { isNew: status === 201 };
    };
    // Two tabs that open at the same time must not become two people.
    const locks = this.identity === "cookie" ? globalThis.navigator?.locks : undefined;
    return locks ? locks.request("aiseki-session", call) : call();
  }

  /**
   * What people can talk about.
   * @returns {Promise<Topic[]>}
   */
  async topics() {
    return (await this.http.call("GET", "api/topics", { retries: RETRIES })).topics;
  }

  /**
   * Joins a queue, and says whether one waits or sits. Becomes somebody first where that is needed.
   * @param {number} topicId
   * @param {number} roomType how many people
   * @param {{ resume?: string }} [options] the room of the state's `resume`, to take up that place again
   * @returns {Promise<State>}
   * @throws {AisekiError} `already_waiting` with the `state`, `rate_limited` with `retryAfterMs`,
   *   `banned`, `unknown_topic`, `inactive_topic`, `invalid_room_type`
   */
  async join(topicId, roomType, { resume } = {}) {
    const body = { topic_id: topicId, room_type: roomType, resume };
    try {
      return await this.asSomebody(() =>
        this.http.call("POST", "api/matching", { body, retries: RETRIES }),
      );
    } catch (error) {
      // An answer that was lost is repeated, and by then one may sit.
      if (error instanceof AisekiError && error.code === "already_matched" && error.state) {
        return error.state;
      }
      throw error;
    }
  }

  /**
   * How it stands.
   * @param {{ signal?: AbortSignal, timeoutMs?: number }} [options]
   * @returns {Promise<State>}
   */
  state(options) {
    return this.http.call("GET", "api/matching", options);
  }

  /**
   * Stops waiting.
   * @returns {Promise<State>} idle, or matched when a room was formed first
   */
  async cancel() {
    try {
      await this.http.call("DELETE", "api/matching", { retries: RETRIES });
      return { status: "idle" };
    } catch (error) {
      if (error instanceof AisekiError && error.code === "already_matched" && error.state) {
        return error.state;
      }
      throw error;
    }
  }

  /**
   * Follows the state until it is stopped: over a WebSocket, or a stream, or long polls, or by asking
   * again and again, whatever goes through.
   * @param {WatchHandlers} handlers
   * @param {WatchOptions} [options]
   */
  watch(handlers, options) {
    return new Watch(this, handlers, options);
  }

  /**
   * The states, one after the other, for as long as they are asked for.
   * @param {WatchOptions} [options]
   * @returns {AsyncGenerator<State, void, void>}
   */
  async *states(options) {
    /** @type {State[]} */
    const arrived = [];
    let ring = () => {};
    const watch = this.watch(
      {
        state(state) {
          arrived.push(state);
          ring();
        },
      },
      options,
    );
    try {
      for (;;) {
        const next = arrived.shift();
        if (next) yield next;
        else await new Promise((resolve) => (ring = () => resolve(undefined)));
      }
    } finally {
      watch.stop();
    }
  }

  /**
   * Enters the room that one is seated in.
   * @param {string} roomId
   * @param {RoomHandlers} [handlers]
   * @throws {AisekiError} `no_websocket`: there is none here, and the person was given none
   */
  enter(roomId, handlers = {}) {
    return new Room(this, roomId, handlers);
  }

  /**
   * A room that one has or had a seat in.
   * @param {string} roomId
   * @returns {Promise<RoomRecord>}
   * @throws {AisekiError} `not_found`
   */
  room(roomId) {
    return this.http.call("GET", `api/rooms/${encodeURIComponent(roomId)}`, { retries: RETRIES });
  }

  /**
   * Gives up one's seat. May be repeated.
   * @param {string} roomId
   */
  async leave(roomId) {
    const path = `api/rooms/${encodeURIComponent(roomId)}/leave`;
    await this.http.call("POST", path, { retries: RETRIES });
  }

  /**
   * Tells the operator about somebody. What was said last is kept with it.
   * @param {string} roomId
   * @param {number} seat
   * @param {string} reason
   */
  async report(roomId, seat, reason) {
    const path = `api/rooms/${encodeURIComponent(roomId)}/report`;
    await this.http.call("POST", path, { body: { seat, reason } });
  }

  /**
   * Never to sit with this person again. May be repeated.
   * @param {string} roomId
   * @param {number} seat
   */
  async block(roomId, seat) {
    const path = `api/rooms/${encodeURIComponent(roomId)}/block`;
    await this.http.call("POST", path, { body: { seat }, retries: RETRIES });
  }

  /**
   * Does something that needs a session, and becomes somebody when there is none.
   * @template T
   * @param {() => Promise<T>} act
   * @returns {Promise<T>}
   */
  async asSomebody(act) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof AisekiError) || error.code !== "unauthenticated") throw error;
      // A token that the server does not know would be renewed by nobody.
      if (this.identity === "token") this.http.token = undefined;
      await this.session();
      return act();
    }
  }

  /**
   * A WebSocket of this person.
   * @param {string} path
   * @returns {WebSocket}
   */
  socket(path) {
    const address = this.http.address(path);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    // A page can set no header on a socket; the subprotocol carries the token instead.
    const protocols = this.token ? ["aiseki", `aiseki.token.${this.token}`] : ["aiseki"];
    return new this.WebSocket(address.href, protocols);
  }
}
