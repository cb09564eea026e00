"""Cleanup: apples grow only while the river is kept clean, and cleaning pays nothing.

Hughes et al., "Inequity aversion improves cooperation in intertemporal social dilemmas" (NeurIPS 2018). The presets
named for a source have its settings: ``"arxiv-2603.19453"``, and ``"melting-pot"`` for Clean Up of Melting Pot 2
(github.com/google-deepmind/meltingpot). Their maps are ours, and so is the order within a round
(:mod:`textgames.social.commons.game`): in both sources players act one after another.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import Generator

from textgames.settings import check_number, check_switch, check_whole
from textgames.social.commons.board import Cells, beams_of, rows_of
from textgames.social.commons.game import ACTIONS, CLEAN, CommonsGame
from textgames.social.commons.state import Body, CommonsConfig, CommonsState, Deed
from textgames.social.commons.text import DIRT_MARK, RIVER_MARK, count, ready
from textgames.tsmg import Action, Player


@dataclass(frozen=True, kw_only=True)
class CleanupConfig(CommonsConfig):
    """The settings of Cleanup: those of both games, and these."""

    clean_reward: float  # for cleaning, which reaches as far as the beam
    clean_cooldown: int = 0  # rounds after cleaning in which a player can't clean
    growth_rate: float = 0.05  # the chance that an apple grows on an empty cell in a round, while the river is clean
    depletion: float = 0.4  # the dirty share of the river from which on nothing grows, and no more dirt comes
    # the dirty share up to which apples grow at the full rate; in between the rate falls evenly
    restoration: float = 0.0
    dirt_chance: float = 0.5  # the chance that one more cell becomes dirty in a round
    dirt_from_round: int = 0  # the first round in which that happens
    apples_at_first: bool = True  # whether every apple cell has its apple at the start, or none

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("growth_rate", "depletion", "restoration", "dirt_chance"):
            check_number(name, getattr(self, name), 0, 1)
        if self.restoration >= self.depletion:
            raise ValueError(
                f"restoration must be below depletion, got restoration={self.restoration} and "
                f"depletion={self.depletion}"
            )
        check_switch("apples_at_first", self.apples_at_first)
        for name in ("clean_cooldown", "dirt_from_round"):
            check_whole(name, getattr(self, name), 0)
        if not self.board.river:
            raise ValueError(f"the map of Cleanup needs a river (R or D), got {self.map}")

    def growth(self, dirty: int) -> float:
        share = dirty / len(self.board.river)
        rate = self.growth_rate * (share - self.depletion) / (self.restoration - self.depletion)
        return min(max(rate, 0.0), self.growth_rate)


PRESETS = CleanupConfig.presets("cleanup")


class Cleanup(CommonsGame):
    """Cleanup with any number of players who all move at once.

    Every setting but the preset is that of the preset unless it is given; :class:`CleanupConfig` and
    :class:`textgames.social.commons.state.CommonsConfig` explain them.

    Args:
        preset: ``"small"``, ``"arxiv-2603.19453"`` or ``"melting-pot"``.
        map: rows of ``#`` wall, ``.`` floor, ``P`` start, ``A`` apple cell, ``R`` river and ``D`` dirty river.
        num_players: ``player_0``, ``player_1``, ...; the map has a start for each.
        out_rounds: rounds that a player misses who was hit.
        beam_reward: paid for using the beam; ``hit_reward`` for being hit, ``clean_reward`` for cleaning.
        hit_reward: see ``beam_reward``.
        clean_reward: see ``beam_reward``.
        growth_rate: the chance of an apple on an empty cell in a round, while the river is clean.
        dirt_chance: the chance of one more dirty cell in a round.
        apples_at_first: whether every apple cell has its apple at the start, or none.
    """

    config: CleanupConfig
    actions: tuple[Action, ...] = (*ACTIONS, CLEAN)
    key = f"{CommonsGame.key}, {RIVER_MARK} clean river, {DIRT_MARK} dirt in the river"
    shared = "share a river and an orchard"

    def __init__(
        self,
        *,
        preset: str = "small",
        map: Sequence[str] | None = None,
        num_players: int | None = None,
        out_rounds: int | None = None,
        beam_reward: float | None = None,
        hit_reward: float | None = None,
        clean_reward: float | None = None,
        growth_rate: float | None = None,
        dirt_chance: float | None = None,
        apples_at_first: bool | None = None,
    ) -> None:
        rewards = {"beam_reward": beam_reward, "hit_reward": hit_reward, "clean_reward": clean_reward}
        chances = {"growth_rate": growth_rate, "dirt_chance": dirt_chance, "apples_at_first": apples_at_first}
        given = {"map": rows_of(map), "num_players": num_players, "out_rounds": out_rounds, **rewards, **chances}
        config = CleanupConfig.chosen(PRESETS, preset, given)
        super().__init__(config)
        self.first_apple = 0 if config.apples_at_first else 1
        self._growth = [config.growth(dirty) for dirty in range(len(self._map.river) + 1)]
        # as soon as so many cells are dirty, no more dirt comes
        self._most_dirt = math.ceil(config.depletion * len(self._map.river))
        self._clean_reach = beams_of(config.map, config.beam_length, config.beam_width)

    def clean(self, bodies: list[Body], deeds: list[Deed], rewards: list[float], dirt: Cells) -> Cells:
        left = set(dirt)
        for number, deed in enumerate(deeds):
            if deed.action != CLEAN:
                continue
            reached = self._clean_reach[bodies[number].heading][bodies[number].cell]
            # dirt that two players clean at once counts for both
            deeds[number] = deed._replace(cleaned=len(reached.intersection(dirt)))
            left -= reached
            rewards[number] += self.config.clean_reward
            bodies[number] = bodies[number]._replace(clean_wait=self.config.clean_cooldown)
        return tuple([cell for cell in dirt if cell in left]) if len(left) < len(dirt) else dirt

    def nature(
        self, state: CommonsState, bodies: Sequence[Body], dirt: Cells, rng: Generator | None
    ) -> tuple[list[int], Cells]:
        """Let perhaps one more cell become dirty, then apples grow, at the rate that the river now allows."""
        assert rng is not None
        config = self.config
        taken = {body.cell for body in bodies if not body.out}
        if state.round >= config.dirt_from_round and len(dirt) < self._most_dirt and rng.random() < config.dirt_chance:
            clean = [cell for cell in self._map.river if cell not in dirt and cell not in taken]
            if clean:
                dirt = tuple(sorted((*dirt, clean[int(rng.integers(len(clean)))])))
        chance, apples = self._growth[len(dirt)], list(state.apples)
        if chance:
            for place, draw in enumerate(rng.random(len(apples)).tolist()):
                if draw < chance and apples[place] and self._map.apples[place] not in taken:
                    apples[place] = 0
        return apples, dirt

    def metrics(self, state: CommonsState, player: Player) -> dict[str, float]:
        cleaned = state.tallies[self._numbers[player]].cleaned
        return {**super().metrics(state, player), "cells_cleaned": float(cleaned)}

    def world(self, state: CommonsState, number: int) -> list[str]:
        names, config, dirt = self._names, self.config, state.dirt
        body = state.bodies[number]
        lines = []
        if not body.out:
            cells = len(self._beams[body.heading][body.cell].intersection(dirt))
            lines.append(f"Cleaning: {ready(body.clean_wait)}; it would remove dirt from {count(cells, 'cell')}.")
        river, share = len(self._map.river), len(dirt) / len(self._map.river)
        apples = [names[cell] for missing, cell in zip(state.apples, self._map.apples, strict=True) if not missing]
        return [
            *lines,
            f"River: {len(dirt)} of {river} cells are dirty, {share:.0%}; an apple grows on each empty apple cell with "
            f"a chance of {config.growth(len(dirt)):.2%} a round.",
            f"Dirt: {', '.join([names[cell] for cell in dirt]) or 'none'}",
            f"Apples: {', '.join(apples) or 'none'}",
        ]

    def rules(self) -> list[str]:
        config = self.config
        cooldown = f" After it you have to wait {config.clean_cooldown} rounds." if config.clean_cooldown else ""
        start = f" from round {config.dirt_from_round} on" if config.dirt_from_round else ""
        clean_enough = f"at most {config.restoration:.0%}" if config.restoration else "nothing"
        return [
            f"Cleaning (the action clean) removes the dirt from every cell that the beam would reach: "
            f"{config.clean_reward:+g}.{cooldown} You can walk on the river.",
            f"You eat an apple by standing on its cell at the end of a round: {config.apple_reward:+g}. Where several "
            "players stand on one apple, one of them gets it, with equal chances.",
            f"Apples grow on empty apple cells, and the cleaner the river the faster: in every round with a chance of "
            f"{config.growth_rate:.1%} a cell while {clean_enough} of the river is dirty, less and less with more "
            f"dirt, and not at all from {config.depletion:.0%} on.",
            f"In every round{start}, while less than {config.depletion:.0%} of the river is dirty, one more cell of it "
            f"becomes dirty with a chance of {config.dirt_chance:.0%}. The river may begin with more dirt than that. "
            "Where a player stands nothing grows and no dirt comes.",
        ]
