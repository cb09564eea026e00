// Which view is on show, the theme, and the start of the page.

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
startBoard();
document.addEventListener("keydown", (event) => {
  if (!byId("view-replay").hidden) onReplayKey(event);
});
window.addEventListener("hashchange", route);
route();
startFollowing();
