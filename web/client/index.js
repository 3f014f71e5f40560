// The client of aiseki for pages and for Node: no dependency, no build step.
//
//   import { Person } from "https://aiseki.example/client/index.js";
//
//   const ann = new Person({ url: "https://aiseki.example/" });
//   await ann.session();
//   await ann.join(1, 2);
//   for await (const state of ann.states()) {
//     if (state.status !== "matched") continue;
//     const room = ann.enter(state.room_id, { change: ({ messages }) => console.log(messages) });
//     room.say("こんにちは");
//     break;
//   }

/**
 * @import { State, Idle, Waiting, Matched, Topic, RoomRecord, PersonOptions } from "./person.js"
 * @import { Link, WatchHandlers, WatchOptions } from "./watch.js"
 * @import { RoomView, RoomHandlers, Message, Pending, SeatView } from "./room.js"
 */

export { AisekiError } from "./errors.js";
export { Operator } from "./operator.js";
export { Person } from "./person.js";
export { Room, problemOfText, MOST_CHARACTERS } from "./room.js";
export { Watch } from "./watch.js";
