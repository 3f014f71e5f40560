// What a person has to know, in words that say what to do.

import { html, useSeconds } from "./view.js";
import { minutes, say, speaker } from "./language.js";

/** @import { Controller } from "./controller.js" */

/**
 * What was refused, or happened meanwhile.
 * @param {{ controller: Controller }} props
 */
export function Notices({ controller }) {
  const { notice } = controller;
  return html`<div role="alert" class="notices">
    ${notice &&
    html`<div class="notice" data-code=${notice.code}>
      <h2>${say(known(notice.code))}</h2>
      <p>
        ${notice.code === "rate_limited" && notice.until
          ? html`<${Countdown} until=${notice.until} />`
          : say(`${known(notice.code)}.body`, { code: notice.code })}
      </p>
      <button type="button" class="plain" onClick=${() => controller.dismiss()}>
        ${say("notice.dismiss")}
      </button>
    </div>`}
  </div>`;
}

/**
 * The words for a code of the server's.
 * @param {string} code
 */
function known(code) {
  if (["network", "timeout", "unreadable"].includes(code)) return "notice.unavailable";
  const key = `notice.${code}`;
  return speaker.knows(`${key}.body`) ? key : "notice.other";
}

/** @param {{ until: number }} props */
function Countdown({ until }) {
  const left = until - useSeconds();
  // It is read out when it appears, and not once a second.
  return left > 0
    ? html`<span aria-live="off">${say("notice.rate_limited.body", { time: minutes(left) })}</span>`
    : html`<span>${say("notice.rate_limited.over")}</span>`;
}

/**
 * Says that the server is away, and when it is tried again.
 * @param {{ controller: Controller }} props
 */
export function Away({ controller }) {
  const away = controller.isAway;
  return html`<div role="status" class="away-place">
    ${away &&
    html`<div class="away">
      <strong>${say("away.heading")}</strong>
      <span>
        ${navigator.onLine === false ? say("away.network") : say("away.server")}${" "}
        ${controller.state?.status !== "idle" && controller.state ? say("away.kept") : ""}
      </span>
      <${Retry} controller=${controller} />
    </div>`}
  </div>`;
}

/** @param {{ controller: Controller }} props */
function Retry({ controller }) {
  const now = useSeconds();
  const left = (controller.link.retryAt ?? 0) - now;
  return html`<span aria-live="off" class="when">
      ${left > 500 ? say("away.retry", { time: minutes(left) }) : say("away.trying")}
    </span>
    <button type="button" class="plain" onClick=${() => controller.retry()}>
      ${say("away.now")}
    </button>`;
}
