// What there is to talk about, and with how many.

import { html } from "./view.js";
import { say } from "./language.js";
import { Notices } from "./notices.js";
import { Table } from "./table.js";

/** @import { Controller } from "./controller.js" */
/** @import { Topic } from "../client/index.js" */

/** @param {{ controller: Controller }} props */
export function Topics({ controller }) {
  const { topics, size, sizes, joining } = controller;
  return html`<div class="topics">
    <div class="greeting">
      <h1 tabindex="-1">${say("topics.lead")}</h1>
      <p>${say("topics.how")}</p>
    </div>
    <${Notices} controller=${controller} />
    <fieldset class="sizes">
      <legend>${say("topics.size")}</legend>
      <div class="choices">
        ${sizes.map(
          (each) => html`<label class="size" key=${each}>
            <input
              type="radio"
              name="size"
              value=${each}
              checked=${each === size}
              onChange=${() => controller.choose(each)}
            />
            <span class="card">
              <${Table} places=${places(each)} />
              <span>${say("size", { n: each })}</span>
            </span>
          </label>`,
        )}
      </div>
    </fieldset>
    <section class="menu" aria-labelledby="menu-heading">
      <h2 id="menu-heading">${say("topics.heading")}</h2>
      ${topics?.length === 0 && html`<p class="empty">${say("topics.none")}</p>`}
      <ul>
        ${(topics ?? []).map(
          (topic) => html`<${Strip}
            key=${topic.id}
            topic=${topic}
            size=${size}
            joining=${joining === topic.id}
            busy=${joining !== 0}
            choose=${() => void controller.join(topic.id)}
          />`,
        )}
      </ul>
    </section>
  </div>`;
}

/**
 * One's own place, and the others' empty ones.
 * @param {number} size
 * @returns {import("./table.js").Place[]}
 */
function places(size) {
  return Array.from({ length: size }, (_, i) => (i === 0 ? "me" : "empty"));
}

/**
 * One topic, as a strip of the menu.
 * @param {{ topic: Topic, size: number, joining: boolean, busy: boolean, choose: () => void }} props
 */
function Strip({ topic, size, joining, busy, choose }) {
  const n = topic.waiting[size] ?? 0;
  const soon = n >= size - 1;
  return html`<li>
    <button type="button" class="strip" aria-disabled=${busy ? "true" : undefined} onClick=${choose}>
      <span class="title">${topic.title}</span>
      <span class="leader" aria-hidden="true"></span>
      <span class=${n > 0 ? "count some" : "count"}>
        ${joining ? say("topics.joining") : n > 0 ? say("topics.waiting", { n }) : say("topics.nobody")}
      </span>
      ${soon &&
      html`<span class="seal"
        ><span aria-hidden="true">${say("topics.soon")}</span
        ><span class="unseen">${say("topics.soon.long")}</span></span
      >`}
    </button>
  </li>`;
}
