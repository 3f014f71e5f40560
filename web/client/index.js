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

/** @typedef {import("./person.js").State} State */
/** @typedef {import("./person.js").Idle} Idle */
/** @typedef {import("./person.js").Resume} Resume */
/** @typedef {import("./person.js").Waiting} Waiting */
/** @typedef {import("./person.js").Matched} Matched */
/** @typedef {import("./person.js").Topic} Topic */
/** @typedef {import("./person.js").RoomRecord} RoomRecord */
/** @typedef {import("./person.js").PersonOptions} PersonOptions */
/** @typedef {import("./watch.js").Link} Link */
/** @typedef {import("./watch.js").WatchHandlers} WatchHandlers */
/** @typedef {import("./watch.js").WatchOptions} WatchOptions */
/** @typedef {import("./room.js").RoomView} RoomView */
/** @typedef {import("./room.js").RoomHandlers} RoomHandlers */
/** @typedef {import("./room.js").Message} Message */
/** @typedef {import("./room.js").Pending} Pending */
/** @typedef {import("./room.js").SeatView} SeatView */

export { AisekiError } from "./errors.js";
export { Operator } from "./operator.js";
export { Person } from "./person.js";
export { Room, problemOfText, MOST_CHARACTERS } from "./room.js";
export { Watch } from "./watch.js";
