// Where the page begins.

import { Alerts } from "./alerts.js";
import { App } from "./app.js";
import { Controller } from "./controller.js";
import { html, render } from "./view.js";

const controller = new Controller();
const alerts = new Alerts(controller);
const root = document.getElementById("app");
if (root) {
  controller.start();
  root.replaceChildren();
  render(html`<${App} controller=${controller} alerts=${alerts} />`, root);
}
