// Which episodes went wrong, and the order in which a replay offers them.

const ORDERS = [["trouble", "failed and invalid first"], ["lost", "most value lost first"], ["seed", "by seed"]];

// What is wrong with an episode: 3 for unscored, 2 for failed, 1 for invalid responses in it, 0 for nothing.
function troubleOf(episode) {
  if (INDEX.ending[episode] === "e") return 3;
  const knows = DATA.scenarios[INDEX.scenario[episode]].success_means !== "";
  if (knows && !INDEX.successes[episode].some(Boolean)) return 2;
  return INDEX.invalid[episode] > 0 ? 1 : 0;
}

// The seeds of {seed: episode}: as they are, or those with most trouble or the most value lost first.
function seedsInOrder(episodes, order) {
  const seeds = [...episodes.keys()];
  if (order === "seed") return seeds;
  if (order === "lost") return sortItems(seeds, (seed) => INDEX.lost[episodes.get(seed)], "descending");
  const trouble = (seed) => 1000 * troubleOf(episodes.get(seed)) + Math.min(999, INDEX.invalid[episodes.get(seed)]);
  return sortItems(seeds, trouble, "descending");
}

// The next seed after this place whose episode went wrong, from the start again after the last; null where none is.
function nextTrouble(seeds, place, episodes) {
  for (let step = 1; step < seeds.length; step += 1) {
    const seed = seeds[(place + step) % seeds.length];
    if (troubleOf(episodes.get(seed))) return seed;
  }
  return null;
}

// "10003 (0): failed, 2 invalid, lost 0.75"
function episodeInWords(seed, episode) {
  const invalid = INDEX.invalid[episode];
  const lost = INDEX.lost[episode];
  const wrong = [["", "", "failed", "unscored"][troubleOf(episode)], invalid > 0 && `${invalid} invalid`, lost > 0 && `lost ${points(lost)}`].filter(Boolean);
  return `${seed} (${INDEX.returns[episode].map(points).join(", ")})${wrong.length ? `: ${wrong.join(", ")}` : ""}`;
}

// The names of the agents beside those of the game's players in a text about an episode of several.
function withAgents(text, episode) {
  const agents = LINEUPS[INDEX.lineup[episode.number]];
  if (agents.length < 2 || !text) return text;
  const named = text.replace(/\bplayer_\d+\b/g, (player) => {
    const place = episode.players.indexOf(player);
    return place < 0 ? player : `${agents[place]} (${player})`;
  });
  // snakes are numbered, players first
  return named.replace(/^head of snake (\d+)$/, (head, number) => (agents[number - 1] ? `${head}: ${agents[number - 1]}` : head));
}
