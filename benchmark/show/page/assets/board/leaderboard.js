// The leaderboard: which of its sections are on show, and what the reader does with its tables.

// A scenario's name, "suite:NAME", "game:ID", "everything", or "" for the overview.
function isShown(section, chosen) {
  const { scenario, game } = section.dataset;
  if (chosen === "everything" || chosen === scenario) return true;
  if (chosen.startsWith("game:")) return `game:${game}` === chosen;
  return chosen !== "" && `suite:${section.parentElement.dataset.suite}` === chosen;
}

function renderLeaderboard(params) {
  const sections = [...document.querySelectorAll("#board section.scenario")];
  const overview = sections.some((section) => section.dataset.scenario === "");
  const asked = params.get("scenario") || "";
  const known = asked === "everything" || (asked !== "" && sections.some((section) => isShown(section, asked)));
  const chosen = known ? asked : overview ? "" : "everything";
  for (const section of sections) section.hidden = !isShown(section, chosen);
  byId("board").classList.remove("waiting");
  for (const suite of document.querySelectorAll("#board .suite")) suite.hidden = !suite.querySelector("section.scenario:not([hidden])");
  if (byId("leaderboard-scenario")) byId("leaderboard-scenario").value = chosen;
  const tables = sections.flatMap((section) => [...section.querySelectorAll("table.sortable")]);
  const table = tables.find((one) => one.dataset.table === params.get("table"));
  if (table && placeOf(table, params.get("sort")) >= 0) {
    const direction = params.get("direction") === "ascending" ? "ascending" : "descending";
    sortRows(table, params.get("sort"), direction);
    markSorted(table, params.get("sort"), direction);
  }
  renderPlot();
  renderLadders();
}

// What makes the tables that came with the page work; once for every page that was read.
function startTables() {
  for (const table of document.querySelectorAll("#view-leaderboard table.sortable")) {
    const order = (key, direction) => sortRows(table, key, direction);
    const then = (sort, direction) => {
      const scenario = byId("leaderboard-scenario") ? byId("leaderboard-scenario").value : "";
      rewrite("leaderboard", { scenario, table: table.dataset.table, sort, direction });
    };
    makeSortable(table, order, then);
  }
}

function startBoard() {
  startTables();
  byId("board-controls").hidden = !byId("board-controls").querySelector(".field");
  byId("board-controls").addEventListener("change", (event) => {
    if (event.target.id === "leaderboard-scenario") navigate("leaderboard", { scenario: event.target.value });
  });
  startFilter();
  startDownloads();
}
