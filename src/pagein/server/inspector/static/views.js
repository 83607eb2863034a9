// The views of a run. Each asks one question, named in its heading.

import { useEffect, useMemo, useState } from "./vendor/hooks.js";
import { exported, exportAddress, getRequests, go, href, rawAddress, runPath, textAddress } from "./api.js";
import { Sums, Timeline } from "./charts.js";
import {
  Facts, Legend, Link, List, Loaded, Name, Recorded, Tier, TierBar, ago, byGroup, clock, count, firstLine, html, percent,
  useData, visible,
} from "./ui.js";

const NUMBER = { class: "number", width: "minmax(4.5rem, .6fr)" };

// Runs

/** Runs in the order of their names' parts, so that a subagent stands beneath its parent. */
const asTree = (runs) => {
  const names = new Set(runs.map((row) => row.run));
  const parent = (name) => {
    for (let at = name.lastIndexOf("/"); at > 0; at = name.lastIndexOf("/", at - 1))
      if (names.has(name.slice(0, at))) return name.slice(0, at);
    return null;
  };
  const children = new Map();
  for (const row of runs) {
    const key = parent(row.run);
    children.set(key, [...(children.get(key) || []), row]);
  }
  const walk = (key, depth) =>
    (children.get(key) || []).flatMap((row) => [
      { ...row, depth, label: key ? row.run.slice(key.length + 1) : row.run },
      ...walk(row.run, depth + 1),
    ]);
  return walk(null, 0);
};

export const Runs = ({ version }) => {
  const data = useData("runs", version);
  const [chosen, setChosen] = useState(0);
  const [part, setPart] = useState("");
  return html`<h1>Runs</h1>
    <${Loaded} data=${data}>${({ runs }) => {
      const rows = asTree(runs.filter((row) => row.run.toLowerCase().includes(part.toLowerCase())));
      const open = (at) => go(href("run", rows[at].run));
      return html`<p class="lead">
          <b>${count(runs.length)}</b> ${runs.length === 1 ? "run" : "runs"},${" "}
          <b>${count(runs.reduce((sum, row) => sum + row.requests, 0))}</b> requests
          ${runs.length > 12 &&
          html`<label class="filter">Names with <input value=${part} onInput=${(event) => setPart(event.currentTarget.value)} /></label>`}
        </p>
        <${List}
          label="Runs"
          rows=${rows}
          selected=${chosen}
          onSelect=${setChosen}
          onOpen=${open}
          empty="No run has this in its name."
          columns=${[
            { name: "run", width: "minmax(7rem, 3fr)" },
            { name: "how full", width: "minmax(3.5rem, 2fr)" },
            { name: "tokens", ...NUMBER },
            { name: "requests", ...NUMBER, class: "number wide" },
            { name: "entries", ...NUMBER, class: "number wide" },
            { name: "model", width: "minmax(5rem, 1.2fr)", class: "wide" },
            { name: "last", width: "minmax(4.5rem, .8fr)", class: "number" },
          ]}
          render=${(row) => [
            html`<span style=${{ display: "block", paddingInlineStart: `${row.depth * 1.1}rem` }}
              ><${Link} to=${href("run", row.run)} title=${visible(row.run)}><${Name} text=${(row.depth ? "└ " : "") + row.label} /><//></span
            >`,
            row.problem
              ? html`<span class="problem">${visible(row.problem)}</span>`
              : row.last &&
                html`<${TierBar} tiers=${row.last.tiers} limit=${row.last.limit}
                  label=${`${percent(row.last.tokens, row.last.limit)} of ${count(row.last.limit)} tokens`} />`,
            row.last ? count(row.last.tokens) : "–",
            count(row.requests),
            count(row.entries),
            visible((row.last && row.last.model) || "–"),
            ago(row.at),
          ]}
        />`;
    }}<//>`;
};

// Timeline

const useRequests = (run, version) => useData(runPath(run, "requests"), version, getRequests);

const NoRequests = ({ value }) => html`<p>
  ${count(value.entries)} entries were recorded, and no request is known: the run is older than the table of requests, or
  nothing was sent yet.
</p>`;

const brokeText = (row, before) =>
  !before ? "the first" : !row.broke ? "goes on" : row.broke === "recalled" ? "page-in anew" : `${row.broke}: ${row.why}`;

export const TimelineView = ({ run, version }) => {
  const data = useRequests(run, version);
  const [chosen, setChosen] = useState(null);
  return html`<h1>What was sent, request by request</h1>
    <${Loaded} data=${data}>${(value) => {
      const rows = value.requests;
      if (!rows.length) return html`<${NoRequests} value=${value} />`;
      const at = chosen === null ? rows.length - 1 : Math.min(chosen, rows.length - 1);
      const open = (index) => go(href("run", run, "request", rows[index].number));
      const branched = rows.some((row) => row.branch !== rows[0].branch);
      return html`<${Timeline} rows=${rows} selected=${at} onSelect=${setChosen} onOpen=${open} />
        <${Legend} sums=${byGroup(rows[at].tiers)} total=${rows[at].tokens} />
        <${List}
          label="Requests"
          rows=${rows}
          selected=${at}
          onSelect=${setChosen}
          onOpen=${open}
          most=${460}
          columns=${[
            { name: "request", width: "minmax(4rem, .5fr)", class: "number" },
            { name: "tokens", ...NUMBER },
            { name: "same", ...NUMBER },
            { name: "beginning", width: "minmax(8rem, 3.6fr)" },
            ...(branched ? [{ name: "branch", width: "minmax(5rem, 1fr)", class: "wide" }] : []),
            { name: "entries", ...NUMBER, class: "number wide" },
            { name: "cached", ...NUMBER, class: "number wide" },
            { name: "outcome", width: "minmax(4rem, .8fr)", class: "wide" },
            { name: "at", width: "minmax(11rem, 1.2fr)", class: "number wide" },
          ]}
          render=${(row, index) => [
            html`<${Link} to=${href("run", run, "request", row.number)}>${row.number}<//>`,
            count(row.tokens),
            percent(row.prefix, row.tokens),
            html`<span class=${row.compactions > (rows[index - 1] || row).compactions ? "strong" : ""}
              >${row.compactions > (rows[index - 1] || row).compactions ? "▲ " : ""}${visible(brokeText(row, rows[index - 1]))}</span
            >`,
            ...(branched ? [visible(row.branch)] : []),
            count(row.head),
            row.usage ? count(row.usage.cache_read) : "–",
            visible(row.outcome || "–"),
            clock(row.at),
          ]}
        />
        <${Asked} run=${run} version=${version} />`;
    }}<//>`;
};

// What was asked again

const MAX_HANDLES = 4;

const Handles = ({ run, handles }) => html`${handles.slice(0, MAX_HANDLES).map((handle, at) => html`${at ? " " : ""}<${Link} key=${handle} to=${href("run", run, "step", handle)}>${handle}<//>`)}
  ${handles.length > MAX_HANDLES && html` <span class="dim">and ${count(handles.length - MAX_HANDLES)} more</span>`}`;

const Asked = ({ run, version }) => {
  const data = useData(runPath(run, "asked"), version);
  const [chosen, setChosen] = useState(-1);
  return html`<section><h2>What was asked again</h2>
    <${Loaded} data=${data}>${({ asked }) => {
      const sum = (isOne) => count(asked.filter(isOne).length);
      const byModel = (row) => row.what !== "page-in";
      return html`<p class="dim">
          The model asked or called again for what had left its view: ${sum(byModel)}. Page-ins, which brought back what it seemed to
          need: ${sum((row) => !byModel(row))}. What it missed and never asked for is not known.
        </p>
        <${List}
          label="What was asked again"
          rows=${asked}
          selected=${chosen}
          onSelect=${setChosen}
          onOpen=${(at) => asked[at].request && go(href("run", run, "request", asked[at].request))}
          most=${300}
          empty="Nothing: whatever left was not asked for."
          columns=${[
            { name: "request", width: "minmax(4rem, .5fr)", class: "number" },
            { name: "how", width: "minmax(7rem, 1fr)" },
            { name: "what", width: "minmax(5rem, 1.6fr)" },
            { name: "why", width: "minmax(7rem, 3fr)", class: "wide" },
            { name: "by", width: "minmax(3.5rem, .5fr)", class: "wide" },
          ]}
          render=${(row) => [
            row.request ? html`<${Link} to=${href("run", run, "request", row.request)}>${row.request}<//>` : "–",
            row.what,
            html`<span class="handles"><${Handles} run=${run} handles=${row.handles} />${row.what === "page-in" && !row.handles.length && "names"}</span>`,
            visible(row.why),
            row.by ? html`<${Link} to=${href("run", run, "step", row.by)}>${row.by}<//>` : "–",
          ]}
        />`;
    }}<//></section>`;
};

// One request

const Steps = ({ run, number, last, view }) => html`<nav class="steps" aria-label="Requests before and after">
  ${number > 1 ? html`<${Link} to=${href("run", run, view, number - 1)} rel="prev" aria-keyshortcuts="[">← ${number - 1}<//>` : html`<span class="dim">←</span>`}
  <b>${number}</b>
  ${!last || number < last
    ? html`<${Link} to=${href("run", run, view, number + 1)} rel="next" aria-keyshortcuts="]">${number + 1} →<//>`
    : html`<span class="dim">→</span>`}
</nav>`;

const Proof = ({ problem }) =>
  problem
    ? html`<p class="problem" role="status"><b>Not as it was sent:</b> ${visible(problem)}.</p>`
    : html`<p class="proof" role="status">✓ Rendered again from the log: its digest is that of what was sent.</p>`;

const Block = ({ run, block, reasons }) => {
  const [open, setOpen] = useState(false);
  const roles = [...new Set(block.roles)].join(", ");
  return html`<li class="block">
    <button aria-expanded=${open} onClick=${() => setOpen(!open)}>
      <span class="twist" aria-hidden="true">${open ? "▾" : "▸"}</span>
      <${Tier} name=${block.tier} />
      <span class="handle">${block.handle || block.kind}</span>
      <span class="excerpt">${firstLine(block.text) || html`<i>no text</i>`}</span>
      <span class="number">${count(block.tokens)}</span>
    </button>
    ${open &&
    html`<div class="inside">
      <p class="why">
        ${visible(block.why)} <span class="dim">· ${roles}${block.tools.length ? ` · calls ${visible(block.tools.join(", "))}` : ""}</span>
        ${block.handle && html` · <${Link} to=${href("run", run, "step", block.handle)}>the life of ${block.handle}<//>`}
      </p>
      ${block.tier === "recalled" && reasons.length > 0 &&
      html`<ul class="reasons">
        ${reasons.map(([handle, why], at) => html`<li key=${at}><${Link} to=${href("run", run, "step", handle)}>${handle}<//> ${why}</li>`)}
      </ul>`}
      <${Recorded} text=${block.text} characters=${block.characters} label=${`text of ${block.handle || block.kind}`}
        whole=${block.handle && !exported ? textAddress(run, block.handle) : ""} />
    </div>`}
  </li>`;
};

const MAX_BLOCKS = 120;

export const RequestView = ({ run, number, last, version }) => {
  const data = useData(runPath(run, "requests", number), 0);
  const [all, setAll] = useState(false);
  useEffect(() => setAll(false), [run, number]);
  return html`<header class="title">
      <h1>What the model saw in request ${number}</h1>
      <${Steps} run=${run} number=${number} last=${last} view="request" />
    </header>
    <${Loaded} data=${data}>${(value) => {
      const { record, blocks, rest, out } = value;
      const skipped = all ? 0 : Math.max(0, blocks.length - MAX_BLOCKS);
      const half = Math.ceil(MAX_BLOCKS / 2);
      const shown = skipped ? [...blocks.slice(0, half), null, ...blocks.slice(-half)] : blocks.slice(-2 * MAX_BLOCKS);
      return html`<${Proof} problem=${value.problem} />
        <${TierBar} tiers=${record.tiers} limit=${record.limit} label=${`${count(record.tokens)} of ${count(record.limit)} tokens`} />
        <${Facts}
          pairs=${[
            ["tokens", html`<b>${count(record.tokens)}</b>`, `of ${count(record.limit)}`],
            ["same beginning", percent(record.prefix, record.tokens), record.broke ? `then ${visible(record.broke)}: ${visible(record.why)}` : ""],
            ["out of it", count(out.length), "replaced or left out"],
            record.usage && ["reported", count(record.usage.input), `tokens, ${count(record.usage.cache_read)} from the cache`],
            ["sent", clock(record.at), [record.model, record.format, record.branch].filter(Boolean).map(visible).join(" · ")],
            record.outcome && ["outcome", visible(record.outcome)],
            ...Object.entries(record.seconds).map(([name, seconds]) => [visible(name), `${seconds} s`]),
          ]}
        />
        <p class="links">
          ${number > 1 && html`<${Link} to=${href("run", run, "diff", number - 1, number)}>what changed<//>`}
          <${Link} to=${href("run", run, "out", number)}>what is out<//>
          <${Link} to=${href("run", run, "budget", number)}>its budget<//>
          ${!exported && html`<a href=${rawAddress(run, number)} target="_blank" rel="noopener">raw JSON</a>`}
        </p>
        <ol class="blocks" aria-label="The request, in its order">
          ${shown.map((block, at) =>
            block
              ? html`<${Block} key=${`${number}-${block.handle}-${at}`} run=${run} block=${block} reasons=${record.reasons} />`
              : html`<li key="gap" class="gap"><button onClick=${() => setAll(true)}>${count(skipped)} more in between</button></li>`,
          )}
        </ol>
        <p class="note">${count(rest)} tokens are what every request costs beside its messages.</p>`;
    }}<//>`;
};

// Diff

const SIGNS = { came: "+", left: "−", changed: "~" };

export const DiffView = ({ run, before, number, last }) => {
  const data = useData(runPath(run, "requests", number, "diff", before));
  const [chosen, setChosen] = useState(0);
  return html`<header class="title">
      <h1>What changed from request ${before} to ${number}</h1>
      <nav class="steps" aria-label="Differences before and after">
        ${before > 1 && html`<${Link} to=${href("run", run, "diff", before - 1, before)} rel="prev">← ${before - 1}–${before}<//>`}
        ${(!last || number < last) && html`<${Link} to=${href("run", run, "diff", number, number + 1)} rel="next">${number}–${number + 1} →<//>`}
      </nav>
    </header>
    <${Loaded} data=${data}>${(value) => {
      const { after, changes } = value;
      const sum = (what) => changes.filter((row) => row.what === what).reduce((total, row) => total + row.delta, 0);
      const lost = Math.max(0, value.before.tokens - (value.before.tiers.request || 0) - value.shared);
      return html`${value.problem && html`<${Proof} problem=${value.problem} />`}
        <${Facts}
          pairs=${[
            ["came", `+${count(sum("came"))}`, "tokens"],
            ["left", count(sum("left")).replace("-", "−"), "tokens"],
            ["changed", count(sum("changed")).replace("-", "−"), "tokens"],
            ["the same prefix", percent(value.shared, after.tokens), `${count(value.shared)} tokens`],
            after.broke && ["it broke at", visible(after.broke), visible(after.why)],
            ["lost to the cache", count(lost), "tokens of the request before"],
          ]}
        />
        <${List}
          label="Changes"
          rows=${changes}
          selected=${chosen}
          onSelect=${setChosen}
          onOpen=${(at) => changes[at].handle && go(href("run", run, "step", changes[at].handle))}
          empty="Nothing: the same request again."
          columns=${[
            { name: "change", width: "5.5rem" },
            { name: "step", width: "minmax(4rem, .8fr)" },
            { name: "stands as", width: "minmax(5.5rem, 1fr)" },
            { name: "why", width: "minmax(7rem, 3fr)", class: "wide" },
            { name: "tokens", ...NUMBER },
          ]}
          render=${(row) => [
            html`<span class=${`change ${row.what}`}>${SIGNS[row.what]} ${row.what}</span>`,
            row.handle ? html`<${Link} to=${href("run", run, "step", row.handle)}>${row.handle}<//>` : visible(row.kind),
            html`<${Tier} name=${row.tier} />${row.was && row.was !== row.tier && html`<span class="dim"> was ${row.was}</span>`}`,
            visible(row.why),
            (row.delta > 0 ? "+" : "") + count(row.delta).replace("-", "−"),
          ]}
        />`;
    }}<//>`;
};

// A step

export const StepView = ({ run, handle, version }) => {
  const data = useData(runPath(run, "steps", handle), version);
  return html`<h1>The life of ${visible(handle)}</h1>
    <${Loaded} data=${data}>${(value) => html`<ol class="life">
          ${value.life.slice(-200).map(
            (event, at) => html`<li key=${at}>
              <time>${clock(event.at)}</time> <b>${visible(event.what)}</b>
              ${event.request ? html` in <${Link} to=${href("run", run, "request", event.request)}>request ${event.request}<//>` : ""}
              <span class="dim"> ${visible(event.why)}</span>
            </li>`,
          )}
        </ol>
        <h2>${visible(value.kind || "Its text")}</h2>
        <${Recorded} text=${value.text} characters=${value.characters} whole=${exported ? "" : textAddress(run, handle)} label=${`text of ${handle}`} />`}<//>`;
};

// Out of view

export const OutView = ({ run, number, last }) => {
  const data = useData(runPath(run, "requests", number));
  const [chosen, setChosen] = useState(0);
  const [query, setQuery] = useState("");
  return html`<header class="title">
      <h1>What is out of request ${number}, and where it is</h1>
      <${Steps} run=${run} number=${number} last=${last} view="out" />
    </header>
    ${!exported &&
    html`<form class="find" role="search" aria-label="This run" onSubmit=${(event) => { event.preventDefault(); go(href("search") + `?q=${encodeURIComponent(query)}&run=${encodeURIComponent(run)}`); }}>
      <label>Search this run <input value=${query} onInput=${(event) => setQuery(event.currentTarget.value)} /></label>
    </form>`}
    <${Loaded} data=${data}>${({ out }) => html`<${List}
        label="Out of view"
        rows=${out}
        selected=${chosen}
        onSelect=${setChosen}
        onOpen=${(at) => go(href("run", run, "step", out[at].handle))}
        empty="Nothing: every step of the run is in this request as it was recorded."
        columns=${[
          { name: "handle", width: "minmax(5rem, .8fr)" },
          { name: "stands as", width: "minmax(6rem, 1fr)" },
          { name: "why", width: "minmax(8rem, 4fr)" },
        ]}
        render=${(row) => [
          html`<${Link} to=${href("run", run, "step", row.handle)}>${row.handle}<//>`,
          html`<${Tier} name=${row.tier} />`,
          visible(row.why),
        ]}
      />`}<//>`;
};

// Budget

export const BudgetView = ({ run, number, last }) => {
  const data = useData(runPath(run, "requests", number));
  const [chosen, setChosen] = useState(0);
  return html`<header class="title">
      <h1>Where the budget of request ${number} went</h1>
      <${Steps} run=${run} number=${number} last=${last} view="budget" />
    </header>
    <${Loaded} data=${data}>${({ record, blocks, tools }) => {
      const sums = byGroup(record.tiers);
      const largest = [...blocks].sort((one, other) => other.tokens - one.tokens);
      return html`<div class="budget">
          <${TierBar} tiers=${record.tiers} limit=${Math.max(record.budget, record.limit)} label=${`${count(record.tokens)} of a window of ${count(record.budget)} tokens`} />
          <span class="mark" style=${{ left: `${(100 * record.limit) / Math.max(record.budget, record.limit)}%` }} aria-hidden="true"></span>
        </div>
        <${Facts}
          pairs=${[
            ["window", count(record.budget)],
            ["kept free", count(record.reserve), "output, tools, margin"],
            ["limit", count(record.limit), "tokens of messages"],
            ["used", html`<b>${count(record.tokens)}</b>`, percent(record.tokens, record.limit)],
            ["free", count(record.limit - record.tokens)],
          ]}
        />
        <${Legend} sums=${sums} total=${record.tokens} />
        <h2>The largest</h2>
        <${List}
          label="Largest contributors"
          rows=${largest}
          selected=${chosen}
          onSelect=${setChosen}
          onOpen=${(at) => largest[at].handle && go(href("run", run, "step", largest[at].handle))}
          most=${300}
          columns=${[
            { name: "what", width: "minmax(5rem, .8fr)" },
            { name: "tier", width: "minmax(6rem, .9fr)" },
            { name: "begins", width: "minmax(6rem, 4fr)", class: "wide" },
            { name: "tokens", ...NUMBER },
            { name: "share", ...NUMBER },
          ]}
          render=${(row) => [
            row.handle ? html`<${Link} to=${href("run", run, "step", row.handle)}>${row.handle}<//>` : visible(row.kind),
            html`<${Tier} name=${row.tier} />`,
            firstLine(row.text),
            count(row.tokens),
            percent(row.tokens, record.tokens),
          ]}
        />
        <h2>By tool</h2>
        <${List}
          label="Tokens by tool"
          rows=${tools}
          most=${260}
          empty="No step in this request calls a tool."
          columns=${[{ name: "tool", width: "minmax(6rem, 3fr)" }, { name: "steps", ...NUMBER }, { name: "tokens", ...NUMBER }, { name: "share", ...NUMBER }]}
          render=${(row) => [visible(row.tool), count(row.steps), count(row.tokens), percent(row.tokens, record.tokens)]}
        />`;
    }}<//>`;
};

// Cost

const running = (values) => {
  let sum = 0;
  return values.map((value) => (sum += value));
};

/** The tokens of a request with the whole history in it. */
const wholeHistory = (row) => Math.max((row.held || 0) + (row.tiers.request || 0), row.tokens);

export const CostView = ({ run, version }) => {
  const data = useRequests(run, version);
  const priced = useData(runPath(run, "cost"), version);
  const [chosen, setChosen] = useState(null);
  const sums = useMemo(() => {
    const rows = data.value ? data.value.requests : [];
    return { sent: running(rows.map((row) => row.tokens)), held: running(rows.map(wholeHistory)) };
  }, [data.value]);
  return html`<h1>What it cost, and what it saved</h1>
    <${Loaded} data=${data}>${(value) => {
      const rows = value.requests;
      if (!rows.length) return html`<${NoRequests} value=${value} />`;
      const at = chosen === null ? rows.length - 1 : chosen;
      const [sent, held] = [sums.sent.at(-1), sums.held.at(-1)];
      const kept = rows.reduce((total, row) => total + row.prefix, 0);
      const known = rows.filter((row) => row.usage);
      const total = (name) => known.reduce((sum, row) => sum + row.usage[name], 0);
      return html`<p class="lead">Instead of <b>${count(held)}</b> tokens it sent <b>${count(sent)}</b>: ${percent(held - sent, held)} less.</p>
        <${Facts}
          pairs=${[
            ["requests", count(rows.length)],
            ["compactions", count(rows.at(-1).compactions)],
            ["same beginning", percent(kept, sent), "of all tokens: a prompt cache can have them"],
            known.length && ["reported", count(total("input")), `tokens, ${count(total("cache_read"))} from the cache, ${count(total("cache_written"))} into it, ${count(total("output"))} written`],
          ]}
        />
        <${Loaded} data=${priced}>${({ cost }) => html`<${Facts}
          pairs=${[
            ["price", count(cost.total), `in tokens of input; the whole history each time: ${count(cost.price_whole)}`],
            cost.writers.length && ["of it the requests", count(cost.price)],
            ...cost.writers.map((by) => [`of it ${by.purpose}`, count(by.price), `${count(by.input)} tokens read by a model, ${count(by.output)} written`]),
          ]}
        />`}<//>
        <${Sums} sent=${sums.sent} held=${sums.held} />
        <${List}
          label="Cost by request"
          rows=${rows}
          selected=${at}
          onSelect=${setChosen}
          onOpen=${(index) => go(href("run", run, "request", rows[index].number))}
          most=${420}
          columns=${[
            { name: "request", width: "minmax(4rem, .5fr)", class: "number" },
            { name: "sent", ...NUMBER }, { name: "whole history", ...NUMBER }, { name: "saved", ...NUMBER },
            { name: "same", ...NUMBER, class: "number wide" }, { name: "new", ...NUMBER, class: "number wide" },
            { name: "from cache", ...NUMBER, class: "number wide" }, { name: "into cache", ...NUMBER, class: "number wide" },
          ]}
          render=${(row) => [
            html`<${Link} to=${href("run", run, "request", row.number)}>${row.number}<//>`,
            count(row.tokens), count(wholeHistory(row)), count(wholeHistory(row) - row.tokens),
            count(row.prefix), count(row.tokens - row.prefix),
            row.usage ? count(row.usage.cache_read) : "–", row.usage ? count(row.usage.cache_written) : "–",
          ]}
        />`;
    }}<//>`;
};

// Search

export const SearchView = ({ query, run, from, position }) => {
  const within = `search?q=${encodeURIComponent(query)}${run ? `&run=${encodeURIComponent(run)}` : ""}`;
  const later = (place, at) => `${within}&from=${encodeURIComponent(place)}&position=${at}`;
  const path = query ? (from ? later(from, position) : within) : null;
  const data = useData(path);
  const [chosen, setChosen] = useState(0);
  return html`<h1>${run ? html`In ${visible(run)}` : "In all runs"}: ${visible(query || "")}</h1>
    ${path &&
    html`<${Loaded} data=${data}>${({ hits, entries, runs, unread, next }) => html`<p class="note">
        ${count(entries)} entries of ${count(runs)} ${runs === 1 ? "run" : "runs"} were searched${from && `, from ${visible(from)} on`}.
        ${unread.length > 0 && ` ${count(unread.length)} cannot be read: ${visible(unread.slice(0, 3).join(", "))}.`}
        ${next && html` <${Link} to=${href("search") + later(...next).slice("search".length)}>Search on from ${visible(next[0])}<//>`}
      </p>
      <${List}
        label="Hits"
        rows=${hits}
        selected=${chosen}
        onSelect=${setChosen}
        onOpen=${(at) => go(href("run", hits[at].run, "step", hits[at].handle))}
        empty=${next ? "Nothing so far has these words." : "Nothing that was recorded has these words."}
        columns=${[
          { name: "run", width: "minmax(6rem, 1fr)" },
          { name: "step", width: "minmax(4rem, .5fr)" },
          { name: "by", width: "minmax(4.5rem, .5fr)", class: "wide" },
          { name: "says", width: "minmax(8rem, 4fr)" },
          { name: "why", width: "minmax(6rem, 1.4fr)", class: "wide" },
        ]}
        render=${(hit) => [
          html`<${Name} text=${hit.run} />`,
          html`<${Link} to=${href("run", hit.run, "step", hit.handle)}>${hit.handle}<//>`,
          hit.role,
          firstLine(hit.text),
          visible(hit.why),
        ]}
      />`}<//>`}`;
};

export const ExportLink = ({ run }) => (exported ? "" : html`<a class="export" href=${exportAddress(run)} download>Save as one file</a>`);

