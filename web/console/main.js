// The operator's page. The token is in memory only: closing or reloading the page forgets it.

import { AisekiError, Operator } from "../client/index.js";
import { html, render, useChanges, useEffect, useRef, useState } from "../page/view.js";
import { LANGUAGES, choose, minutes, say, speaker } from "../page/language.js";
import { Bars, Line } from "./charts.js";
import { buckets, greatest, median, parse, sum } from "./metrics.js";
import { Bans } from "./people.js";
import { Reports } from "./reports.js";
import { Queues, Rooms, Topics } from "./sections.js";

/** @import { Ban, ListedReport, ListedRoom, ListedTopic, QueueView } from "../client/operator.js" */

const EVERY_MS = 2_000;
/** Points of the chart over time: five minutes. */
const POINTS = 150;
const ROOMS_PER_PAGE = 50;

/** Everything that an operator looks at, and asks for again and again. */
export class Desk {
  /** @type {Set<() => void>} */
  listeners = new Set();
  /** @type {QueueView[]} */
  queues = [];
  /** @type {{ rooms: ListedRoom[], next: string | null }} */
  rooms = { rooms: [], next: null };
  /** @type {ListedTopic[]} */
  topics = [];
  /** @type {Ban[]} */
  bans = [];
  /** @type {{ reports: ListedReport[], next: number | null }} */
  reports = { reports: [], next: null };
  /** @type {number[]} */
  waiting = [];
  /** @type {{ at: number, joins: number, formed: number }[]} */
  counted = [];
  /** @type {ReturnType<typeof parse>} */
  samples = new Map();
  error = "";
  away = false;
  updatedAt = 0;
  #limit = ROOMS_PER_PAGE;
  #stopped = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {Operator} operator */
  constructor(operator) {
    this.operator = operator;
  }

  now() {
    return Date.now() + this.operator.http.aheadMs;
  }

  /** @param {number} id */
  title(id) {
    return this.topics.find((topic) => topic.id === id)?.title ?? String(id);
  }

  more() {
    this.#limit += ROOMS_PER_PAGE;
    void this.load();
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** @throws {AisekiError} `unauthenticated` */
  async first() {
    await this.#ask();
    this.#plan();
  }

  async load() {
    clearTimeout(this.#timer);
    try {
      await this.#ask();
      this.away = false;
    } catch (error) {
      if (!(error instanceof AisekiError)) throw error;
      this.away = error.isPassing;
      if (!error.isPassing) this.error = say("console.error", { detail: error.detail });
    }
    this.#changed();
    this.#plan();
  }

  #plan() {
    clearTimeout(this.#timer);
    if (!this.#stopped) this.#timer = setTimeout(() => void this.load(), EVERY_MS);
  }

  async #ask() {
    const { operator } = this;
    const [topics, queues, rooms, bans, reports, text] = await Promise.all([
      operator.topics(),
      operator.queues(),
      operator.rooms({ limit: Math.min(this.#limit, 1000) }),
      operator.bans(),
      operator.reports({ open: true }),
      operator.metrics(),
    ]);
    Object.assign(this, { topics, queues, rooms, bans, reports });
    this.samples = parse(text);
    const waiting = queues.reduce((total, queue) => total + queue.waiting, 0);
    this.waiting = [...this.waiting, waiting].slice(-POINTS);
    const counts = {
      at: Date.now(),
      joins: sum(this.samples, "aiseki_joins_total"),
      formed: sum(this.samples, "aiseki_rooms_formed_total"),
    };
    this.counted = [...this.counted, counts].slice(-POINTS);
    this.updatedAt = Date.now();
  }

  /**
   * How often it happens per minute, as far as it has been watched.
   * @param {"joins" | "formed"} what
   */
  perMinute(what) {
    const [first, last] = [this.counted[0], this.counted.at(-1)];
    if (!first || !last || last.at === first.at) return 0;
    // A server that was started anew counts from the beginning.
    return Math.max(0, ((last[what] - first[what]) * 60_000) / (last.at - first.at));
  }

  /**
   * Does something, and shows what came of it.
   * @param {() => Promise<unknown>} act
   * @returns {Promise<boolean>}
   */
  async attempt(act) {
    this.error = "";
    try {
      await act();
      await this.load();
      return true;
    } catch (error) {
      if (!(error instanceof AisekiError)) throw error;
      this.error = say("console.error", { detail: error.detail });
      this.#changed();
      return false;
    }
  }

  #changed() {
    for (const listener of this.listeners) listener();
  }
}

function App() {
  useChanges(speaker.listeners);
  const [desk, setDesk] = useState(/** @type {Desk | undefined} */ (undefined));
  useEffect(() => {
    document.title = `${say("console.title")} · aiseki`;
  });
  const leave = () => {
    desk?.stop();
    setDesk(undefined);
  };
  return html`
    <header class="noren">
      <div class="cloth" aria-hidden="true">${Array.from({ length: 24 }, (_, i) => html`<i key=${i}></i>`)}</div>
      <p class="name" lang="ja"><span>相席</span> <small lang=${speaker.language}>${say("console.title")}</small></p>
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
        ${desk && html`<button type="button" onClick=${leave}>${say("console.leave")}</button>`}
      </div>
    </header>
    <main id="main" class="console">
      ${desk ? html`<${Board} desk=${desk} />` : html`<${Door} enter=${setDesk} />`}
    </main>
  `;
}

/** @param {{ enter: (desk: Desk) => void }} props */
function Door({ enter }) {
  const [trouble, setTrouble] = useState("");
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    const token = field.current?.value.trim() ?? "";
    const url = new URL(".", document.baseURI);
    const desk = new Desk(new Operator({ url, token }));
    try {
      await desk.first();
      enter(desk);
    } catch (error) {
      if (!(error instanceof AisekiError)) throw error;
      const refused = error.code === "unauthenticated";
      setTrouble(refused ? say("console.wrong") : say("console.error", { detail: error.detail }));
    }
  };
  return html`<form class="door" onSubmit=${submit}>
    <h1>${say("console.title")}</h1>
    <label class="field">
      <span>${say("console.token")}</span>
      <input type="password" ref=${field} required autocomplete="off" aria-describedby="token-hint" />
    </label>
    <p class="hint" id="token-hint">${say("console.token.hint")}</p>
    <div role="alert">${trouble && html`<p class="trouble">${trouble}</p>`}</div>
    <div class="actions"><button type="submit" class="strong">${say("console.enter")}</button></div>
  </form>`;
}

/** @param {{ desk: Desk }} props */
function Board({ desk }) {
  useChanges(desk.listeners);
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus(), []);
  const { samples } = desk;
  const histogram = buckets(samples, "aiseki_time_to_match_seconds");
  const middle = median(histogram);
  const rooms = `${desk.rooms.rooms.length}${desk.rooms.next ? "+" : ""}`;
  const available = sum(samples, "aiseki_store_available") > 0;
  return html`
    <h1 class="unseen" tabindex="-1" ref=${heading}>${say("console.title")}</h1>
    <div role="alert">
      ${desk.error && html`<p class="trouble">${desk.error}</p>`}
      ${desk.away && html`<p class="trouble">${say("console.away")}</p>`}
    </div>
    <section aria-labelledby="now" class="now">
      <h2 id="now">
        ${say("console.now")} <small>${say("console.updated", { time: new Date(desk.updatedAt).toLocaleTimeString(speaker.language) })}</small>
      </h2>
      <dl class="tiles">
        <${Tile} name=${say("console.waiting")} value=${String(desk.waiting.at(-1) ?? 0)} />
        <${Tile} name=${say("console.oldest")} value=${minutes(greatest(samples, "aiseki_oldest_wait_seconds") * 1000)} />
        <${Tile} name=${say("console.rooms")} value=${rooms} />
        <${Tile} name=${say("console.match")} value=${middle === undefined ? "–" : `${middle.toFixed(1)} s`} />
        <${Tile} name=${say("console.joins")} value=${desk.perMinute("joins").toFixed(0)} />
        <${Tile} name=${say("console.formed")} value=${desk.perMinute("formed").toFixed(0)} />
        <${Tile} name=${say("console.connections")} value=${String(sum(samples, "aiseki_http_connections"))} />
        <${Tile} name=${say("console.store")} value=${say(available ? "console.store.ok" : "console.store.away")} />
      </dl>
      <div class="charts">
        <${Line} label=${say("console.chart.waiting")} values=${desk.waiting} most=${POINTS} />
        <${Bars} label=${say("console.chart.match")} bars=${histogram} />
      </div>
    </section>
    <${Queues} desk=${desk} />
    <${Rooms} desk=${desk} />
    <${Reports} desk=${desk} />
    <${Topics} desk=${desk} />
    <${Bans} desk=${desk} />
  `;
}

/** @param {{ name: string, value: string }} props */
function Tile({ name, value }) {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(html`<${App} />`, root);
}
