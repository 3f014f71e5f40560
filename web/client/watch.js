// Following one person's state, whatever happens to the network and the server.

import { AisekiError } from "./errors.js";
import { Nap, delayMs } from "./backoff.js";
import { TRANSPORTS } from "./transports.js";

/** @import { Person, State } from "./person.js" */

/**
 * @typedef {object} Link how the connection stands
 * @property {"connecting" | "online" | "offline"} status
 * @property {AisekiError} [error] why it is offline
 * @property {number} [retryAt] when the next attempt is made, as `Date.now()` tells time
 *
 * @typedef {object} WatchHandlers
 * @property {(state: State) => void} [state] the state has come or changed
 * @property {(link: Link) => void} [link] the connection has come, gone or changed
 *
 * @typedef {keyof typeof TRANSPORTS} TransportName
 *
 * @typedef {object} WatchOptions
 * @property {TransportName[]} [transports] which to use, the best first
 * @property {number} [refreshMs] how often somebody who waits asks how many are ahead, which is also
 *   how a connection is noticed that died without a word
 */

/** How often a state is asked for that the connection would have told, if it is alive. */
const REFRESH_MS = 10_000;
const IDLE_REFRESH_MS = 20_000;
/** An answer that takes longer means that the network is gone. */
const ALIVE_MS = 6_000;
/** A connection that lasted so long was a good one: its end is no failure. */
const LASTING_MS = 5_000;

/** Follows a state until it is stopped. */
export class Watch {
  #person;
  #handlers;
  /** @type {TransportName[]} */
  #transports;
  #refreshMs;
  #stopped = false;
  #nap = new Nap();
  /** @type {AbortController | undefined} */
  #connection;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #refreshing;
  /** Counts what has arrived, so that an answer that was overtaken is known. */
  #arrivals = 0;
  #told = "";

  /** @type {State | undefined} The last state that was told. */
  state;
  /** @type {Link} */
  link = { status: "connecting" };

  /**
   * @param {Person} person
   * @param {WatchHandlers} handlers
   * @param {WatchOptions} [options]
   */
  constructor(person, handlers, options = {}) {
    this.#person = person;
    this.#handlers = handlers;
    const names = /** @type {TransportName[]} */ (Object.keys(TRANSPORTS));
    const usable = (options.transports ?? names).filter(
      (name) => name !== "socket" || person.WebSocket !== undefined,
    );
    this.#transports = usable.length > 0 ? usable : ["poll"];
    this.#refreshMs = options.refreshMs ?? REFRESH_MS;
    void this.#run();
  }

  stop() {
    this.#stopped = true;
    this.#connection?.abort();
    clearTimeout(this.#refreshing);
    this.#nap.wake();
  }

  /**
   * Makes a call that answers with this person's state, and takes the answer over, so that nobody has
   * to wait for it to come by the connection too. An answer that was overtaken by something newer is
   * asked for again instead.
   * @param {() => Promise<State>} call
   */
  async following(call) {
    const before = this.#arrivals;
    const state = await call();
    if (before === this.#arrivals) this.#arrived(state);
    else void this.#refresh();
  }

  /** @param {State} state */
  #arrived(state) {
    this.#arrivals += 1;
    this.#tell(state);
  }

  /** Looks now: the page is seen again, or the network is back. */
  check() {
    if (this.link.status === "offline") this.#nap.wake();
    else void this.#refresh();
  }

  async #run() {
    let best = 0;
    let failures = 0;
    while (!this.#stopped) {
      const index = Math.min(best, this.#transports.length - 1);
      const { worked, lasted, error } = await this.#connect(this.#transports[index]);
      if (this.#stopped) return;
      if (lasted) failures = 0;
      // A better one is tried again each time that a makeshift has ended well.
      if (worked && !error) best = 0;
      const answered = await this.#ask(error);
      if (this.#stopped) return;
      if (answered === true) {
        // The server is there, so it is this transport that does not go through.
        if (!worked) best = index + 1;
        if (!lasted) {
          failures += 1;
          await this.#nap.sleep(delayMs(failures));
        }
        continue;
      }
      failures += 1;
      const ms = delayMs(failures, answered.retryAfterMs);
      this.#setLink({ status: "offline", error: answered, retryAt: Date.now() + ms });
      await this.#nap.sleep(ms);
    }
  }

  /**
   * @param {TransportName} name
   * @returns {Promise<{ worked: boolean, lasted: boolean, error?: unknown }>}
   */
  async #connect(name) {
    const connection = new AbortController();
    this.#connection = connection;
    const begun = Date.now();
    let worked = false;
    let error;
    try {
      await TRANSPORTS[name]({
        person: this.#person,
        signal: connection.signal,
        arrived: (state) => {
          worked = true;
          this.#setLink({ status: "online" });
          this.#arrived(state);
        },
      });
    } catch (thrown) {
      error = thrown;
    }
    // Whatever comes of it later is not told any more.
    connection.abort();
    clearTimeout(this.#refreshing);
    return { worked, lasted: worked && Date.now() - begun > LASTING_MS, error };
  }

  /**
   * Asks plainly, which tells both how it stands and whether the server is there.
   * @param {unknown} [broke] what the connection broke with
   * @returns {Promise<true | AisekiError>}
   */
  async #ask(broke) {
    const before = this.#arrivals;
    try {
      const state = await this.#person.asSomebody(() =>
        this.#person.state({ timeoutMs: ALIVE_MS }),
      );
      if (before === this.#arrivals && !this.#stopped) this.#arrived(state);
      const refused = broke instanceof AisekiError && broke.code === "unavailable";
      return refused ? broke : true;
    } catch (error) {
      if (error instanceof AisekiError) return error;
      throw error;
    }
  }

  async #refresh() {
    const connection = this.#connection;
    const before = this.#arrivals;
    const answered = await this.#ask();
    if (this.#stopped || connection !== this.#connection) return;
    if (answered !== true && before === this.#arrivals) {
      // No answer, and nothing came in the meantime: the connection only seems to be there.
      connection?.abort();
    } else {
      this.#planRefresh();
    }
  }

  #planRefresh() {
    clearTimeout(this.#refreshing);
    if (this.#stopped) return;
    const ms = this.state?.status === "waiting" ? this.#refreshMs : IDLE_REFRESH_MS;
    this.#refreshing = setTimeout(() => void this.#refresh(), ms);
  }

  /** @param {State} state */
  #tell(state) {
    this.#planRefresh();
    const text = JSON.stringify(state);
    if (text === this.#told || this.#stopped) return;
    this.#told = text;
    this.state = state;
    this.#handlers.state?.(state);
  }

  /** @param {Link} link */
  #setLink(link) {
    if (link.status === "online" && this.link.status === "online") return;
    this.link = link;
    this.#handlers.link?.(link);
  }
}
