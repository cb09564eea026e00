"""A game under other chances than its rules tell: the worst ones within a ball, or some drawn from it.

::

    import gymnasium as gym
    lake = gym.make("research.robustness.worst_case.perturbed:PerturbedLake-v0", radius=0.2, against="nominal")

Texts and states are the game's, so an agent is measured where the rules that it was told fail a little:
``textbench run --agent A --scenario research.robustness.worst_case.perturbed:PerturbedLake-v0``. A game of your own:
``textgames.register("Mine-v0", Perturbed, scenario="cliff-walking-slippery", radius=0.05, max_steps=100)``.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from types import MappingProxyType
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.random import Generator

from research.robustness.worst_case.solver import BALLS, Model, Solution, towards
from textgames import SCENARIOS, TSMG, Action, Outcome, Player, game_of, register, register_yardstick
from textgames.solving import Floats, ValueIteration

Joint = Mapping[Player, Action]
AGAINST = ("optimal", "nominal", "drawn")
_FACTS = (
    *("players", "actions", "noop", "bare_responses", "hidden_information", "pays_late", "return_range", "worst_round"),
    *("shortest_win", "palette", "legend", "board_labels", "success_means", "read_action"),
)  # what it has from the game as it is
_OF_A_STATE = (
    *("legal_actions", "default_action", "sample_action", "succeeded", "metrics", "forfeit", "action_help", "board"),
    "describe",
)  # likewise, once it is given its state


class Timed(NamedTuple):
    """A state of the game, and how many rounds were played: nature's choice may depend on both."""

    state: Any
    played: int


class Perturbed(TSMG[Timed]):
    """A game for one player with other chances.

    Args:
        scenario: the game and its horizon, by the name of a scenario.
        settings: of the game, in place of the scenario's.
        horizon: rounds of an episode, in place of the scenario's.
        radius: of the ball around the chances of each state and action.
        ball: ``tv`` (total variation, 0 to 1) or ``kl`` (relative entropy to the rules' chances, in nats).
        against: the policy whose return nature makes as low as it can: ``optimal``, the one that does best against
            that; ``nominal``, the best by the rules; or ``(state, rounds left) -> {action: probability}``. ``drawn`` is
            against none: each state and action has chances of its own, drawn once, on the rim of the ball.
        draw: the seed of ``drawn``.
    """

    def __init__(
        self,
        *,
        scenario: str = "frozen-lake-slippery",
        settings: Mapping[str, Any] = MappingProxyType({}),
        horizon: int | None = None,
        radius: float = 0.1,
        ball: str = "tv",
        against: str | Callable[[Any, int], Mapping[Action, float]] = "optimal",
        draw: int = 0,
    ) -> None:
        known = [("scenario", scenario, SCENARIOS), ("ball", ball, BALLS)]
        for name, value, accepted in [*known, *([] if callable(against) else [("against", against, AGAINST)])]:
            if value not in accepted:
                raise ValueError(f"{name} must be one of {', '.join(accepted)}, got {value!r}")
        if not radius >= 0:
            raise ValueError(f"radius must be a number of at least 0, got {radius!r}")
        row = SCENARIOS[scenario]
        self.original = game = game_of(row.env_id, **{**row.kwargs, **settings})
        self.horizon = self.usual_limit = self.longest_episode = horizon or row.horizon
        self.radius, self.ball, self.against, self.draw = radius, ball, against, draw
        self._solved: dict[Any, tuple[Model, Solution]] = {}  # by each of the states
        for name in (*_FACTS, *_OF_A_STATE):
            own = getattr(game, name)
            setattr(self, name, own if name in _FACTS else _untimed(own))
        Model.of(game, [game.initial_state(np.random.default_rng(0))], 1)  # refuses a game without chances to move

    has_board = property(lambda self: self.original.has_board)

    def instructions(self, player: Player) -> str:
        return self.original.instructions(player)

    def observe(self, state: Timed, player: Player) -> str:
        return self.original.observe(state.state, player)

    def initial_state(self, rng: Generator) -> Timed:
        return Timed(self.original.initial_state(rng), 0)

    def is_playing(self, state: Timed, player: Player) -> bool:
        return state.played < self.horizon and self.original.is_playing(state.state, player)

    def transition(self, state: Timed, joint_action: Joint, rng: Generator) -> tuple[Timed, dict[Player, float], bool]:
        outcomes = self.outcomes(state, joint_action)
        return outcomes[int(rng.choice(len(outcomes), p=[chance for chance, *_ in outcomes]))][1:]

    def outcomes(self, state: Timed, joint_action: Joint) -> Sequence[Outcome[Timed]]:
        if not self.is_playing(state, self.players[0]):
            return [(1.0, state, dict.fromkeys(self.players, 0.0), True)]
        listed, played = self.original.outcomes(state.state, joint_action), state.played + 1
        chances = self._chances(state, joint_action[self.players[0]], tuple([chance for chance, *_ in listed]))
        return [
            (chance, Timed(after, played), rewards, over or played == self.horizon)
            for chance, (_, after, rewards, over) in zip(chances.tolist(), listed, strict=True)
            if chance > 0
        ]

    def _chances(self, state: Timed, action: Action, told: tuple[float, ...]) -> Floats:
        if self.against == "drawn":
            return _drawn(self.ball, self.radius, self.draw, state.state, action, told)
        left, (model, solution) = self.horizon - state.played, self._solved.get(state.state) or self._solve(state.state)
        if model.space.numbers[state.state] >= model.states(left):  # too far from the start that was solved
            model, solution = self._solve(state.state)
        number = model.space.numbers[state.state]
        place = model.space.decisions[number][0].actions.index(action)
        return np.asarray(solution.nature[left - 1, model.space.first_round[number] + place, : len(told)])

    def _solve(self, state: Any) -> tuple[Model, Solution]:
        model = Model.of(self.original, [state], self.horizon)
        solution = model.solve(model.policy(self.against), BALLS[self.ball], self.radius)
        if len(self._solved) > 100_000:
            self._solved.clear()
        self._solved |= dict.fromkeys(model.space.numbers, (model, solution))
        return model, solution


@lru_cache(maxsize=100_000)
def _drawn(ball: str, radius: float, draw: int, state: Any, action: Action, told: tuple[float, ...]) -> Floats:
    rng = np.random.default_rng([draw, crc32(repr((state, action)).encode())])
    return towards(rng.dirichlet(np.ones(len(told))), np.array(told), ball, radius)


def _untimed(method: Callable[..., Any]) -> Callable[..., Any]:
    return wraps(method)(lambda state, *others: method(state.state, *others))


register_yardstick(Perturbed, ValueIteration)
register("PerturbedLake-v0", Perturbed, max_steps=15)
