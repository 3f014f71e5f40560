// What goes wrong, by a word that programs can rely on.

/** @import { State } from "./person.js" */

/**
 * A call that was refused, or that got no answer. `code` is a word of the server's contract
 * (`rate_limited`, `banned`, …) or one of `network` (no answer came), `timeout` (none in time),
 * `unreadable` (something that is not aiseki answered) and `no_websocket` (there is none here, and a
 * room needs one).
 */
export class AisekiError extends Error {
  /**
   * @param {string} code
   * @param {string} detail for people who read logs, in English
   * @param {{ status?: number, retryAfterMs?: number, state?: State, cause?: unknown }} [more]
   */
  constructor(code, detail, more = {}) {
    super(`${code}: ${detail}`, { cause: more.cause });
    this.name = "AisekiError";
    this.code = code;
    this.detail = detail;
    /** The status of the answer; 0 without one. */
    this.status = more.status ?? 0;
    /** How long the server asks to wait before the next attempt, in milliseconds. */
    this.retryAfterMs = more.retryAfterMs;
    /** The person's state, when the refusal is because of it. */
    this.state = more.state;
  }

  /** Whether the same call may succeed a little later, with nothing changed by this one. */
  get isPassing() {
    return ["network", "timeout", "unreadable", "unavailable"].includes(this.code);
  }
}

/**
 * The refusal that an answer holds.
 * @param {Response} response
 * @returns {Promise<AisekiError>}
 */
export async function refusal(response) {
  const { status } = response;
  const seconds = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  const retryAfterMs = Number.isNaN(seconds) ? undefined : seconds * 1000;
  const type = response.headers.get("Content-Type") ?? "";
  if (type.startsWith("application/problem+json")) {
    const problem = await response.json().catch(() => ({}));
    if (typeof problem.code === "string") {
      const { code, detail = "", state } = problem;
      return new AisekiError(code, detail, { status, retryAfterMs, state });
    }
  }
  // A proxy whose server is away answers for it, in a form of its own.
  const code = [502, 503, 504].includes(status) ? "unavailable" : "unreadable";
  return new AisekiError(code, `an answer with status ${status}`, { status, retryAfterMs });
}
