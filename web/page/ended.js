// A conversation that is over, and what to do next.

import { html, useState } from "./view.js";
import { minutes, say, speaker } from "./language.js";
import { About } from "./dialogs.js";
import { Notices } from "./notices.js";
import { Lines } from "./room.js";
import { Cup, Table } from "./table.js";

/** @import { Controller, Ended } from "./controller.js" */

/** Reasons that have words of their own. */
const KNOWN = ["left", "away", "me_away", "closed", "banned", "store_lost", "others"];

/** @param {{ controller: Controller, ended: Ended }} props */
export function EndedScreen({ controller, ended }) {
  const [about, setAbout] = useState(0);
  const { seat, topic, me, seats } = ended;
  const reason = `ended.${KNOWN.includes(ended.reason) ? ended.reason : "others"}`;
  const messages = controller.view?.messages ?? [];
  const size = seat.requested_room_type;
  const { kept } = controller;
  const others = seats.filter((each) => each.seat !== me);
  return html`<div class="ended">
    <div class="picture">
      <${Table} places=${seats.map(() => "gone")} glazes=${seats.map((each) => each.seat)} />
    </div>
    <div class="words">
      <h1 tabindex="-1">${say(reason)}</h1>
      <p>${say(`${reason}.body`)}</p>
      <${Notices} controller=${controller} />
      <div class="actions stacked">
        <button
          type="button"
          class="strong"
          aria-disabled=${controller.joining ? "true" : undefined}
          onClick=${() => void controller.join(seat.topic_id, size, kept?.room_id)}
        >
          ${say(kept ? "ended.resume" : "ended.again")}
        </button>
        <p class="hint">
          ${kept
            ? say("ended.resume.body", { topic, n: size, time: minutes(kept.waited_ms) })
            : say("ended.again.body", { topic, n: size })}
        </p>
        <button type="button" class="quiet" onClick=${() => controller.forgetEnded()}>
          ${say("ended.topics")}
        </button>
      </div>
      ${others.length > 0 &&
      html`<ul class="people" aria-label=${say("room.people")}>
        ${others.map(
          (each) => html`<li key=${each.seat}>
            <button type="button" class="person" onClick=${() => setAbout(each.seat)}>
              <${Cup} seat=${each.seat} />
              <span class="name">${say("room.person", { name: speaker.name(each.seat) })}</span>
            </button>
          </li>`,
        )}
      </ul>`}
    </div>
    ${messages.length > 0 &&
    html`<details class="past">
      <summary>${say("ended.log")}</summary>
      <ol class="said">
        <${Lines} messages=${messages} me=${me} />
      </ol>
      <p class="hint">${say("ended.kept")}</p>
    </details>`}
    ${about > 0 &&
    html`<${About} controller=${controller} seat=${about} close=${() => setAbout(0)} />`}
  </div>`;
}
