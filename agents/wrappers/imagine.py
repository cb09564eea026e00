"""``imagine(PLAYER, WORLD)``: the player sees what a model of the world expects of its answer, and may answer again.

``proposal -> what the world model says will be shown next -> revised answer`` (StarWM, arXiv 2602.14857). WORLD is any
player that can say it: a language model with prompts that ask for it (``world``, which ship), or one of the two that
tell what such a model can be worth at all: :class:`TrueWorld`, by the game's rules, and :class:`FalseWorld`.
:mod:`agents.analysis.world_model` measures the predictions themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from agents.baselines.search import SearchPlayers, search_player_of
from agents.policy import as_requests, lists_actions
from agents.turn import Policy, Turn, TurnRequest, request_in
from agents.wrappers.around import Around, Deciding, Question, action_named, check_count, check_reads_below
from textgames.tsmg import TSMG

ASKED = "The player answers: {action}\nWhat is shown next?"
"""What stands below an observation where a world model is asked; see :func:`asked_after`."""

SHOWN = "If you answer {action}, this is what you will see:\n{prediction}\nNow answer."
"""What stands below the observation where the player answers again."""


def asked_after(request: TurnRequest, action: str) -> TurnRequest:
    """The request in which a world model is asked what an action leads to."""
    return replace(request, observation=f"{request.observation}\n\n{ASKED.format(action=action)}")


class ImaginePolicy(Around):
    """A player that revises its answer in view of what it would lead to.

    Args:
        player: who answers.
        world: who predicts the next observation.
        revisions: how often the player may answer again; it is played as soon as it answers the same again.

    Raises:
        ValueError: less than one revision, or a player that wouldn't read what is imagined.
    """

    def __init__(self, player: Policy, world: Policy, *, revisions: int = 1) -> None:
        check_count("revisions", revisions)
        check_reads_below(player)
        super().__init__("imagine", player, world)
        self.revisions = revisions

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        """The world is asked before each revision, and the player once more than that."""
        revisions = int(options["revisions"])
        return 1 + revisions, revisions

    @property
    def settings(self) -> dict[str, Any]:
        return {"revisions": self.revisions}

    def decide(self, request: TurnRequest) -> Deciding:
        """Propose, imagine and revise; an answer that names no action isn't imagined, and takes no other's place."""
        (turn,) = yield [Question(request)]
        shown = list[str]()
        for revision in range(1, self.revisions + 1):
            action = action_named(request, turn.response)
            if action is None:
                break
            (told,) = yield [Question(asked_after(request, action), 1, words=True)]
            shown.append(SHOWN.format(action=action, prediction=told.response.strip()))
            again = replace(
                request,
                observation="\n\n".join([request.observation, *shown]),
                seed=(*request.seed, revision),
            )
            (revised,) = yield [Question(again)]
            named = action_named(request, revised.response)
            turn = turn if named is None else revised
            if named in (None, action):
                break
        return turn


class TrueWorld:
    """A world model that knows the rules: one of the possible next observations, by the true chances."""

    name = "true-world"

    def __init__(self) -> None:
        self._searchers = SearchPlayers()

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game whose next observation can't be told from what is shown and one answer."""
        name = type(game).__name__
        if not lists_actions(game):
            raise ValueError(f"{self.name} can't tell what comes next in {name}, which doesn't list its actions")
        start = game.initial_state(np.random.default_rng(0))
        player, *others = game.to_move(start)
        if others:
            raise ValueError(f"{self.name} can't tell what comes next in {name}, whose players answer at the same time")
        try:
            search_player_of(game).state(request_in(game, start, player))
        except ValueError as error:
            raise ValueError(f"{self.name} can't read {name}: {error}") from None

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [Turn(self._next(request)) for request in as_requests(requests)]

    def _next(self, request: TurnRequest) -> str:
        now, action = taken_apart(request)
        if now.game is None:
            raise ValueError(f"{self.name} takes the game: ask it with a TurnRequest")
        rng = np.random.default_rng([*request.seed, 7])
        state = self._searchers.of(now).state(now)
        after = now.game.transition(state, {now.player: action}, rng)[0]
        return now.game.observe(after, now.player)


class FalseWorld(TrueWorld):
    """A world model that knows nothing of the answer: what some random action would lead to."""

    name = "false-world"

    def _next(self, request: TurnRequest) -> str:
        now, _ = taken_apart(request)
        action = np.random.default_rng([*request.seed, 8]).choice(now.legal_actions)
        return super()._next(asked_after(now, str(action)))


def taken_apart(request: TurnRequest) -> tuple[TurnRequest, str]:
    """The request as it was, and the action that a world model is asked about.

    Raises:
        ValueError: nobody asked about an action.
    """
    before, after = ASKED.split("{action}")
    now, found, rest = request.observation.rpartition(f"\n\n{before}")
    if not found or not rest.endswith(after):
        raise ValueError("a world model is asked below an observation, as imagine(PLAYER, WORLD) does")
    return replace(request, observation=now), rest.removesuffix(after)
