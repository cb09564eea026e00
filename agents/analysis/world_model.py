"""How well a player predicts the result of an action, against the true chances, in positions of random play."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from agents.baselines.scripted_player import ScriptedPlayer
from agents.common.intervals import Estimate, student
from agents.turn import Policy, TurnRequest, request_in
from textgames.rounds import rounds_of_play
from textgames.scenarios import Scenario

WORLD_QUESTION = "The player answers: {action}\nWhat is shown next?"
"""What stands below an observation if a world model is asked."""

_POSITIONS = 3  # of each episode at most, drawn among those that were played


def asked_after(request: TurnRequest, action: str) -> TurnRequest:
    """Make the request in which a world model is asked for the result of an action."""
    return replace(request, observation=f"{request.observation}\n\n{WORLD_QUESTION.format(action=action)}")


class WorldFidelity(NamedTuple):
    """The worth of predictions: means over pairs of a position and an action, with intervals over starts."""

    possible: Estimate  #: the share of predictions that can occur
    probability: Estimate  #: the true probability of what was predicted
    attainable: Estimate  #: the same of the likeliest outcome, the most that it can be
    distance: Estimate  #: total variation between a pair's predictions and the true chances
    pairs: int  #: positions with an action that were asked about
    samples: int  #: predictions of each pair


def world_fidelity(world: Policy, scenario: Scenario, *, starts: int = 20, samples: int = 1) -> WorldFidelity:
    """Ask a world model about every legal action in positions of random play of a one-player game with known chances.

    The ``starts`` are the scenario's first episodes; there are ``samples`` predictions of each pair.
    """
    if isinstance(world, ScriptedPlayer):
        raise ValueError(f"{world.name} answers with a move whatever it is asked: name a language model")
    game = scenario.game()
    if len(game.players) > 1 or not game.has_outcomes:
        raise ValueError(
            f"{scenario.name} has no outcomes that a world model could predict: choose a single-player game that lists "
            "its chances"
        )

    def drawn(start: int) -> Iterator[tuple[TurnRequest, Any]]:
        """Yield different positions of one episode of random play."""
        rng = np.random.default_rng([0, start])
        state = game.initial_state(np.random.default_rng(scenario.seed(start)))
        states = list(dict.fromkeys(one.state for one in rounds_of_play(game, state, scenario.horizon, rng)))
        for at in sorted(rng.permutation(len(states))[:_POSITIONS].tolist()):
            if player := game.to_move(states[at]):
                yield request_in(game, states[at], player[0]), states[at]

    asked = [
        (start, request, action, state)
        for start in range(starts)
        for request, state in drawn(start)
        for action in request.legal_actions
    ]
    if not asked:
        raise ValueError(f"{scenario.name} doesn't list its actions, which a world model would be asked about")
    questions = [
        replace(asked_after(request, action), seed=(0, at, sample))
        for at, (_, request, action, _) in enumerate(asked)
        for sample in range(samples)
    ]
    turns = world.act(questions)
    if failed := [turn.error for turn in turns if turn.error is not None]:
        raise RuntimeError(failed[0])
    figures: dict[int, list[tuple[float, float, float, float]]] = {}
    for at, (start, request, action, state) in enumerate(asked):
        said = [turn.response.strip() for turn in turns[at * samples : (at + 1) * samples]]
        chances: dict[str, float] = {}
        for chance, after, *_ in game.outcomes(state, {request.player: action}):
            text = game.observe(after, request.player).strip()
            chances[text] = chances.get(text, 0.0) + chance
        true = [chances.get(text, 0.0) for text in said]
        shares = {text: said.count(text) / len(said) for text in said}
        apart = sum(abs(shares.get(text, 0.0) - chances.get(text, 0.0)) for text in {*shares, *chances}) / 2
        can_occur = float(np.mean([p > 0 for p in true]))
        figures.setdefault(start, []).append((can_occur, float(np.mean(true)), max(chances.values()), apart))
    means = np.array([np.mean(own, axis=0) for own in figures.values()])
    # where all starts agree, how far they may differ isn't known
    figures_of = (student(column) if np.ptp(column) > 0 else Estimate(float(column[0])) for column in means.T)
    possible, probability, attainable, distance = figures_of
    return WorldFidelity(possible, probability, attainable, distance, len(asked), samples)
