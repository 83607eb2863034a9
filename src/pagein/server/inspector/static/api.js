// Where the data is from: the server, or the file itself where a run was exported.

const holder = document.getElementById("pagein-export");
const REFERENCE = "\0#";

/** The lines of an exported file: those that begin with a tab are shared, the others have an address. Each is parsed when asked for. */
const readExport = async () => {
  if (!holder) return null;
  if (typeof DecompressionStream === "undefined") {
    document.getElementById("app").textContent = "This browser is too old to open the file: use one of 2023 or later.";
  }
  const packed = atob(holder.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at); // a fraction of the time of Uint8Array.from
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const shared = [];
  const answers = new Map();
  for (const line of (await new Response(stream).text()).split("\n")) {
    const tab = line.indexOf("\t");
    if (tab === 0) shared.push(line.slice(1));
    else if (tab > 0) answers.set(JSON.parse(line.slice(0, tab)), line.slice(tab + 1));
  }
  // As the exporter shares them: the values of an answer, the items of its lists, and the texts in either.
  const one = (value) =>
    typeof value === "string" && value.startsWith(REFERENCE) ? JSON.parse(shared[+value.slice(2)]) : value;
  const change = (value, way) => Object.fromEntries(Object.entries(value).map(([key, part]) => [key, way(part)]));
  const item = (value) => {
    const whole = one(value);
    return whole && typeof whole === "object" && !Array.isArray(whole) ? change(whole, one) : whole;
  };
  const all = (value) => (Array.isArray(value) ? value.map(item) : item(value));
  const find = (address) => (answers.has(address) ? change(JSON.parse(answers.get(address)), all) : undefined);
  return { run: find("").run, find };
};

export const exported = await readExport();
const API = "/inspect/api/";

const inFlight = new Map();

/** Fetch JSON; two parts of a page that ask for the same at once share the answer. */
export const get = (path) => {
  if (!inFlight.has(path)) inFlight.set(path, ask(path).finally(() => inFlight.delete(path)));
  return inFlight.get(path);
};

/** Ask the server; an error carries its own words. */
const ask = async (path) => {
  if (exported) {
    const answer = exported.find(decodeURIComponent(path));
    if (answer === undefined) throw new Error("This is not in the exported file.");
    return answer;
  }
  const response = await fetch(API + path);
  const value = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Error(value.error || `The server answered ${response.status}.`);
  return value;
};

const CHANGING = 64;
let known = { path: "", entries: 0, requests: [] };

/** Fetch the requests of a run; later only the new ones, and the last of those before: their outcome may have come. */
export const getRequests = async (path) => {
  const old = known.path === path ? known.requests : [];
  const after = old.length && !exported ? Math.max(0, old.at(-1).number - CHANGING) : 0;
  const value = await get(after ? `${path}?after=${after}` : path);
  if (after && value.entries < known.entries) {
    known = { path: "" }; // it was erased, and has begun again
    return getRequests(path);
  }
  const requests = [...old.filter((row) => row.number <= after), ...value.requests];
  known = { path, entries: value.entries, requests };
  return { ...value, requests };
};

/** Listen to what happens to a run, or to all runs; returns a function that stops. */
export const listen = (run, tell, setLive) => {
  if (exported || typeof EventSource === "undefined") return () => {};
  const source = new EventSource(API + "events" + (run ? `?run=${encodeURIComponent(run)}` : ""));
  let first = true;
  source.onopen = () => setLive(true);
  source.onerror = () => setLive(false);
  source.onmessage = () => {
    if (!first) tell();
    first = false;
  };
  return () => {
    source.close();
    setLive(false);
  };
};

// Addresses

const BASE = "/inspect";

export const href = (...parts) => {
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  return exported ? `#/${path}` : path ? `${BASE}/${path}` : BASE;
};
export const runPath = (run, ...rest) => ["runs", run, ...rest].map((part) => encodeURIComponent(part)).join("/");
export const textAddress = (run, handle) => API + runPath(run, "steps", handle, "text");
export const rawAddress = (run, number) => API + runPath(run, "requests", number, "raw");
export const exportAddress = (run) => API + runPath(run, "export");

export const currentRoute = () => {
  const path = exported ? location.hash.replace(/^#/, "") : location.pathname.slice(BASE.length);
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  if (exported && !parts.length) return ["run", exported.run];
  return parts;
};

export const go = (address) => {
  if (exported) location.hash = address.replace(/^#/, "");
  else {
    history.pushState(null, "", address);
    dispatchEvent(new PopStateEvent("popstate"));
  }
};
