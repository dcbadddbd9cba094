// The totals, and the last three minutes of each rate as a small chart.
const chartSeconds = 180;
const svg = (tag, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
};

class Chart {
  constructor(place, label) {
    this.label = label;
    this.svg = svg("svg", {viewBox: "0 0 180 40", preserveAspectRatio: "none", role: "img"});
    this.area = svg("path", {class: "area"});
    this.line = svg("path", {class: "line"});
    this.svg.append(this.area, this.line);
    this.most = make("span", "most");
    place.append(this.svg, this.most);
  }

  draw(values) {
    const most = Math.max(...values, 1);
    const step = chartSeconds / Math.max(values.length - 1, 1);
    let path = "";
    values.forEach((value, i) => {
      path += (i ? "L" : "M") + (i * step).toFixed(1) + " " + (38.5 - (value / most) * 36).toFixed(1);
    });
    this.line.setAttribute("d", path);
    this.area.setAttribute("d", path + "L180 40L0 40Z");
    const peak = Math.max(...values);
    setText(this.most, peak ? "peak " + numbers.format(peak) : "");
    this.svg.setAttribute("aria-label", this.label + ", last three minutes, at most " + peak);
  }
}

const charts = {
  granted: new Chart(byId("granted-chart"), "Grants per second"),
  queued: new Chart(byId("queued-chart"), "Waits per second"),
  lost: new Chart(byId("lost-chart"), "Lost per second"),
};

const drawTotals = () => {
  const engines = [...state.engines.values()].filter((one) => !state.engine || one.engine === state.engine);
  const sum = (field) => engines.reduce((all, one) => all + (one[field] || 0), 0);
  const known = engines.some((one) => one.names !== undefined);
  setText(byId("held"), known ? numbers.format(sum("held")) : "–");
  setText(byId("held-note"), known ? "on " + plural(sum("names"), "name", "names") : "\u00a0");
  setText(byId("waiting"), known ? numbers.format(sum("waiting")) : "–");
  const blocked = sum("blocked");
  const contended = [...state.locks.values()].reduce((all, one) => all + (one.waiters ? 1 : 0), 0);
  const notes = contended ? ["for " + plural(contended, "name", "names")] : [];
  if (blocked) notes.push(numbers.format(blocked) + " blocked");
  setText(byId("waiting-note"), notes.join(" · ") || "\u00a0");
  for (const kind of ["granted", "queued", "lost"]) {
    const values = new Array(chartSeconds - 1).fill(0);
    for (const one of engines) {
      const seconds = (one.seconds && one.seconds[kind]) || [];
      const from = values.length - seconds.length;
      seconds.forEach((value, i) => { if (from + i >= 0) values[from + i] += value; });
    }
    charts[kind].draw(values);
    setText(byId(kind), numbers.format(values[values.length - 1]));
  }
};

// Appends the seconds of a stream message to those that we have.
const takeStatistics = (all) => {
  for (const one of all) {
    const engine = state.engines.get(one.engine);
    if (!engine) continue;
    const before = engine.seconds || {granted: [], queued: [], lost: []};
    const seconds = {};
    for (const kind of ["granted", "queued", "lost"]) {
      seconds[kind] = [...before[kind], ...one.seconds[kind]].slice(1 - chartSeconds);
    }
    for (const field of ["names", "held", "waiting", "blocked"]) delete engine[field];
    Object.assign(engine, one, {seconds});
  }
};

const drawEngines = () => {
  const list = byId("engines");
  const ids = [...state.engines.keys()].join("\n");
  if (list.ids !== ids) {
    list.ids = ids;
    list.replaceChildren(...[...state.engines.values()].map((one) => {
      const item = make("li", "engine");
      item.append(make("span", "dot"), make("b", "", one.engine), make("span", "url", one.url));
      return item;
    }));
    const pick = byId("engine");
    pick.replaceChildren(...["", ...state.engines.keys()].map((id) => {
      const option = make("option", "", id || "All engines");
      option.value = id;
      return option;
    }));
    byId("engine-label").hidden = state.engines.size < 2;
  }
  [...state.engines.values()].forEach((one, i) => {
    const item = list.children[i];
    setClass(item, "down", !one.up);
    setTitle(item, one.url + (one.up ? "" : ": " + one.trouble));
  });
  drawFindings();
};

// What doctor would report, the worst first; checks that pass are not shown.
const drawFindings = () => {
  const found = [];
  for (const one of state.engines.values()) {
    if (!one.up) {
      found.push({rank: 0, status: "down", engine: one.engine, check: "does not answer", detail: one.trouble,
                  remedy: "Shown again when it is back."});
    } else if (!one.lists) {
      found.push({rank: 2, status: "note", engine: one.engine, check: "cannot list its locks", detail: one.trouble, remedy: ""});
    }
    for (const check of one.checks || []) {
      if (check.status !== "ok") found.push({rank: check.status === "fail" ? 1 : 2, engine: one.engine, ...check});
    }
  }
  found.sort((left, right) => left.rank - right.rank);
  const place = byId("findings");
  const text = JSON.stringify(found);
  if (place.found === text) return;
  place.found = text;
  place.hidden = !found.length;
  place.replaceChildren(...found.map((one) => {
    const item = make("details", "finding " + one.status);
    const line = make("summary");
    line.append(make("span", "badge", one.status), make("b", "", one.engine + " · " + one.check));
    if (one.detail) line.append(make("span", "detail", one.detail));
    item.append(line);
    item.append(make("pre", "remedy", [one.detail, one.remedy].filter(Boolean).join("\n\n")));
    return item;
  }));
};
