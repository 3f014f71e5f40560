// Two small charts.

import { html } from "../page/view.js";
import { say } from "../page/language.js";

const WIDTH = 320;
const HEIGHT = 72;

/**
 * A line over time.
 * @param {{ label: string, values: number[], most: number }} props `most`: points from edge to edge
 */
export function Line({ label, values, most }) {
  const top = Math.max(4, ...values);
  const x = (/** @type {number} */ i) => WIDTH - ((values.length - 1 - i) * WIDTH) / (most - 1);
  const y = (/** @type {number} */ value) => HEIGHT - 4 - (value / top) * (HEIGHT - 12);
  const points = values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`);
  const now = values.at(-1) ?? 0;
  return html`<figure>
    <figcaption>${label}</figcaption>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${`${label}: ${now}`} class="chart">
      <path class="area" d=${points.length > 0 ? `M${x(0)},${HEIGHT} L${points.join(" L")} L${WIDTH},${HEIGHT} Z` : ""} />
      <polyline class="line" points=${points.join(" ")} />
      <text x="4" y="14">${top}</text>
    </svg>
  </figure>`;
}

/**
 * Bars of a histogram.
 * @param {{ label: string, bars: { limit: number, count: number }[] }} props
 */
export function Bars({ label, bars }) {
  const top = Math.max(1, ...bars.map(({ count }) => count));
  const step = WIDTH / Math.max(1, bars.length);
  const words = bars
    .filter(({ count }) => count > 0)
    .map(({ limit, count }) => `${named(limit)}: ${count}`)
    .join(", ");
  return html`<figure>
    <figcaption>${label}</figcaption>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT + 16}`} role="img" aria-label=${`${label}: ${words || "0"}`} class="chart">
      ${bars.map(({ limit, count }, i) => {
        const height = (count / top) * (HEIGHT - 8);
        return html`<g key=${i}>
          <rect class="bar" x=${i * step + 1.5} y=${HEIGHT - height} width=${step - 3} height=${height} rx="2">
            <title>${named(limit)}: ${count}</title>
          </rect>
          <rect class="floor" x=${i * step + 1.5} y=${HEIGHT - 1} width=${step - 3} height="1" />
          ${i % 3 === 0 &&
          html`<text
            x=${i === 0 ? 3 : i * step + step / 2}
            y=${HEIGHT + 12}
            text-anchor=${i === 0 ? "start" : "middle"}
          >${short(limit)}</text>`}
        </g>`;
      })}
    </svg>
  </figure>`;
}

/** @param {number} limit in seconds */
function short(limit) {
  return limit === Infinity ? "∞" : `${limit} s`;
}

/** @param {number} limit in seconds */
function named(limit) {
  if (limit === Infinity) return say("console.chart.match.more");
  return say("console.chart.match.axis", { limit: short(limit) });
}
