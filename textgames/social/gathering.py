"""Gathering: apples that come back slowly, and a beam that puts a rival out of the way for a while.

Leibo et al., "Multi-agent Reinforcement Learning in Sequential Social Dilemmas" (AAMAS 2017). The settings of the
preset ``"arxiv-2603.19453"`` are those of that paper's Gathering (its map is ours, of the same size). Ours differs in
what happens at one moment: moves are made before beams are used, equal claims to an apple are drawn by lot instead of
won by the lower number, and a player that was out comes back at its own start.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import Generator

from textgames.settings import check_whole
from textgames.social.commons.board import Cells, rows_of
from textgames.social.commons.game import CommonsGame
from textgames.social.commons.state import Body, CommonsConfig, CommonsState
from textgames.tsmg import JointAction, Outcome


@dataclass(frozen=True, kw_only=True)
class GatheringConfig(CommonsConfig):
    """The settings of Gathering: those of both games, and ``refill_rounds``, after which an eaten apple is back."""

    refill_rounds: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("refill_rounds", self.refill_rounds, 1)


_MOST_STARTS = 10_000  # the most first states that are listed; with many players there are far too many

PRESETS = GatheringConfig.presets("gathering")


class Gathering(CommonsGame):
    """Gathering with any number of players who all move at once.

    Every setting but the preset is that of the preset unless it is given.

    Args:
        preset: ``"duel"`` or ``"arxiv-2603.19453"``.
        map: rows of ``#`` wall, ``.`` floor, ``P`` a player's start and ``A`` apple cell.
        num_players: ``player_0``, ``player_1``, ...; the map has a start for each.
        refill_rounds: rounds after which an eaten apple is back.
        out_rounds: rounds that a player misses who was put out, after ``hits_until_out`` hits.
        hits_until_out: hits that put a player out.
        beam_length: cells that the beam reaches; ``beam_width`` is the odd number of its lanes.
        beam_width: see ``beam_length``.
    """

    config: GatheringConfig
    shared = "gather apples on one map"

    def __init__(
        self,
        *,
        preset: str = "duel",
        map: Sequence[str] | None = None,
        num_players: int | None = None,
        refill_rounds: int | None = None,
        out_rounds: int | None = None,
        hits_until_out: int | None = None,
        beam_length: int | None = None,
        beam_width: int | None = None,
    ) -> None:
        rounds = {"refill_rounds": refill_rounds, "out_rounds": out_rounds}
        beam = {"hits_until_out": hits_until_out, "beam_length": beam_length, "beam_width": beam_width}
        given = {"map": rows_of(map), "num_players": num_players, **rounds, **beam}
        super().__init__(GatheringConfig.chosen(PRESETS, preset, given))
        self.empty_apple = self.config.refill_rounds

    def nature(
        self, state: CommonsState, bodies: Sequence[Body], dirt: Cells, rng: Generator | None = None
    ) -> tuple[list[int], Cells]:
        """Bring every missing apple a round nearer. Nothing is random."""
        return [missing - 1 if missing else 0 for missing in state.apples], dirt

    @property
    def has_initial_outcomes(self) -> bool:
        n = len(self.players)
        return bool(math.perm(len(self._map.starts), n) * 4**n <= _MOST_STARTS)

    def initial_outcomes(self) -> Sequence[tuple[float, CommonsState]]:
        n, starts = len(self.players), len(self._map.starts)
        if not self.has_initial_outcomes:
            raise NotImplementedError(f"{n} players on {starts} starts begin in too many ways to list them")
        states = [
            self.beginning(homes, headings)
            for homes in itertools.permutations(self._map.starts, n)
            for headings in itertools.product(range(4), repeat=n)
        ]
        return [(1 / len(states), state) for state in states]

    def outcomes(self, state: CommonsState, joint_action: JointAction) -> Sequence[Outcome[CommonsState]]:
        """List all draws of lots: which of several players on one apple gets it."""
        moved = self._act(state, joint_action)
        apples, _ = self.nature(state, moved.bodies, moved.dirt)
        claims = [[(place, number) for number in some] for place, some in self._eaters(apples, moved.bodies)]
        draws = list(itertools.product(*claims))
        return [(1 / len(draws), *self._eat(state, moved, apples, winners, None), False) for winners in draws]

    def world(self, state: CommonsState, number: int) -> list[str]:
        apples = [(missing, self._names[cell]) for missing, cell in zip(state.apples, self._map.apples, strict=True)]
        there = [name for missing, name in apples if not missing]
        coming = [f"{name} in {missing}" for missing, name in apples if missing]
        return [
            f"Apples: {', '.join(there) or 'none'}",
            f"Apples that come back, and in how many rounds: {', '.join(coming) or 'none'}",
        ]

    def rules(self) -> list[str]:
        return [
            f"You eat an apple by standing on its cell at the end of a round: {self.config.apple_reward:+g}. It is "
            f"back on the same cell after {self.config.refill_rounds} rounds. Where several players stand on one "
            "apple, one of them gets it, with equal chances.",
        ]
