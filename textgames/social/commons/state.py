"""What a round of Gathering or Cleanup changes, and the settings that both games have. No text in here."""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from textgames.names import nearest_or_all
from textgames.settings import MOST, check_number, check_whole
from textgames.social.commons.board import Board, Cells, board_of

ConfigT = TypeVar("ConfigT", bound="CommonsConfig")

MAX_PLAYERS = 10  # they are drawn as one digit

LONGEST_BEAM = 99  # cells of a beam's length and width, as wide as any map


class Body(NamedTuple):
    """One player on the map."""

    cell: int  # its place; its home while it is out
    heading: int  # an index into :data:`textgames.social.commons.board.HEADINGS`
    home: int  # its start, to which it comes back
    hits: int = 0  # hits taken since it was last out
    out: int = 0  # rounds that it still misses; 0 while it plays
    beam_wait: int = 0  # rounds until its beam may be used again; ``clean_wait`` likewise for cleaning
    clean_wait: int = 0


class Deed(NamedTuple):
    """What one player did in the last round: its action (``""`` while out), and what came of it."""

    action: str = ""
    ate: bool = False
    struck: Cells = ()
    cleaned: int = 0


class Tally(NamedTuple):
    """What is counted of one player over an episode, for :func:`social_statistics`."""

    total: float = 0.0  # its return so far
    paid: int = 0  # rounds whose reward was above 0; ``paid_at`` is the sum of the numbers of these rounds, from 0
    paid_at: int = 0
    missed: int = 0  # rounds that it was out
    hits: int = 0  # hits that its beam made
    cleaned: int = 0  # cells of the river that it cleaned


def social_statistics(tallies: Sequence[Tally], rounds: int) -> dict[str, float]:
    """Return the statistics of ``n`` players over ``T`` rounds with returns ``R_i``; what is undefined is absent.

    They are those of Perolat et al., "A multi-agent reinforcement learning model of common-pool resource appropriation"
    (NeurIPS 2017, section 2.3), as arXiv 2603.19453 uses them, except that equality is undefined if the returns sum to
    0 or less, for which it would be 1, the best value.

    * efficiency: ``sum R / T``, the reward of all per round;
    * equality: ``1 - sum_ij |R_i - R_j| / (2 n sum R)``; below 0 if costs leave some with a negative return;
    * sustainability: the mean, over the players who were ever paid more than 0, of the mean number of the rounds in
      which they were; rounds are numbered from 0;
    * peace: ``(n T - rounds missed) / T``, from 0 to n.
    """
    if not rounds:
        return {}
    n, returns = len(tallies), [tally.total for tally in tallies]
    total = sum(returns)
    statistics = {"efficiency": total / rounds}
    if total > 0:
        statistics["equality"] = 1 - sum(abs(a - b) for a in returns for b in returns) / (2 * n * total)
    times = [tally.paid_at / tally.paid for tally in tallies if tally.paid]
    if times:
        statistics["sustainability"] = sum(times) / len(times)
    statistics["peace"] = (n * rounds - sum(tally.missed for tally in tallies)) / rounds
    return statistics


class CommonsState(NamedTuple):
    """The whole state; immutable and compared by value."""

    bodies: tuple[Body, ...]  # the players, in order
    # for every apple cell of the map in order, 0 if its apple is there. In Gathering else the rounds until it is
    # back, in Cleanup else 1.
    apples: Cells
    dirt: Cells  # the dirty cells of the river, ascending; empty in Gathering
    round: int  # rounds played so far
    deeds: tuple[Deed, ...]  # what every player did in the last round; empty before the first
    tallies: tuple[Tally, ...]  # what was counted so far


@dataclass(frozen=True, kw_only=True)
class CommonsConfig:
    """The settings that Gathering and Cleanup share."""

    map: tuple[str, ...]  # rows of the characters of :data:`textgames.social.commons.board.MARKS`
    num_players: int  # how many play; the map has a start for each
    beam_length: int  # how many cells a beam reaches; ``beam_width`` how many lanes it has, an odd number
    beam_width: int
    hits_until_out: int  # hits after which a player is out, for ``out_rounds`` rounds
    out_rounds: int
    beam_cooldown: int = 0  # rounds after using the beam in which it can't be used
    apple_reward: float = 1.0  # for eating an apple; ``beam_reward`` for using the beam; ``hit_reward`` for being hit
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
                check_number(field.name, getattr(self, field.name), -math.inf, math.inf)

    @property
    def board(self) -> Board:
        return board_of(self.map)

    @classmethod
    def presets(cls: type[ConfigT], game: str) -> Mapping[str, ConfigT]:
        text = files("textgames").joinpath("social/commons/presets.toml").read_text(encoding="utf-8")
        rows = tomllib.loads(text)[game]
        return MappingProxyType({name: cls(**{**row, "map": tuple(row["map"].split())}) for name, row in rows.items()})

    @classmethod
    def chosen(cls: type[ConfigT], presets: Mapping[str, ConfigT], preset: str, given: Mapping[str, Any]) -> ConfigT:
        """Return a preset with the settings that are given, which are those that aren't ``None``."""
        if str(preset) not in presets:
            name = cls.__name__.removesuffix("Config")
            raise ValueError(f"preset must name settings of {name}, got {preset!r}; {nearest_or_all(preset, presets)}")
        return replace(presets[preset], **{name: value for name, value in given.items() if value is not None})
