// What opens over the page: settings, leaving, and what to do about a person.

import { AisekiError } from "../client/index.js";
import { html, useEffect, useRef, useState } from "./view.js";
import { say, speaker } from "./language.js";
import { Cup } from "./table.js";

/** @import { Controller } from "./controller.js" */
/** @import { Alerts } from "./alerts.js" */
/** @import { ComponentChildren } from "preact" */

/** The most that a report may say. */
const REASON_CHARACTERS = 500;

/**
 * A dialog for as long as it is drawn. The browser keeps the focus inside and gives it back.
 * @param {{ heading: string, close: () => void, children?: ComponentChildren }} props
 */
export function Dialog({ heading, close, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const before = document.activeElement;
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return html`<dialog
    ref=${element}
    aria-labelledby="dialog-heading"
    onCancel=${(/** @type {Event} */ event) => {
      event.preventDefault();
      close();
    }}
    onClick=${(/** @type {MouseEvent} */ event) => event.target === element.current && close()}
  >
    <div class="sheet">
      <h2 id="dialog-heading">${heading}</h2>
      ${children}
    </div>
  </dialog>`;
}

/** @param {{ alerts: Alerts }} props */
export function Settings({ alerts }) {
  return html`<div class="settings">
    <label class="check">
      <input
        type="checkbox"
        checked=${alerts.sound}
        onChange=${(/** @type {any} */ event) => alerts.setSound(event.currentTarget.checked)}
      />
      <span>${say("app.sound")}</span>
    </label>
    ${alerts.canNotify &&
    html`<label class="check">
      <input
        type="checkbox"
        checked=${alerts.notify}
        disabled=${alerts.notifyDenied}
        onChange=${(/** @type {any} */ event) => void alerts.setNotify(event.currentTarget.checked)}
      />
      <span>${say(alerts.notifyDenied ? "app.notify.denied" : "app.notify")}</span>
    </label>`}
  </div>`;
}

/** @param {{ leave: () => void, close: () => void }} props */
export function Leaving({ leave, close }) {
  return html`<${Dialog} heading=${say("room.leave.ask")} close=${close}>
    <p>${say("room.leave.body")}</p>
    <div class="actions">
      <button type="button" class="quiet" onClick=${close}>${say("room.leave.no")}</button>
      <button type="button" class="strong" onClick=${leave}>${say("room.leave.yes")}</button>
    </div>
  <//>`;
}

/**
 * What can be done about somebody.
 * @param {{ controller: Controller, seat: number, close: () => void }} props
 */
export function About({ controller, seat, close }) {
  const [step, setStep] = useState(/** @type {"choose" | "report" | "block" | "done"} */ ("choose"));
  const [done, setDone] = useState("");
  const [trouble, setTrouble] = useState("");
  const [reason, setReason] = useState("");
  const name = speaker.name(seat);

  /**
   * @param {() => Promise<void>} act
   * @param {string} words
   */
  const attempt = async (act, words) => {
    setTrouble("");
    try {
      await act();
      setDone(words);
      setStep("done");
    } catch (error) {
      if (!(error instanceof AisekiError)) throw error;
      const key = `notice.${error.code}`;
      const passing = error.isPassing ? "notice.unavailable" : "notice.other";
      setTrouble(say(`${speaker.knows(`${key}.body`) ? key : passing}.body`, { code: error.code }));
    }
  };
  const report = () => attempt(() => controller.report(seat, reason.trim()), say("report.done"));
  const block = () => attempt(() => controller.block(seat), say("block.done", { name }));
  const headings = {
    choose: say("room.person", { name }),
    report: say("report.heading", { name }),
    block: say("block.heading", { name }),
    done: say("room.person", { name }),
  };

  return html`<${Dialog} heading=${headings[step]} close=${close}>
    <div class="whose"><${Cup} seat=${seat} /></div>
    <div role="status">${done && html`<p class="done">${done}</p>`}</div>
    <div role="alert">${trouble && html`<p class="trouble">${trouble}</p>`}</div>
    ${step === "choose" &&
    html`<div class="actions stacked">
      <button type="button" class="quiet" onClick=${() => setStep("report")}>${say("report.open")}</button>
      <button type="button" class="quiet" onClick=${() => setStep("block")}>${say("block.open")}</button>
      <button type="button" class="plain" onClick=${close}>${say("app.close")}</button>
    </div>`}
    ${step === "report" &&
    html`<form
      onSubmit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        if (reason.trim()) void report();
      }}
    >
      <p>${say("report.body")}</p>
      <label class="field">
        <span>${say("report.reason")}</span>
        <textarea
          rows="3"
          required
          maxlength=${REASON_CHARACTERS}
          value=${reason}
          onInput=${(/** @type {any} */ event) => setReason(event.currentTarget.value)}
        ></textarea>
      </label>
      <div class="actions">
        <button type="button" class="quiet" onClick=${close}>${say("app.cancel")}</button>
        <button type="submit" class="strong">${say("report.send")}</button>
      </div>
    </form>`}
    ${step === "block" &&
    html`<p>${say("block.body")}</p>
      <div class="actions">
        <button type="button" class="quiet" onClick=${close}>${say("app.cancel")}</button>
        <button type="button" class="strong" onClick=${() => void block()}>${say("block.send")}</button>
      </div>`}
    ${step === "done" &&
    html`<div class="actions">
      <button type="button" class="quiet" onClick=${close}>${say("app.close")}</button>
    </div>`}
  <//>`;
}
