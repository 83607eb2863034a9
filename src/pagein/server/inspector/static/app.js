// The page: where one is, the views, the keys.

import { h, render } from "./vendor/preact.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { currentRoute, exported, go, href, listen } from "./api.js";
import { Link, html, useData, visible } from "./ui.js";
import { runPath } from "./api.js";
import { BudgetView, CostView, DiffView, ExportLink, OutView, RequestView, Runs, SearchView, StepView, TimelineView } from "./views.js";

const KEYS = [
  ["g r", "all runs"], ["t", "timeline"], ["r", "the request"], ["d", "what changed"], ["o", "what is out"],
  ["b", "budget"], ["c", "cost"], ["[  ]", "the request before, after"], ["↑ ↓ j k", "move in a list"],
  ["Enter", "open the row"], ["/", "search"], ["?", "these keys"],
];

const readPlace = () => {
  const parts = currentRoute();
  const query = new URLSearchParams(exported ? "" : location.search);
  if (parts[0] === "search") return { view: "search", query: query.get("q") || "", run: query.get("run") || "", from: query.get("from") || "", position: query.get("position") || "0" };
  if (parts[0] !== "run" || !parts[1]) return { view: "runs" };
  const [, run, view = "timeline", one, two] = parts;
  if (view === "diff") return { view, run, before: +one || 1, number: +two || (+one || 1) + 1 };
  if (view === "step") return { view, run, handle: one || "s0" };
  return { view, run, number: +one || 0 };
};

const Tabs = ({ place, last }) => {
  const number = place.number || last || 1;
  const tabs = [
    ["timeline", "Timeline", href("run", place.run)],
    ["request", "Request", href("run", place.run, "request", number)],
    ["diff", "Changes", href("run", place.run, "diff", Math.max(1, number - 1), Math.max(2, number))],
    ["out", "Out of view", href("run", place.run, "out", number)],
    ["budget", "Budget", href("run", place.run, "budget", number)],
    ["cost", "Cost", href("run", place.run, "cost")],
  ];
  return html`<nav class="tabs" aria-label="Views of this run">
    ${tabs.map(([view, label, to]) => html`<${Link} key=${view} to=${to} aria-current=${place.view === view ? "page" : undefined}>${label}<//>`)}
  </nav>`;
};

const Keys = ({ onClose }) => {
  const box = useRef(null);
  useEffect(() => box.current && box.current.focus(), []);
  return html`<div class="keys" role="dialog" aria-modal="true" aria-label="Keys" tabindex="-1" ref=${box}
    onKeyDown=${(event) => event.key === "Escape" && onClose()}>
    <h2>Keys</h2>
    <dl>${KEYS.map(([keys, what]) => html`<div key=${keys}><dt><kbd>${keys}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <button onClick=${onClose}>Close</button>
  </div>`;
};

const View = ({ place, version, last }) => {
  const number = place.number || last;
  switch (place.view) {
    case "runs": return html`<${Runs} version=${version} />`;
    case "search": return html`<${SearchView} query=${place.query} run=${place.run} from=${place.from} position=${place.position} />`;
    case "timeline": return html`<${TimelineView} run=${place.run} version=${version} />`;
    case "cost": return html`<${CostView} run=${place.run} version=${version} />`;
    case "step": return html`<${StepView} run=${place.run} handle=${place.handle} version=${version} />`;
    case "request": return number ? html`<${RequestView} run=${place.run} number=${number} last=${last} />` : html`<p class="dim">No request yet.</p>`;
    case "diff": return html`<${DiffView} run=${place.run} before=${place.before} number=${place.number} last=${last} />`;
    case "out": return number ? html`<${OutView} run=${place.run} number=${number} last=${last} />` : html`<p class="dim">No request yet.</p>`;
    case "budget": return number ? html`<${BudgetView} run=${place.run} number=${number} last=${last} />` : html`<p class="dim">No request yet.</p>`;
    default: return html`<p class="problem" role="alert">There is no such view.</p>`;
  }
};

const App = () => {
  const [place, setPlace] = useState(readPlace());
  const [version, setVersion] = useState(0);
  const [live, setLive] = useState(false);
  const [keys, setKeys] = useState(false);
  const [query, setQuery] = useState("");
  const search = useRef(null);
  const main = useRef(null);
  const pending = useRef("");
  useEffect(() => {
    const moved = () => {
      setPlace(readPlace());
      scrollTo(0, 0);
    };
    addEventListener("popstate", moved);
    addEventListener("hashchange", moved);
    return () => {
      removeEventListener("popstate", moved);
      removeEventListener("hashchange", moved);
    };
  }, []);
  useEffect(() => listen(place.run, () => setVersion((old) => old + 1), setLive), [place.run]);
  useEffect(() => {
    const names = { runs: "Runs", search: "Search" };
    document.title = place.run ? `${visible(place.run)} · ${place.view}${place.number ? ` ${place.number}` : ""} · pagein` : `${names[place.view]} · pagein`;
  }, [place]);
  const marks = useData(place.run ? runPath(place.run, "marks") : null, version);
  const last = marks.value ? marks.value.last : 0;
  useEffect(() => {
    const number = place.number || last || 1;
    const onKey = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (event.key === "Escape") {
        setKeys(false);
        if (typing) event.target.blur();
        return;
      }
      if (typing) return;
      if (event.key === "/" && search.current) {
        event.preventDefault();
        search.current.focus();
      } else if (event.key === "?") setKeys(true);
      else if (pending.current === "g" && event.key === "r") go(href());
      else if (place.run) {
        const run = place.run;
        const moves = { "[": -1, "]": 1 };
        const views = {
          t: href("run", run), r: href("run", run, "request", number), o: href("run", run, "out", number),
          b: href("run", run, "budget", number), c: href("run", run, "cost"),
          d: href("run", run, "diff", Math.max(1, number - 1), Math.max(2, number)),
        };
        if (event.key in moves && place.number) {
          const to = Math.max(1, Math.min(last || number, number + moves[event.key]));
          go(place.view === "diff" ? href("run", run, "diff", Math.max(1, to - 1), Math.max(2, to)) : href("run", run, place.view, to));
        } else if (event.key in views) go(views[event.key]);
      }
      pending.current = event.key;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [place, last]);
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>To the view</a>
    <header class="top">
      <${Link} class="brand" to=${href()}>pagein<//>
      ${place.run && html`<span class="where"><span aria-hidden="true">/</span> <${Link} to=${href("run", place.run)} title=${visible(place.run)}>${visible(place.run)}<//></span>`}
      <span class="space"></span>
      ${live && html`<span class="live" role="status"><i aria-hidden="true"></i>live</span>`}
      ${place.run && html`<${ExportLink} run=${place.run} />`}
      ${!exported && html`<form role="search" aria-label="All runs" onSubmit=${(event) => { event.preventDefault(); go(`${href("search")}?q=${encodeURIComponent(query)}`); }}>
        <input ref=${search} type="search" aria-label="Search all runs" placeholder="Search all runs" value=${query} onInput=${(event) => setQuery(event.currentTarget.value)} />
      </form>`}
      <button class="help" aria-label="Keys" onClick=${() => setKeys(true)}>?</button>
    </header>
    ${place.run && place.view !== "search" && html`<${Tabs} place=${place} last=${last} />`}
    <main id="main" tabindex="-1" ref=${main}><${View} place=${place} version=${version} last=${last} /></main>
    ${keys && html`<${Keys} onClose=${() => setKeys(false)} />`}`;
};

render(h(App), document.getElementById("app"));
