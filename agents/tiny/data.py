"""Recipes of tiny models, and their data: demonstrations on training seeds, as prompts and responses."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from math import inf
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from agents.prompt import PromptMap, as_text
from agents.prompt_texts import PromptTexts
from agents.tiny.demonstrator import FORESIGHTS, Demonstrator, StyleShares
from agents.turn import TurnRequest
from textgames.registry import registered_ids
from textgames.rounds import Choose, rounds_of_play
from textgames.scenarios import SCENARIOS, TRAINING_SEEDS, Scenario, known_scenario, scenario_of_game
from textgames.settings import check_number, check_whole
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


@dataclass(frozen=True, slots=True)
class Recipe:
    """The settings of a tiny model; by default one of 0.4 million parameters that reads both games."""

    #: what it learns to read: games with all variants, or single scenarios
    games: tuple[str, ...] = ("frozen-lake", "snake")
    modes: tuple[str, ...] = ("think", "direct")  #: response modes to learn: ``"think"``, ``"direct"``
    prompts: str = "default"  #: the wording that it learns to read: a file, or the name of one that ships
    examples: int = 120_000  #: decisions that are demonstrated, over all scenarios
    style: StyleShares = field(default_factory=StyleShares)  #: how noisy the demonstrator is
    steps: int = 1_250  #: optimiser steps
    batch_size: int = 96  #: examples per step
    learning_rate: float = 3e-3  #: the highest; it rises over the first 5% of the steps and falls to 0 by a cosine
    weight_decay: float = 0.05  #: of AdamW, on matrices
    hidden_size: int = 96  #: the model's width
    intermediate_size: int = 256
    layers: int = 4
    heads: int = 3
    kv_heads: int = 1
    context_length: int = 2048  #: positions that it has
    foresight: int = 1  #: how many moves ahead the demonstrator's reasoning reports, 1 to 6
    seed: int = 0  #: of data, weights and batches
    threads: int = 1  #: of PyTorch. Sums are rounded differently with another number, so it is part of the recipe.

    def __post_init__(self) -> None:
        counts = ("hidden_size", "intermediate_size", "layers", "heads", "kv_heads", "context_length")
        for name in ("examples", "steps", "batch_size", "threads", *counts):
            check_whole(name, getattr(self, name), 1, None)
        check_whole("foresight", self.foresight, FORESIGHTS[0], FORESIGHTS[-1])
        check_whole("seed", self.seed, 0, None)
        check_number("learning_rate", self.learning_rate, 0, inf, open_ends=True)
        check_number("weight_decay", self.weight_decay, 0, inf)
        if self.hidden_size % (2 * self.heads):
            raise ValueError(
                f"hidden_size must be a multiple of twice the heads, got hidden_size={self.hidden_size} "
                f"and heads={self.heads}"
            )
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads divides heads, got heads={self.heads} and kv_heads={self.kv_heads}")
        if not self.modes or set(self.modes) - {"think", "direct"}:
            raise ValueError(f"modes are think and direct, got {self.modes!r}")
        if not self.games:
            raise ValueError("games is empty; name frozen-lake, snake or both")
        PromptTexts.from_file(self.prompts)  # a file that can't be read is said now
        self.style.checked()

    @classmethod
    def quick(cls, **changes: Any) -> "Recipe":
        """Return 0.2 million parameters for the Frozen Lake training scenario: about a minute on one core."""
        settings: dict[str, Any] = {
            "games": ("frozen-lake-training",),
            "modes": ("think",),
            "examples": 40_000,
            "steps": 800,
            "batch_size": 64,
            "learning_rate": 5e-3,
            "hidden_size": 64,
            "intermediate_size": 160,
            "layers": 4,
            "heads": 2,
        }
        return cls(**(settings | changes))

    @classmethod
    def legal_play(cls, games: Sequence[str], **changes: Any) -> "Recipe":
        """Return 0.07 million parameters that answer with random legal moves of any games: a start for self-play."""
        settings: dict[str, Any] = {
            "games": tuple(games),
            "modes": ("direct",),
            "examples": 12_000,
            "steps": 300,
            "batch_size": 32,
            "hidden_size": 48,
            "intermediate_size": 128,
            "layers": 2,
        }
        return cls.quick(**(settings | changes))

    @property
    def texts(self) -> PromptTexts:
        """The texts of :attr:`prompts`."""
        return PromptTexts.from_file(self.prompts)

    @property
    def as_data(self) -> dict[str, Any]:
        return asdict(self) | {"style": self.style._asdict()}
