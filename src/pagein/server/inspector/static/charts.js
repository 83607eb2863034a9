// Charts: drawn as SVG in at most 120 columns, with a table of the same numbers beside them.

import { GROUPS, byGroup, count, html } from "./ui.js";

const COLUMNS = 120;
const WIDTH = 960;
const HEIGHT = 180;

/** Group rows so that no chart has more columns than eyes can tell apart. */
const bins = (rows) => {
  const size = Math.max(1, Math.ceil(rows.length / COLUMNS));
  const groups = [];
  for (let at = 0; at < rows.length; at += size) groups.push(rows.slice(at, at + size));
  return groups;
};

const isBreak = (row, before) => Boolean(before && row.broke && !["recalled"].includes(row.broke));

/** A bar a request by tier; marks for compactions and for breaks of the prefix. */
export const Timeline = ({ rows, selected, onSelect, onOpen }) => {
  const groups = bins(rows);
  const most = Math.max(1, ...rows.map((row) => Math.max(row.limit, row.tokens)));
  const step = WIDTH / Math.max(groups.length, 12);
  const bar = Math.max(1.5, step - Math.min(3, step * 0.25));
  const y = (tokens) => HEIGHT - (tokens / most) * HEIGHT;
  const size = Math.max(1, Math.ceil(rows.length / COLUMNS));
  const place = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * (WIDTH / step));
    return Math.max(0, Math.min(rows.length - 1, column * size));
  };
  const keys = (event) => {
    const moves = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -rows.length, End: rows.length };
    if (event.key in moves) {
      event.preventDefault();
      onSelect(Math.max(0, Math.min(rows.length - 1, selected + moves[event.key])));
    } else if (event.key === "Enter") onOpen(selected);
  };
  const row = rows[selected];
  const text = row ? `request ${row.number}: ${count(row.tokens)} of ${count(row.limit)} tokens` : "";
  return html`<div
    class="chart"
    role="slider"
    tabindex="0"
    aria-label="Requests"
    aria-valuemin="1"
    aria-valuemax=${Math.max(1, rows.length)}
    aria-valuenow=${selected + 1}
    aria-valuetext=${text}
    onKeyDown=${keys}
    onClick=${(event) => onSelect(place(event))}
    onDblClick=${(event) => onOpen(place(event))}
  >
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT + 16}`} preserveAspectRatio="none" aria-hidden="true">
      <line class="limit" x1="0" x2=${WIDTH} y1=${y(rows[rows.length - 1].limit)} y2=${y(rows[rows.length - 1].limit)} />
      ${groups.map((group, index) => {
        const peak = group.reduce((best, each) => (each.tokens > best.tokens ? each : best));
        const sums = byGroup(peak.tiers);
        let top = HEIGHT;
        const x = index * step;
        const parts = GROUPS.filter(([name]) => sums[name]).map(([name]) => {
          const tall = (sums[name] / most) * HEIGHT;
          top -= tall;
          return html`<rect key=${name} class=${`f-${name}`} x=${x} y=${top} width=${bar} height=${tall} />`;
        });
        const first = index * size;
        const compacted = group.some((each, at) => first + at > 0 && each.compactions > rows[first + at - 1].compactions);
        const broken = group.some((each, at) => isBreak(each, rows[first + at - 1]));
        const here = selected >= first && selected < first + group.length;
        return html`<g key=${index}>
          ${here && html`<rect class="here" x=${x - 1} y="0" width=${bar + 2} height=${HEIGHT + 16} />`}
          ${parts}
          ${compacted && html`<path class="mark" d=${`M${x} ${HEIGHT + 14} l${bar / 2} -9 l${bar / 2} 9 z`} />`}
          ${broken && !compacted && html`<rect class="mark" x=${x} y=${HEIGHT + 7} width=${bar} height="3" />`}
        </g>`;
      })}
    </svg>
    <p class="note">
      ▲ compaction · ▬ the prefix broke · the line is the limit, ${count(rows[rows.length - 1].limit)} tokens
      ${size > 1 && html` · a column stands for ${size} requests, drawn at the largest`}
    </p>
  </div>`;
};

/** Two running sums: what was sent, and what sending all would have been. */
export const Sums = ({ sent, held }) => {
  const most = Math.max(1, ...held, ...sent);
  const line = (values) => {
    const every = Math.max(1, Math.ceil(values.length / 240));
    const points = values.filter((_, at) => at % every === 0 || at === values.length - 1);
    const step = WIDTH / Math.max(1, points.length - 1);
    return points.map((value, at) => `${(at * step).toFixed(1)},${(HEIGHT - (value / most) * HEIGHT).toFixed(1)}`).join(" ");
  };
  return html`<div class="chart">
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img"
      aria-label=${`sent ${count(sent.at(-1))} tokens in all, the whole history ${count(held.at(-1))}`}>
      <polyline class="held" points=${line(held)} />
      <polyline class="sent" points=${line(sent)} />
    </svg>
    <p class="note">┄ the whole history each time · ━ what was sent</p>
  </div>`;
};
