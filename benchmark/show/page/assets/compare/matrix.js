// All pairs: what the agent of a row has against that of a column, over everything or in one scenario.

const MOST_IN_MATRIX = 30;
let matrixFind = "";

function overallPair(a, b) {
  for (const pair of DATA.pairs) {
    if (pair.a === a && pair.b === b) return pair;
    if (pair.a === b && pair.b === a) return { ...pair, a, b, difference: -pair.difference };
  }
  return null;
}

function meetingOf(scenario, a, b) {
  for (const [where, first, second, wins, draws, losses] of DATA.meetings) {
    if (where !== scenario) continue;
    if (first === a && second === b) return { wins, draws, losses };
    if (first === b && second === a) return { wins: losses, draws, losses: wins };
  }
  return null;
}

// One cell, {text, told, title}: `told` is 1 or -1 where the row's agent is told to be higher or lower, else 0.
function matrixCell(scenario, row, column, means) {
  if (scenario !== "" && SCENARIO.get(scenario).num_players > 1) {
    const met = meetingOf(scenario, row, column);
    if (!met) return null;
    const told = Math.sign(met.wins - met.losses);
    return { text: `${met.wins}\u2013${met.draws}\u2013${met.losses}`, told, title: "won, drawn, lost" };
  }
  const tested = scenario === "" ? overallPair(row, column) : comparisonOf(scenario, row, column);
  if (tested) {
    const difference = scenario === "" ? tested.difference : tested.difference.value;
    const p = scenario === "" ? tested.corrected : tested.p_holm;
    const told = tested.verdict === TIE ? 0 : Math.sign(difference);
    return { text: signed(difference, number), told, title: `${told ? "told apart" : TIE}, p ${p < 0.001 ? "" : "= "}${pValue(p)}` };
  }
  const [mine, theirs] = [means.get(row), means.get(column)];
  if (mine === null || theirs === null || mine === undefined || theirs === undefined) return null;
  return { text: signed(mine - theirs, number), told: 0, title: "not tested on this page" };
}

async function meansOf(scenario) {
  if (scenario === "") return new Map(DATA.overall);
  const rows = (await scores()).filter((row) => row.scenario === scenario);
  return new Map(rows.map((row) => [row.agent, (row.normalized_by === "luck_free" ? row.luck_free_return : row.mean_return) ?? null]));
}

const MATRIX_ABOUT = {
  overall: "The row's overall score minus the column's.",
  solo: "The row's mean return minus the column's, on the same seeds.",
  games: "Games that the row won, drew and lost against the column.",
};

async function renderMatrix(box, asked, choose) {
  const overall = DATA.overall.some(([, value]) => value !== null) && DATA.overall_scenarios.length > 1;
  const options = [...(overall ? [["", "overall"]] : []), ...DATA.scenarios.map((scenario) => [scenario.name, scenario.name])];
  const of = options.some(([value]) => value === asked) ? asked : options[0][0];
  let means;
  try {
    means = await meansOf(of);
  } catch {
    means = new Map();
  }
  const kind = of === "" ? "overall" : SCENARIO.get(of).num_players > 1 ? "games" : "solo";
  const holder = el("div", {});
  const find = (event) => {
    matrixFind = event.target.value.trim().toLowerCase();
    refill(holder, matrixTable(of, means, choose));
  };
  const search = el("input", { type: "search", id: "matrix-find", value: matrixFind, placeholder: "part of a name", oninput: find });
  const large = DATA.agents.length > 8;
  refill(
    box,
    el(
      "section",
      { "aria-labelledby": "matrix" },
      el("h3", { id: "matrix" }, "All pairs"),
      el(
        "div",
        { class: "controls" },
        select("matrix-of", "Of", options, of, (value) => choose({ of: value })),
        large && el("p", { class: "field" }, el("label", { for: "matrix-find" }, "Find agents"), search),
      ),
      el("p", { class: "about" }, MATRIX_ABOUT[kind], kind === "games" ? " Shaded where one won more often." : " Shaded where the two are told apart; the others aren't."),
      holder,
    ),
  );
  refill(holder, matrixTable(of, means, choose));
}

function matrixTable(of, means, choose) {
  const order = of === "" || SCENARIO.get(of).num_players > 1 ? (name) => -DATA.agents.findIndex((agent) => agent.name === name) : (name) => means.get(name) ?? null;
  const named = DATA.agents.map((agent) => agent.name).filter((name) => name.toLowerCase().includes(matrixFind));
  const names = sortItems(named, order, "descending").slice(0, MOST_IN_MATRIX);
  if (!names.length) return el("p", { class: "note" }, "No agent is called so.");
  const cell = (row, column) => {
    if (row === column) return el("td", { class: "self" });
    const found = matrixCell(of, row, column, means);
    if (!found) return el("td", { class: "even" }, DASH);
    const to = (event) => {
      event.preventDefault();
      choose({ a: row, b: column, scenario: of || undefined });
    };
    const address = link("compare", { a: row, b: column, of });
    const name = ["lower", "even", "higher"][found.told + 1];
    return el("td", { class: name }, el("a", { href: address, title: visible(`${row} against ${column}: ${found.title}`), onclick: to }, found.text));
  };
  const table = el(
    "table",
    { class: "matrix" },
    el("caption", {}, "The agent of the row against that of the column"),
    el("thead", {}, el("tr", {}, el("td", {}), names.map((name) => el("th", { scope: "col", title: visible(name) }, el("span", {}, foreign(name)))))),
    el("tbody", {}, names.map((row) => el("tr", {}, el("th", { scope: "row", title: visible(row) }, foreign(row)), names.map((column) => cell(row, column))))),
  );
  return [
    el("div", { class: "matrix-box", tabindex: 0, role: "region", "aria-label": "All pairs" }, table),
    named.length > MOST_IN_MATRIX && el("p", { class: "note" }, `The best ${MOST_IN_MATRIX} of ${named.length}; a part of a name finds others.`),
  ];
}
