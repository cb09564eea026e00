"""Common pieces of players around others: the numbers of their questions, their draws, and texts below observations."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from agents import Around, Policy, Question, Turn, TurnRequest, request_in, search_player_of
from textgames import TSMG, behind_thoughts

T = TypeVar("T")
Asking = Generator[list[Question], list[Turn], T]
"""Yields questions to the players of :class:`~agents.Around`, as its decisions do."""

MOST_ASKED = 10_000
"""Questions or episodes for one decision, at most: more is a slip that would take days."""


def check_count(option: str, number: int) -> None:
    """Raise a ValueError for an option that says how often something is done for each decision, out of range."""
    if not 1 <= number <= MOST_ASKED:
        raise ValueError(f"{option} is a whole number from 1 to {MOST_ASKED:,}, got {number!r}")


def check_readable(game: TSMG[Any]) -> None:
    """Raise a ValueError, with the reason, for a game whose state can't be read from what it shows at the start."""
    start = game.initial_state(np.random.default_rng(0))
    search_player_of(game).state(request_in(game, start, game.to_move(start)[0]))


def proposals_of(request: TurnRequest, count: int) -> list[TurnRequest]:
    """Return the request with other seeds; the first is the request itself: one proposal is the player's own answer."""
    return [request, *(replace(request, seed=(*request.seed, at)) for at in range(1, count))]


def check_reads_below(player: Policy) -> None:
    """Raise a ValueError for a player whose prompts show observations up to some text alone."""
    prompt_map = getattr(player, "prompt_map", None)
    if prompt_map is not None and prompt_map.texts.cut_at:
        raise ValueError(
            f"{player.name} reads observations up to {prompt_map.texts.cut_at!r} alone, so it wouldn't see what is "
            "written below them: give it other prompts, such as --prompts brief"
        )


def below(request: TurnRequest, *texts: str, **changes: Any) -> TurnRequest:
    """Return the request with ``texts`` below its observation, a paragraph each, and with other ``changes``."""
    return replace(request, observation="\n\n".join([request.observation, *texts]), **changes)


def choice(request: TurnRequest, *texts: str, names: tuple[str, ...], seed: tuple[int, ...]) -> TurnRequest:
    """Return the request for one of ``names``, with ``texts`` below the observation."""
    return below(request, *texts, legal_actions=names, action_help="", moves_listed=True, seed=seed)


def by_player(turn: Turn, player: Policy) -> Turn:
    """Return the turn with the player as the one that it was served by, unless it names another one."""
    return replace(turn, served_by=turn.served_by or player.name)


def said(turn: Turn) -> str:
    """Return the words of an answer behind its thoughts; all of them if the thoughts don't end."""
    return (behind_thoughts(turn.response) or turn.response).strip()


class Optioned(Around):
    """A player around others whose settings are its options; a player that it ``shows`` something has to read that."""

    def __init__(self, name: str, *players: Policy, shows: Sequence[Policy] = (), **options: Any) -> None:
        for player in shows:
            check_reads_below(player)
        super().__init__(name, *players)
        self.options = options

    @property
    def settings(self) -> dict[str, Any]:
        return self.options
