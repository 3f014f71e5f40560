// Calling somebody who looks elsewhere: a sound, a notification, the title of the tab.

import { recall, remember } from "./view.js";
import { minutes, say } from "./language.js";

/** @import { Controller } from "./controller.js" */

/** Two soft knocks on wood: pitch in hertz, and when they fall in seconds. */
const KNOCKS = [
  [392, 0],
  [523, 0.22],
];

export class Alerts {
  #controller;
  /** @type {AudioContext | undefined} */
  #audio;
  #unread = 0;
  #heard = 0;
  #title = document.title;

  sound = recall("sound") !== "off";
  notify = recall("notify") === "on" && globalThis.Notification?.permission === "granted";

  /** @param {Controller} controller */
  constructor(controller) {
    this.#controller = controller;
    controller.events.matched = () => this.#matched();
    controller.events.room = (view) => this.#room(view.messages);
    controller.listeners.add(() => this.#setTitle());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#unread = 0;
      this.#setTitle();
    });
    // Browsers let a page be heard only once somebody has touched it.
    addEventListener("pointerdown", () => this.#wakeAudio(), { once: true });
    addEventListener("keydown", () => this.#wakeAudio(), { once: true });
    setInterval(() => this.#setTitle(), 1000);
  }

  /** @param {boolean} on */
  setSound(on) {
    this.sound = on;
    remember("sound", on ? "on" : "off");
    if (on) this.#knock();
    this.#controller.changed();
  }

  get canNotify() {
    return "Notification" in globalThis;
  }

  get notifyDenied() {
    return globalThis.Notification?.permission === "denied";
  }

  /** @param {boolean} on */
  async setNotify(on) {
    if (on && Notification.permission !== "granted") await Notification.requestPermission();
    this.notify = on && Notification.permission === "granted";
    remember("notify", this.notify ? "on" : "off");
    this.#controller.changed();
  }

  #wakeAudio() {
    try {
      this.#audio ??= new AudioContext();
    } catch {
      // Without sound the rest still calls.
    }
  }

  #knock() {
    this.#wakeAudio();
    const audio = this.#audio;
    if (!audio) return;
    void audio.resume();
    for (const [pitch, after] of KNOCKS) {
      const tone = new OscillatorNode(audio, { type: "triangle", frequency: pitch });
      const volume = new GainNode(audio, { gain: 0 });
      const at = audio.currentTime + after;
      volume.gain.setValueAtTime(0.0001, at);
      volume.gain.exponentialRampToValueAtTime(0.22, at + 0.01);
      volume.gain.exponentialRampToValueAtTime(0.0001, at + 0.5);
      tone.connect(volume).connect(audio.destination);
      tone.start(at);
      tone.stop(at + 0.6);
    }
  }

  #matched() {
    this.#unread = 0;
    this.#heard = 0;
    if (this.sound) this.#knock();
    if (!document.hidden || !this.notify) return;
    const { state } = this.#controller;
    const topic = state?.status === "matched" ? this.#controller.title(state.topic_id) : "";
    try {
      const note = new Notification(say("matched.notify"), {
        body: say("matched.notify.body", { topic }),
        tag: "aiseki",
      });
      note.onclick = () => {
        window.focus();
        note.close();
      };
    } catch {
      // Some browsers let only a service worker notify; the sound and the title still call.
    }
  }

  /** @param {import("../client/index.js").Message[]} messages */
  #room(messages) {
    const fresh = messages.length - this.#heard;
    this.#heard = messages.length;
    if (document.hidden && fresh > 0) this.#unread += fresh;
    this.#setTitle();
  }

  #setTitle() {
    const title = this.#wanted();
    if (title === this.#title) return;
    this.#title = title;
    document.title = title;
  }

  #wanted() {
    const { screen, state, seat, person } = this.#controller;
    const name = say("app.title");
    if (screen === "waiting" && state?.status === "waiting") {
      const time = minutes(person.now() - Date.parse(state.waiting_since));
      return `${say("waiting.tab", { time })} · ${name}`;
    }
    if (screen === "room" && seat) {
      const topic = this.#controller.title(seat.topic_id);
      if (document.hidden && this.#unread > 0) {
        return say("room.tab.unread", { n: this.#unread, topic });
      }
      return document.hidden && this.#heard === 0 ? say("matched.tab") : `${topic} · ${name}`;
    }
    return name;
  }
}
