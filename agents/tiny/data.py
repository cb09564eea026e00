"""Demonstrations as training data: episodes on training seeds, as prompts and responses."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from agents.prompt import PromptMap, as_text
from agents.prompt_texts import PromptTexts
from agents.tiny.demonstrator import Demonstrator, StyleShares
from agents.turn import TurnRequest
from textgames.registry import registered_ids
from textgames.rounds import Choose, rounds_of_play
from textgames.scenarios import SCENARIOS, TRAINING_SEEDS, Scenario, known_scenario, scenario_of_game
from textgames.tsmg import TSMG, Action, Player

_MARKED_STEPS = 7_777_777_777  # a number of moves left that no prompt has, to find where prompts say it
_CONSTANT = 0.9  # a line in fewer of a player's observations than this share says something about the position


class Example(NamedTuple):
    """One decision to imitate, its prompt in parts, as the text around observations is shared by many."""

    before: str
    observation: str
    after: str
    response: str
    frame: tuple[tuple[str, ...], tuple[str, ...]]
    fixed: tuple[str, ...] = ()

    @property
    def prompt(self) -> str:
        return self.before + self.observation + self.after


def scenarios_of(games: Sequence[str]) -> dict[str, float]:
    """Return the scenarios to demonstrate and their shares of the examples; a ValueError for another name.

    A game is half its training scenario, half its variants; with ``-training`` the first alone.
    """
    shares: dict[str, float] = {}
    for game in games:
        alone = game.removesuffix("-training")
        if not scenario_of(alone, game).training and alone != game:
            raise _unknown(game)
        variants = [] if alone != game else [name for name in SCENARIOS if name.startswith(f"{game}-")]
        weights = {alone: float(max(1, len(variants)))} | dict.fromkeys(variants, 1.0)
        for name, weight in weights.items():
            shares[name] = shares.get(name, 0.0) + weight / sum(weights.values()) / len(games)
    return shares


def scenario_of(name: str, game: str = "") -> Scenario:
    """Find the scenario of a name, a twin's or a registered game's; a ValueError names ``game`` if it is unknown."""
    if (found := known_scenario(name)) is not None:
        return found
    if ":" in name or name in registered_ids():  # a game of one's own, which the command that asks for it has named
        return scenario_of_game(name)
    raise _unknown(game or name)


def _unknown(game: str) -> ValueError:
    known = ", ".join((*SCENARIOS, *(f"{name}-training" for name in SCENARIOS if SCENARIOS[name].training)))
    return ValueError(f"no game or scenario {game!r}; there are {known}")


def demonstrations(
    scenario: Scenario,
    count: int,
    style: StyleShares,
    rng: np.random.Generator,
    *,
    modes: Sequence[str] = ("think",),
    foresight: int = 1,
    texts: PromptTexts | None = None,
) -> list[Example]:
    """Play training seeds until there are ``count`` decisions, each with the prompt of a random one of ``modes``."""
    game = scenario.game()
    demonstrator = Demonstrator(game, style, foresight=foresight)
    texts = PromptTexts.default() if texts is None else texts
    frames = {mode: _frame(PromptMap(mode, texts=texts), game, game.players[0], listed=True) for mode in modes}
    told: dict[Player, tuple[str, str, str]] = {}

    def choose(state: Any, player: Player) -> Action:
        observation = game.observe(state, player)
        made = demonstrator(state, observation, rng)
        mode = modes[int(rng.integers(len(modes)))]
        told[player] = mode, observation, made.think if mode == "think" else made.direct
        return made.action

    examples = []
    for left, _, player, _ in islice(_decisions(scenario, game, rng, choose), count):
        mode, observation, response = told[player]
        before, after = frames[mode]
        examples.append(Example(left.join(before), observation, left.join(after), response, (before, after)))
    return examples


def legal_play(
    scenario: Scenario,
    count: int,
    rng: np.random.Generator,
    *,
    favourites: float = 0.5,
    favourite_of: Callable[[TSMG[Any], Any, Player], Action] | None = None,
    texts: PromptTexts | None = None,
) -> list[Example]:
    """Play training seeds by random legal moves until there are ``count`` decisions, answered directly.

    It teaches a model to read and to answer, and no skill: a start for self-play. The share ``favourites`` of moves is
    a favourite that every observation has, picked by a checksum of its text, or by ``favourite_of(game, state,
    player)``: it can't be imitated without reading the whole observation, while a model that has seen uniform play
    alone learns to overlook everything but the list of what is legal. A ValueError if the game lists no actions.
    """
    game = scenario.game()
    if not game.actions:
        raise ValueError(f"{scenario.name} doesn't list its actions, so random legal play can't be demonstrated")
    prompt_map = PromptMap("direct", texts=PromptTexts.default() if texts is None else texts)
    frames = {player: _frame(prompt_map, game, player, listed=False) for player in game.players}

    def choose(state: Any, player: Player) -> Action:
        legal = game.legal_actions(state, player)
        drawn = legal[int(rng.integers(len(legal)))]
        if rng.random() >= favourites:
            return drawn
        return favourite_of(game, state, player) if favourite_of else favourite(game.observe(state, player), legal)

    examples = []
    for left, state, player, action in islice(_decisions(scenario, game, rng, choose), count):
        before, between, after = frames[player]
        rest = f"{left.join(between)}{', '.join(game.legal_actions(state, player))}{left.join(after)}"
        shown, fixed = game.observe(state, player), (*before, *between, *after, *game.actions)
        response = f"<action>{action}</action>"
        examples.append(Example(left.join(before), shown, rest, response, (before, (*between, *after)), fixed))
    return examples


def favourite(observation: str, legal: Sequence[str]) -> str:
    """Return the legal action that an observation's checksum points at: always the same one, for no reason."""
    return legal[crc32(observation.encode()) % len(legal)]


def _decisions(
    scenario: Scenario, game: TSMG[Any], rng: np.random.Generator, choose: Choose
) -> Iterator[tuple[str, Any, Player, Action]]:
    """Yield ``(moves left, state, player, action)`` of all players in endless episodes on training seeds."""
    while True:
        start = game.initial_state(np.random.default_rng(int(rng.integers(len(TRAINING_SEEDS)))))
        for played, state, joint_action, *_ in rounds_of_play(game, start, scenario.horizon, rng, choose):
            for player, action in joint_action.items():
                yield str(scenario.horizon - played), state, player, action


def _frame(prompt_map: PromptMap, game: TSMG[Any], player: Player, *, listed: bool) -> tuple[tuple[str, ...], ...]:
    """Return a player's prompt before and after the observation, each in parts that the number of moves left joins.

    Unless legal actions are ``listed``, being always the same, what comes after is split once more, at the actions.
    """
    here, there = "<observation>", "<actions>"
    request = TurnRequest(
        *(here, game.instructions(player), game.actions),
        player=player,
        steps_left=_MARKED_STEPS,
        action_help="" if listed else there,
    )
    before, _, after = as_text(prompt_map(request)).partition(here)
    return tuple(tuple(text.split(str(_MARKED_STEPS))) for text in (before, *after.split(there)))


def whole_texts(examples: Sequence[Example]) -> list[str]:
    """Return the texts that are to be one token each: fixed ones, and lines that observations always have."""
    texts: dict[str, None] = {}
    lines: dict[tuple[str, ...], Counter[str]] = {}
    count: Counter[tuple[str, ...]] = Counter()
    for example in examples:
        texts |= dict.fromkeys(example.fixed)
        # what stands before the observation tells the players apart
        player = example.frame[0]
        count[player] += 1
        lines.setdefault(player, Counter()).update(set(example.observation.splitlines(keepends=True)))
    for player, found in lines.items():
        # sorted: a set's order differs from process to process, and with it the ids of tokens
        texts |= dict.fromkeys(line for line, times in sorted(found.items()) if times >= _CONSTANT * count[player])
    return [text for text in texts if len(text) > 1]
