// The list: only the visible rows are in the document, and each is reused for another lock
// when the list is scrolled.
const columns = [
  {id: "name", title: "Name", down: false, of: (one) => one.name},
  {id: "payload", title: "Holder", down: false, of: (one) => who(one.payload).name},
  {id: "age", title: "Held for", down: true, of: (one) => (one.since === null ? -1 : serverNow() - one.since)},
  {id: "remaining", title: "Time left", down: false, of: (one) => remainingOf(one) ?? Infinity},
  {id: "waiters", title: "Waiting", down: true, of: (one) => one.waiters},
];
const narrow = matchMedia("(max-width: 760px)");
const rowHeight = () => (narrow.matches ? 74 : 46);
const spareRows = 6;

// What is left of the first holder's lease now; null: unknown, or it does not end by time.
const remainingOf = (lock) => {
  const first = lock.detail && lock.detail.holders[0];
  if (!first || first.ttl_ms === null || !lock.holders) return null;
  return Math.max(0, first.ttl_ms - (Date.now() - lock.fetched));
};
const longestWait = (lock) => {
  if (!lock.detail || !lock.detail.waiters.length || !lock.waiters) return null;
  const waits = lock.detail.waiters.map((one) => one.waiting_ms).filter((ms) => ms !== null);
  return waits.length ? Math.max(...waits) + (Date.now() - lock.fetched) : null;
};

const table = {
  place: byId("rows"),
  sizer: byId("sizer"),
  pool: [],
  focus: -1,  // the row that the keyboard is on
  first: 0,
  last: 0,
};

const arrange = () => {
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const kinds = {
    all: () => true,
    contended: (one) => one.waiters > 0,
    blocked: (one) => one.blockedUntil !== null || one.damaged,
  };
  const focused = state.view[table.focus];
  const shown = [...state.locks.values()].filter((one) =>
    kinds[state.kind](one) && (!state.engine || one.engine === state.engine) &&
    words.every((word) => one.search.includes(word) || one.payload.toLowerCase().includes(word)));
  const {of} = columns.find((one) => one.id === state.sort);
  const sign = state.down ? -1 : 1;
  for (const one of shown) one.sorted = of(one);
  // Names come in order: equal ones stay in the order in which the server lists them.
  shown.sort((left, right) => {
    const order = left.sorted < right.sorted ? -1 : left.sorted > right.sorted ? 1 : 0;
    return sign * order || left.rank - right.rank;
  });
  state.view = shown;
  table.focus = focused ? shown.indexOf(focused) : -1;
  byId("table").setAttribute("aria-rowcount", shown.length + 1);
  const all = state.locks.size;
  setText(byId("count"), (shown.length === all ? plural(all, "name", "names")
    : numbers.format(shown.length) + " of " + plural(all, "name", "names")) + (state.cut ? " (there are more)" : ""));
  const empty = byId("empty");
  empty.hidden = shown.length > 0;
  setText(empty, all ? "Nothing matches." : "Nothing is held or waited for.");
  redraw(drawRows);
};

const newRow = () => {
  const row = make("div", "row");
  row.setAttribute("role", "row");
  const cell = (className) => {
    const node = make("div", "cell " + className);
    node.setAttribute("role", "gridcell");
    row.append(node);
    return node;
  };
  const name = cell("name");
  row.nameText = make("span", "text");
  row.engineText = make("span", "tag");
  name.append(row.nameText, row.engineText);
  const holder = cell("holder");
  row.holderText = make("span", "text");
  row.placeText = make("span", "place");
  holder.append(row.holderText, row.placeText);
  row.ageText = cell("age");
  const left = cell("left");
  row.bar = make("span", "bar");
  row.fill = make("span", "fill");
  row.bar.append(row.fill);
  row.leftText = make("span", "text");
  left.append(row.bar, row.leftText);
  const waiting = cell("waiting");
  row.waitersText = make("span", "number");
  row.longestText = make("span", "text");
  waiting.append(row.waitersText, row.longestText);
  row.addEventListener("click", () => {
    table.focus = row.index;
    choose(state.view[row.index]);
  });
  table.sizer.append(row);
  return row;
};

const describe = (lock) => {
  if (lock.damaged) return {name: "cannot be read", place: "damaged?"};
  if (lock.blockedUntil !== null) return {name: "blocked", place: "by a lock delay"};
  if (!lock.holders) return {name: "free", place: ""};
  const first = lock.payload ? who(lock.payload) : {name: "held", place: ""};
  return lock.holders > 1 ? {name: first.name, place: "and " + plural(lock.holders - 1, "other", "others")} : first;
};

const fillRow = (row, lock, index, height) => {
  if (row.index !== index || row.height !== height) {
    row.index = index;
    row.height = height;
    row.style.transform = "translateY(" + index * height + "px)";
    row.setAttribute("aria-rowindex", index + 2);
    row.id = "row-" + index;
  }
  setText(row.nameText, lock.name);
  setTitle(row.nameText, lock.name);
  setText(row.engineText, state.engines.size > 1 ? lock.engine : "");
  const holder = describe(lock);
  setText(row.holderText, holder.name);
  setText(row.placeText, holder.place);
  setTitle(row.holderText, lock.payload);
  setText(row.ageText, lock.holders && lock.since !== null ? span(serverNow() - lock.since) : "–");
  const remaining = remainingOf(lock);
  const blocked = lock.blockedUntil === null ? null : Math.max(0, lock.blockedUntil - serverNow());
  setClass(row.bar, "none", remaining === null);
  setWidth(row.fill, remaining === null ? 0 : remaining / Math.max(lock.longest, 1));
  setClass(row.fill, "low", remaining !== null && remaining < lock.longest / 3);
  const first = lock.detail && lock.detail.holders[0];
  setText(row.leftText, blocked !== null ? "opens in " + span(blocked) : remaining !== null ? span(remaining)
    : first && lock.holders ? "while it lives" : "–");
  setText(row.waitersText, lock.waiters ? numbers.format(lock.waiters) : "");
  const longest = longestWait(lock);
  setText(row.longestText, lock.waiters ? (longest === null ? "" : "for " + span(longest)) : "–");
  setClass(row, "contended", lock.waiters > 0);
  setClass(row, "blocked", lock.blockedUntil !== null || lock.damaged);
  setClass(row, "chosen", lock.key === state.chosen);
  setClass(row, "focused", index === table.focus);
  row.setAttribute("aria-selected", lock.key === state.chosen);
};

const drawRows = () => {
  const height = rowHeight();
  const total = state.view.length * height;
  if (table.sizer.total !== total) {
    table.sizer.total = total;
    table.sizer.style.height = total + "px";
  }
  const top = table.place.scrollTop;
  const first = Math.max(0, Math.floor(top / height) - spareRows);
  const last = Math.min(state.view.length, Math.ceil((top + table.place.clientHeight) / height) + spareRows);
  table.first = first;
  table.last = last;
  while (table.pool.length < last - first) table.pool.push(newRow());
  table.pool.forEach((row, i) => {
    // A row keeps its element while it is visible, so that scrolling moves few of them.
    const size = table.pool.length;
    const index = first + ((i - first) % size + size) % size;
    const used = index < last;
    if (row.hidden === used) row.hidden = !used;
    if (used) fillRow(row, state.view[index], index, height);
  });
  const active = table.focus >= first && table.focus < last ? "row-" + table.focus : "";
  if (table.place.active !== active) {
    table.place.active = active;
    if (active) table.place.setAttribute("aria-activedescendant", active);
    else table.place.removeAttribute("aria-activedescendant");
  }
};

// The locks on the screen that somebody holds or waits for: worth asking about.
const inSight = () => state.view.slice(table.first, table.last).filter((one) => one.holders || one.waiters);

const drawHead = () => {
  const head = byId("head");
  const pick = byId("sort");
  if (!head.children.length) {
    for (const column of columns) {
      const cell = make("div", "cell " + column.id);
      cell.setAttribute("role", "columnheader");
      const button = make("button", "", column.title);
      button.type = "button";
      button.dataset.sort = column.id;
      button.addEventListener("click", () => {
        sortBy(column.id, state.sort === column.id ? !state.down : column.down);
      });
      cell.append(button);
      head.append(cell);
      const option = make("option", "", "Sort: " + column.title.toLowerCase());
      option.value = column.id;
      pick.append(option);
    }
  }
  columns.forEach((column, i) => {
    const sorted = column.id === state.sort;
    head.children[i].setAttribute("aria-sort", sorted ? (state.down ? "descending" : "ascending") : "none");
  });
  pick.value = state.sort;
};

const sortBy = (id, down) => {
  state.sort = id;
  state.down = down;
  drawHead();
  table.place.scrollTop = 0;
  arrange();
};

const moveFocus = (to) => {
  if (!state.view.length) return;
  table.focus = Math.max(0, Math.min(state.view.length - 1, to));
  const height = rowHeight();
  const top = table.focus * height;
  if (top < table.place.scrollTop) table.place.scrollTop = top;
  const end = top + height - table.place.clientHeight;
  if (end > table.place.scrollTop) table.place.scrollTop = end;
  redraw(drawRows);
};

const onTableKey = (event) => {
  const page = Math.max(1, Math.floor(table.place.clientHeight / rowHeight()) - 1);
  const moves = {
    ArrowDown: table.focus + 1, ArrowUp: table.focus - 1, PageDown: table.focus + page, PageUp: table.focus - page,
    Home: 0, End: state.view.length - 1,
  };
  if (event.key in moves) moveFocus(moves[event.key]);
  else if ((event.key === "Enter" || event.key === " ") && state.view[table.focus]) choose(state.view[table.focus]);
  else return;
  event.preventDefault();
};
