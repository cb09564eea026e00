"""Demonstrations as training data: episodes of the noisy demonstrator on training seeds, as prompts and responses."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from agents.prompt import PromptMap, as_text
from agents.prompt_texts import PromptTexts
from agents.tiny.demonstrator import Demonstrator, StyleShares
from agents.turn import TurnRequest
from textgames.registry import registered_ids
from textgames.scenarios import SCENARIOS, TRAINING_SEEDS, Scenario, known_scenario, scenario_of_game
from textgames.tsmg import TSMG

MARKED_STEPS = 7_777_777_777
"""A number of moves left that no prompt has, to find where prompts say it."""


class Example(NamedTuple):
    """One decision to imitate. The prompt is kept in parts, as what stands around observations is shared by many.

    ``frame`` are the parts of ``before`` and ``after`` that are the same at every decision: what stands around the
    number of moves that are left. ``fixed`` are texts that are to be one token each, if the demonstration knows
    them.
    """

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

    ``"frozen-lake"`` or ``"snake"`` is the game's training scenario for one half, its variants for the other; with
    ``-training`` after it, it is the training scenario alone. The name of a variant, or of a twin, is that one.
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
    """Find the scenario of a name, a twin's or a registered game's; a ValueError tells of ``game`` if it's unknown."""
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
    """Play training seeds until there are ``count`` decisions, each with the prompt of a random one of ``modes``.

    The layouts are those of the environment's training seeds; transitions and choices come from ``rng``. ``texts`` is
    the prompts' wording, the package's when not given.
    """
    game = scenario.game()
    demonstrator = Demonstrator(game, style, foresight=foresight)
    texts = PromptTexts.default() if texts is None else texts
    # what a prompt says around its observation, which depends on the mode and the moves left alone
    frames = {mode: _frame(PromptMap(mode=mode, texts=texts), game) for mode in modes}
    examples: list[Example] = []
    while len(examples) < count:
        state = game.initial_state(np.random.default_rng(int(rng.integers(len(TRAINING_SEEDS)))))
        for step in range(scenario.horizon):
            left = str(scenario.horizon - step)
            actions = {}
            for player in game.players:
                if not game.is_playing(state, player):
                    continue
                observation = game.observe(state, player)
                told = demonstrator(state, observation, rng)
                actions[player] = told.action
                mode = modes[int(rng.integers(len(modes)))]
                before, after = frames[mode]
                response = told.think if mode == "think" else told.direct
                examples.append(
                    Example(left.join(before), observation, left.join(after), response, frame=(before, after))
                )
            joint = {player: actions.get(player, game.actions[0]) for player in game.players}
            state, _, over = game.transition(state, joint, rng)
            if over:
                break
    return examples[:count]


def _frame(prompt_map: PromptMap, game: TSMG[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the text before and after the observation in a game's prompts, for players that are told the same.

    Each is in parts, which the number of moves left joins.
    """
    player = game.players[0]
    here = "<observation>"
    request = TurnRequest(here, game.instructions(player), game.actions, player=player, steps_left=MARKED_STEPS)
    before, _, after = as_text(prompt_map(request)).partition(here)
    return around_the_clock(before), around_the_clock(after)


def around_the_clock(text: str) -> tuple[str, ...]:
    """Return the parts of a text that :data:`MARKED_STEPS` stands between."""
    return tuple(text.split(str(MARKED_STEPS)))
