// One call over HTTP.

import { AisekiError, refusal } from "./errors.js";
import { Nap, delayMs } from "./backoff.js";

/** An answer that takes longer is not waited for. */
const TIMEOUT_MS = 10_000;
/** Clocks that differ by less are the same. */
const CLOCKS_AGREE_MS = 3_000;

/**
 * @typedef {object} CallOptions
 * @property {unknown} [body] sent as JSON
 * @property {AbortSignal} [signal]
 * @property {number} [timeoutMs]
 * @property {number} [retries] further attempts when the server is away; only for calls that may be
 *   repeated
 * @property {(response: Response) => Promise<any>} [read] what the answer says, if not its JSON
 */

/** Calls one server, as one person or operator. */
export class Http {
  /**
   * @param {object} options
   * @param {string | URL} options.url where the server stands, with its base path
   * @param {string} [options.token] sent with each call; without one the browser's cookie is
   * @param {typeof globalThis.fetch} [options.fetch]
   */
  constructor({ url, token, fetch = globalThis.fetch }) {
    const base = new URL(url);
    base.pathname = base.pathname.replace(/\/*$/, "/");
    this.base = base;
    this.token = token;
    // Browsers insist on being called as a function of the window.
    this.fetch = fetch.bind(globalThis);
  }

  /** How far the server's clock is ahead of this one, as far as its answers tell, in milliseconds. */
  aheadMs = 0;

  /**
   * @param {string} path below the server's address, without a slash before it
   */
  address(path) {
    return new URL(path, this.base);
  }

  /**
   * What an answer says, as `read` makes it out; refusals are thrown. The signal and the time limit
   * hold until it is read to its end, so that they end a stream too.
   * @template T
   * @param {string} method
   * @param {string} path
   * @param {(response: Response) => Promise<T>} read
   * @param {CallOptions} [options]
   * @returns {Promise<T>}
   * @throws {AisekiError}
   */
  async answer(method, path, read, { body, signal, timeoutMs = TIMEOUT_MS } = {}) {
    /** @type {Record<string, string>} */
    const headers = {};
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const late = AbortSignal.timeout(timeoutMs);
    const cut = new AbortController();
    const stop = () => cut.abort();
    for (const each of [late, signal]) {
      if (each?.aborted) stop();
      each?.addEventListener("abort", stop, { once: true });
    }
    try {
      const response = await this.fetch(this.address(path), {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: cut.signal,
        // With a token of its own a page needs no cookie, and must not send another person's.
        credentials: this.token ? "omit" : "same-origin",
        cache: "no-store",
      });
      this.#compareClocks(response.headers.get("Date"));
      if (!response.ok) throw await refusal(response);
      return await read(response);
    } catch (error) {
      if (error instanceof AisekiError) throw error;
      if (late.aborted) throw new AisekiError("timeout", "no answer in time", { cause: error });
      if (error instanceof SyntaxError) {
        throw new AisekiError("unreadable", "an answer that is no JSON", { cause: error });
      }
      throw new AisekiError("network", "no answer, or none to its end", { cause: error });
    } finally {
      for (const each of [late, signal]) each?.removeEventListener("abort", stop);
    }
  }

  /**
   * Answers tell the time in whole seconds, so less than a few of them is no difference.
   * @param {string | null} date
   */
  #compareClocks(date) {
    const ahead = Date.parse(date ?? "") - Date.now();
    if (!Number.isNaN(ahead)) this.aheadMs = Math.abs(ahead) > CLOCKS_AGREE_MS ? ahead : 0;
  }

  /**
   * What the answer says, with patience for a server that is away.
   * @param {string} method
   * @param {string} path
   * @param {CallOptions} [options]
   * @returns {Promise<any>} nothing, for an answer without content
   * @throws {AisekiError}
   */
  async call(method, path, options = {}) {
    const { retries = 0, signal, read = content } = options;
    for (let failures = 1; ; failures += 1) {
      try {
        return await this.answer(method, path, read, options);
      } catch (error) {
        if (!(error instanceof AisekiError)) throw error;
        if (!error.isPassing || failures > retries || signal?.aborted) throw error;
        await new Nap().sleep(delayMs(failures, error.retryAfterMs));
      }
    }
  }
}

/** @param {Response} response */
async function content(response) {
  return response.status === 204 ? undefined : response.json();
}
