// Who held the chosen lock when: a lane per holder, the last ones first. Waiting is drawn before holding.
const mostLanes = 10;
const longestPicture = 600000;
const ends = {released: "released", expired: "lost", forced: "lost", withdrawn: "withdrawn"};

// Pieces of time of every claim: {payload, from, to, kind: "wait" | "hold", end}. `to` is null while it lasts.
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
  // Of what lasts for long the end is enough: everything else would be a dot beside it.
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
