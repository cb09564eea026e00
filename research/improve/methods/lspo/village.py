"""Werewolf as a finite game: a speech is the choice of a cluster, and names are chosen as the agent was seen to choose.

An information set is small: the scenario, the role, how many live, what its player knows of them, the cluster that was
heard last today, whether it was named today, and which clusters it can say. So a player forgets what it said earlier,
and equal roles share their policy: no equilibrium is promised.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from research.improve.methods.lspo.regret import Decision, place_of
from research.improve.methods.lspo.speeches import Clusters, Listener, Weights, filled, named_in, needs_of, standings
from textgames import Scenario
from textgames.social.werewolf import NOBODY, SILENCE, Phase, WerewolfState


class Luck(NamedTuple):
    """All that is random in an episode, drawn beforehand; by the number of rounds."""

    names: list[list[list[float]]]  # Gumbel, which make a draw of the best; of rounds, players, and whom they name
    members: list[float]  # uniform, which text of a cluster is said
    orders: list[list[int]]  # in which order players are thought of


class Node(NamedTuple):
    """A state between decisions."""

    scenario: str
    state: WerewolfState
    luck: Luck
    rounds: int = 0
    found: Decision | None = None  # of who is to speak
    returns: tuple[float, ...] = ()  # of an episode that is over


class Speaker:
    """What players can say: the clusters of their role, of templates."""

    def __init__(self, clusters: Mapping[str, Clusters], listener: Listener) -> None:
        self.clusters, self.listener = clusters, listener
        self._needs = {
            role: [{tuple(sorted(needs_of(text).items())) for text, _ in members} for members in own.members]
            for role, own in clusters.items()
        }

    def knows(self, scenario: str, state: WerewolfState, me: int) -> tuple[Hashable, tuple[int, ...]]:
        """Return the information set of a player that is to speak, and the clusters that it can say."""
        kinds, role, heard = standings(state, me), state.roles[me], state.days[-1].speeches
        there = Counter(kinds)
        sayable = tuple(
            number
            for number, needs in enumerate(self._needs.get(role, ()))
            if any(all(there[kind] >= count for kind, count in each) for each in needs)
        )
        known = "".join(sorted({kind[0] for kind in kinds}))  # by the first letters, which differ
        last = self.listener.code(heard[-1][1]) if heard else None
        named = any(me in named_in(words) for _, words in heard)
        return (scenario, role, len(state.living), known, last, named, sayable), sayable

    def words(self, state: WerewolfState, cluster: int, luck: float, order: Sequence[int]) -> str:
        """Return a speech of a cluster, drawn as often as it was said, with names that fit."""
        me = state.speakers[0]
        members, kinds = self.clusters[state.roles[me]].members[cluster], standings(state, me)
        first = place_of(luck, [times for _, times in members])
        for text, _ in (*members[first:], *members[:first]):
            if (words := filled(text, kinds, order)) is not None:
                return words
        raise ValueError(f"nobody can say cluster {cluster} here")


class Village:
    """Scenarios of Werewolf as a game that ``regret`` solves; ``weights`` are of what is seen of those to be named."""

    def __init__(self, scenarios: Sequence[Scenario], speaker: Speaker, weights: Weights) -> None:
        self._scenarios = {scenario.name: scenario for scenario in scenarios}
        self._games: dict[str, Any] = {scenario.name: scenario.game() for scenario in scenarios}
        self._speaker, self._weights = speaker, weights
        self.seats = max(len(game.players) for game in self._games.values())

    def deal(self, rng: np.random.Generator) -> Node:
        name = [*self._games][int(rng.integers(len(self._games)))]
        game, rounds = self._games[name], self._scenarios[name].horizon
        players = len(game.players)
        luck = Luck(
            rng.gumbel(size=(rounds, players, players + 1)).tolist(),
            rng.random(rounds).tolist(),
            rng.permuted(np.tile(np.arange(players), (rounds, 1)), axis=1).tolist(),
        )
        return self._to_speech(Node(name, game.initial_state(rng), luck))

    def decision(self, node: Node) -> Decision | None:
        return node.found

    def after(self, node: Node, action: int) -> Node:
        luck = node.luck
        words = self._speaker.words(node.state, action, luck.members[node.rounds], luck.orders[node.rounds])
        return self._to_speech(self._next(node, {self._games[node.scenario].to_move(node.state)[0]: words}))

    def returns(self, node: Node) -> Sequence[float]:
        return (*node.returns, *[0.0] * (self.seats - len(node.returns)))

    def _to_speech(self, node: Node) -> Node:
        """Return the node after the votes, the nights, and the silence of those that know nothing to say."""
        while not node.returns:
            state, chosen = node.state, dict[str, str]()
            if state.phase is Phase.SPEECHES:
                seat = state.speakers[0]
                found = Decision(seat, *self._speaker.knows(node.scenario, state, seat))
                if found.actions:
                    return node._replace(found=found)
                chosen = {self._games[node.scenario].players[seat]: SILENCE}
            node = self._next(node, chosen or self._named(node))
        return node

    def _named(self, node: Node) -> dict[str, str]:
        """Return the player that each one names that is to name one now."""
        game, weigh, chosen = self._games[node.scenario], self._weights.get, {}
        for player in game.to_move(node.state):
            me, luck = game.players.index(player), node.luck.names[node.rounds]
            names = game.legal_actions(node.state, player)
            targets = targets_of(game.players, names)
            values = [  # -1, for none, is the last
                sum([weigh(name, 0.0) for name in seen], luck[me][target])
                for seen, target in zip(self._speaker.listener.options(node.state, me, targets), targets, strict=True)
            ]
            chosen[player] = names[values.index(max(values))]
        return chosen

    def _next(self, node: Node, chosen: Mapping[str, str]) -> Node:
        ((_, state, rewards, over),) = self._games[node.scenario].outcomes(node.state, chosen)
        over = over or node.rounds + 1 == self._scenarios[node.scenario].horizon
        return Node(node.scenario, state, node.luck, node.rounds + 1, returns=tuple(rewards.values()) if over else ())


def targets_of(players: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the numbers of players that may be named."""
    return [players.index(name) if name in players else NOBODY for name in names]
