// Score against tokens, time, cost, and size of the model, drawn as SVG, with the frontier: the agents than which nobody
// gets more for as little. Agents without a figure stand in a list below.

const AXES = {
  tokens: { label: "tokens per episode", of: (row) => row.tokens || null },
  seconds: { label: "seconds per episode, as it was played", of: (row) => row.seconds || null },
  cpu: { label: "CPU seconds per episode", of: (row) => row.cpu_seconds || null },
  cost: { label: "US dollars per episode", of: (row) => (row.cost && row.episodes ? row.cost / row.episodes : null) },
  size: { label: "parameters of the model", of: (row) => AGENT.get(row.agent).size },
};
const PLOT = { width: 760, height: 300, left: 36, right: 84, top: 12, bottom: 40 };
const MOST_LABELS = 25;
let plotAxis = "";

// {agent, x, y, low, high} of every agent with an overall score; x is the mean over the overall scenarios.
async function plotPoints(axis) {
  const rows = (await scores()).filter((row) => DATA.overall_scenarios.includes(row.scenario));
  const score = new Map(DATA.overall);
  const found = new Map();
  for (const row of rows) {
    if (!found.has(row.agent)) found.set(row.agent, []);
    found.get(row.agent).push(AXES[axis].of(row));
  }
  return [...found]
    .filter(([agent]) => score.get(agent) !== null && score.get(agent) !== undefined)
    .map(([agent, values]) => {
      const known = values.every((value) => value !== null && value > 0);
      return { agent, y: score.get(agent), x: known ? values.reduce((sum, value) => sum + value, 0) / values.length : null };
    });
}

async function renderPlot() {
  const section = byId("plot");
  if (!section || section.hidden) return;
  const every = {};
  try {
    for (const axis of Object.keys(AXES)) every[axis] = await plotPoints(axis);
  } catch {
    section.hidden = true; // a browser that can't unpack says so where it matters
    return;
  }
  const axes = Object.keys(AXES).filter((axis) => every[axis].some((point) => point.x !== null));
  if (section !== byId("plot")) return; // a newer page has come meanwhile
  if (!axes.length) {
    section.hidden = true;
    return;
  }
  const axis = axes.includes(plotAxis) ? plotAxis : axes[0];
  const points = every[axis].filter((point) => isWanted(point.agent));
  const choose = (name) => {
    plotAxis = name;
    renderPlot();
  };
  const without = points.filter((point) => point.x === null).map((point) => point.agent);
  const drawn = points.filter((point) => point.x !== null);
  const best = frontierOf(drawn).map((point) => point.agent);
  const why = { tokens: "no tokens", seconds: "no known time", cpu: "no known CPU time", cost: "no known cost", size: "no known size" }[axis];
  refill(
    section,
    el("h3", { id: "heading-plot" }, "What a score costs"),
    el("div", { class: "controls" }, select("plot-axis", "Score against", axes.map((name) => [name, AXES[name].label]), axis, choose)),
    el("div", { class: "plot-box" }, drawPlot(drawn, AXES[axis].label)),
    best.length > 0 && el("p", { class: "note", id: "frontier" }, "On the frontier, where no other agent scores as much for as little: ", foreign(best.join(", ")), "."),
    without.length > 0 && el("p", { class: "note" }, `With ${why}: `, foreign(without.slice(0, 30).join(", ")), without.length > 30 && ` and ${without.length - 30} more`, "."),
  );
}

// The points that no other one is above without being dearer, from the cheapest; of equal ones the first.
function frontierOf(points) {
  const found = [];
  for (const point of [...points].sort((a, b) => a.x - b.x || b.y - a.y)) {
    if (!found.length || point.y > found[found.length - 1].y) found.push(point);
  }
  return found;
}

function drawPlot(points, label) {
  const { height, left, right, top, bottom } = PLOT;
  const width = Math.max(300, Math.min(PLOT.width, document.documentElement.clientWidth - 24)); // letters keep their size
  const logs = points.map((point) => Math.log10(point.x));
  const [first, last] = [Math.floor(Math.min(...logs, 9)), Math.ceil(Math.max(...logs, -9))];
  const [start, end] = points.length ? [first, Math.max(last, first + 1)] : [0, 1];
  const low = Math.min(0, ...points.map((point) => point.y));
  const high = Math.max(1, ...points.map((point) => point.y));
  const x = (value) => left + ((Math.log10(value) - start) / (end - start)) * (width - left - right);
  const y = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": plotInWords(points, label) });
  const line = (name, d) => svg("path", { class: name, d });
  const text = (at, attributes) => svg("text", { "aria-hidden": "true", ...attributes }, at);
  for (let power = start; power <= end; power += 1) {
    chart.append(line("grid", `M${x(10 ** power)} ${top}V${height - bottom}`));
    chart.append(text(shortNumber(10 ** power), { x: x(10 ** power), y: height - bottom + 16, "text-anchor": "middle" }));
  }
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    chart.append(line(value % 1 ? "grid" : "level", `M${left} ${y(value)}H${width - right}`));
    chart.append(text(String(value), { x: left - 8, y: y(value) + 4, "text-anchor": "end" }));
  }
  chart.append(text("reference", { x: width - right + 4, y: y(1) + 4 }), text("blind play", { x: width - right + 4, y: y(0) + 4 }));
  chart.append(text(`${label}, logarithmic`, { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }));
  const [cheapest, ...dearer] = frontierOf(points);
  if (cheapest) {
    const steps = dearer.map((point) => `H${x(point.x)}V${y(point.y)}`).join("");
    chart.append(line("frontier", `M${x(cheapest.x)} ${y(cheapest.y)}${steps}H${width - right}`));
  }
  const taken = points.map((point) => around(x(point.x), y(point.y)));
  points.forEach((point, place) => {
    const at = { cx: x(point.x), cy: y(point.y), r: 5, class: "point" };
    chart.append(svg("g", {}, svg("title", {}, visible(`${point.agent}: ${number(point.y)} at ${shortNumber(point.x)}`)), svg("circle", at)));
    if (place >= MOST_LABELS) return;
    const name = point.agent.length > 24 ? `${point.agent.slice(0, 23)}\u2026` : point.agent;
    const spot = labelSpot(at.cx, at.cy, name.length * 6.6, taken, width);
    if (spot) chart.append(text(visible(name), { ...spot, class: "label" }));
  });
  return chart;
}

const around = (cx, cy) => ({ left: cx - 6, right: cx + 6, top: cy - 6, bottom: cy + 6 });

// A free place for a label beside a point; none where the others leave no room.
function labelSpot(cx, cy, wide, taken, width) {
  for (const [left, top] of [[9, 4], [-9 - wide, 4], [-wide / 2, -10], [-wide / 2, 20], [9, -8], [9, 16], [-9 - wide, -8], [-9 - wide, 16]]) {
    const box = { left: cx + left, right: cx + left + wide, top: cy + top - 11, bottom: cy + top + 3 };
    const free = taken.every((one) => box.right < one.left || box.left > one.right || box.bottom < one.top || box.top > one.bottom);
    if (!free || box.left < 0 || box.right > width) continue;
    taken.push(box);
    return { x: box.left, y: cy + top };
  }
  return null;
}

function shortNumber(value) {
  for (const [size, letter] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return `${Number((value / size).toPrecision(3))}${letter}`;
  }
  return String(Number(value.toPrecision(2)));
}

const plotInWords = (points, label) =>
  `Normalised score against ${label}. ${points.map((point) => `${visible(point.agent)}: ${number(point.y)} at ${shortNumber(point.x)}`).join("; ")}`;
