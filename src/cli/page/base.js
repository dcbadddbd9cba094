// Elements, texts and times. Names and payloads were written by others: they become text nodes, never
// markup, never an address.
const byId = (id) => document.getElementById(id);

const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};

// Touches the document only if something changed.
const setText = (node, text) => {
  if (node.shown === text) return;
  node.shown = text;
  node.textContent = text;
};
const setClass = (node, name, on) => {
  const key = "has_" + name;
  if (node[key] === on) return;
  node[key] = on;
  node.classList.toggle(name, on);
};
const setWidth = (node, share) => {
  const text = Math.round(Math.max(0, Math.min(1, share)) * 1000) / 10 + "%";
  if (node.wide === text) return;
  node.wide = text;
  node.style.width = text;
};
const setTitle = (node, text) => {
  if (node.title !== text) node.title = text;
};

const numbers = new Intl.NumberFormat("en");

// "850 ms", "12 s", "3 m 20 s", "2 h 5 m", "4 d 1 h"
const span = (ms) => {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 1) return Math.round(seconds * 10) / 10 + " s";
  if (seconds < 60) return Math.floor(seconds) + " s";
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes + " m " + Math.floor(seconds % 60) + " s";
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return hours + " h " + (minutes % 60) + " m";
  return Math.floor(hours / 24) + " d " + (hours % 24) + " h";
};

const clockText = (ms) => new Date(ms).toLocaleTimeString("en-GB");

// "host:pid:program" is what holdfast writes; anything else is shown unchanged.
const who = (payload) => {
  const parts = /^([^:]+):(\d+):([^:]+)$/.exec(payload || "");
  if (!parts) return {name: payload || "unknown holder", place: ""};
  return {name: parts[3], place: parts[1] + " · " + parts[2]};
};

const plural = (count, one, many) => numbers.format(count) + " " + (count === 1 ? one : many);

// What the page knows.
const state = {
  engines: new Map(),  // id -> {id, up, trouble, checks, seconds, ...}
  locks: new Map(),    // engine + "\n" + name -> lock
  view: [],            // the locks that are shown, in order
  skew: 0,             // the server's clock minus ours
  mayRevoke: false,
  chosen: null,        // a lock's key
  filter: "",
  kind: "all",
  engine: "",
  sort: "waiters",
  down: true,          // the sort direction: the greatest first
};

const keyOf = (engine, name) => engine + "\n" + name;
const serverNow = () => Date.now() + state.skew;

// Draws once, however many changes came in between.
const draws = new Set();
let drawing = false;
const redraw = (draw) => {
  draws.add(draw);
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    const now = [...draws];
    draws.clear();
    for (const one of now) one();
  });
};
