"""Trainings of milliseconds, iterations without a model, methods that remember, and exact values of known policies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
import torch

import textgames
from agents.baselines.random import RandomPlayer
from agents.episode import Episode, EpisodeTask
from agents.loop.rollout import rollout
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer, Rollouts
from agents.msgrpo.credit import Batch, Credit, Floats, Start
from agents.msgrpo.tasks import Plain
from agents.msgrpo.trajectories import Game
from agents.turn import Policy, Turn, TurnRequest
from textgames import TSMG

SHORT = MSGRPOConfig(
    groups=2, group_size=4, iterations=4, response_mode="direct", max_response_tokens=2, temperature=1.0, minibatches=1,
    learning_rate=1e-3, eval_every=0, samples_every=0,
)  # fmt: skip
ALONE: dict[str, Any] = {"stop_after": 0, "preflight_episodes": 0}  # nothing looks at how the run goes


def untimed(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in each.items() if not k.endswith(("seconds", "per_second"))} for each in history]


def same_weights(one: MSGRPOTrainer, two: MSGRPOTrainer) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True))


class Moving:
    """Credits returns less a mean that moves with every batch."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.mean = 0.0

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        returns, before = batch.returns(), self.mean
        self.mean += 0.5 * (float(returns.mean()) - self.mean)
        return Credit.per_episode(batch, returns - before)._replace(metrics={"moving_mean": self.mean})

    def state_dict(self) -> dict[str, Any]:
        return {"mean": self.mean}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.mean = state["mean"]


class Counting(Moving):
    """Credits likewise, and remembers it under another name."""

    def state_dict(self) -> dict[str, Any]:
        return {"counted": self.mean}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.mean = state["counted"]


class Sampler(Plain):
    """Plays the plain tasks and remembers a number."""

    def state_dict(self) -> dict[str, Any]:
        return {"level": 1}


MOVING, COUNTING, SAMPLER = (f"{__name__}:{each.__name__}" for each in (Moving, Counting, Sampler))


def play(policy: Policy, tasks: Sequence[EpisodeTask]) -> list[Episode]:
    by_seed = {episode.seed: episode for episode in rollout(policy, tasks)}
    return [by_seed[task.seed] for task in tasks]


def iteration_of(game: Game, policy: Any = None, *, number: int = 0, **settings: Any) -> Rollouts:
    """An iteration of a game; the random player plays it where nobody else is given."""
    return Rollouts(MSGRPOConfig(**settings), [game], number, policy or RandomPlayer(), play)


Chances = Callable[[Any, str], Mapping[str, float]]
INVALID = "?"


def favour(game: TSMG[Any], share: float, invalid: float) -> Chances:
    """The state's favourite action with probability ``share``, nothing readable with ``invalid``, else any."""

    def chances(state: Any, player: str) -> dict[str, float]:
        legal = game.legal_actions(state, player)
        rest = (1 - share - invalid) / len(legal)
        best = legal[len(game.observe(state, player)) % len(legal)]
        return {action: rest + share * (action == best) for action in legal}

    return chances


class Known:
    """Plays a known policy; its responses have as many tokens as it is told."""

    name = "known"

    def __init__(self, share: float = 0.0, invalid: float = 0.0, tokens: int = 3) -> None:
        self.share, self.invalid, self.tokens = share, invalid, tokens
        self.seeds: list[tuple[int, ...]] = []

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [self._answer(request) for request in requests if isinstance(request, TurnRequest)]

    def _answer(self, request: TurnRequest) -> Turn:
        self.seeds.append(request.seed)
        legal = request.legal_actions
        best = legal[len(request.observation) % len(legal)]
        draw = np.random.default_rng((77, *request.seed)).random()  # numbers of its own, not the environment's
        if draw < self.invalid:
            said = INVALID
        elif draw < self.invalid + self.share:
            said = best
        else:
            said = RandomPlayer().choose(request).action
        return Turn(f"<action>{said}</action>", prompt_ids=(1,), response_ids=(1,) * self.tokens)


class Exact:
    """``V^pi`` and ``Q^pi`` of every player, in a state with so many rounds left."""

    def __init__(self, task: EpisodeTask, share: float = 0.0, invalid: float = 0.0) -> None:
        env = textgames.parallel_env(task.env_id, **task.kwargs)
        assert env.rules.invalid_action == "default"
        self.game, self.penalty, self.limit = env.game, env.rules.format_penalty, env.rules.max_steps
        self.chances = favour(self.game, share, invalid)
        self._values: dict[Any, dict[str, float]] = {}

    def value(self, state: Any, left: int, player: str) -> float:
        return self._all(state, left)[player]

    def action_value(self, state: Any, left: int, player: str, response: str) -> float:
        """Of what ``player`` says, an action or :data:`INVALID`, while the others play on."""
        mine = [(response, 1.0)]
        return self._expected(state, left, {player: mine})[player]

    def _all(self, state: Any, left: int) -> dict[str, float]:
        if left == 0:
            return dict.fromkeys(self.game.players, 0.0)
        if (state, left) not in self._values:
            self._values[state, left] = self._expected(state, left, {})
        return self._values[state, left]

    def _said(self, state: Any, player: str) -> Iterator[tuple[str, float]]:
        known = self.chances(state, player)
        yield from known.items()
        yield INVALID, 1 - sum(known.values())

    def _expected(self, state: Any, left: int, fixed: Mapping[str, list[tuple[str, float]]]) -> dict[str, float]:
        game, total = self.game, dict.fromkeys(self.game.players, 0.0)
        movers = game.to_move(state)
        for said in product(*[fixed.get(player) or list(self._said(state, player)) for player in movers]):
            joint, weight, penalties = {}, 1.0, dict.fromkeys(game.players, 0.0)
            for player, (response, probability) in zip(movers, said, strict=True):
                joint[player] = game.default_action(state, player) if response == INVALID else response
                penalties[player] = self.penalty * (response == INVALID)
                weight *= probability
            if weight <= 0:
                continue
            for chance, after, rewards, over in game.outcomes(state, joint):
                ahead = dict.fromkeys(game.players, 0.0) if over else self._all(after, left - 1)
                for player in game.players:
                    paid = rewards.get(player, 0.0) - penalties[player] + ahead[player]
                    total[player] += weight * chance * paid
        return total


class ExactRollouts:
    """Fresh rollouts whose mean is the exact value: what an infinite number of them would say."""

    tokens = 0

    def __init__(self, exact: Exact) -> None:
        self.exact, self.policy, self.asked = exact, RandomPlayer(), list[Start]()

    def returns_from(self, starts: Sequence[Start], count: int) -> Floats:
        self.asked += starts
        assert self.exact.limit is not None
        values = [self.exact.value(s.state, self.exact.limit - s.elapsed_steps, s.player) for s in starts]
        return np.repeat(np.array(values)[:, None], count, axis=1)
