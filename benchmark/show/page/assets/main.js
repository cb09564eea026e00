// Which view is on show, the address that leads to it, the theme, and what is said to screen readers.

const live = el("div", { class: "unseen", role: "status", "aria-live": "polite" });
document.body.append(live);

function announce(text) {
  live.textContent = text;
}

// ---- addresses: #view?name=value&...

function link(view, params) {
  const given = Object.entries(params).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return `#${view}${query ? `?${query}` : ""}`;
}

function navigate(view, params) {
  location.hash = link(view, params); // hashchange draws
}

// The address changes, the page stays. A browser may refuse (too often, or an opaque origin): nothing is lost then.
function rewrite(view, params) {
  try {
    history.replaceState(null, "", link(view, params));
  } catch (error) {
    console.warn(error.message);
  }
}

const VIEWS = { leaderboard: renderLeaderboard, compare: renderCompare, replay: renderReplay };
let shown = null;

async function route() {
  const [name, query] = location.hash.slice(1).split(/\?(.*)/s);
  const view = Object.hasOwn(VIEWS, name) ? name : "leaderboard";
  const focused = document.activeElement && document.activeElement.id;
  if (view !== "replay") stopPlaying();
  for (const other of Object.keys(VIEWS)) byId(`view-${other}`).hidden = other !== view;
  for (const anchor of document.querySelectorAll("nav a[data-view]")) {
    if (anchor.dataset.view === view) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  await VIEWS[view](new URLSearchParams(query || ""));
  if (focused && byId(focused) && document.activeElement === document.body) byId(focused).focus();
  if (shown !== null && shown !== view) {
    window.scrollTo(0, 0);
    announce(byId(`heading-${view}`).textContent);
  }
  shown = view;
}

function renderLeaderboard(params) {
  const sections = [...document.querySelectorAll("section.scenario")];
  const suites = [...document.querySelectorAll(".suite")];
  // a scenario's name, "suite:NAME", or everything
  const isIn = (section, name) => section.dataset.scenario === name || `suite:${section.parentElement.dataset.suite}` === name;
  const known = sections.some((section) => isIn(section, params.get("scenario")));
  const chosen = known ? params.get("scenario") : "";
  for (const section of sections) section.hidden = chosen !== "" && !isIn(section, chosen);
  for (const suite of suites) {
    suite.hidden = !suite.querySelector("section.scenario:not([hidden])");
    if (chosen !== "" && !suite.hidden) suite.open = true;
  }
  if (byId("leaderboard-scenario")) byId("leaderboard-scenario").value = chosen;
  const table = sections.flatMap((section) => [...section.querySelectorAll("table.sortable")]).find((one) => one.dataset.table === params.get("table"));
  const direction = params.get("direction") === "ascending" ? "ascending" : "descending";
  const heads = table ? [...table.tHead.rows[0].cells] : [];
  if (heads.some((head) => head.dataset.key === params.get("sort"))) {
    sortRows(table, params.get("sort"), direction);
    markSorted(table, params.get("sort"), direction);
  }
}

// ---- theme: as the system has it, or as the reader chose

const THEMES = { auto: "automatic", light: "light", dark: "dark" };

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").textContent = `Theme: ${THEMES[theme]}`;
}

function storedTheme() {
  try {
    return localStorage.getItem("textbench-theme") || "auto";
  } catch {
    return "auto"; // no storage here: the choice lasts as long as the page
  }
}

function cycleTheme() {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(document.documentElement.dataset.theme || "auto") + 1) % names.length];
  setTheme(next);
  try {
    localStorage.setItem("textbench-theme", next);
  } catch {
    // as above
  }
}

// ---- start

setTheme(Object.hasOwn(THEMES, storedTheme()) ? storedTheme() : "auto");
byId("theme").hidden = false;
byId("theme").addEventListener("click", cycleTheme);
document.querySelector("a.skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address is the view's
  byId("main").focus();
});
if (byId("pick-scenario")) {
  byId("pick-scenario").hidden = false;
  byId("leaderboard-scenario").addEventListener("change", (event) => navigate("leaderboard", { scenario: event.target.value }));
}
for (const table of document.querySelectorAll("#view-leaderboard table.sortable")) {
  const order = (key, direction) => sortRows(table, key, direction);
  const then = (sort, direction) => {
    const scenario = byId("leaderboard-scenario") ? byId("leaderboard-scenario").value : "";
    rewrite("leaderboard", { scenario, table: table.dataset.table, sort, direction });
  };
  makeSortable(table, order, then);
}
document.addEventListener("keydown", (event) => {
  if (!byId("view-replay").hidden) onReplayKey(event);
});
window.addEventListener("hashchange", route);
route();
