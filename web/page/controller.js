// What the page knows and does. The server decides what is shown: waiting, in a room, or neither.

import { AisekiError, Person } from "../client/index.js";
import { recall, remember, tab } from "./view.js";

/** @import { Link, Matched, Room, RoomView, State, Topic } from "../client/index.js" */

/**
 * @typedef {object} Ended a conversation that is over
 * @property {Matched} seat
 * @property {string} reason
 * @property {string} topic
 * @property {number} [me]
 * @property {import("../client/index.js").SeatView[]} seats
 *
 * @typedef {{ code: string, until?: number }} Notice something to be told, perhaps with a time until
 *   which it holds
 *
 * @typedef {"loading" | "topics" | "waiting" | "room" | "ended"} Screen
 *
 * @typedef {object} Events what others do when something happens
 * @property {() => void} [matched]
 * @property {(view: RoomView) => void} [room]
 */

/** The topics are asked for again so often while they are looked at. */
const TOPICS_EVERY_MS = 5_000;
/** A connection that is gone for less is not worth a word. */
const PATIENCE_MS = 1_200;
/** So long the room has to say why it is over. */
const REASON_MS = 1_500;
/** Reasons for being idle that a person has to be told. */
const TOLD_REASONS = ["wait_expired", "absent", "topic_closed", "banned", "failed", "room_closed"];

/** Where the server stands: the folder of the page. */
const ADDRESS = new URL(".", document.baseURI);

export class Controller {
  person = new Person({ url: ADDRESS, identity: "cookie" });
  /** @type {Set<() => void>} */
  listeners = new Set();
  /** @type {Events} */
  events = {};
  /** @type {import("../client/index.js").Watch | undefined} */
  watch;

  /** @type {State | undefined} */
  state;
  /** @type {Link} */
  link = { status: "connecting" };
  /** When the connection was lost, if it is. */
  offlineSince = 0;
  /** @type {Topic[] | undefined} */
  topics;
  size = Number(recall("size") ?? 2);
  /** The topic that is being joined. */
  joining = 0;
  cancelling = false;
  /** @type {Notice | undefined} */
  notice;
  /** @type {Room | undefined} */
  room;
  /** @type {RoomView | undefined} */
  view;
  /** @type {Ended | undefined} */
  ended;
  /** Trouble with a message, told beside where one writes. */
  trouble = "";

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #topicsTimer;
  /** The room that this tab has shown last. */
  #seat = /** @type {Matched | undefined} */ (undefined);
  /** Whether the person has stopped waiting here, and needs not be told. */
  #stopped = false;
  /** Whether the person gives up the seat in this tab. */
  #leaving = false;

  start() {
    this.ended = tab.get("ended") ?? undefined;
    // Neither waits for the other.
    void this.#follow();
    void this.loadTopics();
    const look = () => {
      if (document.visibilityState === "hidden") return;
      this.watch?.check();
      this.room?.check();
      void this.loadTopics();
    };
    document.addEventListener("visibilitychange", look);
    addEventListener("online", look);
    addEventListener("pageshow", ({ persisted }) => persisted && look());
    addEventListener("offline", () => this.watch?.check());
  }

  async #follow() {
    // Becoming somebody first saves a refusal. Where it fails, the watch finds out why.
    const { isNew } = await this.person.session().catch(() => ({ isNew: false }));
    // Who is new is idle, and need not wait for a connection that says so.
    if (isNew) this.#moved({ status: "idle" });
    this.watch = this.person.watch({
      state: (state) => this.#moved(state),
      link: (link) => this.#linked(link),
    });
  }

  /** @returns {Screen} */
  get screen() {
    switch (this.state?.status) {
      case "waiting":
        return "waiting";
      case "matched":
        return this.view?.status === "closed" ? "ended" : "room";
      case "idle":
        if (this.ended) return "ended";
        return this.#seat ? "room" : "topics";
      default:
        return this.topics && this.link.status === "offline" ? "topics" : "loading";
    }
  }

  /** The seat that one has, or had a moment ago. */
  get seat() {
    return this.#seat;
  }

  /** The place that is kept since the conversation ended to which somebody never came. */
  get kept() {
    const resume = this.state?.status === "idle" ? this.state.resume : undefined;
    const holds = resume && resume.room_id === this.ended?.seat.room_id;
    return holds && Date.parse(resume.until) > this.person.now() ? resume : undefined;
  }

  /** Whether the connection has been gone for so long that a person should know. */
  get isAway() {
    return this.offlineSince > 0 && Date.now() - this.offlineSince >= PATIENCE_MS;
  }

  /** @param {number} id */
  title(id) {
    const known = this.topics?.find((topic) => topic.id === id)?.title;
    if (known) tab.set("topic", { id, title: known });
    const remembered = tab.get("topic");
    return known ?? (remembered?.id === id ? String(remembered.title) : "…");
  }

  /**
   * How many people are known to wait for the same, this one among them.
   * @param {import("../client/index.js").Waiting} state
   */
  queued(state) {
    const topic = this.topics?.find(({ id }) => id === state.topic_id);
    return Math.max(1, topic?.waiting[state.room_type] ?? 1);
  }

  /** The sizes of room that there are. */
  get sizes() {
    const sizes = Object.keys(this.topics?.[0]?.waiting ?? { 2: 0, 3: 0 }).map(Number);
    return sizes.sort((a, b) => a - b);
  }

  /** @param {number} size */
  choose(size) {
    this.size = size;
    remember("size", String(size));
    this.changed();
  }

  async loadTopics() {
    clearTimeout(this.#topicsTimer);
    try {
      this.topics = await this.person.topics();
      if (!this.sizes.includes(this.size)) this.size = this.sizes[0] ?? 2;
      this.changed();
    } catch {
      // The strip about the connection says what there is to say.
    }
    clearTimeout(this.#topicsTimer);
    const wanted = document.visibilityState === "visible" && this.screen !== "room";
    if (wanted) {
      this.#topicsTimer = setTimeout(() => void this.loadTopics(), TOPICS_EVERY_MS);
    }
  }

  /**
   * @param {number} topic
   * @param {number} [size]
   * @param {string} [resume] the room for which a place is kept
   */
  async join(topic, size = this.size, resume) {
    if (this.joining) return;
    this.joining = topic;
    this.notice = undefined;
    this.changed();
    await this.#attempt(() =>
      this.#following(async () => {
        try {
          return await this.person.join(topic, size, { resume });
        } catch (error) {
          // Another tab was quicker, and where one waits is what counts.
          if (error instanceof AisekiError && error.code === "already_waiting" && error.state) {
            return error.state;
          }
          throw error;
        }
      }),
    );
    this.joining = 0;
    this.changed();
  }

  async cancel() {
    if (this.cancelling) return;
    this.cancelling = true;
    this.#stopped = true;
    this.changed();
    await this.#attempt(() => this.#following(() => this.person.cancel()));
    this.cancelling = false;
    this.changed();
  }

  async leave() {
    const { room } = this;
    if (!room) return;
    this.#leaving = true;
    await this.#attempt(() =>
      this.#following(async () => {
        await room.leave();
        return { status: "idle", reason: "left" };
      }),
    );
  }

  /**
   * @param {number} seat
   * @param {string} reason
   */
  async report(seat, reason) {
    const room = this.#seat?.room_id ?? this.ended?.seat.room_id;
    if (room) await this.person.report(room, seat, reason);
  }

  /** @param {number} seat */
  async block(seat) {
    const room = this.#seat?.room_id ?? this.ended?.seat.room_id;
    if (room) await this.person.block(room, seat);
  }

  /** Goes on from a conversation that is over. */
  forgetEnded() {
    this.ended = undefined;
    tab.set("ended", null);
    this.#closeRoom();
    void this.loadTopics();
    this.changed();
  }

  dismiss() {
    this.notice = undefined;
    this.changed();
  }

  /** Tries to reach the server now. */
  retry() {
    this.watch?.check();
    this.room?.check();
    void this.loadTopics();
  }

  changed() {
    for (const listener of this.listeners) listener();
  }

  /** @param {() => Promise<State>} call */
  async #following(call) {
    if (this.watch) await this.watch.following(call);
    else this.#moved(await call());
  }

  /** @param {() => Promise<void>} act */
  async #attempt(act) {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof AisekiError)) throw error;
      const until =
        error.retryAfterMs !== undefined ? Date.now() + error.retryAfterMs : undefined;
      this.notice = { code: error.code, until };
      if (error.code.endsWith("_topic")) void this.loadTopics();
      this.changed();
    }
  }

  /** @param {State} state */
  #moved(state) {
    const before = this.state;
    this.state = state;
    if (state.status === "waiting") {
      this.#stopped = false;
      this.notice = undefined;
      this.#seat = undefined;
      this.ended = undefined;
      tab.set("ended", null);
      this.#closeRoom();
    } else if (state.status === "matched") {
      this.#seated(state, before);
    } else {
      this.#idle(state.reason, before);
    }
    // At first they are on their way already.
    if (before && (!this.topics || before.status !== state.status)) void this.loadTopics();
    this.changed();
  }

  /**
   * @param {Matched} seat
   * @param {State | undefined} before
   */
  #seated(seat, before) {
    if (this.room?.roomId === seat.room_id) return;
    this.#closeRoom();
    this.notice = undefined;
    this.ended = undefined;
    tab.set("ended", null);
    this.#seat = seat;
    this.#leaving = false;
    this.trouble = "";
    this.room = this.person.enter(seat.room_id, {
      change: (view) => {
        const was = this.view?.status;
        this.view = view;
        this.events.room?.(view);
        if (view.status === "closed") {
          this.#over(this.#why(view.reason ?? "closed", was === "open"));
        }
        this.changed();
      },
      said: () => {
        this.trouble = "";
      },
      trouble: (code) => {
        this.trouble = code;
        this.changed();
      },
    });
    this.view = this.room.view;
    // After a reload one sits already, and is not called to the table again.
    if (before) this.events.matched?.();
  }

  /**
   * @param {string | undefined} reason
   * @param {State | undefined} before
   */
  #idle(reason, before) {
    const told = tab.get("told");
    tab.set("told", reason ?? null);
    if (this.#seat) {
      const seat = this.#seat;
      const why = () => this.#seat === seat && this.#over(reason === "left" ? "left" : "others");
      // The room itself knows better why it is over, and is about to say so.
      if (reason === "room_closed") setTimeout(() => (why(), this.changed()), REASON_MS);
      else why();
      return;
    }
    // Another tab has left.
    if (this.ended?.reason === "others" && reason === "left") {
      this.ended = { ...this.ended, reason };
      tab.set("ended", this.ended);
    }
    const fresh = before === undefined ? told !== reason && !this.ended : !this.#stopped;
    if (reason !== undefined && TOLD_REASONS.includes(reason) && fresh) {
      this.notice = { code: reason };
    }
  }

  /**
   * Why a room is over, from where this person sits.
   * @param {string} reason what the room says
   * @param {boolean} wasOpen whether it said so to somebody who was there
   */
  #why(reason, wasOpen) {
    // The room says the same to who leaves and to who is left.
    if (reason === "left") return this.#leaving ? "left" : "others";
    // Who learns of it only on coming back was the one who was away.
    return reason === "away" && !wasOpen ? "me_away" : reason;
  }

  /**
   * The conversation is over; what is known of it is kept for as long as the person looks at it.
   * @param {string} reason
   */
  #over(reason) {
    const seat = this.#seat;
    if (!seat || this.ended) return;
    const { me, seats = [] } = this.view ?? {};
    this.ended = { seat, reason, topic: this.title(seat.topic_id), me, seats };
    tab.set("ended", this.ended);
    this.room?.stop();
    this.#seat = undefined;
  }

  #closeRoom() {
    this.room?.stop();
    this.room = undefined;
    this.view = undefined;
  }

  /** @param {Link} link */
  #linked(link) {
    const was = this.link.status;
    this.link = link;
    if (link.status === "offline") {
      if (this.offlineSince === 0) {
        this.offlineSince = Date.now();
        setTimeout(() => this.changed(), PATIENCE_MS);
      }
    } else {
      this.offlineSince = 0;
      if (was === "offline") {
        this.room?.check();
        void this.loadTopics();
      }
    }
    this.changed();
  }
}
