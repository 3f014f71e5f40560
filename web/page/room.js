// The conversation.

import { MOST_CHARACTERS, problemOfText } from "../client/index.js";
import { html, useLayoutEffect, useRef, useState, useSeconds } from "./view.js";
import { minutes, say, speaker } from "./language.js";
import { About, Leaving } from "./dialogs.js";
import { Cup, Table } from "./table.js";

/** @import { Controller } from "./controller.js" */
/** @import { Matched, Message, RoomView, SeatView } from "../client/index.js" */

/** The count of characters is shown when there are so few left. */
const COUNT_FROM = 200;
/** So near to the end, in pixels, somebody is reading the newest. */
const NEAR_PX = 80;

/** @param {{ controller: Controller, seat: Matched, view: RoomView }} props */
export function RoomScreen({ controller, seat, view }) {
  const [leaving, setLeaving] = useState(false);
  const [about, setAbout] = useState(0);
  const topic = controller.title(seat.topic_id);
  const leave = () => {
    setLeaving(false);
    void controller.leave();
  };
  return html`<div class="room">
    <div class="room-head">
      <h1 tabindex="-1">${say("room.heading", { topic })}</h1>
      <button type="button" class="quiet small" onClick=${() => setLeaving(true)}>
        ${say("room.leave")}
      </button>
    </div>
    <${People} view=${view} controller=${controller} open=${setAbout} />
    ${view.status === "refused"
      ? html`<div class="elsewhere">
          <h2>${say("room.elsewhere")}</h2>
          <p>${say("room.elsewhere.body")}</p>
        </div>`
      : html`<${Log} view=${view} seat=${seat} />
          <${Composer} controller=${controller} view=${view} />`}
    ${leaving && html`<${Leaving} leave=${leave} close=${() => setLeaving(false)} />`}
    ${about > 0 &&
    html`<${About} controller=${controller} seat=${about} close=${() => setAbout(0)} />`}
  </div>`;
}

/**
 * Who sits here.
 * @param {{ view: RoomView, controller: Controller, open: (seat: number) => void }} props
 */
function People({ view, controller, open }) {
  return html`<ul class="people" aria-label=${say("room.people")}>
    ${view.seats.map(
      (seat) => html`<li key=${seat.seat} class=${seat.state}>
        ${seat.seat === view.me
          ? html`<span class="person"
              ><${Cup} seat=${seat.seat} />
              <span class="name" aria-hidden="true">${say("seat.me")}</span>
              <span class="unseen">${say("seat.me.named", { name: speaker.name(seat.seat) })}</span></span
            >`
          : html`<button type="button" class="person" onClick=${() => open(seat.seat)}>
              <${Cup} seat=${seat.seat} />
              <span class="name">${speaker.name(seat.seat)}</span>
              <${Presence} seat=${seat} controller=${controller} />
            </button>`}
      </li>`,
    )}
  </ul>`;
}

/** @param {{ seat: SeatView, controller: Controller }} props */
function Presence({ seat, controller }) {
  if (seat.state !== "away" || !seat.until) {
    const unseen = seat.state === "here" ? " unseen" : "";
    return html`<span class=${`presence${unseen}`}>${say(`room.${seat.state}`)}</span>`;
  }
  return html`<${Absence} until=${Date.parse(seat.until)} controller=${controller} />`;
}

/** @param {{ until: number, controller: Controller }} props */
function Absence({ until, controller }) {
  useSeconds();
  const time = minutes(until - controller.person.now());
  return html`<span class="presence" aria-live="off">${say("room.away.until", { time })}</span>`;
}

/** @param {{ view: RoomView, seat: Matched }} props */
function Log({ view, seat }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [behind, setBehind] = useState(false);
  const follows = useRef(true);
  const { messages, pending, typing } = view;
  const mine = messages.at(-1)?.seat === view.me;

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    if (follows.current || mine || pending.length > 0) {
      element.scrollTop = element.scrollHeight;
    } else if (messages.length > 0) {
      setBehind(true);
    }
  }, [messages.length, pending.length, typing.length]);

  const scrolled = () => {
    const element = box.current;
    if (!element) return;
    follows.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX;
    if (follows.current) setBehind(false);
  };
  const toEnd = () => box.current?.scrollTo({ top: box.current.scrollHeight });

  return html`<div class="log-frame">
    <div class="log" ref=${box} onScroll=${scrolled} tabindex="0" role="region" aria-label=${say("room.scroll")}>
      <${Opening} view=${view} seat=${seat} />
      <div role="log" aria-live="polite" aria-relevant="additions" aria-label=${say("room.log")}>
        <ol>
          <${Lines} messages=${messages} me=${view.me} />
        </ol>
      </div>
      <ol class="pending">
        ${pending.map(
          ({ id, text }) => html`<li key=${id} class="mine pending">
            <p class="text">${text}</p>
            <span class="meta">${say("room.pending")}</span>
          </li>`,
        )}
      </ol>
      <p class="typing" aria-live="off">${typing.length > 0 && writing(typing)}</p>
    </div>
    ${behind &&
    html`<button type="button" class="newer" onClick=${toEnd}>${say("room.newer")} ↓</button>`}
  </div>`;
}

/**
 * The head of the conversation: who sits where.
 * @param {{ view: RoomView, seat: Matched }} props
 */
function Opening({ view, seat }) {
  if (view.status === "connecting" && view.messages.length === 0) {
    return html`<p class="opening">${say("room.connecting")}</p>`;
  }
  const missing = view.seats.some(({ state }) => state === "away");
  const fewer = seat.room_type < seat.requested_room_type;
  return html`<div class="opening">
    <${RoomTable} view=${view} />
    <p>${missing ? say("room.start.missing") : fewer ? say("room.start.fallback", { n: seat.room_type }) : say("room.start")}</p>
  </div>`;
}

/** @param {{ view: RoomView }} props */
export function RoomTable({ view }) {
  const own = view.seats.findIndex(({ seat }) => seat === view.me);
  // One's own place is nearest, whatever its number.
  const turned = [...view.seats.slice(Math.max(0, own)), ...view.seats.slice(0, Math.max(0, own))];
  const places = turned.map(({ seat, state }) => (seat === view.me && state === "here" ? "me" : state));
  return html`<${Table} places=${places} glazes=${turned.map(({ seat }) => seat)} alive=${true} />`;
}

/**
 * What was said. Of what one person says in a row the name stands on top and the time below.
 * @param {{ messages: Message[], me?: number }} props
 */
export function Lines({ messages, me }) {
  return html`${messages.map((message, i) => {
    const [before, after] = [messages[i - 1], messages[i + 1]];
    const follows = before?.seat === message.seat;
    const goesOn = after?.seat === message.seat && after.at.slice(0, 16) === message.at.slice(0, 16);
    return html`<${Said}
      key=${message.seq}
      message=${message}
      me=${me}
      follows=${follows}
      goesOn=${goesOn}
    />`;
  })}`;
}

/** @param {{ message: Message, me?: number, follows: boolean, goesOn: boolean }} props */
function Said({ message, me, follows, goesOn }) {
  const mine = message.seat === me;
  const name = mine ? say("seat.me") : speaker.name(message.seat);
  const kind = `${mine ? "mine" : "theirs"}${follows ? " follows" : ""} glaze-${((message.seat - 1) % 8) + 1}`;
  return html`<li class=${kind}>
    <span class=${follows || mine ? "who unseen" : "who"}><${Cup} seat=${message.seat} />${name}</span>
    <p class="text">${message.text}</p>
    <time class=${goesOn ? "meta unseen" : "meta"} datetime=${message.at}>${speaker.clock(message.at)}</time>
  </li>`;
}

/** @param {number[]} seats */
function writing(seats) {
  const words =
    seats.length === 1
      ? say("room.typing", { name: speaker.name(seats[0]) })
      : say("room.typing.many", { n: seats.length });
  return html`<span class="dots" aria-hidden="true"><i></i><i></i><i></i></span> ${words}`;
}

/** @param {{ controller: Controller, view: RoomView }} props */
function Composer({ controller, view }) {
  const [text, setText] = useState("");
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const left = MOST_CHARACTERS - [...text].length;
  const problem = problemOfText(text);

  useLayoutEffect(() => {
    const element = area.current;
    if (!element) return;
    // As high as what is written, up to what the style allows.
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight + 2}px`;
  }, [text]);

  const send = () => {
    if (problem) return;
    controller.room?.say(text.trim());
    setText("");
    area.current?.focus();
  };
  /** @param {KeyboardEvent} event */
  const pressed = (event) => {
    // While a word is being composed, Enter belongs to the input method (229 in Safari).
    const composing = event.isComposing || event.keyCode === 229;
    if (event.key !== "Enter" || event.shiftKey || composing) return;
    event.preventDefault();
    send();
  };
  return html`<form
    class="composer"
    onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      send();
    }}
  >
    <div role="status" class="composer-status">
      ${view.status === "offline" &&
      html`<p class="offline"><strong>${say("room.offline")}</strong> ${say("room.offline.kept")}</p>`}
      ${controller.trouble && html`<p class="trouble">${say(`room.trouble.${controller.trouble}`)}</p>`}
      ${left < 0 && html`<p class="trouble">${say("room.over", { n: -left })}</p>`}
      ${problem === "control" && html`<p class="trouble">${say("room.control")}</p>`}
    </div>
    <div class="line">
      <textarea
        ref=${area}
        id="composer"
        rows="1"
        aria-label=${say("room.placeholder")}
        aria-describedby="composer-keys"
        placeholder=${say("room.placeholder")}
        enterkeyhint="send"
        autocomplete="off"
        value=${text}
        onKeyDown=${pressed}
        onInput=${(/** @type {any} */ event) => {
          setText(event.currentTarget.value);
          controller.room?.typing();
        }}
      ></textarea>
      <button type="submit" class="strong" aria-disabled=${problem ? "true" : undefined}>
        ${say("room.say")}
      </button>
    </div>
    <p class="keys" id="composer-keys">
      <span>${say("room.keys")}</span>
      ${left >= 0 && left < COUNT_FROM && html`<span class="left">${say("room.count", { n: left })}</span>`}
    </p>
  </form>`;
}
