// Who may not take part.

import { html, useState } from "../page/view.js";
import { say, speaker } from "../page/language.js";
import { Sure } from "./sections.js";

/** @import { Desk } from "./main.js" */

const HOUR_MS = 3_600_000;
/** How long a ban may last; none is for ever. */
const TERMS = { ever: 0, hour: HOUR_MS, day: 24 * HOUR_MS, week: 7 * 24 * HOUR_MS };

/** @param {{ desk: Desk }} props */
export function Bans({ desk }) {
  const [subject, setSubject] = useState("");
  const [reason, setReason] = useState("");
  const [term, setTerm] = useState(/** @type {keyof typeof TERMS} */ ("ever"));
  /** @param {Event} event */
  const add = async (event) => {
    event.preventDefault();
    const given = subject.trim();
    if (!given) return;
    const until = TERMS[term] > 0 ? new Date(desk.now() + TERMS[term]).toISOString() : undefined;
    // Addresses hold a dot or a colon and no token does without two dots and letters beyond f.
    const isAddress = /^[\d.]+(\/\d+)?$|^[\da-f:.]*:[\da-f:.]*(\/\d+)?$/i.test(given);
    const ban = { [isAddress ? "address" : "session"]: given, reason: reason.trim(), expires_at: until };
    if (await desk.attempt(() => desk.operator.ban(ban))) {
      setSubject("");
      setReason("");
    }
  };
  return html`<section aria-labelledby="bans">
    <h2 id="bans">${say("console.bans")}</h2>
    ${desk.bans.length === 0 && html`<p class="hint">${say("console.bans.none")}</p>`}
    <ul class="rows">
      ${desk.bans.map((ban) => {
        const name = ban.session ?? ban.address ?? "";
        return html`<li key=${ban.id}>
          <span class="title"><code>${name}</code> ${ban.reason}</span>
          <span class="tag">${ban.expires_at ? moment(ban.expires_at) : say("console.bans.ever")}</span>
          <span class="act">
            <${Sure}
              label=${say("console.bans.lift")}
              name=${say("console.bans.lift.named", { subject: name })}
              act=${() => desk.attempt(() => desk.operator.lift(ban.id))}
            />
          </span>
        </li>`;
      })}
    </ul>
    <form class="ban" onSubmit=${add}>
      <label class="field">
        <span>${say("console.bans.subject")}</span>
        <input type="text" required value=${subject} autocomplete="off" spellcheck=${false} onInput=${(/** @type {any} */ event) => setSubject(event.currentTarget.value)} />
      </label>
      <label class="field">
        <span>${say("console.bans.reason")}</span>
        <input type="text" maxlength="500" value=${reason} onInput=${(/** @type {any} */ event) => setReason(event.currentTarget.value)} />
      </label>
      <label class="field">
        <span>${say("console.bans.expires")}</span>
        <select value=${term} onChange=${(/** @type {any} */ event) => setTerm(event.currentTarget.value)}>
          ${Object.keys(TERMS).map((each) => html`<option key=${each} value=${each}>${say(`console.bans.${each}`)}</option>`)}
        </select>
      </label>
      <button type="submit" class="strong">${say("console.bans.add")}</button>
    </form>
  </section>`;
}

/**
 * A day and a time of it.
 * @param {string} at
 */
export function moment(at) {
  return new Date(at).toLocaleString(speaker.language, { dateStyle: "medium", timeStyle: "short" });
}
