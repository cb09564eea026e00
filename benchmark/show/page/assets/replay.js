// The replay of an episode, round by round, and of a second one with the same seed beside it.

const NOBODY = "";
let replay = null; // what is on show: {scenario, a, b, seed, seeds, sides, step, last}

function chooseReplay(params) {
  const scenarios = scenariosWithEpisodes();
  if (!scenarios.length) return null;
  const scenario = scenarios.includes(params.get("scenario")) ? params.get("scenario") : scenarios[0];
  const lineups = [...episodesOf(scenario).keys()];
  const a = lineups.includes(params.get("a")) ? params.get("a") : lineups[0];
  const b = lineups.includes(params.get("b")) && params.get("b") !== a ? params.get("b") : NOBODY;
  const seeds = [...episodesOf(scenario).get(a).keys()];
  const asked = Number(params.get("seed"));
  const seed = params.has("seed") && seeds.includes(asked) ? asked : seeds[0];
  const missing = params.has("seed") && seed !== asked ? params.get("seed") : null;
  return { scenarios, scenario, lineups, a, b, seeds, seed, missing };
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

function pickers(choice) {
  const { scenario, a, b, seed, seeds } = choice;
  const go = (changes) => navigate("replay", { scenario, a, b, seed, ...changes });
  const goOn = (changes) => go({ step: replay.step, ...changes });
  const place = seeds.indexOf(seed);
  const episodes = episodesOf(scenario).get(a);
  const options = seeds.map((one) => [String(one), `${one} (${INDEX.returns[episodes.get(one)].map(points).join(", ")})`]);
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
    seedButton("replay-seed-before", "Previous seed", place - 1),
    seedButton("replay-seed-after", "Next seed", place + 1),
  );
}

// Buttons, slider and count; one for both sides.
function makeTransport(last) {
  const button = (id, label, act) => el("button", { type: "button", id, onclick: act }, label);
  const first = button("step-first", "First", () => showStep(0));
  const back = button("step-back", "Back", () => showStep(replay.step - 1));
  const play = button("step-play", "Play", () => (playing ? stopPlaying() : startPlaying()));
  const next = button("step-next", "Next", () => showStep(replay.step + 1));
  const end = button("step-last", "Last", () => showStep(replay.last));
  const slider = el("input", {
    id: "step-slider",
    type: "range",
    min: 0,
    max: last,
    value: 0,
    "aria-label": "Round",
    oninput: (event) => showStep(Number(event.target.value)),
  });
  const count = el("span", { class: "count" });
  const bar = el(
    "div",
    { class: "transport", role: "group", "aria-label": "Stepping" },
    el("div", { class: "buttons" }, first, back, play, next, end),
    slider,
    count,
  );
  const keys = (...names) => names.map((name) => [el("kbd", {}, name), " "]);
  const help = el(
    "p",
    { class: "note keys" },
    ["Keys: ", keys("Left", "Right"), "one round, ", keys("Home", "End"), "first and last, "],
    [keys("Shift"), "with ", keys("Left", "Right"), "previous and next seed."],
  );
  return { help, bar, first, back, play, next, end, slider, count };
}

function showStep(step, moved = true) {
  const { last, transport, sides } = replay;
  replay.step = Math.min(last, Math.max(0, step));
  const now = replay.step;
  transport.slider.value = now;
  transport.slider.setAttribute("aria-valuetext", now === last ? `end, after ${plural(last, "round")}` : `round ${now + 1} of ${last}`);
  transport.count.textContent = now === last ? `End, ${plural(last, "round")}` : `Round ${now + 1} of ${last}`;
  // aria-disabled keeps the focus where it is when a button comes to its end
  for (const name of ["first", "back"]) transport[name].setAttribute("aria-disabled", String(now === 0));
  for (const name of ["next", "end"]) transport[name].setAttribute("aria-disabled", String(now === last));
  const told = sides.map((side) => side.show(now)).filter(Boolean);
  if (!moved) return;
  announce(`${transport.count.textContent}. ${told.join(" ")}`);
  rememberStep();
}

let remembering = 0;
// The address follows the stepping, not faster than browsers allow addresses to change.
function rememberStep() {
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const { scenario, a, b, seed, step } = replay;
    rewrite("replay", { scenario, a, b, seed, step });
  }, 250);
}

let playing = 0;
function startPlaying() {
  if (replay.step === replay.last) showStep(0);
  replay.transport.play.textContent = "Pause";
  playing = setInterval(() => {
    if (replay.step >= replay.last) stopPlaying();
    else showStep(replay.step + 1);
  }, 700);
}

function stopPlaying() {
  clearInterval(playing);
  playing = 0;
  if (replay && replay.transport) replay.transport.play.textContent = "Play";
}

function onReplayKey(event) {
  if (!replay || !replay.sides || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest("select, textarea, input:not([type=range])")) return;
  const onSlider = event.target.id === "step-slider"; // it moves by itself
  const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.shiftKey && side) byId(side < 0 ? "replay-seed-before" : "replay-seed-after").click();
  else if (event.shiftKey || onSlider) return;
  else if (side) showStep(replay.step + side);
  else if (event.key === "Home") showStep(0);
  else if (event.key === "End") showStep(replay.last);
  else return;
  event.preventDefault();
}
