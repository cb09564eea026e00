"""The tables at which agents meet in games for several players.

Every ordered pair of agents (a, b) has one table, at which the two take the seats in turn: a, b, a, b, ... So on every
seed each agent of a pair holds every seat once, which is fair in games for teams and with hidden roles, too. At tables
of more than two seats every agent has one more for itself, as games of common interest ask what a group of its own kind
achieves. One agent alone among several copies of another isn't played.
"""

from collections.abc import Sequence
from itertools import permutations


def tables(agents: Sequence[str], seats: int) -> list[tuple[str, ...]]:
    """Return the agents of every table, in the order of the game's players; a single agent plays itself."""
    alone = [(agent,) * seats for agent in agents]
    if seats == 1 or len(agents) == 1:
        return alone
    mixed = [tuple(pair[seat % 2] for seat in range(seats)) for pair in permutations(agents, 2)]
    return mixed + (alone if seats > 2 else [])
