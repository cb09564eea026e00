// The curve of every player over the levels of a ladder: a point is what it kept at a level of what best play gets above
// play that doesn't read, larger for more episodes; the line is what was fitted to all of them.

const LADDER = { width: 760, height: 260, left: 36, right: 120, top: 12, bottom: 40, low: -0.25, high: 1.25 };

function renderLadders() {
  for (const section of document.querySelectorAll("#board .ladder")) {
    const rows = DATA.ladders.filter((row) => row.scenario === section.dataset.ladder && isWanted(row.agent));
    refill(
      section,
      el("h3", {}, foreign(`${section.dataset.ladder}: levels`)),
      el("div", { class: "plot-box" }, drawLadder(rows)),
      el("p", { class: "note" }, "A player's level is where its curve meets the dashed line, at half of the headroom. Larger points have more episodes."),
    );
  }
}

function drawLadder(rows) {
  const { height, left, right, top, bottom, low, high } = LADDER;
  const width = Math.max(300, Math.min(LADDER.width, document.documentElement.clientWidth - 24));
  const first = Math.min(...rows.map((row) => row.first));
  const last = Math.max(...rows.map((row) => row.last));
  const x = (level) => left + ((level - first) / Math.max(1, last - first)) * (width - left - right);
  const y = (share) => top + ((high - Math.max(low, Math.min(high, share))) / (high - low)) * (height - top - bottom);
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": ladderInWords(rows) });
  const line = (name, d) => svg("path", { class: name, d });
  const text = (at, attributes) => svg("text", { "aria-hidden": "true", ...attributes }, at);
  for (let level = first; level <= last; level += 1) {
    chart.append(line("grid", `M${x(level)} ${top}V${height - bottom}`));
    chart.append(text(String(level), { x: x(level), y: height - bottom + 16, "text-anchor": "middle" }));
  }
  for (const share of [0, 0.5, 1]) {
    chart.append(line(share === 0.5 ? "level" : "grid", `M${left} ${y(share)}H${width - right}`));
    chart.append(text(String(share), { x: left - 8, y: y(share) + 4, "text-anchor": "end" }));
  }
  if (rows.length) chart.append(text("level", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }));
  const taken = [];
  rows.forEach((row, place) => {
    const kept = (level) => 1 / (1 + Math.exp((level - row.level.value) / row.spread));
    const steps = Array.from({ length: 61 }, (_, step) => first + ((last - first) * step) / 60);
    const title = svg("title", {}, `${visible(row.agent)}: level ${levelText(row)}`);
    const curve = svg("g", {}, title, line("frontier", steps.map((level, step) => `${step ? "L" : "M"}${x(level)} ${y(kept(level))}`).join("")));
    for (const rung of row.rungs) {
      const told = `${visible(row.agent)} at level ${rung.level}: ${number(rung.kept.value)} in ${plural(rung.episodes, "episode")}`;
      const at = { cx: x(rung.level), cy: y(rung.kept.value), r: 2 + Math.min(4, Math.sqrt(rung.episodes)), class: "point" };
      curve.append(svg("g", {}, svg("title", {}, told), svg("circle", at)));
    }
    chart.append(curve);
    if (place >= MOST_LABELS) return;
    const name = row.agent.length > 16 ? `${row.agent.slice(0, 15)}\u2026` : row.agent;
    const spot = labelSpot(x(last), y(kept(last)), name.length * 6.6, taken, width);
    if (spot) chart.append(text(visible(name), { ...spot, class: "label" }));
  });
  return chart;
}

const levelText = (row) => (row.beyond === "below" ? `<${row.first}` : row.beyond === "above" ? `>${row.last}` : number(row.level.value, 1));

const ladderInWords = (rows) => `Share of the headroom that is kept, by level. ${rows.map((row) => `${visible(row.agent)}: level ${levelText(row)}`).join("; ")}`;
