// All agents against each other, and two of them on the same seeds: the difference in every scenario.

const TIE = "not told apart"; // the verdict on two of whom neither is shown to be better
let tested = []; // the pairs that this page tests, once they are unpacked

// The comparison as seen from a; null when there is none.
function comparisonOf(scenario, a, b) {
  for (const found of tested) {
    if (found.scenario !== scenario) continue;
    const { difference: value, difference_low: low, difference_high: high } = found;
    if (found.a === a && found.b === b) return { ...found, difference: { value, low, high } };
    if (found.a === b && found.b === a) {
      const turned = { value: -value, low: high === null ? null : -high, high: low === null ? null : -low };
      return { ...found, a, b, difference: turned };
    }
  }
  return null;
}

async function renderCompare(params) {
  try {
    tested = await comparisons();
  } catch {
    tested = []; // a browser that can't unpack: what follows says what it lacks
  }
  const view = byId("view-compare");
  const names = DATA.agents.map((agent) => agent.name);
  const heading = el("h2", { id: "heading-compare" }, "Compare agents");
  if (names.length < 2) {
    const text = names.length ? "There is only one agent here." : "There are no agents here.";
    refill(view, heading, el("p", { class: "notice" }, `${text} A comparison needs two.`));
    return;
  }
  const a = names.includes(params.get("a")) ? params.get("a") : names[0];
  const others = names.filter((name) => name !== a);
  const b = others.includes(params.get("b")) ? params.get("b") : others[0];
  const found = DATA.scenarios.map((scenario) => comparisonOf(scenario.name, a, b)).filter(Boolean);
  const overall = overallPair(a, b);
  const compared = found.map((comparison) => comparison.scenario);
  const scenarios = DATA.scenarios.map((one) => one.name).filter((name) => compared.includes(name) || seedRows(name, a, b).length);
  const scenario = scenarios.includes(params.get("scenario")) ? params.get("scenario") : scenarios[0];
  const go = (changes) => navigate("compare", { a, b, scenario, of: params.get("of"), ...changes });
  const matrix = el("div", {});
  refill(
    view,
    heading,
    matrix,
    el("h3", { id: "pair" }, foreign(a), " and ", foreign(b)),
    el(
      "div",
      { class: "controls" },
      select("compare-a", "First", names, a, (name) => go({ a: name, b: name === b ? a : b })),
      select("compare-b", "Second", others, b, (name) => go({ b: name })),
      el("button", { type: "button", id: "compare-swap", onclick: () => go({ a: b, b: a }) }, "Swap"),
    ),
    overall && el("p", {}, overallInWords(overall)),
    found.length ? differences(found, a, b) : el("p", { class: "notice" }, notCompared(scenarios)),
    scenarios.length > 0 && seedBySeed(scenarios, scenario, a, b, go),
  );
  return renderMatrix(matrix, params.get("of") || "", (pair) => go(pair));
}

function overallInWords({ a, b, difference, corrected: p, verdict }) {
  if (verdict === TIE) return ["Over all common scenarios the two can't be told apart (p = ", pValue(p), ")."];
  const [higher, lower] = difference > 0 ? [a, b] : [b, a];
  return ["Over all common scenarios ", foreign(higher), ` scores ${number(Math.abs(difference))} more than `, foreign(lower), ` (p ${p < 0.001 ? "" : "= "}${pValue(p)}).`];
}

// On a large board only the best agents, and neighbours, are compared in advance.
function notCompared(scenarios) {
  if (!scenarios.length) return "These two have no scored seed in common on this page.";
  if (scenarios.every((name) => SCENARIO.get(name).num_players > 1)) return "These two met head to head: the leaderboard has their ratings.";
  return "This page tests the best agents against all others, and neighbours; textbench compare tests any two.";
}

// A name for the heading of a column.
const short = (name) => visible(name.length > 24 ? `${name.slice(0, 23)}\u2026` : name);

function differences(found, a, b) {
  const ends = found.flatMap(({ difference: d }) => [d.value, d.low ?? d.value, d.high ?? d.value]);
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const interval = ({ difference: d }) => d.low !== null && ` [${number(d.low)}, ${number(d.high)}]`;
  const columns = [
    { key: "scenario", label: "Scenario", first: "ascending", value: (c) => c.scenario, show: (c) => c.scenario },
    { key: "pairs", label: "Seeds", value: (c) => c.pairs, show: (c) => c.pairs },
    {
      key: "difference",
      label: `Return of ${short(a)} \u2212 ${short(b)}`,
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
    { key: "verdict", label: "Verdict", value: (c) => c.verdict, show: (c) => foreign(c.verdict) },
    {
      key: "needed",
      label: "Seeds needed",
      first: "ascending",
      value: (c) => c.episodes_needed,
      show: (c) => neededText(c.episodes_needed, c.episodes_needed_low, c.episodes_needed_high),
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
      "power 0.8 and level 0.05 after the same correction, with its 95% interval. Where nothing differs, p takes each pair to be as likely to fall either way.",
    ),
  );
}

// A number of seeds with its interval, which ends nowhere where the difference may be 0.
function neededText(value, low, high) {
  if (value === null) return DASH;
  const [number, least, most] = [value, low, high].map((one) => (one === null ? "\u2026" : one.toLocaleString("en")));
  return [number, el("span", { class: "interval" }, ` [${least}, ${most}]`)];
}
