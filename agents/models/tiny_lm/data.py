"""Demonstrations as training data: episodes of the noisy demonstrator on training seeds, as prompts and responses."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.models.tiny_lm.demonstrator import Demonstrator, Style
from agents.prompt import PromptMap, as_text
from agents.turn import TurnRequest
from textgames.scenarios import SCENARIOS, TRAINING_SEEDS, Scenario


class Example(NamedTuple):
    """One decision to imitate."""

    prompt: str
    response: str
    observation: str


def scenarios_of(games: Sequence[str]) -> dict[str, float]:
    """The scenarios to demonstrate and their shares of the examples.

    Args:
        games: ``"frozen-lake"`` or ``"snake"``: the game's training scenario for one half, its variants for the other;
            with ``-training`` after it the training scenario alone; or the name of a variant.

    Raises:
        ValueError: another name.
    """
    shares: dict[str, float] = {}
    for game in games:
        alone = game.removesuffix("-training")
        if alone not in SCENARIOS or (alone != game and not SCENARIOS[alone].training):
            known = ", ".join((*SCENARIOS, *(f"{name}-training" for name in SCENARIOS if SCENARIOS[name].training)))
            raise ValueError(f"no game or scenario {game!r}; there are {known}")
        variants = [] if alone != game else [name for name in SCENARIOS if name.startswith(f"{game}-")]
        weights = {alone: float(max(1, len(variants)))} | dict.fromkeys(variants, 1.0)
        for name, weight in weights.items():
            shares[name] = shares.get(name, 0.0) + weight / sum(weights.values()) / len(games)
    return shares


def demonstrations(
    scenario: Scenario, count: int, style: Style, rng: np.random.Generator, *, modes: Sequence[str] = ("think",)
) -> list[Example]:
    """Play training seeds until there are ``count`` decisions, each with the prompt of a random one of ``modes``.

    The layouts are those of the environment's training seeds; transitions and choices come from ``rng``.
    """
    game = scenario.game()
    demonstrator = Demonstrator(game, style)
    prompt_maps = {mode: PromptMap(mode=mode) for mode in modes}
    instructions = {player: game.instructions(player) for player in game.players}
    examples: list[Example] = []
    while len(examples) < count:
        state = game.initial_state(np.random.default_rng(int(rng.integers(len(TRAINING_SEEDS)))))
        for _ in range(scenario.horizon):
            actions = {}
            for player in game.players:
                if not game.is_playing(state, player):
                    continue
                observation = game.observe(state, player)
                told = demonstrator(state, observation, rng)
                actions[player] = told.action
                mode = modes[int(rng.integers(len(modes)))]
                request = TurnRequest(observation, instructions[player], game.legal_actions(state, player))
                prompt = as_text(prompt_maps[mode](request))
                examples.append(Example(prompt, told.think if mode == "think" else told.direct, observation))
            joint = {player: actions.get(player, game.actions[0]) for player in game.players}
            state, _, over = game.transition(state, joint, rng)
            if over:
                break
    return examples[:count]
