// The document: what the page was made from. Episodes are unpacked block by block, when a replay asks for one.

let DATA, INDEX, BLOCKS, SCENARIO, AGENT;
let LINEUPS, LINEUP_NAMES; // who plays; as one name: an agent alone, or "a vs b" in a scenario for several players
let FIRST_OF; // FIRST_OF[block] is the number of its first episode
let packedRows; // scores and comparisons as they came, {name: text}
const rowsOf = new Map(); // and as rows, once somebody asked
const gathered = new Map();
const unpacked = new Map();

// Takes the data of a page: of this one at the start, of a newer one where a run is followed.
function readData(page) {
  DATA = JSON.parse(page.getElementById("data").textContent);
  INDEX = DATA.index;
  BLOCKS = [...page.querySelectorAll("script.block")].map((script) => script.textContent);
  SCENARIO = new Map(DATA.scenarios.map((scenario, place) => [scenario.name, { ...scenario, place }]));
  AGENT = new Map(DATA.agents.map((agent) => [agent.name, agent]));
  LINEUPS = INDEX.lineups.map((agents) => agents.map((place) => DATA.agents[place].name));
  LINEUP_NAMES = LINEUPS.map((agents) => agents.join(" vs "));
  FIRST_OF = [];
  INDEX.block_sizes.reduce((sum, size) => (FIRST_OF.push(sum), sum + size), 0);
  packedRows = Object.fromEntries(["scores", "comparisons"].map((name) => [name, page.getElementById(name).textContent]));
  rowsOf.clear();
  gathered.clear();
  unpacked.clear();
}
readData(document);

async function unpackRows(name) {
  if (!rowsOf.has(name)) {
    const columns = await unpack(packedRows[name]);
    const names = Object.keys(columns);
    const count = names.length ? columns[names[0]].length : 0;
    const rows = Array.from({ length: count }, (_, row) => Object.fromEntries(names.map((key) => [key, columns[key][row]])));
    rowsOf.set(name, rows);
  }
  return rowsOf.get(name);
}

// One row for every agent and scenario, {agent, scenario, normalized, normalized_low, tokens, ...}.
const scores = () => unpackRows("scores");

// One row for every tested pair in a scenario, {scenario, a, b, difference, difference_low, p_holm, ...}.
const comparisons = () => unpackRows("comparisons");

// The episodes of one scenario as {lineup name: Map(seed -> episode number)}, in the order of the agents.
function episodesOf(scenario) {
  if (!gathered.has(scenario)) {
    const place = SCENARIO.get(scenario).place;
    const found = new Map();
    INDEX.scenario.forEach((of, episode) => {
      if (of !== place) return;
      const name = LINEUP_NAMES[INDEX.lineup[episode]];
      if (!found.has(name)) found.set(name, new Map());
      found.get(name).set(INDEX.seed[episode], episode);
    });
    const order = (name) => INDEX.lineups[LINEUP_NAMES.indexOf(name)];
    const sorted = [...found].sort(([a], [b]) => order(a)[0] - order(b)[0] || (order(a)[1] || 0) - (order(b)[1] || 0));
    gathered.set(scenario, new Map(sorted));
  }
  return gathered.get(scenario);
}

const scenariosWithEpisodes = () => DATA.scenarios.map((s) => s.name).filter((name) => episodesOf(name).size);

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser can't unpack the data (it has no DecompressionStream). Browsers since May 2023 can.");
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// The last few blocks stay unpacked; both sides of a replay are usually in the same one.
function blockOf(number) {
  if (!unpacked.has(number)) {
    unpacked.set(number, unpack(BLOCKS[number]));
    if (unpacked.size > 6) unpacked.delete(unpacked.keys().next().value);
  }
  return unpacked.get(number);
}

// An episode as frames: one for every round, with the moves of all players, and one for the end.
async function loadEpisode(episode) {
  let number = FIRST_OF.length - 1;
  while (FIRST_OF[number] > episode) number -= 1;
  const { texts, episodes } = await blockOf(number);
  const raw = episodes[episode - FIRST_OF[number]];
  const text = (place) => (place < 0 ? null : texts[place]);
  const totals = raw.players.map(() => 0);
  const frames = [];
  raw.round.forEach((round, step) => {
    const player = raw.players.indexOf(raw.player[step]);
    totals[player] += raw.reward[step];
    let frame = frames[frames.length - 1];
    if (!frame || frame.round !== round) {
      frame = { round, board: text(raw.board[step]), moves: [] };
      frames.push(frame);
    }
    frame.moves.push({
      round,
      player: raw.player[step],
      agent: LINEUPS[INDEX.lineup[episode]][player],
      observation: text(raw.observation[step]),
      prompt: raw.prompt[step] && raw.prompt[step].map(([role, place]) => [role, text(place)]),
      reasoning: text(raw.reasoning[step]),
      response: text(raw.response[step]),
      action: raw.action[step],
      valid: Boolean(raw.valid[step]),
      unreadable: raw.unreadable[step],
      finish: raw.finish[step],
      reward: raw.reward[step],
      happened: text(raw.happened[step]),
      lost: raw.lost[step],
      best: raw.best[step],
      total: totals[player],
    });
  });
  frames.push({ round: frames.length, board: text(raw.final_board), observation: text(raw.final_observation), moves: [] });
  return { number: episode, players: raw.players, error: raw.error, ending: text(raw.ending), frames };
}
