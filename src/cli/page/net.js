// Talks to the server. The token, if one is needed, is kept by this tab only and sent in a header.
const token = {
  get value() { return sessionStorage.getItem("holdfast-token") || ""; },
  set value(text) { sessionStorage.setItem("holdfast-token", text); },
};

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const ask = async (path, options = {}) => {
  const headers = {...options.headers};
  if (token.value) headers.Authorization = "Bearer " + token.value;
  const signal = options.signal || AbortSignal.timeout(15000);
  const answer = await fetch(path, {...options, headers, signal, cache: "no-store"});
  if (answer.ok || answer.status === 304) return answer;
  let text = answer.statusText;
  try {
    text = (await answer.json()).error || text;
  } catch { /* not from us */ }
  throw new Refused(answer.status, text);
};

const askJson = async (path, options) => (await ask(path, options)).json();

const lockPath = (lock) =>
  "api/locks/" + encodeURIComponent(lock.name).replaceAll(".", "%2E") + "?engine=" + encodeURIComponent(lock.engine);

// Merges a row of the list into what we have, so that details that were fetched stay.
const takeRow = (row) => {
  const key = keyOf(row.engine, row.name);
  let lock = state.locks.get(key);
  if (!lock) {
    lock = {key, engine: row.engine, name: row.name, search: row.name.toLowerCase(), detail: null, longest: 0, since: null};
    state.locks.set(key, lock);
  }
  lock.holders = row.holders;
  lock.waiters = row.waiters;
  lock.payload = row.payload || "";
  if (row.since !== lock.sinceText) {
    lock.sinceText = row.since;
    lock.since = row.since ? Date.parse(row.since) : null;
  }
  lock.blockedUntil = row.blocked_ms === undefined ? null : serverNow() + row.blocked_ms;
  lock.damaged = row.damaged === true;
  return lock;
};

let listTag = "";
const fetchList = async () => {
  const answer = await ask("api/locks", {headers: listTag ? {"If-None-Match": listTag} : {}});
  if (answer.status === 304) return false;
  listTag = answer.headers.get("ETag") || "";
  const list = await answer.json();
  const seen = new Set();
  list.locks.forEach((row, i) => {
    const lock = takeRow(row);
    lock.rank = i;
    seen.add(lock);
  });
  for (const [key, lock] of state.locks) if (!seen.has(lock)) state.locks.delete(key);
  state.cut = list.engines.some((one) => one.listed < one.names);
  return true;
};

const takeDetail = (lock, detail) => {
  lock.detail = detail;
  lock.fetched = Date.now();
  lock.holders = detail.holders.length;
  lock.waiters = detail.waiters.length;
  const first = detail.holders[0];
  if (first) {
    lock.payload = first.payload;
    if (first.since) lock.since = Date.parse(first.since);
    lock.sinceText = null;
    // How long a lease lasts is not reported; the most that was left of it comes close.
    if (lock.claim !== first.claim) lock.longest = 0;
    lock.claim = first.claim;
    if (first.ttl_ms !== null) lock.longest = Math.max(lock.longest, first.ttl_ms);
  }
};

// Details of the rows on the screen, as many at once as a URL can hold.
const longestAddress = 6000;
const mostNames = 60;
const fetchDetails = async (locks) => {
  const byEngine = Map.groupBy ? Map.groupBy(locks, (one) => one.engine) : new Map();
  if (!Map.groupBy) for (const one of locks) byEngine.set(one.engine, [...(byEngine.get(one.engine) || []), one]);
  for (const [engine, all] of byEngine) {
    let path = "";
    let count = 0;
    const flush = async () => {
      if (!count) return;
      const answer = await askJson("api/locks?engine=" + encodeURIComponent(engine) + path);
      path = "";
      count = 0;
      for (const detail of answer.locks) {
        const lock = state.locks.get(keyOf(engine, detail.name));
        if (lock) takeDetail(lock, detail);
      }
    };
    for (const lock of all) {
      const more = "&name=" + encodeURIComponent(lock.name);
      if (path.length + more.length > longestAddress || count === mostNames) await flush();
      path += more;
      count += 1;
    }
    await flush();
  }
};

const fetchEngines = async () => {
  const answer = await askJson("api/engines");
  state.skew = Date.parse(answer.now) - Date.now();
  state.mayRevoke = answer.may_revoke;
  state.version = answer.version;
  for (const one of answer.engines) state.engines.set(one.engine, {...state.engines.get(one.engine), ...one});
};

// Server-sent events, read by fetch: an EventSource cannot send the token.
const readEvents = async (on) => {
  const stop = new AbortController();
  let quiet = setTimeout(() => stop.abort(), 30000);
  const headers = on.last ? {"Last-Event-ID": on.last} : {};
  const answer = await ask("api/events", {headers, signal: stop.signal});
  on.open();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    clearTimeout(quiet);
    quiet = setTimeout(() => stop.abort(), 30000);
    const messages = (rest + value).split("\n\n");
    rest = messages.pop();
    for (const message of messages) {
      let kind = "";
      let data = "";
      for (const line of message.split("\n")) {
        if (line.startsWith("id: ")) on.last = line.slice(4);
        else if (line.startsWith("event: ")) kind = line.slice(7);
        else if (line.startsWith("data: ")) data = line.slice(6);
      }
      if (data) on.message(kind, JSON.parse(data));
    }
  }
};
