// What operators see and change: queues, tables, topics.

import { html, useEffect, useState } from "../page/view.js";
import { minutes, say, speaker } from "../page/language.js";

/** @import { Desk } from "./main.js" */

/** So long a button that ends something waits for the second press. */
const SURE_MS = 4_000;

/**
 * A button that has to be pressed twice.
 * @param {{ label: string, name?: string, act: () => void }} props
 */
export function Sure({ label, name, act }) {
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    if (!asked) return undefined;
    const timer = setTimeout(() => setAsked(false), SURE_MS);
    return () => clearTimeout(timer);
  }, [asked]);
  return html`<button
    type="button"
    class=${asked ? "strong small" : "quiet small"}
    aria-label=${asked ? `${name ?? label}: ${say("console.sure")}` : name}
    onClick=${() => {
      if (asked) act();
      setAsked(!asked);
    }}
  >
    ${asked ? say("console.sure") : label}
  </button>`;
}

/** @param {{ desk: Desk }} props */
export function Queues({ desk }) {
  return html`<section aria-labelledby="queues">
    <h2 id="queues">${say("console.queues")}</h2>
    ${desk.queues.length === 0
      ? html`<p class="hint">${say("console.queues.none")}</p>`
      : html`<${Scroll} label=${say("console.queues")}><table>
          <thead>
            <tr>
              <th scope="col">${say("console.topic")}</th>
              <th scope="col">${say("console.size")}</th>
              <th scope="col">${say("console.waiting")}</th>
              <th scope="col">${say("console.oldest")}</th>
            </tr>
          </thead>
          <tbody>
            ${desk.queues.map(
              (queue) => html`<tr key=${`${queue.topic_id}/${queue.room_type}`}>
                <td>${queue.title ?? queue.topic_id}</td>
                <td>${queue.room_type}</td>
                <td>${queue.waiting}</td>
                <td>${minutes(queue.oldest_wait_ms)}</td>
              </tr>`,
            )}
          </tbody>
        </table><//>`}
  </section>`;
}

/** @param {{ desk: Desk }} props */
export function Rooms({ desk }) {
  const { rooms, next } = desk.rooms;
  return html`<section aria-labelledby="rooms">
    <h2 id="rooms">${say("console.rooms")}</h2>
    ${rooms.length === 0
      ? html`<p class="hint">${say("console.rooms.none")}</p>`
      : html`<${Scroll} label=${say("console.rooms")}><table>
          <thead>
            <tr>
              <th scope="col">${say("console.topic")}</th>
              <th scope="col">${say("console.people")}</th>
              <th scope="col">${say("console.since")}</th>
              <th scope="col"><span class="unseen">${say("console.rooms.close")}</span></th>
            </tr>
          </thead>
          <tbody>
            ${rooms.map((room) => {
              const topic = desk.title(room.topic_id);
              const here = room.seats.filter(({ state }) => state !== "left").length;
              return html`<tr key=${room.room_id}>
                <td>${topic}</td>
                <td>${here} / ${room.room_type}</td>
                <td>${speaker.clock(room.created_at)}</td>
                <td class="act">
                  <${Sure}
                    label=${say("console.rooms.close")}
                    name=${say("console.rooms.close.named", { topic })}
                    act=${() => desk.attempt(() => desk.operator.closeRoom(room.room_id))}
                  />
                </td>
              </tr>`;
            })}
          </tbody>
        </table><//>`}
    ${next && html`<button type="button" class="plain" onClick=${() => desk.more()}>${say("console.rooms.more")}</button>`}
  </section>`;
}

/** @param {{ desk: Desk }} props */
export function Topics({ desk }) {
  const [title, setTitle] = useState("");
  /** @param {Event} event */
  const add = async (event) => {
    event.preventDefault();
    if (!title.trim()) return;
    if (await desk.attempt(() => desk.operator.addTopic({ title: title.trim() }))) setTitle("");
  };
  return html`<section aria-labelledby="topics">
    <h2 id="topics">${say("console.topics")}</h2>
    <ul class="rows">
      ${desk.topics.map((topic) => html`<${TopicRow} key=${topic.id} desk=${desk} topic=${topic} />`)}
    </ul>
    <form class="one-line" onSubmit=${add}>
      <input
        type="text"
        aria-label=${say("console.topics.title")}
        placeholder=${say("console.topics.title")}
        maxlength="200"
        value=${title}
        onInput=${(/** @type {any} */ event) => setTitle(event.currentTarget.value)}
      />
      <button type="submit" class="strong">${say("console.topics.add")}</button>
    </form>
  </section>`;
}

/** @param {{ desk: Desk, topic: Desk["topics"][number] }} props */
function TopicRow({ desk, topic }) {
  const [title, setTitle] = useState(/** @type {string | undefined} */ (undefined));
  const change = (/** @type {{ title?: string, active?: boolean }} */ what) =>
    desk.attempt(() => desk.operator.changeTopic(topic.id, what));
  if (title !== undefined) {
    return html`<li>
      <form
        class="one-line"
        onSubmit=${async (/** @type {Event} */ event) => {
          event.preventDefault();
          if (await change({ title: title.trim() })) setTitle(undefined);
        }}
      >
        <input
          type="text"
          aria-label=${say("console.topics.title")}
          maxlength="200"
          required
          value=${title}
          onInput=${(/** @type {any} */ event) => setTitle(event.currentTarget.value)}
        />
        <button type="submit" class="strong small">${say("console.topics.save")}</button>
        <button type="button" class="quiet small" onClick=${() => setTitle(undefined)}>${say("app.cancel")}</button>
      </form>
    </li>`;
  }
  const waiting = Object.values(topic.waiting).reduce((total, n) => total + n, 0);
  const turn = topic.active ? "console.topics.hide" : "console.topics.show";
  const named = say(`${turn}.named`, { topic: topic.title });
  return html`<li class=${topic.active ? "" : "off"}>
    <span class="title">${topic.title}</span>
    ${waiting > 0 && html`<span class="tag">${say("topics.waiting", { n: waiting })}</span>`}
    <span class="act">
      <button
        type="button"
        class="quiet small"
        aria-label=${say("console.topics.rename.named", { topic: topic.title })}
        onClick=${() => setTitle(topic.title)}
      >
        ${say("console.topics.rename")}
      </button>
      ${topic.active
        ? html`<${Sure} label=${say(turn)} name=${named} act=${() => void change({ active: false })} />`
        : html`<button type="button" class="quiet small" aria-label=${named} onClick=${() => void change({ active: true })}>
            ${say(turn)}
          </button>`}
    </span>
  </li>`;
}

/**
 * A wide table scrolls by itself, also with the keyboard.
 * @param {{ label: string, children?: import("preact").ComponentChildren }} props
 */
export function Scroll({ label, children }) {
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${label}>${children}</div>`;
}
