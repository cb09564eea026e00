"""Who sits where: fair to every agent in every seat, on the same seeds, and never more tables than agents squared."""

from collections import Counter
from itertools import combinations

import pytest

from benchmark.runs.plan import tables


def test_two_seats_are_a_round_robin_in_both_orders():
    assert tables("abc", 2) == [tuple(pair) for pair in ("ab", "ac", "ba", "bc", "ca", "cb")]
    # alone or among oneself
    assert tables("abc", 1) == [("a",), ("b",), ("c",)]
    assert tables("a", 2) == [("a", "a")]
    assert tables("a", 5) == [tuple("aaaaa")]


@pytest.mark.parametrize(("seats", "count"), [(3, 2), (4, 6), (7, 3)])
def test_every_agent_sits_in_every_seat_equally_often_against_everyone(seats, count):
    agents = "abcdef"[:count]
    made = tables(agents, seats)
    assert len(made) == len(set(made)) == count**2
    for a, b in combinations(agents, 2):
        met = [table for table in made if set(table) == {a, b}]
        assert [Counter(seat) for seat in zip(*met, strict=True)] == [Counter({a: 1, b: 1})] * seats
        # swapping the two changes nothing: no seat, no neighbour, no team is anybody's privilege
        assert {tuple(b if name == a else a for name in table) for table in met} == set(met)
    assert [table for table in made if len(set(table)) == 1] == [(agent,) * seats for agent in agents]
