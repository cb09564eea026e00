// The replay of an episode, round by round, and of a second one with the same seed beside it.

const NOBODY = "";
let replay = null; // what is on show: {scenario, a, b, seed, seeds, order, sides, step, last}

function chooseReplay(params) {
  const scenarios = scenariosWithEpisodes();
  if (!scenarios.length) return null;
  const scenario = scenarios.includes(params.get("scenario")) ? params.get("scenario") : scenarios[0];
  const lineups = [...episodesOf(scenario).keys()];
  const a = lineups.includes(params.get("a")) ? params.get("a") : lineups[0];
  const b = lineups.includes(params.get("b")) && params.get("b") !== a ? params.get("b") : NOBODY;
  const order = (ORDERS.find(([name]) => name === params.get("order")) || ORDERS[0])[0];
  const seeds = seedsInOrder(episodesOf(scenario).get(a), order);
  const asked = Number(params.get("seed"));
  const seed = params.has("seed") && seeds.includes(asked) ? asked : seeds[0];
  const missing = params.has("seed") && seed !== asked ? params.get("seed") : null;
  return { scenarios, scenario, lineups, a, b, seeds, order, seed, missing };
}

async function renderReplay(params) {
  stopPlaying();
  const view = byId("view-replay");
  const heading = el("h2", { id: "heading-replay" }, "Replay");
  const choice = chooseReplay(params);
  replay = choice;
  if (!choice) {
    refill(view, heading, el("p", { class: "notice" }, "There are no episodes on this page to replay."));
    return;
  }
  const names = choice.b === NOBODY ? [choice.a] : [choice.a, choice.b];
  const numbers = names.map((name) => episodesOf(choice.scenario).get(name).get(choice.seed));
  view.setAttribute("aria-busy", "true");
  let episodes;
  try {
    episodes = await Promise.all(numbers.map((number) => (number === undefined ? null : loadEpisode(number))));
  } catch (error) {
    refill(view, heading, el("p", { class: "notice" }, error.message));
    return;
  } finally {
    view.removeAttribute("aria-busy");
  }
  if (replay !== choice) return; // the reader has gone on meanwhile
  const scenario = SCENARIO.get(choice.scenario);
  const sides = episodes.map((episode, place) => makeSide(episode, names[place], "ab"[place], scenario, choice.seed));
  choice.last = Math.max(0, ...episodes.filter(Boolean).map((episode) => episode.frames.length - 1));
  choice.step = Math.min(choice.last, Math.max(0, Math.trunc(Number(params.get("step"))) || 0));
  choice.sides = sides;
  choice.transport = makeTransport(choice.last);
  refill(
    view,
    el("div", { class: "view-head" }, heading, pickers(choice)),
    choice.missing !== null && el("p", { class: "notice" }, "Seed ", foreign(choice.missing), " isn't on this page."),
    choice.transport.bar,
    choice.transport.help,
    el("div", { class: sides.length > 1 ? "sides two" : "sides" }, sides.map((side) => side.panel)),
  );
  showStep(choice.step, false);
}

const orderInAddress = (order) => (order === ORDERS[0][0] ? "" : order);

function pickers(choice) {
  const { scenario, a, b, seed, seeds, order } = choice;
  const go = (changes) => navigate("replay", { scenario, a, b, seed, order: orderInAddress(order), ...changes });
  const goOn = (changes) => go({ step: replay.step, ...changes });
  const place = seeds.indexOf(seed);
  const episodes = episodesOf(scenario).get(a);
  const options = seeds.map((one) => [String(one), episodeInWords(one, episodes.get(one))]);
  const failure = nextTrouble(seeds, place, episodes);
  const several = SCENARIO.get(scenario).num_players > 1;
  const seedButton = (id, label, to) =>
    el("button", { type: "button", id, disabled: seeds[to] === undefined, onclick: () => go({ seed: seeds[to] }) }, label);
  return el(
    "div",
    { class: "controls" },
    select("replay-scenario", "Scenario", choice.scenarios, scenario, (name) => go({ scenario: name, seed: "" })),
    select("replay-a", several ? "Players" : "Agent", choice.lineups, a, (name) => goOn({ a: name })),
    select(
      "replay-b",
      "Beside it",
      [[NOBODY, "nobody"], ...choice.lineups.filter((name) => name !== a)],
      b,
      (name) => goOn({ b: name }),
    ),
    select("replay-seed", "Seed (return)", options, String(seed), (value) => go({ seed: value })),
    select("replay-order", "Order of seeds", ORDERS, order, (value) => go({ order: orderInAddress(value) })),
    seedButton("replay-seed-before", "Previous seed", place - 1),
    seedButton("replay-seed-after", "Next seed", place + 1),
    el("button", { type: "button", id: "replay-failure", disabled: failure === null, onclick: () => go({ seed: failure }) }, "Next failure"),
  );
}
