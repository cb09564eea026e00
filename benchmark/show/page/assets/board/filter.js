// Search: agents by a part of the name and by kind, in every table, the plot and the matrix.

const wanted = { text: "", kind: "" };

function isWanted(name) {
  const agent = AGENT.get(name);
  if (wanted.kind !== "" && (!agent || agent.kind !== wanted.kind)) return false;
  return wanted.text === "" || name.toLowerCase().includes(wanted.text);
}

function applyFilter() {
  for (const table of document.querySelectorAll("#board table.sortable")) {
    if (placeOf(table, "agent") < 0) continue;
    for (const row of table.tBodies[0].rows) row.hidden = !isWanted(row.querySelector("th").querySelector(".name").textContent);
  }
  const all = wanted.text === "" && wanted.kind === "";
  const count = DATA.agents.filter((agent) => isWanted(agent.name)).length;
  byId("found").textContent = all ? "" : count ? `${count} of ${plural(DATA.agents.length, "agent")}` : "No agent is called so.";
  announce(byId("found").textContent);
  renderPlot();
  renderLadders();
}

function startFilter() {
  byId("board-controls").addEventListener("input", (event) => {
    if (event.target.id === "find-agent") wanted.text = event.target.value.trim().toLowerCase();
    else if (event.target.id === "find-kind") wanted.kind = event.target.value;
    else return;
    applyFilter();
  });
}
