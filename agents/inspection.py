"""Look inside a policy: what it wants to do at every step of an episode, against what the solver says it should.

Two distributions over actions:

* what the policy *wants*, ``pi(a | s) = sum over responses y with psi(y) = a of p(y | rho(phi(s)))`` (arXiv 2508.10839,
  section 4): exact where the response is nothing but the action (``direct`` mode, local model), else shares of
  responses drawn anew;
* what is left *after its reasoning*, for local models: every legal action is scored behind the response's own text up
  to its ``<action>`` tag. Exact. It shows whether the choice is made by the reasoning or after it.

Values are exact for Frozen Lake (finite-horizon value iteration) and a search's estimates for Snake.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from agents.episode import Episode, EpisodeTask, Step
from agents.loop.rollout import rollout
from agents.turn import Policy, Prompt, TurnRequest
from textgames.action_text import CLOSE_TAG, OPEN_TAG, ActionNames, parse_action
from textgames.tsmg import TSMG

Source = Literal["scored", "sampled"]

DEFAULT_SAMPLES = 32
"""Responses per step where the distribution has to be sampled."""

TIE = 1e-9
_AGAIN = 303  # what the seeds of the samples begin with, so that they meet no decision's


@dataclass(frozen=True)
class InspectedStep:
    """One step, seen from inside.

    Attributes:
        step: what was played.
        probabilities: ``{action: probability}`` of every legal action; what is missing to 1 is invalid.
        source: of the probabilities: ``"scored"`` (exact) or ``"sampled"`` (shares of sampled responses).
        after_reasoning: ``{action: exact probability behind the response's own reasoning}``; ``None`` where the policy
            has no local model or the response no action tag.
        values: ``{action: the solver's value}`` of every action: expected return of it and good play after it.
    """

    step: Step
    probabilities: Mapping[str, float]
    source: Source
    after_reasoning: Mapping[str, float] | None
    values: Mapping[str, float]

    @property
    def best(self) -> tuple[str, ...]:
        """The actions of the largest value."""
        most = max(self.values.values())
        return tuple(action for action, value in self.values.items() if value >= most - TIE)

    @property
    def best_probability(self) -> float:
        """The probability of doing one of the best actions."""
        return sum(self.probabilities.get(action, 0.0) for action in self.best)

    @property
    def invalid_probability(self) -> float:
        """The probability of a response that names no legal action."""
        return max(0.0, 1.0 - sum(self.probabilities.values()))

    @property
    def regret(self) -> float:
        """What is lost in expectation against the best action; an invalid response executes the first action."""
        default = next(iter(self.values))
        expected = sum(probability * self.values[action] for action, probability in self.probabilities.items())
        return max(0.0, max(self.values.values()) - expected - self.invalid_probability * self.values[default])


@dataclass(frozen=True)
class Inspection:
    """One episode, seen from inside.

    Attributes:
        episode: what was played.
        steps: of the first player.
        value_source: ``"exact"``, or ``"search"``.
    """

    episode: Episode
    steps: tuple[InspectedStep, ...]
    value_source: str


def inspect_episode(policy: Policy, scenario: Any, seed: int, *, samples: int = DEFAULT_SAMPLES) -> Inspection:
    """Play one episode and look inside every step.

    Args:
        policy: who plays.
        scenario: a scenario, its name or an environment id, of Frozen Lake or Snake.
        seed: of the episode.
        samples: responses per step where the distribution has to be sampled.

    Raises:
        ValueError: a game without a solver, an unknown scenario, or no samples.
        RuntimeError: the episode couldn't be played to its end.
    """
    if samples < 1:
        raise ValueError(f"samples is a whole number of at least 1, got {samples!r}")
    task = EpisodeTask.of(scenario, seed)
    game = _game_of(task)
    solver = _solver_of(game)
    (episode,) = rollout(policy, [task])
    if episode.error is not None:
        raise RuntimeError(f"the episode with seed {seed} could not be played: {episode.error}")
    player, horizon = game.players[0], task.kwargs.get("max_steps")
    steps = episode.steps_of(player)
    requests = [
        TurnRequest(
            step.observation,
            game.instructions(player),
            game.actions,
            player=player,
            steps_left=None if horizon is None else int(horizon) - step.index,
            game=game,
            seed=(_AGAIN, seed, step.index),
        )
        for step in steps
    ]
    values = [
        solver(request.observation, request.steps_left, np.random.default_rng(request.seed)) for request in requests
    ]
    wanted, source = _wanted(policy, steps, requests, samples)
    after = [_after_reasoning(policy, step, game.actions) for step in steps]
    inspected = [
        InspectedStep(*parts[:2], source, *parts[2:]) for parts in zip(steps, wanted, after, values, strict=True)
    ]
    return Inspection(episode, tuple(inspected), "exact" if _is_lake(game) else "search")


# ---------------------------------------------------------------- the policy


def _wanted(
    policy: Policy, steps: Sequence[Step], requests: Sequence[TurnRequest], samples: int
) -> tuple[list[dict[str, float]], Source]:
    """``pi(a | s)`` of every step."""
    if all(step.turn.response.startswith(OPEN_TAG) for step in steps):
        scored = [
            score_actions(policy, step.turn.prompt, "", r.legal_actions)
            for step, r in zip(steps, requests, strict=True)
        ]
        if None not in scored:
            return [one for one in scored if one is not None], "scored"
    return sample_actions(policy, requests, samples), "sampled"


def _after_reasoning(policy: Policy, step: Step, actions: Sequence[str]) -> dict[str, float] | None:
    reasoning, tag, _ = step.turn.response.partition(OPEN_TAG)
    return score_actions(policy, step.turn.prompt, reasoning + tag, actions) if tag else None


def score_actions(policy: Policy, prompt: Prompt, given: str, actions: Sequence[str]) -> dict[str, float] | None:
    """The exact probability of the continuations ``<action>NAME</action>``, at the policy's temperature.

    One forward pass scores all of them. With a tokenizer that joins the end of ``given`` and the name into one token
    the score begins at the first token in which the continuations differ. At temperature 0 it is the model's own
    distribution (temperature 1), as a greedy choice has none.

    Args:
        policy: any policy.
        prompt: what the model was sent.
        given: the response so far: nothing, or its text up to and with the opening tag.
        actions: the names to score.

    Returns:
        ``{action: probability}``, or ``None`` where the policy has no local model.
    """
    model: Any = getattr(policy, "model", None)
    if not hasattr(model, "tokenizer") or not hasattr(model, "encode") or not prompt:
        return None
    temperature = getattr(getattr(policy, "decoding", None), "temperature", 1.0) or 1.0
    (prompt_ids,) = model.encode([prompt])
    texts = [f"{given or OPEN_TAG}{action}{CLOSE_TAG}" for action in actions]
    encoded = [model.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    start = len(prompt_ids) + (_shared_prefix(encoded) if given else 0)
    sums = _continuation_logprobs(model.model, [[*prompt_ids, *ids] for ids in encoded], start, temperature)
    return {action: float(np.exp(total)) for action, total in zip(actions, sums, strict=True)}


def _shared_prefix(rows: Sequence[Sequence[int]]) -> int:
    """How many tokens all rows begin with."""
    length = 0
    while all(len(row) > length and row[length] == rows[0][length] for row in rows):
        length += 1
    return length


def _continuation_logprobs(model: Any, rows: Sequence[Sequence[int]], start: int, temperature: float) -> list[float]:
    """Sums of log-probabilities of the tokens from position ``start`` on, of every row, in nats."""
    import torch

    longest = max(map(len, rows))
    device = next(model.parameters()).device
    ids = torch.zeros(len(rows), longest, dtype=torch.long, device=device)
    mask = torch.zeros_like(ids)
    for index, row in enumerate(rows):  # padding on the right: causal attention never looks there
        ids[index, : len(row)] = torch.tensor(row, device=device)
        mask[index, : len(row)] = 1
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, start - 1 : -1].float()
    finally:
        model.train(training)
    logprobs = (logits / temperature).log_softmax(-1).gather(-1, ids[:, start:, None])[..., 0]
    sums: list[float] = (logprobs * mask[:, start:]).sum(dim=1).tolist()
    return sums


def sample_actions(policy: Policy, requests: Sequence[TurnRequest], samples: int) -> list[dict[str, float]]:
    """Shares of the legal actions among ``samples`` responses drawn anew, for every request.

    Raises:
        RuntimeError: a provider's error.
    """
    turns = policy.act([replace(one, seed=(*one.seed, index)) for one in requests for index in range(samples)])
    failed = next((turn.error for turn in turns if turn.error is not None), None)
    if failed is not None:
        raise RuntimeError(f"sampling responses failed: {failed}")
    shares = []
    for row, request in enumerate(requests):
        names = ActionNames(request.legal_actions)
        read = [parse_action(turn.response, names) for turn in turns[row * samples : (row + 1) * samples]]
        shares.append({action: read.count(action) / samples for action in request.legal_actions})
    return shares


# ---------------------------------------------------------------- the solver


def _game_of(task: EpisodeTask) -> TSMG[Any]:
    import textgames

    env = textgames.parallel_env(task.env_id.rpartition(":")[2], **task.kwargs)
    game: TSMG[Any] = env.unwrapped.game
    return game


def _is_lake(game: TSMG[Any]) -> bool:
    from textgames.frozen_lake import FrozenLake

    return isinstance(game, FrozenLake)


def _solver_of(game: TSMG[Any]) -> Any:
    """``(observation, steps left, rng) -> {action: value}``.

    Raises:
        ValueError: there is no solver for this game.
    """
    from textgames.snake import Snake

    if _is_lake(game):
        return _lake_solver(game)
    if isinstance(game, Snake):
        return _snake_solver(game)
    raise ValueError(f"there are solvers for Frozen Lake and Snake, not for {type(game).__name__}")


def _lake_solver(game: Any) -> Any:
    from textgames.frozen_lake.solver import FrozenLakeSolver
    from textgames.frozen_lake.text import read_observation

    solver = FrozenLakeSolver(game)

    def values(observation: str, steps_left: int | None, rng: np.random.Generator) -> dict[str, float]:
        return solver.action_values(read_observation(observation), 100 if steps_left is None else steps_left)

    return values


def _snake_solver(game: Any) -> Any:
    from textgames.snake.reading import read_observation
    from textgames.snake.solver import SnakeSearch

    search = SnakeSearch(game)

    def values(observation: str, steps_left: int | None, rng: np.random.Generator) -> dict[str, float]:
        # what is read back has its reader as snake 0
        state = read_observation(observation, game)
        return search.action_values(state, game.players[0], steps_left, rng)

    return values
