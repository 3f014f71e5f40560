// The whole page: which screen is shown, what is read out, where the focus goes.

import { html, useChanges, useEffect, useRef, useState } from "./view.js";
import { LANGUAGES, choose, say, speaker } from "./language.js";
import { EndedScreen } from "./ended.js";
import { Away } from "./notices.js";
import { RoomScreen } from "./room.js";
import { Topics } from "./topics.js";
import { Waiting } from "./waiting.js";

/** @import { Controller } from "./controller.js" */
/** @import { Alerts } from "./alerts.js" */

/** The panels of the curtain: enough for a wide screen, of which others show what fits. */
const PANELS = Array.from({ length: 24 }, (_, i) => i);

/** @param {{ controller: Controller, alerts: Alerts }} props */
export function App({ controller, alerts }) {
  useChanges(controller.listeners);
  useChanges(speaker.listeners);
  const { screen } = controller;
  useFocus(screen);
  return html`
    <a class="skip" href="#main">${say("app.skip")}</a>
    <${Noren} />
    <${Away} controller=${controller} />
    <main id="main" data-screen=${screen} tabindex="-1">${body(controller, alerts)}</main>
    <${Announcements} controller=${controller} />
  `;
}

/**
 * @param {Controller} controller
 * @param {Alerts} alerts
 */
function body(controller, alerts) {
  const { screen, state, seat, view, ended } = controller;
  if (screen === "waiting" && state?.status === "waiting") {
    return html`<${Waiting} controller=${controller} alerts=${alerts} state=${state} />`;
  }
  if (screen === "room" && seat && view) {
    return html`<${RoomScreen} controller=${controller} seat=${seat} view=${view} />`;
  }
  if (screen === "ended" && ended) {
    return html`<${EndedScreen} controller=${controller} ended=${ended} />`;
  }
  if (screen === "topics") return html`<${Topics} controller=${controller} />`;
  return html`<p class="loading">${say("app.loading")}</p>`;
}

/** The curtain over the door, with the name and the language. */
function Noren() {
  return html`<header class="noren">
    <div class="cloth" aria-hidden="true">${PANELS.map((i) => html`<i key=${i}></i>`)}</div>
    <p class="name" lang="ja"><span>相席</span> <small lang="en">aiseki</small></p>
    <div class="languages" role="group" aria-label=${say("app.language")}>
      ${LANGUAGES.map(
        (language) => html`<button
          type="button"
          lang=${language}
          aria-pressed=${speaker.language === language ? "true" : "false"}
          onClick=${() => choose(language)}
        >
          ${language === "ja" ? "日本語" : "English"}
        </button>`,
      )}
    </div>
  </header>`;
}

/**
 * Moves the focus with the screen, so that nobody is left on a button that is gone. The first screen
 * takes no focus: a page that opens is read from its top.
 * @param {string} screen
 */
function useFocus(screen) {
  const before = useRef("loading");
  useEffect(() => {
    const was = before.current;
    before.current = screen;
    if (was === "loading" || was === screen) return;
    const writes = screen === "room" && matchMedia("(pointer: fine)").matches;
    const target = document.querySelector(writes ? "#composer" : "main h1");
    if (target instanceof HTMLElement) target.focus();
    scrollTo(0, 0);
  }, [screen]);
}

/**
 * Reads out what changes without being touched.
 * @param {{ controller: Controller }} props
 */
function Announcements({ controller }) {
  const [words, setWords] = useState("");
  const { screen, state, view } = controller;
  const presence = view?.seats.map(({ seat, state }) => `${seat}${state}`).join() ?? "";
  const known = useRef(/** @type {Map<number, string>} */ (new Map()));

  useEffect(() => {
    if (screen === "waiting" && state?.status === "waiting") {
      const topic = controller.title(state.topic_id);
      setWords(say("waiting.announce", { topic, size: say("size", { n: state.room_type }) }));
    } else if (screen === "room") {
      setWords(say("matched.announce"));
    } else {
      setWords("");
    }
    known.current = new Map();
  }, [screen]);

  useEffect(() => {
    for (const { seat, state } of view?.seats ?? []) {
      const was = known.current.get(seat);
      known.current.set(seat, state);
      if (was !== undefined && was !== state && seat !== view?.me) {
        setWords(say(`room.event.${state}`, { name: speaker.name(seat) }));
      }
    }
  }, [presence]);

  return html`<p role="status" class="unseen announcements">${words}</p>`;
}
