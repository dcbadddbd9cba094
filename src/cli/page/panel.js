// Who held the chosen lock when: a lane per holder, the latest first. Waiting is drawn before holding.
const mostLanes = 10;
const longestPicture = 600000;
const ends = {released: "released", expired: "lost", forced: "lost", withdrawn: "withdrawn"};

// Time spans of every claim: {payload, from, to, kind: "wait" | "hold", end}. `to` is null while it lasts.
const pieces = (detail) => {
  const claims = new Map();
  const claim = (id, payload) => {
    if (!claims.has(id)) claims.set(id, {payload, wait: null, hold: null, done: []});
    const one = claims.get(id);
    if (payload) one.payload = payload;
    return one;
  };
  const close = (one, kind, to, end) => {
    if (one[kind] === null) return;
    one.done.push({kind, from: one[kind], to, end});
    one[kind] = null;
  };
  for (const event of detail.past || []) {
    const one = claim(event.claim, event.payload);
    const at = Date.parse(event.at);
    if (event.event === "queued") one.wait = at;
    if (event.event === "granted") {
      close(one, "wait", at, "granted");
      close(one, "hold", at, "released");
      one.hold = at;
    }
    if (ends[event.event]) {
      close(one, "wait", at, ends[event.event]);
      close(one, "hold", at, ends[event.event]);
    }
  }
  const now = serverNow();
  const living = new Set();
  for (const holder of detail.holders) {
    const one = claim(holder.claim, holder.payload);
    living.add(holder.claim + "hold");
    if (one.hold === null && holder.since) one.hold = Date.parse(holder.since);
  }
  for (const waiter of detail.waiters) {
    const one = claim(waiter.claim, waiter.payload);
    living.add(waiter.claim + "wait");
    if (one.wait === null && waiter.waiting_ms !== null) one.wait = now - waiter.waiting_ms;
  }
  const all = [];
  for (const [id, one] of claims) {
    for (const kind of ["wait", "hold"]) {
      if (one[kind] !== null) close(one, kind, living.has(id + kind) ? null : one[kind], "");
    }
    for (const piece of one.done) all.push({...piece, payload: one.payload || id});
  }
  return all;
};

const lanesOf = (all) => {
  const lanes = new Map();
  for (const piece of all) {
    if (!lanes.has(piece.payload)) lanes.set(piece.payload, {payload: piece.payload, pieces: [], latest: 0});
    const lane = lanes.get(piece.payload);
    lane.pieces.push(piece);
    lane.latest = Math.max(lane.latest, piece.to === null ? Infinity : piece.to);
    if (piece.to === null && piece.kind === "hold") lane.holds = true;
  }
  return [...lanes.values()].sort((left, right) =>
    (right.holds ? 1 : 0) - (left.holds ? 1 : 0) || right.latest - left.latest);
};

const laneNode = (lane, from, length) => {
  const node = make("li", "lane");
  const label = make("span", "lane-name");
  const {name, place} = who(lane.payload);
  label.append(make("b", "", name), make("span", "place", place));
  setTitle(label, lane.payload);
  const track = make("span", "track");
  for (const piece of lane.pieces) {
    const to = piece.to === null ? from + length : piece.to;
    if (to < from) continue;
    const begin = Math.max(piece.from, from);
    const bar = make("span", "piece " + piece.kind + (piece.end ? " " + piece.end : "") + (piece.to === null ? " lasts" : ""));
    bar.style.left = ((begin - from) / length) * 100 + "%";
    bar.style.width = "max(3px, " + ((to - begin) / length) * 100 + "%)";
    bar.title = (piece.kind === "hold" ? "held " : "waited ") + span(to - piece.from) + ", from " + clockText(piece.from) +
      (piece.to === null ? "" : " to " + clockText(piece.to) + (piece.end ? ", " + piece.end : ""));
    track.append(bar);
  }
  node.append(label, track);
  return node;
};

const timelineNode = (detail) => {
  const box = make("div", "timeline");
  const all = pieces(detail);
  if (!all.length) {
    box.append(make("p", "quiet", "Nothing has happened to it since this server was started."));
    return box;
  }
  const now = serverNow();
  // For long spans the end is enough: everything else would be a dot beside them.
  const begins = all.map((piece) => (piece.to === null ? Math.max(piece.from, now - longestPicture) : piece.from));
  const length = Math.max(30000, now - Math.min(...begins)) * 1.02;
  const from = now - length;
  const lanes = lanesOf(all);
  const list = make("ol", "lanes");
  for (const lane of lanes.slice(0, mostLanes)) list.append(laneNode(lane, from, length));
  const axis = make("div", "axis");
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const tick = make("span", "", part === 1 ? "now" : span(length * (1 - part)) + " ago");
    tick.style.left = part * 100 + "%";
    axis.append(tick);
  }
  box.append(list, axis);
  if (lanes.length > mostLanes) box.append(make("p", "quiet", "and " + plural(lanes.length - mostLanes, "other", "others") + " before"));
  const key = make("p", "key");
  for (const [kind, text] of [["hold", "held"], ["wait", "waited"], ["hold lost", "lost"]]) {
    key.append(make("span", "piece " + kind), make("span", "", text));
  }
  box.append(key);
  return box;
};

// The chosen lock: holders, waiters in order, the timeline, and the way to revoke it.
const panel = {place: byId("panel"), lock: null, trouble: "", returnTo: null};

const choose = (lock) => {
  if (!lock) return;
  state.chosen = lock.key;
  panel.lock = lock;
  panel.trouble = "";
  panel.past = null;
  drawPanelFrame();
  redraw(drawRows);
  refreshPanel();
};

const closePanel = () => {
  if (panel.place.hidden) return;
  state.chosen = null;
  panel.lock = null;
  panel.place.hidden = true;
  document.body.classList.remove("with-panel");
  table.place.focus({preventScroll: true});
  redraw(drawRows);
};

let panelBusy = false;
const refreshPanel = async () => {
  const lock = panel.lock;
  if (!lock || panelBusy) return;
  panelBusy = true;
  let detail = null;
  let trouble = "";
  try {
    detail = await askJson(lockPath(lock));
    takeDetail(lock, detail);
  } catch (problem) {
    trouble = problem.message;
  } finally {
    panelBusy = false;
  }
  // Another one may have been chosen while this one was asked about.
  if (panel.lock === lock) {
    panel.trouble = trouble;
    if (detail) panel.past = detail;
    redraw(drawPanel);
  } else if (panel.lock) {
    refreshPanel();
  }
};

const drawPanelFrame = () => {
  const {lock, place} = panel;
  const head = make("div", "panel-head");
  const title = make("h2", "", lock.name);
  const {url} = state.engines.get(lock.engine) || {};
  const engine = make("p", "where", lock.engine + (url ? " · " + url : ""));
  const close = make("button", "close", "×");
  close.type = "button";
  close.setAttribute("aria-label", "Close");
  close.addEventListener("click", closePanel);
  head.append(title, close, engine);
  panel.status = make("p", "status");
  panel.holders = make("ul", "cards");
  panel.waiters = make("ol", "line");
  panel.waitersTitle = make("h3");
  panel.timeline = make("div");
  panel.action = make("div", "action");
  panel.problem = make("p", "problem");
  panel.problem.setAttribute("role", "alert");
  place.replaceChildren(head, panel.status, panel.problem, panel.holders, make("h3", "", "Who held it when"), panel.timeline,
                        panel.waitersTitle, panel.waiters, panel.action);
  const wasHidden = place.hidden;
  place.hidden = false;
  document.body.classList.add("with-panel");
  panel.drawn = "";
  drawPanel();
  place.scrollTop = 0;
  if (wasHidden && narrow.matches) close.focus();
};

const fact = (name, value) => {
  const item = make("div", "fact");
  item.append(make("dt", "", name), make("dd", "", value));
  return item;
};

const holderCard = (holder, lock) => {
  const card = make("li", "card");
  const {name, place} = who(holder.payload);
  const line = make("p", "who");
  line.append(make("b", "", name), make("span", "place", place));
  card.append(line);
  const left = holder.ttl_ms === null ? null : Math.max(0, holder.ttl_ms - (Date.now() - lock.fetched));
  if (left !== null) {
    const bar = make("span", "bar");
    const fill = make("span", "fill");
    setWidth(fill, left / Math.max(lock.longest, holder.ttl_ms, 1));
    bar.append(fill);
    card.append(bar);
  }
  const facts = make("dl", "facts");
  if (holder.since) facts.append(fact("held for", span(serverNow() - Date.parse(holder.since))));
  facts.append(fact("time left", left !== null ? span(left) : holder.by_session ? "while its session lasts" : "while it lives"));
  facts.append(fact("mode", holder.mode + (holder.mode === "permit" ? " × " + holder.permits : "")));
  if (holder.fence !== null) facts.append(fact("fencing token", String(holder.fence)));
  facts.append(fact("claim", holder.claim || "–"));
  if (holder.kept_by) facts.append(fact("kept by", holder.kept_by));
  card.append(facts);
  return card;
};

const waiterItem = (waiter, lock, longest) => {
  const item = make("li", "waiter");
  const {name, place} = who(waiter.payload);
  const waited = waiter.waiting_ms === null ? null : waiter.waiting_ms + (Date.now() - lock.fetched);
  const label = make("span", "who");
  label.append(make("b", "", name), make("span", "place", place));
  const bar = make("span", "bar wait");
  const fill = make("span", "fill");
  setWidth(fill, waited === null ? 0 : waited / Math.max(longest, 1));
  bar.append(fill);
  item.append(label, bar, make("span", "time", waited === null ? "–" : span(waited)));
  return item;
};

const mostWaitersShown = 100;
const drawPanel = () => {
  const {lock} = panel;
  if (!lock) return;
  setText(panel.problem, panel.trouble);
  const detail = panel.past;
  if (!detail) {
    setText(panel.status, "…");
    return;
  }
  const blocked = detail.blocked_ms;
  const free = !detail.holders.length;
  setText(panel.status, blocked !== undefined ? "Blocked for " + span(blocked) + ": a holder ended abnormally, and the lock delay keeps others out."
    : free ? "Free." : "Held by " + plural(detail.holders.length, "holder", "holders") + ".");
  panel.holders.replaceChildren(...detail.holders.slice(0, mostWaitersShown).map((one) => holderCard(one, lock)));
  panel.waitersTitle.textContent = detail.waiters.length ? plural(detail.waiters.length, "waiter", "waiters") + ", the next one first" : "Nobody is waiting";
  const longest = Math.max(1, ...detail.waiters.map((one) => one.waiting_ms || 0)) + (Date.now() - lock.fetched);
  panel.waiters.replaceChildren(...detail.waiters.slice(0, mostWaitersShown).map((one) => waiterItem(one, lock, longest)));
  panel.timeline.replaceChildren(timelineNode(detail));
  drawAction(free);
};

const drawAction = (free) => {
  const text = !state.mayRevoke ? "none" : free ? "free" : "revoke";
  if (panel.drawn === text) return;
  panel.drawn = text;
  panel.action.replaceChildren();
  if (text === "none") {
    panel.action.append(make("p", "quiet", "This page only reads. Started with --allow-revoke it can end a hold."));
    return;
  }
  const button = make("button", "danger", "Revoke…");
  button.type = "button";
  button.id = "revoke";
  button.disabled = free;
  button.addEventListener("click", askToRevoke);
  panel.action.append(button);
};

const dialog = byId("ask");
const showDialog = (title, parts, buttons) => {
  const heading = make("h2", "", title);
  heading.id = "ask-title";
  const row = make("div", "buttons");
  row.append(...buttons);
  dialog.replaceChildren(heading, ...parts, row);
  if (!dialog.open) dialog.showModal();
};

const button = (text, className, onClick) => {
  const node = make("button", className, text);
  node.type = "button";
  node.addEventListener("click", onClick);
  return node;
};

// Says what it will do, and to whom, before it does it.
const askToRevoke = () => {
  const {lock, past} = panel;
  const first = past.holders[0];
  if (!first) return;
  const left = first.ttl_ms === null ? null : Math.max(0, first.ttl_ms - (Date.now() - lock.fetched));
  const held = make("p");
  held.append("The lease of ", make("b", "", who(first.payload).name), " on ", make("b", "", lock.name), past.holders.length > 1
    ? " and those of " + plural(past.holders.length - 1, "other holder", "other holders") + " are" : " is", " not renewed any more.");
  const list = make("ul", "effects");
  list.append(make("li", "", "The holder is notified, and loses the lock while it may still be at work."));
  list.append(make("li", "", left === null ? "Nobody else is granted the lock before the holder has let go of it."
    : "Nobody else is granted the lock before the lease ends, in " + span(left) + " at the latest."));
  list.append(make("li", "", "This cannot be undone."));
  const note = make("p", "problem");
  note.setAttribute("role", "alert");
  const go = button("Revoke", "danger", async () => {
    go.disabled = true;
    try {
      await ask(lockPath(lock).replace("?", "/revoke?"), {method: "POST"});
      dialog.close();
      refreshPanel();
    } catch (problem) {
      go.disabled = false;
      note.textContent = problem.message;
    }
  });
  const cancel = button("Cancel", "plain", () => dialog.close());
  showDialog("Revoke this lock?", [held, list, note], [cancel, go]);
  cancel.focus();
};

// Resolves when a token was given.
const askForToken = () => new Promise((resolve) => {
  const form = make("form", "token");
  form.method = "dialog";
  const input = make("input");
  input.type = "password";
  input.required = true;
  input.autocomplete = "off";
  const label = make("label", "", "Token");
  label.append(input);
  form.append(make("p", "", "This server was started with --token-file. The token stays in this tab."), label);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    token.value = input.value;
    dialog.close();
    resolve();
  });
  showDialog("Who are you?", [form], [button("Continue", "primary", () => form.requestSubmit())]);
  input.focus();
});
