"""What a round of Gathering or Cleanup changes, and the settings that both games have. No text in here."""

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

from textgames.settings import MOST, check_whole
from textgames.social.commons.board import Board, Cells, board_of

MAX_PLAYERS = 10
LONGEST_BEAM = 99
"""Cells of a beam's length and width, as wide as any map."""
"""The largest number of players, because they are drawn as one digit."""


class Body(NamedTuple):
    """One player on the map.

    Attributes:
        cell: where it stands; its home while it is out.
        heading: an index into :data:`textgames.social.commons.board.HEADINGS`.
        home: where it began and comes back to.
        hits: hits taken since it was last out.
        out: rounds that it still misses; 0 while it plays.
        beam_wait: rounds until its beam may be used again; ``clean_wait`` likewise for cleaning.
    """

    cell: int
    heading: int
    home: int
    hits: int = 0
    out: int = 0
    beam_wait: int = 0
    clean_wait: int = 0


class Deed(NamedTuple):
    """What one player did in the last round: its action (``""`` while out), and what came of it.

    ``struck`` has the numbers of the players that its beam hit; ``cleaned`` is a number of cells.
    """

    action: str = ""
    ate: bool = False
    struck: Cells = ()
    cleaned: int = 0


class Tally(NamedTuple):
    """What is counted of one player over an episode, for :mod:`textgames.social.commons.statistics`.

    Attributes:
        total: its return so far.
        paid: rounds whose reward was above 0; ``paid_at`` is the sum of the numbers of these rounds, from 0.
        missed: rounds that it was out.
        hits: hits that its beam made.
        cleaned: cells of the river that it cleaned.
    """

    total: float = 0.0
    paid: int = 0
    paid_at: int = 0
    missed: int = 0
    hits: int = 0
    cleaned: int = 0


class CommonsState(NamedTuple):
    """The whole state; immutable and compared by value.

    Attributes:
        bodies: the players, in order.
        apples: for every apple cell of the map in order, 0 where its apple is there. In Gathering else the rounds
            until it is back, in Cleanup else 1.
        dirt: the dirty cells of the river, ascending; empty in Gathering.
        round: rounds played so far.
        deeds: what every player did in the last round; empty before the first.
        tallies: what was counted so far.
    """

    bodies: tuple[Body, ...]
    apples: Cells
    dirt: Cells
    round: int
    deeds: tuple[Deed, ...]
    tallies: tuple[Tally, ...]


@dataclass(frozen=True, kw_only=True)
class CommonsConfig:
    """The settings that Gathering and Cleanup share.

    Attributes:
        map: rows of the characters of :data:`textgames.social.commons.board.MARKS`.
        num_players: how many play; the map has a start for each.
        beam_length: how many cells a beam reaches; ``beam_width`` how many lanes it has, an odd number.
        hits_until_out: hits after which a player is out, for ``out_rounds`` rounds.
        beam_cooldown: rounds after using the beam in which it can't be used.
        apple_reward: for eating an apple; ``beam_reward`` for using the beam; ``hit_reward`` for being hit.

    Raises:
        ValueError: naming the setting, its value and what is accepted.
    """

    map: tuple[str, ...]
    num_players: int
    beam_length: int
    beam_width: int
    hits_until_out: int
    out_rounds: int
    beam_cooldown: int = 0
    apple_reward: float = 1.0
    beam_reward: float = 0.0
    hit_reward: float = 0.0

    def __post_init__(self) -> None:
        board = self.board
        check_whole("num_players", self.num_players, 2, MAX_PLAYERS)
        for name in ("beam_length", "beam_width", "hits_until_out", "out_rounds"):
            check_whole(name, getattr(self, name), 1, LONGEST_BEAM if name.startswith("beam") else MOST)
        check_whole("beam_cooldown", self.beam_cooldown, 0)
        if self.beam_width % 2 == 0:
            raise ValueError(f"beam_width must be odd, with the player's own lane in the middle, got {self.beam_width}")
        if len(board.starts) < self.num_players:
            raise ValueError(f"the map has {len(board.starts)} starts (P), too few for num_players={self.num_players}")
        if not board.apples:
            raise ValueError(f"the map has no apple cell (A): {self.map}")
        for field in fields(self):
            if field.name.endswith("_reward"):
                self._check_number(field.name, -math.inf, math.inf)

    @property
    def board(self) -> Board:
        return board_of(self.map)

    def _check_number(self, name: str, least: float, most: float) -> None:
        value = getattr(self, name)
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not (number and least <= value <= most):
            span = "a finite number" if math.isinf(most) else f"a number from {least:g} to {most:g}"
            raise ValueError(f"{name} must be {span}, got {value!r}")
