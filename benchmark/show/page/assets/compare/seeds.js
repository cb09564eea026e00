// Two agents seed by seed, with the way to the replay of both.

function seedBySeed(scenarios, scenario, a, b, go) {
  const rows = seedRows(scenario, a, b);
  const count = (sign) => rows.filter((row) => Math.sign(row.difference) === sign).length;
  const columns = [
    { key: "seed", label: "Seed", first: "ascending", value: (row) => row.seed, show: (row) => row.seed },
    { key: "a", label: short(a), narrow: true, value: (row) => row.left, show: (row) => points(row.left) },
    { key: "b", label: short(b), value: (row) => row.right, show: (row) => points(row.right) },
    { key: "difference", label: "Difference", value: (row) => row.difference, show: (row) => signed(row.difference, points) },
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
    el("h4", { id: "seeds" }, "Seed by seed"),
    el("div", { class: "controls" }, select("compare-scenario", "Scenario", scenarios, scenario, (name) => go({ scenario: name }))),
    el("p", {}, foreign(a), ` is higher on ${plural(count(1), "seed")}, the two are equal on ${count(0)}, `, foreign(b), ` is higher on ${count(-1)}.`),
    rows.length
      ? itemTable("seeds", [scenario, ": returns on the same seeds"], columns, rows, 15)
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
