// Two agents on the same seeds: the difference in every scenario, then seed by seed.

const LEVEL = 0.05;

// The comparison as seen from a; null when there is none.
function comparisonOf(scenario, a, b) {
  for (const found of DATA.comparisons) {
    if (found.scenario !== scenario) continue;
    if (found.a === a && found.b === b) return found;
    if (found.a === b && found.b === a) {
      const { value, low, high } = found.difference;
      const turned = { value: -value, low: high === null ? null : -high, high: low === null ? null : -low };
      return { ...found, a, b, difference: turned };
    }
  }
  return null;
}

function renderCompare(params) {
  const view = byId("view-compare");
  const names = DATA.agents.map((agent) => agent.name);
  const heading = el("h2", { id: "heading-compare" }, "Compare two agents");
  if (names.length < 2) {
    const text = names.length ? "There is only one agent here." : "There are no agents here.";
    refill(view, heading, el("p", { class: "notice" }, `${text} A comparison needs two.`));
    return;
  }
  const a = names.includes(params.get("a")) ? params.get("a") : names[0];
  const others = names.filter((name) => name !== a);
  const b = others.includes(params.get("b")) ? params.get("b") : others[0];
  const found = DATA.scenarios.map((scenario) => comparisonOf(scenario.name, a, b)).filter(Boolean);
  const compared = found.map((comparison) => comparison.scenario);
  const scenarios = DATA.scenarios.map((one) => one.name).filter((name) => compared.includes(name) || seedRows(name, a, b).length);
  const scenario = scenarios.includes(params.get("scenario")) ? params.get("scenario") : scenarios[0];
  const go = (changes) => navigate("compare", { a, b, scenario, ...changes });
  refill(
    view,
    heading,
    el(
      "div",
      { class: "controls" },
      select("compare-a", "A", names, a, (name) => go({ a: name, b: name === b ? a : b })),
      select("compare-b", "B", others, b, (name) => go({ b: name })),
      el("button", { type: "button", id: "compare-swap", onclick: () => go({ a: b, b: a }) }, "Swap"),
    ),
    found.length ? differences(found, a, b) : el("p", { class: "notice" }, notCompared(scenarios)),
    scenarios.length > 0 && seedBySeed(scenarios, scenario, a, b, go),
  );
}

// On a large board only the best agents, and neighbours, are compared in advance.
function notCompared(scenarios) {
  if (!scenarios.length) return "These two have no scored seed in common on this page.";
  if (scenarios.every((name) => SCENARIO.get(name).num_players > 1)) return "These two met head to head: the leaderboard has their ratings.";
  return "This page tests the best agents against all others, and neighbours; textbench compare A B tests these two.";
}

function differences(found, a, b) {
  const ends = found.flatMap(({ difference: d }) => [d.value, d.low ?? d.value, d.high ?? d.value]);
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const interval = ({ difference: d }) => d.low !== null && ` [${number(d.low)}, ${number(d.high)}]`;
  const columns = [
    { key: "scenario", label: "Scenario", first: "ascending", value: (c) => c.scenario, show: (c) => c.scenario },
    { key: "pairs", label: "Seeds", value: (c) => c.pairs, show: (c) => c.pairs },
    {
      key: "difference",
      label: "Return of A \u2212 B",
      bar: true,
      value: (c) => c.difference.value,
      show: (c) => [
        intervalBar(c.difference, low, high),
        signed(c.difference.value, number),
        el("span", { class: "interval" }, interval(c)),
      ],
    },
    { key: "p", label: "p", first: "ascending", value: (c) => c.p_value, show: (c) => pValue(c.p_value) },
    { key: "holm", label: "p, Holm", first: "ascending", value: (c) => c.p_holm, show: (c) => pValue(c.p_holm) },
    { key: "verdict", label: "Verdict", value: (c) => verdict(c), show: (c) => verdict(c) },
    {
      key: "needed",
      label: "Seeds needed",
      first: "ascending",
      value: (c) => c.episodes_needed,
      show: (c) => (c.episodes_needed === null ? DASH : c.episodes_needed.toLocaleString("en")),
    },
  ];
  const caption = [foreign(a), " against ", foreign(b), ", on the same seeds"];
  return el(
    "section",
    { "aria-label": "Differences" },
    itemTable("differences", caption, columns, found),
    el(
      "p",
      { class: "note" },
      "Paired differences of the returns, luck-free where both agents have such, with 95% intervals; p is a two-sided sign-flip test's, corrected after Holm for the ",
      `${plural(DATA.comparisons_family, "comparison")} that this board allows; seeds needed is for this difference at `,
      "power 0.8 and level 0.05.",
    ),
  );
}

function verdict(comparison) {
  if (comparison.p_holm >= LEVEL) return "not told apart";
  return comparison.difference.value > 0 ? "A is higher" : "B is higher";
}

function seedBySeed(scenarios, scenario, a, b, go) {
  const rows = seedRows(scenario, a, b);
  const count = (sign) => rows.filter((row) => Math.sign(row.difference) === sign).length;
  const columns = [
    { key: "seed", label: "Seed", first: "ascending", value: (row) => row.seed, show: (row) => row.seed },
    { key: "a", label: "Return of A", value: (row) => row.left, show: (row) => points(row.left) },
    { key: "b", label: "Return of B", value: (row) => row.right, show: (row) => points(row.right) },
    { key: "difference", label: "A \u2212 B", value: (row) => row.difference, show: (row) => signed(row.difference, points) },
    {
      key: "replay",
      label: "Replay",
      value: (row) => row.rounds,
      show: (row) => el("a", { href: link("replay", { scenario, ...row.link, seed: row.seed }) }, row.label),
    },
  ];
  return el(
    "section",
    { "aria-labelledby": "seeds" },
    el("h3", { id: "seeds" }, "Seed by seed"),
    el("div", { class: "controls" }, select("compare-scenario", "Scenario", scenarios, scenario, (name) => go({ scenario: name }))),
    el("p", {}, `A is higher on ${plural(count(1), "seed")}, equal on ${count(0)}, B is higher on ${count(-1)}.`),
    rows.length
      ? itemTable("seeds", [scenario, ": returns on the same seeds"], columns, rows)
      : el("p", { class: "notice" }, "None of these episodes is on this page."),
  );
}

const seedRows = (scenario, a, b) => (SCENARIO.get(scenario).num_players > 1 ? meetings : pairs)(scenario, a, b);

// Seeds that both have played alone.
function pairs(scenario, a, b) {
  const [left, right] = [episodesOf(scenario).get(a), episodesOf(scenario).get(b)];
  if (!left || !right) return [];
  const scored = (episode) => episode !== undefined && INDEX.ending[episode] !== "e";
  return [...left]
    .filter(([seed, episode]) => scored(episode) && scored(right.get(seed)))
    .map(([seed, episode]) => {
      const [mine, theirs] = [INDEX.returns[episode][0], INDEX.returns[right.get(seed)][0]];
      const row = { seed, left: mine, right: theirs, difference: mine - theirs, link: { a, b }, label: "side by side" };
      return { ...row, rounds: Math.max(INDEX.rounds[episode], INDEX.rounds[right.get(seed)]) };
    });
}

// Episodes in which the two have met, on either side.
function meetings(scenario, a, b) {
  const found = [];
  for (const [name, episodes] of episodesOf(scenario)) {
    const lineup = LINEUPS[LINEUP_NAMES.indexOf(name)];
    const [first, second] = [lineup.indexOf(a), lineup.indexOf(b)];
    if (first < 0 || second < 0) continue;
    for (const [seed, episode] of episodes) {
      if (INDEX.ending[episode] === "e") continue;
      const [left, right] = [INDEX.returns[episode][first], INDEX.returns[episode][second]];
      const row = { seed, left, right, difference: left - right, link: { a: name }, label: name };
      found.push({ ...row, rounds: INDEX.rounds[episode] });
    }
  }
  return found;
}
