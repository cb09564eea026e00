// The document: what the page was made from. Episodes are unpacked block by block, when a replay asks for one.

const DATA = JSON.parse(byId("data").textContent);
const INDEX = DATA.index;
const BLOCK_SCRIPTS = document.querySelectorAll("script.block");
const SCENARIO = new Map(DATA.scenarios.map((scenario, place) => [scenario.name, { ...scenario, place }]));
const AGENT = new Map(DATA.agents.map((agent) => [agent.name, agent]));

// Who plays, as one name: an agent alone, or "a vs b" in a scenario for several players.
const LINEUPS = INDEX.lineups.map((agents) => agents.map((place) => DATA.agents[place].name));
const LINEUP_NAMES = LINEUPS.map((agents) => agents.join(" vs "));

// FIRST_OF[block] is the number of its first episode.
const FIRST_OF = [];
INDEX.block_sizes.reduce((sum, size) => (FIRST_OF.push(sum), sum + size), 0);

// The episodes of one scenario as {lineup name: Map(seed -> episode number)}, in the order of the agents.
const gathered = new Map();
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

async function unpack(block) {
  const bytes = Uint8Array.from(atob(BLOCK_SCRIPTS[block].textContent), (c) => c.charCodeAt(0));
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser can't unpack episodes (it has no DecompressionStream). Browsers since May 2023 can.");
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// The last few blocks stay unpacked; both sides of a replay are usually in the same one.
const unpacked = new Map();
function blockOf(number) {
  if (!unpacked.has(number)) {
    unpacked.set(number, unpack(number));
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
      player: raw.player[step],
      agent: LINEUPS[INDEX.lineup[episode]][player],
      observation: text(raw.observation[step]),
      prompt: text(raw.prompt[step]),
      response: text(raw.response[step]),
      action: raw.action[step],
      valid: Boolean(raw.valid[step]),
      unreadable: raw.unreadable[step],
      finish: raw.finish[step],
      reward: raw.reward[step],
      happened: text(raw.happened[step]),
      total: totals[player],
    });
  });
  frames.push({ round: frames.length, board: text(raw.final_board), observation: text(raw.final_observation), moves: [] });
  return { number: episode, players: raw.players, error: raw.error, ending: text(raw.ending), frames };
}
