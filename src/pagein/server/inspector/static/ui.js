// Small parts that every view is made of. Recorded text is only ever a text node.

import { h } from "./vendor/preact.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";
import { get, go } from "./api.js";

export const html = htm.bind(h);

// Numbers

export const count = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US"));
export const percent = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(part / whole < 0.1 ? 1 : 0)}\u00a0%` : "–");
export const clock = (at) => (at ? new Date(at * 1000).toLocaleString("sv-SE") : "–");
export const ago = (at) => {
  if (!at) return "–";
  const seconds = Math.max(0, Date.now() / 1000 - at);
  const units = [[86400, "d"], [3600, "h"], [60, "min"]];
  for (const [size, name] of units) if (seconds >= size) return `${Math.floor(seconds / size)} ${name} ago`;
  return "just now";
};

// Text that somebody recorded: control characters and marks of direction are shown, never obeyed.

// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
export const visible = (text) =>
  text.replace(HIDDEN, (letter) => {
    const code = letter.codePointAt(0);
    return code < 32 ? String.fromCodePoint(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });

/** A name of which the end stays where it does not fit: many runs begin alike. */
export const Name = ({ text }) => {
  const letters = [...visible(text)];
  const end = letters.length > 12 ? letters.splice(-6).join("") : "";
  return html`<span class="name" title=${visible(text)}><span>${letters.join("")}</span><span>${end}</span></span>`;
};

export const Recorded = ({ text, characters, whole, label }) => {
  const cut = characters !== undefined && characters > text.length;
  return html`<div class="recorded">
    <pre tabindex="0" role="region" aria-label=${label || "recorded text"} dir="ltr">${visible(text)}</pre>
    ${cut &&
    html`<p class="note">
      The first ${count(text.length)} of ${count(characters)} characters.
      ${whole && html` <a href=${whole} target="_blank" rel="noopener" data-plain>Open all as plain text</a>`}
    </p>`}
  </div>`;
};

const FRAME = /^<(?:memory|pinned|system-notice|late-result)[^>]*>$/;
export const firstLine = (text) => {
  const lines = text.slice(0, 2000).split("\n").map((line) => line.trim());
  return visible((lines.find((line) => line && !FRAME.test(line)) || lines[0]).slice(0, 160));
};

// Tiers: a colour, and always a word

export const GROUPS = [
  ["fixed", "system and pins", ["system", "pin"]],
  ["user", "the user's words", ["user"]],
  ["whole", "as recorded", ["whole", "note"]],
  ["short", "shortened", ["clip", "mask", "reasoning"]],
  ["summary", "summaries", ["summary", "dropped", "floor"]],
  ["known", "facts and ledger", ["facts", "ledger"]],
  ["recalled", "came back", ["recalled"]],
  ["frame", "request frame", ["request"]],
];
const GROUP_OF = Object.fromEntries(GROUPS.flatMap(([name, , tiers]) => tiers.map((tier) => [tier, name])));
export const groupOf = (tier) => GROUP_OF[tier] || "whole";
export const byGroup = (tiers) => {
  const sums = {};
  for (const [tier, tokens] of Object.entries(tiers)) sums[groupOf(tier)] = (sums[groupOf(tier)] || 0) + tokens;
  return sums;
};
export const Tier = ({ name }) => html`<span class=${`tier g-${groupOf(name)}`}>${name}</span>`;

export const Legend = ({ sums, total }) => html`<ul class="legend" aria-label="What the tokens are for">
  ${GROUPS.filter(([name]) => sums[name]).map(
    ([name, label]) => html`<li key=${name}>
      <span class=${`key g-${name}`} aria-hidden="true"></span>${label}${" "}
      <b>${count(sums[name])}</b>${" "}<span class="dim">${percent(sums[name], total)}</span>
    </li>`,
  )}
</ul>`;

/** A bar of what a request is made of, out of its limit. */
export const TierBar = ({ tiers, limit, label }) => {
  const sums = byGroup(tiers);
  const whole = Math.max(limit, Object.values(sums).reduce((sum, tokens) => sum + tokens, 0), 1);
  return html`<div class="tierbar" role="img" aria-label=${label}>
    ${GROUPS.filter(([name]) => sums[name]).map(
      ([name]) => html`<i key=${name} class=${`g-${name}`} style=${{ width: `${(100 * sums[name]) / whole}%` }}></i>`,
    )}
  </div>`;
};

// Loading

export const useData = (path, version = 0, load = get) => {
  const [state, setState] = useState({ path: null });
  useEffect(() => {
    if (!path) return undefined;
    let wanted = true;
    load(path).then(
      (value) => wanted && setState({ path, value }),
      (error) => wanted && setState({ path, error }),
    );
    return () => {
      wanted = false;
    };
  }, [path, version]);
  return state.path === path ? state : {};
};

export const Loaded = ({ data, children }) => {
  if (data.error) return html`<p class="problem" role="alert">${visible(data.error.message)}</p>`;
  if (!data.value) return html`<p class="dim" aria-live="polite">Reading …</p>`;
  return children(data.value);
};

// Links without a reload

export const Link = ({ to, children, ...rest }) =>
  html`<a
    href=${to}
    ...${rest}
    onClick=${(event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      go(to);
    }}
    >${children}</a
  >`;

// A list of which only the rows in sight are in the page

const NARROW = matchMedia("(max-width: 760px)");
const useNarrow = () => {
  const [narrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const changed = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", changed);
    return () => NARROW.removeEventListener("change", changed);
  }, []);
  return narrow;
};

export const List = ({ label, columns: all, rows, render, selected, onSelect, onOpen, rowHeight = 34, most = 640, empty }) => {
  const box = useRef(null);
  const narrow = useNarrow();
  const shown = all.map((column) => !(narrow && /\bwide\b/.test(column.class || "")));
  const columns = all.filter((_, index) => shown[index]);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(most);
  useLayoutEffect(() => {
    if (box.current) setHeight(box.current.clientHeight || most);
  }, [rows.length]);
  useEffect(() => {
    // The keys go to the first list of a view, unless something else was chosen.
    if (box.current && onSelect && document.activeElement === document.body) box.current.focus({ preventScroll: true });
  }, [rows.length > 0]);
  useEffect(() => {
    const element = box.current;
    if (!element || selected === undefined || selected < 0) return;
    const start = selected * rowHeight;
    if (start < element.scrollTop) element.scrollTop = start;
    else if (start + rowHeight > element.scrollTop + element.clientHeight - rowHeight)
      element.scrollTop = start + 2 * rowHeight - element.clientHeight;
  }, [selected]);
  const latest = useRef(selected);
  latest.current = selected;
  if (!rows.length) return html`<p class="dim">${empty || "Nothing here yet."}</p>`;
  const from = Math.max(0, Math.floor(top / rowHeight) - 6);
  const to = Math.min(rows.length, Math.ceil((top + height) / rowHeight) + 6);
  const move = (by) => {
    // Two keys may come before the page is drawn again.
    latest.current = Math.max(0, Math.min(rows.length - 1, (latest.current ?? -1) + by));
    onSelect(latest.current);
  };
  const keys = (event) => {
    const page = Math.max(1, Math.floor(height / rowHeight) - 2);
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length };
    if (event.key in steps && onSelect) {
      event.preventDefault();
      event.stopPropagation();
      move(steps[event.key]);
    } else if (event.key === "Enter" && onOpen && latest.current >= 0 && event.target === box.current) {
      event.preventDefault();
      onOpen(latest.current);
    }
  };
  const template = columns.map((column) => column.width || "1fr").join(" ");
  return html`<div
    class="list"
    ref=${box}
    role="table"
    tabindex="0"
    aria-label=${label}
    aria-rowcount=${rows.length + 1}
    style=${{ maxHeight: `${most}px` }}
    onScroll=${(event) => setTop(event.currentTarget.scrollTop)}
    onKeyDown=${keys}
  >
    <div class="row head" role="row" aria-rowindex="1" style=${{ gridTemplateColumns: template }}>
      ${columns.map(
        (column) => html`<span key=${column.name} role="columnheader" class=${column.class || ""}>${column.name}</span>`,
      )}
    </div>
    <div class="rows" role="rowgroup" style=${{ height: `${rows.length * rowHeight}px` }}>
      ${rows.slice(from, to).map((row, at) => {
        const number = from + at;
        return html`<div
          key=${number}
          class=${`row ${number === selected ? "selected" : ""}`}
          role="row"
          aria-rowindex=${number + 2}
          aria-current=${number === selected ? "true" : undefined}
          style=${{ gridTemplateColumns: template, transform: `translateY(${number * rowHeight}px)`, height: `${rowHeight}px` }}
          onClick=${() => onSelect && onSelect(number)}
          onDblClick=${() => onOpen && onOpen(number)}
        >
          ${render(row, number).filter((_, index) => shown[index]).map(
            (cell, index) => html`<span key=${index} role="cell" class=${columns[index].class || ""}>${cell}</span>`,
          )}
        </div>`;
      })}
    </div>
  </div>`;
};

export const Facts = ({ pairs }) => html`<dl class="facts">
  ${pairs
    .filter(Boolean)
    .map(([name, value, note]) => html`<div key=${name}><dt>${name}</dt><dd>${value}${note && html` <span class="dim">${note}</span>`}</dd></div>`)}
</dl>`;
