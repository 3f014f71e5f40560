// A table seen from above, with a cushion and a cup for each seat.

import { html } from "./view.js";

/**
 * @typedef {"me" | "here" | "away" | "left" | "empty" | "gone"} Place what is there. `gone`: the
 *   person went and the cup remains
 */

/** Where the seat stands around the table, in degrees; one's own is nearest to the viewer. */
const NEAREST = 90;

/**
 * @param {object} props
 * @param {Place[]} props.places one for each seat, in order
 * @param {number[]} [props.glazes] the seat whose colour each place has
 * @param {boolean} [props.alive] whether steam rises and cushions breathe
 * @param {string} [props.label] for those who do not see it; without one it is decoration
 */
export function Table({ places, glazes, alive = false, label }) {
  const step = 360 / places.length;
  return html`<svg
    class=${`table${alive ? " alive" : ""}`}
    viewBox="-130 -130 260 260"
    role=${label ? "img" : undefined}
    aria-label=${label}
    aria-hidden=${label ? undefined : "true"}
  >
    ${places.map((place, i) => {
      const turn = NEAREST + i * step;
      const glaze = ((glazes?.[i] ?? i + 1) - 1) % 8;
      return html`<g class=${`seat ${place} glaze-${glaze + 1}`} transform=${`rotate(${turn})`}>
        <rect class="cushion" x="80" y="-27" width="44" height="54" rx="12" />
        <rect class="seam" x="86" y="-21" width="32" height="42" rx="8" />
        <circle class="tuft" cx="102" cy="0" r="2.5" />
      </g>`;
    })}
    <circle class="shadow" cx="0" cy="5" r="72" />
    <circle class="top" cx="0" cy="0" r="72" />
    <g class="grain">
      <path d="M-66 -22 C -30 -30 20 -12 67 -20" />
      <path d="M-71 2 C -34 -6 24 12 71 2" />
      <path d="M-66 26 C -26 18 28 36 65 28" />
      <path d="M-44 -52 C -16 -58 18 -46 46 -52" />
      <path d="M-44 54 C -18 48 22 60 44 54" />
    </g>
    ${places.map((place, i) => {
      if (place === "empty" || place === "left") return null;
      const turn = ((NEAREST + i * step) * Math.PI) / 180;
      const [x, y] = [Math.cos(turn) * 45, Math.sin(turn) * 45];
      const glaze = ((glazes?.[i] ?? i + 1) - 1) % 8;
      return html`<g class=${`cup ${place} glaze-${glaze + 1}`} transform=${`translate(${x} ${y})`}>
        <circle class="foot" cx="1" cy="2.5" r="16" />
        <circle class="rim" r="15" />
        <circle class="tea" r="10.5" />
        <g class="steam">
          <path d="M-4 -3 q -5 -7 0 -13 q 5 -6 0 -13" />
          <path d="M4 -5 q 5 -6 0 -12 q -5 -6 0 -12" />
        </g>
      </g>`;
    })}
  </svg>`;
}

/**
 * The cup by which a person is known.
 * @param {{ seat: number }} props
 */
export function Cup({ seat }) {
  return html`<svg class=${`cup-mark glaze-${((seat - 1) % 8) + 1}`} viewBox="0 0 24 24" aria-hidden="true">
    <path class="body" d="M4 7 h16 l-1.6 10.5 a4 4 0 0 1 -4 3.5 h-4.8 a4 4 0 0 1 -4 -3.5 z" />
    <ellipse class="tea" cx="12" cy="7" rx="8" ry="2.6" />
  </svg>`;
}
