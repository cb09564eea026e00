"""The tree of a small game of hidden information, in sequence form.

``game -> every history, once -> information sets, sequences and leaves``. An information set is what one player reads
when it is to move: ``(player, observation)``. A player's sequence is the information set and action of its last
decision; with perfect recall that fixes all of its earlier ones, so a leaf is fully described by one sequence of every
player, the probability of its chances and what it pays (Koller, Megiddo and von Stengel, "Efficient computation of
equilibria for extensive two-person games", 1996). Simultaneous moves need nothing special in this form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from textgames.solving.state_space import Decision, Floats, Indices, decisions_in, joint_actions
from textgames.tsmg import TSMG, Action, Player

Key = tuple[Player, str]
"""What identifies an information set: who reads, and what it reads."""

Policy = Mapping[Key, Mapping[Action, float]]
"""``{(player, observation): {action: probability}}`` for every information set."""

# the most histories that are expanded, unless said otherwise: some ten seconds and a gigabyte
MAX_HISTORIES = 1_000_000


class InformationSet(NamedTuple):
    """Where a player decides, as far as it can tell."""

    player: Player  # who is to move
    observation: str  # what it reads
    actions: tuple[Action, ...]  # its legal actions, in order
    rounds: int  # rounds that were played before, in the first of its histories that was met
    default: Action  # the action that an unreadable response executes there

    @property
    def key(self) -> Key:
        return self.player, self.observation


@dataclass(frozen=True, eq=False)
class DecisionTree:
    """All decisions of one player. Sequence 0 is the empty one; the others follow level by level."""

    # its information sets; those of its first decisions first, then those of its second ones, and so on
    sets: tuple[InformationSet, ...]
    parents: Indices  # of every set, the player's own sequence that leads there. Shape (sets,).
    firsts: Indices  # of every set, the sequence of its first action; those of its other actions follow. Shape (sets,).
    set_of: Indices  # of every sequence but the empty one, the set that it is an action of. Shape (sequences - 1,).
    levels: tuple[tuple[slice, slice], ...]  # of every level, the slice of its sets and the slice of its sequences

    @property
    def num_sequences(self) -> int:
        return len(self.set_of) + 1


@dataclass(frozen=True, eq=False)
class GameTree:
    """A whole game."""

    players: tuple[Player, ...]  # as the game has them
    decisions: tuple[DecisionTree, ...]  # of every player, in that order
    chances: Floats  # of every leaf, the product of the probabilities of its chances. Shape (leaves,).
    payoffs: Floats  # of every leaf, the return of every player. Shape (leaves, players).
    sequences: Indices  # of every leaf, the last sequence of every player. Shape (leaves, players).
    # whether all histories of an information set are equally long, so that who is told how many rounds are left
    # learns nothing from it
    timed: bool = True

    @property
    def information_sets(self) -> tuple[InformationSet, ...]:
        return tuple(each for decisions in self.decisions for each in decisions.sets)

    @property
    def is_zero_sum(self) -> bool:
        """Whether two players share the same sum at every leaf, so that one wins what the other loses."""
        sums = self.payoffs.sum(axis=1)
        return len(self.players) == 2 and bool(np.ptp(sums) < 1e-9)


def expand(game: TSMG[Any], horizon: int | None = None, max_histories: int = MAX_HISTORIES) -> GameTree:
    """Play every history of a game once.

    A ValueError if the game's chances aren't known, it is too large, or a player's observations don't have perfect
    recall: the same text at decisions that the player itself can tell apart by what it read and did before, or with
    other legal actions.
    """
    builder = _Builder(game, horizon, max_histories)
    builder.expand()
    return builder.tree()


class _Node(NamedTuple):
    state: Any
    chance: float
    sequences: tuple[int, ...]  # of every player, its last one
    returns: tuple[float, ...]
    rounds: int


class _Found(NamedTuple):
    """An information set as it is met: numbered in that order, a set after the sequence that leads to it."""

    set: InformationSet
    parent: int
    first: int
    level: int


class _Builder:
    def __init__(self, game: TSMG[Any], horizon: int | None, max_histories: int) -> None:
        self.game, self.horizon, self.max_histories = game, horizon, max_histories
        self.index = {player: number for number, player in enumerate(game.players)}
        self.found: list[dict[str, _Found]] = [{} for _ in game.players]
        self.levels: list[list[int]] = [[0] for _ in game.players]  # of every sequence, the number of decisions in it
        self.leaves: list[_Node] = []
        self.timed = True

    def expand(self) -> None:
        name = type(self.game).__name__
        try:
            starts = self.game.initial_outcomes()
        except NotImplementedError as error:
            raise ValueError(f"the tree of {name} can't be expanded: {error}") from None
        if not self.game.has_outcomes:
            raise ValueError(f"the tree of {name} can't be expanded: it has no outcomes(state, joint_action)")
        nobody = (0,) * len(self.game.players)
        # the last start is expanded first; the order of what is found plays no part in any value
        stack = [_Node(state, chance, nobody, (0.0,) * len(nobody), 0) for chance, state in starts]
        histories = len(stack)
        while stack:
            children = self.children(stack.pop())
            histories += len(children)
            if histories > self.max_histories:
                raise ValueError(
                    f"{name} with these settings is too large to be solved: it has more than {self.max_histories:,} "
                    "histories"
                )
            stack += children

    def children(self, node: _Node) -> list[_Node]:
        """Return the histories one round longer; what ends is kept as a leaf instead."""
        if node.rounds == self.horizon:
            self.leaves.append(node)
            return []
        game, decisions = self.game, decisions_in(self.game, node.state)
        places = [(self.index[each.player], self.meet(node, each)) for each in decisions]
        numbered = product(*[range(found.first, found.first + len(found.set.actions)) for _, found in places])
        children: list[_Node] = []
        for joint_action, numbers in zip(joint_actions(decisions), numbered, strict=True):
            sequences = list(node.sequences)
            for (place, _), number in zip(places, numbers, strict=True):
                sequences[place] = number
            for chance, state, rewards, over in game.outcomes(node.state, joint_action):
                returns = tuple([sum_ + rewards[p] for sum_, p in zip(node.returns, game.players, strict=True)])
                child = _Node(state, node.chance * chance, tuple(sequences), returns, node.rounds + 1)
                (self.leaves if over else children).append(child)
        return children

    def meet(self, node: _Node, decision: Decision) -> _Found:
        player, actions = decision
        place, observation = self.index[player], self.game.observe(node.state, player)
        found = self.found[place].get(observation)
        if found is None:
            levels, parent = self.levels[place], node.sequences[place]
            level = levels[parent]
            default = self.game.default_action(node.state, player)
            known = InformationSet(player, observation, actions, node.rounds, default)
            found = self.found[place][observation] = _Found(known, parent, len(levels), level)
            levels += [level + 1] * len(actions)
        elif found.parent != node.sequences[place]:
            raise ValueError(
                f"the observations of {type(self.game).__name__} don't have perfect recall: {player} reads the same "
                f"text after different decisions of its own, {observation[:80]!r}"
            )
        elif found.set.actions != actions:
            raise ValueError(
                f"{player} of {type(self.game).__name__} reads the same text where its legal actions are {actions} and "
                f"where they are {found.set.actions}: {observation[:80]!r}"
            )
        self.timed = self.timed and found.set.rounds == node.rounds
        return found

    def tree(self) -> GameTree:
        sorted_ = [_decisions(list(found.values())) for found in self.found]
        sequences = np.array([leaf.sequences for leaf in self.leaves], dtype=np.intp)
        for place, (_, renumbered) in enumerate(sorted_):
            sequences[:, place] = renumbered[sequences[:, place]]
        return GameTree(
            players=self.game.players,
            decisions=tuple(decisions for decisions, _ in sorted_),
            chances=np.array([leaf.chance for leaf in self.leaves]),
            payoffs=np.array([leaf.returns for leaf in self.leaves], dtype=float),
            sequences=sequences,
            timed=self.timed,
        )


def _decisions(found: Sequence[_Found]) -> tuple[DecisionTree, Indices]:
    """Return a player's decisions sorted by level, and the new number of every sequence as it was met."""
    by_level = sorted(found, key=lambda each: each.level)
    sizes = np.array([len(each.set.actions) for each in by_level], dtype=np.intp)
    firsts = 1 + np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    renumbered = np.zeros(int(firsts[-1]), dtype=np.intp)
    for each, first, size in zip(by_level, firsts, sizes, strict=False):
        renumbered[each.first : each.first + size] = np.arange(first, first + size)
    levels, start = [], 0
    for level in range(max((each.level for each in by_level), default=-1) + 1):
        end = start + sum(each.level == level for each in by_level[start:])
        levels.append((slice(start, end), slice(int(firsts[start]), int(firsts[end]))))
        start = end
    decisions = DecisionTree(
        sets=tuple(each.set for each in by_level),
        parents=renumbered[np.array([each.parent for each in by_level], dtype=np.intp)],
        firsts=firsts[:-1],
        set_of=np.repeat(np.arange(len(by_level)), sizes),
        levels=tuple(levels),
    )
    return decisions, renumbered
