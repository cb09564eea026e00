// One side of a replay: an episode's board, moves, and what was asked and answered in the round on show.

function makeSide(episode, name, letter, scenario, seed) {
  const id = `side-${letter}`;
  const title = el("h3", { id }, foreign(name));
  if (!episode) {
    const text = `There is no episode with seed ${seed} here.`;
    const panel = el("section", { class: `panel ${id}`, "aria-labelledby": id }, title, el("p", { class: "notice" }, text));
    return { panel, show: () => "" };
  }
  const stage = el("div", { class: "stage" });
  const round = el("div", { class: "round" });
  const moves = movesTable(episode, name);
  const boards = episode.frames.map((frame) => frame.board).filter((board) => board !== null);
  const panel = el(
    "section",
    { class: `panel ${id}`, "aria-labelledby": id },
    title,
    outcome(episode, scenario),
    episode.error !== null && el("p", { class: "notice" }, "Unscored: ", foreign(episode.error)),
    el("div", { class: "scene" }, el("div", { class: "stage-box" }, stage, drawLegend(boards, scenario, (text) => withAgents(text, episode))), moves.box),
    round,
  );
  const show = (step) => {
    const at = Math.min(step, episode.frames.length - 1);
    const frame = episode.frames[at];
    const label = at === episode.frames.length - 1 ? "Board at the end:" : `Board before round ${at + 1}:`;
    const before = at > 0 ? episode.frames[at - 1].board : null;
    refill(
      stage,
      frame.board === null ? el("p", { class: "note" }, "This game has no board.") : drawBoard(frame.board, before, scenario, label),
    );
    refill(round, frame.moves.length ? frame.moves.map((move) => moveText(move, scenario, episode)) : endText(frame, episode));
    moves.mark(at);
    return frame.moves.map((move) => `${move.agent}: ${moveInWords(move)}.`).join(" ") || `${name}: ${withAgents(episode.ending, episode)}.`;
  };
  return { panel, show };
}

function outcome(episode, scenario) {
  const returns = INDEX.returns[episode.number];
  const successes = INDEX.successes[episode.number];
  const rounds = plural(INDEX.rounds[episode.number], "round");
  const invalid = INDEX.invalid[episode.number];
  const results = episode.players.map((player, place) => {
    const success = successes[place] ? "success" : "no success";
    const who = episode.players.length > 1 ? [foreign(withAgents(player, episode)), ": "] : "";
    const told = scenario.success_means ? `${success}, ` : "";
    return el("li", { class: successes[place] ? "good" : "" }, who, `${told}return ${points(returns[place])}`);
  });
  return el(
    "ul",
    { class: "outcome", "aria-label": "Outcome" },
    INDEX.ending[episode.number] === "e" ? el("li", { class: "bad" }, "unscored") : results,
    el("li", {}, rounds),
    el("li", {}, "the episode ", foreign(withAgents(episode.ending, episode))),
    invalid > 0 && el("li", { class: "bad" }, `${invalid} invalid`),
  );
}

// All rounds at a glance; each leads to its round.
function movesTable(episode, name) {
  const several = episode.players.length > 1;
  const known = episode.frames.some((frame) => frame.moves.some((move) => move.lost !== null));
  const rows = episode.frames.map((frame, at) => {
    const go = el("button", { type: "button", onclick: () => showStep(at) }, frame.moves.length ? String(at + 1) : "End");
    const each = (show) => frame.moves.map((move) => el("div", {}, show(move)));
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, go),
      el("td", {}, each((move) => [several && el("span", { class: "mover" }, foreign(short(move.agent)), ": "), move.action, !move.valid && el("span", { class: "bad" }, " invalid")])),
      el("td", {}, each((move) => points(move.reward))),
      el("td", {}, each((move) => points(move.total))),
      known && el("td", {}, each((move) => points(move.lost))),
    );
  });
  const heads = ["Round", several ? "Actions" : "Action", "Reward", "Return", ...(known ? ["Lost"] : [])];
  const table = el(
    "table",
    { class: "moves" },
    el("caption", {}, "Moves of ", foreign(name)),
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, rows),
  );
  const box = el("div", { class: "moves-box", tabindex: 0, role: "region", "aria-label": `Moves of ${name}` }, table);
  const mark = (at) => {
    rows.forEach((row, place) => {
      if (place === at) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    });
    const row = rows[at];
    const top = table.tHead.offsetHeight;
    if (row.offsetTop - top < box.scrollTop) box.scrollTop = row.offsetTop - top;
    const under = row.offsetTop + row.offsetHeight - box.clientHeight;
    if (under > box.scrollTop) box.scrollTop = under;
  };
  return { box, mark };
}

function moveInWords(move) {
  const read = move.valid ? move.action : `invalid (${reason(move)}), executed ${move.action}`;
  return `${read}${move.happened ? `, ${move.happened}` : ""}, reward ${points(move.reward)}, return ${points(move.total)}`;
}

const reason = (move) => (move.unreadable || "no legal action").replaceAll("_", " ");

// What one player was asked and what it answered.
function moveText(move, scenario, episode) {
  const action = move.valid
    ? el("dd", {}, el("strong", {}, move.action))
    : el("dd", { class: "bad" }, el("strong", {}, `none: ${reason(move)}`), ` (the game executed ${move.action})`);
  const fact = (name, value) => el("div", {}, el("dt", {}, name), value);
  return el(
    "div",
    { class: "move" },
    episode.players.length > 1 && el("h4", { class: "who" }, foreign(move.agent), ` (${move.player})`),
    el(
      "dl",
      { class: "facts" },
      fact("Action", action),
      move.happened && fact("What happened", el("dd", {}, foreign(withAgents(move.happened, episode)))),
      fact("Reward", el("dd", {}, points(move.reward))),
      fact("Return so far", el("dd", {}, points(move.total))),
      move.lost !== null && fact("Value lost", el("dd", {}, points(move.lost), move.best !== move.action && `, best: ${move.best}`)),
    ),
    move.reasoning !== null && foldable("Reasoning", false, el("pre", { class: "reasoning", dir: "auto" }, visible(move.reasoning))),
    el("h4", {}, "Response", move.finish === "length" && el("span", { class: "note" }, " cut off at the token limit")),
    responseText(move),
    promptText(move, scenario),
  );
}

// The response as it is, with the tag that was read marked in it.
function responseText(move) {
  const text = visible(move.response || "");
  const found = move.valid ? /<action>[^]*?<\/action>/.exec(text) : null;
  const parts = found
    ? [text.slice(0, found.index), el("mark", {}, found[0]), text.slice(found.index + found[0].length)]
    : [text];
  const empty = !text && el("span", { class: "note" }, "(empty)");
  return el("pre", { class: "response", dir: "auto" }, parts, empty);
}

// What the reader opened or closed stays so from round to round.
const folded = new Map();
function foldable(title, open, ...content) {
  const remember = (event) => folded.set(title, event.target.open);
  const now = folded.has(title) ? folded.get(title) : open;
  return el("details", { open: now, ontoggle: remember }, el("summary", {}, title), content);
}

// The messages of the prompt as they were sent; what a player without a model is told.
function promptText(move, scenario) {
  const block = (title, open, text) => foldable(title, open, el("pre", { dir: "auto" }, visible(text)));
  if (move.prompt === null) return [block("Observation", true, move.observation || ""), block("Instructions", false, scenario.instructions)];
  return move.prompt.map(([role, text]) => block(`Prompt, ${role} message`, true, text));
}

function endText(frame, episode) {
  const last = frame.observation && el("pre", { dir: "auto" }, visible(frame.observation));
  const title = "Last observation, answered by nobody";
  return [el("p", { class: "end" }, "The episode ", foreign(withAgents(episode.ending, episode)), "."), last && foldable(title, true, last)];
}
