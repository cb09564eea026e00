"""The decisions that a warm start imitates: a teacher's, on training seeds, in the form that the prompt asks for.

With ``explore`` the random player takes some of the moves, and the teacher answers in the positions that come of them.
Among equally good moves a scripted teacher plays any, as always the first would teach a habit; for the same reason an
episode shows no position twice, and none if every move is as good as any other.

In the mode ``direct`` a response is the action alone. In every other mode it reasons first: on a board of Frozen Lake
or Snake in the words of :mod:`agents.tiny.demonstrator`, elsewhere in the teacher's own. The plan has the teacher's
moves as far as the rules alone decide what comes of them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.baselines.random import RandomPlayer
from agents.baselines.scripted_player import ScriptedPlayer, as_turn
from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.rollout import rollout
from agents.msgrpo.errors import ConfigError, refused
from agents.msgrpo.trajectories import Game, game_name, tsmg_of
from agents.msgrpo.warmup.imitation import TaughtDecision
from agents.policy import as_requests
from agents.prompt import PromptMap
from agents.tiny.demonstrator import Demonstrator, StyleShares, has_demonstrator
from agents.turn import Policy, Prompt, Turn, TurnRequest, check_game, request_in
from textgames import TRAINING_SEEDS
from textgames.snake import Snake
from textgames.texts.actions import CLOSE_TAG, OPEN_TAG

_PLANNED = 8
"""Moves of a plan at most."""
_TRIES = range(16)
"""Seeds that a move is tried with in games that don't list outcomes: if these disagree, chance decides."""


class Words:
    """Writes one teacher's responses in one mode."""

    def __init__(self, mode: str, teacher: Policy) -> None:
        self.mode, self.teacher = mode, teacher
        self._demonstrators: dict[int, Demonstrator] = {}

    def __call__(self, request: TurnRequest, state: Any, action: str, response: str) -> str:
        """Return the response in a state, if the teacher has answered ``response`` and plays ``action``."""
        acted = f"{OPEN_TAG}{action}{CLOSE_TAG}"
        if self.mode == "direct":
            return acted
        if not isinstance(self.teacher, ScriptedPlayer):
            return response  # a language model's own
        reasons = self._sight(request, action) or response.partition("<think>")[2].partition("</think>")[0]
        plan = ", ".join(self._plan(request, state, action))
        return f"<think>{reasons}</think><plan>{plan}</plan>{acted}"

    def _sight(self, request: TurnRequest, action: str) -> str:
        game = request.game
        if game is None or not has_demonstrator(game):
            return ""
        if id(game) not in self._demonstrators:
            foresight = 1 if isinstance(game, Snake) else 2  # on Snake's board the others have moved by then
            self._demonstrators[id(game)] = Demonstrator(game, StyleShares(), foresight=foresight, cells=True)
        try:
            return self._demonstrators[id(game)].reasons(request.observation, action)
        except ValueError:  # an observation without a grid
            return ""

    def _plan(self, request: TurnRequest, state: Any, action: str) -> list[str]:
        """Return the action and the teacher's moves after it, while nothing is left to chance or to others."""
        game: Any = request.game
        moves = [action]
        # a state with secrets would reveal them by what comes of a move
        if game is None or len(game.players) > 1 or game.hidden_information or self.teacher.name == "random":
            return moves
        assert isinstance(self.teacher, ScriptedPlayer)
        left = request.steps_left
        while len(moves) < _PLANNED and left != 1:
            joint = {request.player: moves[-1]}
            if game.has_outcomes:
                coming = [(after, rewards, over) for _, after, rewards, over in game.outcomes(state, joint)]
            else:
                coming = [game.transition(state, joint, np.random.default_rng(seed)) for seed in _TRIES]
            state, rewards, over = coming[0]
            if over or rewards[request.player] or any(other != coming[0] for other in coming):
                break
            left = None if left is None else left - 1
            moves.append(self.teacher.choose(request_in(game, state, request.player, left)).action)
        return moves


_STREAM = 0xA11CE  # keeps these draws apart from those of a run's iterations with the same seed


class _Labelled:
    """Plays as the teacher, but for a share of random moves, and keeps its answers; empty ones if it has none."""

    def __init__(self, teacher: Policy, explore: float, seed: int) -> None:
        self.name, self.teacher, self.explore = teacher.name, teacher, explore
        self._random, self._seed = RandomPlayer(seed), seed
        self.labels: dict[tuple[int, int, str], tuple[TurnRequest, str]] = {}  # by the task's seed, round and player

    @property
    def history_turns(self) -> int | None:
        return getattr(self.teacher, "history_turns", 0)

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        asked = as_requests(requests)
        chances = [np.random.default_rng([_STREAM, self._seed, *request.seed]) for request in asked]
        if isinstance(self.teacher, ScriptedPlayer):
            turns = []
            for request, rng in zip(asked, chances, strict=True):
                choices = self.teacher.choices(request)
                undecided = len(choices) > 1 and len(choices) == len(request.legal_actions)
                turns.append(Turn("") if undecided else as_turn(choices[int(rng.integers(len(choices)))]))
        else:
            turns = self.teacher.act(asked)  # a language model has one answer
        played = []
        for request, turn, instead, rng in zip(asked, turns, self._random.act(asked), chances, strict=True):
            task_seed, played_before = request.seed[0], request.seed[-2]
            self.labels[task_seed, played_before, request.player] = request, turn.response
            played.append(instead if rng.random() < self.explore or not turn.response else turn)
        return played


class TooFewDecisionsError(ConfigError):
    """A teacher has fewer decisions to show than are wanted: only ``found``."""

    def __init__(self, message: str, found: int) -> None:
        super().__init__(message)
        self.found = found


def demonstrate(
    scenarios: Sequence[Game],
    teachers: Sequence[str],
    count: int,
    prompt_map: PromptMap,
    *,
    explore: float = 0.0,
    seed: int = 0,
    part: int = 0,
) -> list[TaughtDecision]:
    """Return ``count`` decisions, evenly of every teacher on every scenario, each from training seeds of its own.

    Teachers are agents as commands name them. ``explore`` is the share of random moves in what is visited. Another
    ``part`` has other layouts: 0 is learnt, 1 is held out.
    """
    pairs = [(scenario, teacher) for scenario in scenarios for teacher in teachers]
    decisions: list[TaughtDecision] = []
    seeds = shuffled_seeds(np.random.default_rng([_STREAM, seed]), part)
    for index, (scenario, teacher) in enumerate(pairs):
        # as many as are left, divided by the pairs that are left: no rounding is lost
        wanted = max(1, round((count - len(decisions)) / (len(pairs) - index)))
        # each pair begins elsewhere, so that a mixture of teachers sees more layouts
        own = np.roll(seeds, -index * (len(seeds) // len(pairs)))
        decisions += _of_one(scenario, teacher, wanted, own.tolist(), prompt_map, explore, seed)
    return decisions


def untaught_seeds(seed: int, count: int) -> list[int]:
    """Return ``count`` training seeds from which the decisions of no part 0 are: the last of those of part 1."""
    return shuffled_seeds(np.random.default_rng([_STREAM, seed]), 1)[-count:]


def shuffled_seeds(rng: np.random.Generator, part: int) -> list[int]:
    """Return the training seeds of part 0 or 1: every other one of the shuffled, so no layout is in both."""
    return [TRAINING_SEEDS[int(place)] for place in rng.permutation(len(TRAINING_SEEDS))[part::2]]


def _of_one(
    scenario: Game, name: str, count: int, seeds: Sequence[int], prompt_map: PromptMap, explore: float, seed: int
) -> list[TaughtDecision]:
    where = game_name(scenario)
    with refused(f"the teacher {name!r} can't play {where}", ValueError, TypeError, OSError):
        teacher = load_agent(name)
        check_game(teacher, tsmg_of(scenario))
    words = Words(prompt_map.mode, teacher)
    found: list[TaughtDecision] = []
    for first in range(0, len(seeds), 16):
        labelled = _Labelled(teacher, explore, seed)
        tasks = [EpisodeTask.of(scenario, one) for one in seeds[first : first + 16]]
        played = {episode.seed: episode for episode in rollout(labelled, tasks, max_concurrency=len(tasks))}
        for task in tasks:  # they end in another order than they began
            shown: set[Prompt] = set()
            for step in played[task.seed].steps:
                request, response = labelled.labels[task.seed, step.index, step.player]
                assert request.game is not None, "the loop tells scripted players the game"
                action = request.game.interpret(response, step.state, step.player)
                prompt = prompt_map(request)
                if action is not None and prompt not in shown:
                    shown.add(prompt)
                    found.append(TaughtDecision(prompt, words(request, step.state, action, response)))
        if len(found) >= count:
            return found[:count]
        if not found:
            raise ConfigError(f"none of the answers of {name!r} in {len(tasks)} episodes of {where} was valid")
    raise TooFewDecisionsError(
        f"{name!r} takes {len(found):,} decisions on the training seeds of {where} that may be imitated, and {count:,} "
        "are wanted",
        len(found),
    )
