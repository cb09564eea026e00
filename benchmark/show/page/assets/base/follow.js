// Following a run: the page asks its own server for a newer state, and takes it over without being loaded again.

const ASK_EVERY = 2_000; // milliseconds

function startFollowing() {
  if (!DATA.follow) return;
  byId("following").hidden = false;
  sayProgress();
  setTimeout(ask, ASK_EVERY);
}

function sayProgress(trouble) {
  const [done, planned] = DATA.progress;
  const count = (value) => value.toLocaleString("en");
  const at = done >= planned ? `All ${count(planned)} episodes are played.` : `${count(done)} of ${count(planned)} episodes so far. This page follows the run.`;
  byId("following").textContent = trouble || at;
}

// An XMLHttpRequest reads a page as a document without running anything in it, and makes no HTML of strings.
function ask() {
  const request = new XMLHttpRequest();
  request.responseType = "document";
  request.open("GET", `/?after=${encodeURIComponent(DATA.follow)}`);
  request.onload = () => {
    if (request.status === 200 && request.response && request.response.getElementById("data")) takeOver(request.response);
    sayProgress();
    if (DATA.follow) setTimeout(ask, ASK_EVERY); // what is complete changes no more
  };
  request.onerror = () => {
    sayProgress("The command that serves this page has ended; what it showed last stays.");
    setTimeout(ask, 5 * ASK_EVERY);
  };
  request.send();
}

// Puts a newer page's tables and data in place of this one's; what the reader chose stays as it is.
async function takeOver(page) {
  const orders = [...document.querySelectorAll("#board table.sortable")].map((table) => {
    const head = table.querySelector("th[aria-sort]");
    return head && [table.dataset.table, head.dataset.key, head.getAttribute("aria-sort")];
  });
  const chosen = byId("leaderboard-scenario") && byId("leaderboard-scenario").value;
  readData(page);
  for (const id of ["intro", "board", "sources"]) {
    const old = byId(id);
    const newer = document.importNode(page.getElementById(id), true);
    if (id === "sources") newer.open = old.open;
    if (id === "intro") old.querySelector(".meta").replaceWith(newer.querySelector(".meta"));
    else old.replaceWith(newer);
  }
  byId("downloads").hidden = false;
  startTables();
  for (const [name, key, direction] of orders.filter(Boolean)) {
    const table = [...document.querySelectorAll("#board table.sortable")].find((one) => one.dataset.table === name);
    if (!table || placeOf(table, key) < 0) continue;
    sortRows(table, key, direction);
    markSorted(table, key, direction);
  }
  // an agent that is being looked at in a replay isn't taken away from the reader
  if (!byId("view-leaderboard").hidden) renderLeaderboard(new URLSearchParams({ scenario: chosen || "" }));
  else if (!byId("view-compare").hidden) route();
  applyFilter();
}
