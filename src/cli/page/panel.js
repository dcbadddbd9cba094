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
  try {
    const detail = await askJson(lockPath(lock));
    takeDetail(lock, detail);
    panel.trouble = "";
    panel.past = detail;
  } catch (problem) {
    panel.trouble = problem.message;
  } finally {
    panelBusy = false;
  }
  if (panel.lock === lock) redraw(drawPanel);
  else if (panel.lock) refreshPanel();
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

// Says what it will do to whom before it does it.
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
