// Waiting for a table.

import { html, useSeconds } from "./view.js";
import { minutes, say } from "./language.js";
import { Settings } from "./dialogs.js";
import { Table } from "./table.js";

/** @import { Controller } from "./controller.js" */
/** @import { Person, Waiting as WaitingState } from "../client/index.js" */
/** @import { Alerts } from "./alerts.js" */

/** The end of the wait is told when it is this near. */
const NEAR_MS = 60_000;

/** @param {{ controller: Controller, alerts: Alerts, state: WaitingState }} props */
export function Waiting({ controller, alerts, state }) {
  const topic = controller.title(state.topic_id);
  const size = say("size", { n: state.room_type });
  // Who else waits for the same sits down in the picture already, as far as anybody can know.
  const waiting = controller.queued(state);
  const few = waiting < state.room_type;
  const others = few ? waiting - 1 : state.ahead === 0 ? state.room_type - 2 : 0;
  /** @type {import("./table.js").Place[]} */
  const places = Array.from({ length: state.room_type }, (_, i) =>
    i === 0 ? "me" : i <= others ? "here" : "empty",
  );
  return html`<div class="waiting">
    <div class="picture"><${Table} places=${places} alive=${true} /></div>
    <div class="words">
      <h1 tabindex="-1">${say("waiting.heading")}</h1>
      <p class="what"><span class="topic">${topic}</span> <span class="tag">${size}</span></p>
      <${Times} state=${state} person=${controller.person} missing=${few || state.ahead === 0 ? state.room_type - 1 - others : 0} />
      <div class="actions">
        <button
          type="button"
          class="quiet"
          aria-disabled=${controller.cancelling ? "true" : undefined}
          onClick=${() => void controller.cancel()}
        >
          ${say(controller.cancelling ? "waiting.cancelling" : "waiting.cancel")}
        </button>
      </div>
      <p class="hint">${say("waiting.hint")}</p>
      <${Settings} alerts=${alerts} />
    </div>
  </div>`;
}

/** @param {{ state: WaitingState, person: Person, missing: number }} props */
function Times({ state, person, missing }) {
  useSeconds();
  const now = person.now();
  const elapsed = now - Date.parse(state.waiting_since);
  const expires = Date.parse(state.expires_at) - now;
  return html`<div class="times">
    <p class="clock" role="timer" aria-live="off">
      <span class="label">${say("waiting.elapsed")}</span>
      <span class="digits">${minutes(elapsed)}</span>
    </p>
    <p class="ahead" role="status">${ahead(state.ahead, missing)}</p>
    ${state.fallback_at && html`<p class="fallback">${fallback(Date.parse(state.fallback_at) - now)}</p>`}
    ${expires < NEAR_MS && html`<p class="expires">${say("waiting.expires", { time: minutes(expires) })}</p>`}
  </div>`;
}

/**
 * @param {number} n people who stand before this one
 * @param {number} missing people who are still needed, when this one is among the next; otherwise 0
 */
function ahead(n, missing) {
  if (missing > 0) return say("waiting.missing", { n: missing });
  return n >= 1000 ? say("waiting.ahead.many") : say("waiting.ahead", { n });
}

/** @param {number} ms */
function fallback(ms) {
  return ms > 0 ? say("waiting.fallback", { time: minutes(ms) }) : say("waiting.fallback.now");
}
