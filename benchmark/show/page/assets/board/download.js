// The page's numbers as files: CSV with a row for every agent and scenario, JSON with everything but episodes.

function offer(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const anchor = el("a", { href: address, download: name, hidden: true });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe in front.
function csvField(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  let text = typeof value === "object" ? JSON.stringify(value) : String(value);
  if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

async function downloadCsv() {
  const rows = await scores();
  const names = rows.length ? Object.keys(rows[0]) : [];
  const lines = [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => line.map(csvField).join(","));
  offer("leaderboard.csv", "text/csv", `${lines.join("\r\n")}\r\n`);
}

async function downloadJson() {
  const agents = DATA.agents.map(({ name, kind, size, spec }) => ({ name, kind, spec, parameters: size }));
  const overall = DATA.overall.map(([agent, normalized]) => ({ agent, normalized }));
  const { title, played, overall_scenarios } = DATA;
  const data = { title, played, agents, overall, overall_scenarios, scores: await scores(), comparisons: await comparisons() };
  offer("leaderboard.json", "application/json", JSON.stringify(data, null, 1));
}

function startDownloads() {
  byId("downloads").hidden = false;
  byId("intro").addEventListener("click", (event) => {
    if (event.target.id === "download-csv") downloadCsv();
    if (event.target.id === "download-json") downloadJson();
  });
}
