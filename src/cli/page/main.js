// Puts everything together: what is fetched when, and the keys.
const setLink = (text, kind) => {
  setText(byId("link-text"), text);
  byId("link").className = "link " + kind;
};

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

let tokenAsked = null;
// One question at a time, however many requests were refused.
const withToken = async (work) => {
  try {
    if (document.documentElement.dataset.token !== "needed" || token.value) return await work();
    throw new Refused(401, "");
  } catch (problem) {
    if (!(problem instanceof Refused) || problem.status !== 401) throw problem;
    tokenAsked ??= askForToken().finally(() => { tokenAsked = null; });
    await tokenAsked;
    return withToken(work);
  }
};

// Set to fetch the list again soon; not more often than it can be drawn and used.
let listWanted = true;
const listLoop = async () => {
  for (;;) {
    const began = Date.now();
    listWanted = false;
    try {
      if (await withToken(fetchList)) {
        arrange();
        redraw(drawTotals);
      }
      await fetchDetails(inSight());
      redraw(drawRows);
    } catch { /* the link shows that nothing comes */ }
    const often = state.locks.size > 1000 ? 2000 : 1000;
    while (Date.now() - began < (listWanted ? often / 2 : often) || document.hidden) await pause(100);
  }
};

const eventLoop = async () => {
  const on = {
    last: "",
    open: () => setLink("live", "live"),
    message: (kind, data) => {
      if (kind === "stats") {
        takeStatistics(data);
        redraw(drawTotals);
        redraw(drawEngines);
      } else if (kind === "missed") {
        listWanted = true;
      } else if (kind === "lock") {
        const key = keyOf(data.engine, data.name);
        if (key === state.chosen) panel.news = true;
        if (!listWanted && (!state.locks.has(key) || inSightKeys.has(key))) listWanted = true;
      }
    },
  };
  for (;;) {
    try {
      await withToken(fetchEngines);
      redraw(drawEngines);
      redraw(drawTotals);
      await withToken(() => readEvents(on));
    } catch { /* tried again below */ }
    setLink("reconnecting", "lost");
    await pause(1000);
  }
};

let inSightKeys = new Set();
const tick = () => {
  if (document.hidden) return;
  inSightKeys = new Set(inSight().map((one) => one.key));
  redraw(drawRows);
  if (panel.lock) redraw(drawPanel);
};

const engineLoop = async () => {
  for (;;) {
    await pause(15000);
    try {
      await fetchEngines();
      redraw(drawEngines);
    } catch { /* the link shows that nothing comes */ }
  }
};

const panelLoop = async () => {
  for (;;) {
    const until = Date.now() + 1000;
    while (Date.now() < until && !panel.news) await pause(100);
    panel.news = false;
    if (!document.hidden) await refreshPanel();
    await pause(200);
  }
};

byId("filter").addEventListener("input", (event) => {
  state.filter = event.target.value;
  table.place.scrollTop = 0;
  arrange();
});
byId("kinds").addEventListener("click", (event) => {
  const kind = event.target.dataset.kind;
  if (!kind) return;
  state.kind = kind;
  for (const one of byId("kinds").children) one.setAttribute("aria-pressed", one.dataset.kind === kind);
  arrange();
});
byId("engine").addEventListener("change", (event) => {
  state.engine = event.target.value;
  arrange();
  redraw(drawTotals);
});
byId("sort").addEventListener("change", (event) => {
  sortBy(event.target.value, columns.find((one) => one.id === event.target.value).down);
});

let scrolled = 0;
table.place.addEventListener("scroll", () => {
  redraw(drawRows);
  clearTimeout(scrolled);
  scrolled = setTimeout(() => {
    fetchDetails(inSight().filter((one) => !one.detail)).then(() => redraw(drawRows), () => {});
  }, 80);
}, {passive: true});
table.place.addEventListener("keydown", onTableKey);
table.place.addEventListener("focus", () => { if (table.focus < 0) moveFocus(table.first); });
addEventListener("resize", () => redraw(drawRows));
narrow.addEventListener("change", () => redraw(drawRows));
addEventListener("keydown", (event) => {
  if (dialog.open || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target === byId("filter");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    byId("filter").focus();
  } else if (event.key === "Escape") {
    if (typing && byId("filter").value) {
      byId("filter").value = "";
      state.filter = "";
      arrange();
    } else if (typing) {
      table.place.focus();
    } else {
      closePanel();
    }
  } else if (typing && (event.key === "ArrowDown" || event.key === "Enter")) {
    event.preventDefault();
    table.place.focus();
    moveFocus(0);
  }
});
dialog.addEventListener("cancel", (event) => { if (tokenAsked) event.preventDefault(); });

drawHead();
arrange();
setInterval(tick, 500);
listLoop();
eventLoop();
engineLoop();
panelLoop();
