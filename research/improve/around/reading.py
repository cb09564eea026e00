"""Players that read something more, below the observation, before they answer: ``advised`` and ``imagine``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from agents import (
    Around,
    Deciding,
    Policy,
    Question,
    SearchPlayers,
    Turn,
    TurnRequest,
    action_named,
    as_requests,
    lists_actions,
)
from agents.analysis import WORLD_QUESTION, asked_after
from research.improve.around.questions import below, check_count, check_readable, check_reads_below
from textgames import TSMG

SHOWN = "If you answer {action}, this is what you will see:\n{prediction}\nNow answer."
"""What stands below the observation where the player answers again."""


class AdvisedPolicy(Around):
    """A player that reads another one's advice, the words of ``advice`` with ``{advice}`` in them.

    That is the action that the advisor names, or all that it wrote if it names none: an advisor may write hints in
    words (Directional Stimulus Prompting, arXiv 2302.11520; Advisor Models, arXiv 2510.02453). ``planner`` is the most
    that advice can bring, ``random`` what any advice does.

    Raises:
        ValueError: words without a place for the advice, or a player that wouldn't read it.
    """

    def __init__(self, player: Policy, advisor: Policy, *, advice: str = "Advice: {advice}") -> None:
        if "{advice}" not in advice:
            raise ValueError(f"advice must have {{advice}} in it, where the advisor's words go; got {advice!r}")
        check_reads_below(player)
        super().__init__("advised", player, advisor)
        self.advice = advice

    @property
    def settings(self) -> dict[str, Any]:
        return {"advice": self.advice}

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask the advisor, then the player; an advisor that wrote nothing leaves the observation as it is."""
        # draws of its own: with the player's, what it says would go with how the player takes it
        asked = replace(request, seed=(*request.seed, 1))
        (told,) = yield [Question(asked, 1, words=True)]
        words = action_named(request, told.response) or told.response.strip()
        if words:
            request = below(request, self.advice.replace("{advice}", words))
        (turn,) = yield [Question(request)]
        return turn


class ImaginePolicy(Around):
    """A player that revises its answer, ``revisions`` times at most, in view of what it would lead to.

    ``proposal -> what will be shown next -> revised answer`` (StarWM, arXiv 2602.14857); it is played as soon as it
    answers the same again. The world model is any player that can predict: a language model with the prompts ``world``,
    or one of the ends of the scale, :class:`TrueWorld` and :class:`FalseWorld`.

    Raises:
        ValueError: less than one revision, or a player that wouldn't read what is imagined or asked.
    """

    def __init__(self, player: Policy, world: Policy, *, revisions: int = 1) -> None:
        check_count("revisions", revisions)
        for one in (player, world):
            check_reads_below(one)
        super().__init__("imagine", player, world)
        self.revisions = revisions

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
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
            (revised,) = yield [Question(below(request, *shown, seed=(*request.seed, revision)))]
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
        if len(game.to_move(game.initial_state(np.random.default_rng(0)))) > 1:
            raise ValueError(f"{self.name} can't tell what comes next in {name}, whose players answer at the same time")
        try:
            check_readable(game)
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
    """Return the request as it was, and the action that a world model is asked about; a ValueError if it isn't."""
    before, after = WORLD_QUESTION.split("{action}")
    now, found, rest = request.observation.rpartition(f"\n\n{before}")
    if not found or not rest.endswith(after):
        raise ValueError("a world model is asked below an observation, as imagine(PLAYER, WORLD) does")
    return replace(request, observation=now), rest.removesuffix(after)
