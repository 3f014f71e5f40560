// The WebSocket of Node, and where Node has none yet that of a package.

import { WebSocket as Packaged } from "ws";

export const WebSocket = globalThis.WebSocket ?? /** @type {typeof globalThis.WebSocket} */ (/** @type {unknown} */ (Packaged));
