// What people reported about others, to be judged.

import { html } from "../page/view.js";
import { say, speaker } from "../page/language.js";
import { moment } from "./people.js";
import { Sure } from "./sections.js";

/** @import { Desk } from "./main.js" */
/** @import { ListedReport } from "../client/operator.js" */

/** @param {{ desk: Desk }} props */
export function Reports({ desk }) {
  const { reports, next } = desk.reports;
  return html`<section aria-labelledby="reports">
    <h2 id="reports">${say("console.reports")}</h2>
    ${reports.length === 0 && html`<p class="hint">${say("console.reports.none")}</p>`}
    <ul class="rows">
      ${reports.map((report) => html`<${Row} key=${report.id} desk=${desk} report=${report} />`)}
    </ul>
    ${next !== null && html`<p class="hint">${say("console.reports.more")}</p>`}
  </section>`;
}

/** @param {{ desk: Desk, report: ListedReport }} props */
function Row({ desk, report }) {
  const { id, reason, seat, messages } = report;
  const named = { name: speaker.name(seat), reason };
  const judge = (/** @type {object | undefined} */ ban) => () =>
    void desk.attempt(() => desk.operator.judge(id, ban && { ban }));
  return html`<li class="report">
    <span class="title">${say("console.reports.about", named)}</span>
    <span class="tag">${moment(report.created_at)}</span>
    <details>
      <summary>${say("console.reports.said", { n: messages.length })}</summary>
      <ol class="said-then">
        ${messages.map((said) => html`<li key=${said.seq}><b>${speaker.name(said.seat)}</b> ${said.text}</li>`)}
      </ol>
    </details>
    <span class="act">
      <button type="button" class="quiet small" aria-label=${say("console.reports.close.named", named)} onClick=${judge(undefined)}>
        ${say("console.reports.close")}
      </button>
      <${Sure} label=${say("console.bans.add")} name=${say("console.reports.ban.named", named)} act=${judge({ reason })} />
    </span>
  </li>`;
}
