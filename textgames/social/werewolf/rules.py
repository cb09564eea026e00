"""The rules of Werewolf: roles, nights, speeches and votes. No text in here but what players say.

The village wins when no wolf is left, the wolves as soon as they are at least as many as all others. Every night the
living wolf with the lowest number chooses whom the wolves kill, the doctor whom to protect, and the seer whose role to
see, all at once. Every day each living player speaks once, in an order that begins one seat further each day; then all
vote at once. The player with the most votes is out; with a tie, or with the most votes for none, no player is.

Players are numbers. The first night is night 1, and day 1 follows it.
"""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

WOLF, SEER, DOCTOR, VILLAGER = "wolf", "seer", "doctor", "villager"

NOBODY = -1
"""Stands in place of a player's number for none, and for what was not done."""


class Phase(StrEnum):
    """Which kind of decision is being taken."""

    NIGHT = "night"
    SPEECHES = "speeches"
    VOTE = "vote"
    OVER = "over"


class Night(NamedTuple):
    """The deeds of one night, known to those who did them; numbers of players, or :data:`NOBODY`."""

    attacked: int
    protected: int
    inspected: int

    @property
    def killed(self) -> int:
        return NOBODY if self.attacked == self.protected else self.attacked


class Day(NamedTuple):
    """What was said and voted on one day, all of it public."""

    speeches: tuple[tuple[int, str], ...] = ()  # ``(speaker, words)`` in the order in which they spoke
    # ``(voter, for whom)`` of everyone who voted, by number; empty before the vote
    votes: tuple[tuple[int, int], ...] = ()
    removed: int = NOBODY  # who was voted out, or :data:`NOBODY`


class WerewolfState(NamedTuple):
    """The whole state; immutable and compared by value."""

    roles: tuple[str, ...]  # every player's role, hidden from the others
    alive: tuple[bool, ...]  # whether each is still in the village
    phase: Phase  # what is being decided
    nights: tuple[Night, ...] = ()  # the nights so far, the first one first
    days: tuple[Day, ...] = ()  # the days so far; the last is today's, except in the first night
    speakers: tuple[int, ...] = ()  # who is still to speak today, the next one first

    @property
    def living(self) -> tuple[int, ...]:
        return tuple([number for number, alive in enumerate(self.alive) if alive])

    @property
    def acting_wolf(self) -> int:
        """The living wolf with the lowest number, who chooses for all."""
        return next(n for n, role in enumerate(self.roles) if role == WOLF and self.alive[n])

    def holder(self, role: str) -> int:
        """Return the living player with a role that at most one has; :data:`NOBODY` if there is none."""
        return next((n for n in self.living if self.roles[n] == role), NOBODY)


def movers(state: WerewolfState) -> tuple[int, ...]:
    """List the players who decide now, by number."""
    if state.phase is Phase.SPEECHES:
        return state.speakers[:1]
    if state.phase is Phase.OVER:
        return ()
    if state.phase is Phase.VOTE:
        return state.living
    wolf = state.acting_wolf
    return tuple([n for n in state.living if state.roles[n] in (SEER, DOCTOR) or n == wolf])


def targets(state: WerewolfState, player: int, protect_again: bool) -> tuple[int, ...]:
    """Return the players whom one who is to move at night, or in a vote, may name; voting for none not counted."""
    role = state.roles[player]
    if state.phase is Phase.NIGHT and role == WOLF:
        return tuple([number for number in state.living if state.roles[number] != WOLF])
    if state.phase is Phase.NIGHT and role == DOCTOR:
        last = state.nights[-1].protected if state.nights and not protect_again else NOBODY
        return tuple([number for number in state.living if number != last])
    return tuple([number for number in state.living if number != player])


def play_night(state: WerewolfState, chosen: Mapping[int, int], speeches: bool) -> WerewolfState:
    """Return the night's end: ``chosen`` has the target of every player who was to move."""
    wolf, doctor, seer = state.acting_wolf, state.holder(DOCTOR), state.holder(SEER)
    night = Night(chosen[wolf], chosen.get(doctor, NOBODY), chosen.get(seer, NOBODY))
    state = state._replace(alive=_without(state.alive, night.killed), nights=(*state.nights, night))
    if winner(state) is not None:
        return state._replace(phase=Phase.OVER)
    state = state._replace(days=(*state.days, Day()))
    if not speeches:
        return state._replace(phase=Phase.VOTE)
    first = (len(state.nights) - 1) % len(state.roles)
    order = sorted(state.living, key=lambda number: (number - first) % len(state.roles))
    return state._replace(phase=Phase.SPEECHES, speakers=tuple(order))


def play_speech(state: WerewolfState, words: str) -> WerewolfState:
    """Return the state after the next speaker has spoken."""
    speaker, *left = state.speakers
    today = state.days[-1]
    today = today._replace(speeches=(*today.speeches, (speaker, words)))
    phase = Phase.SPEECHES if left else Phase.VOTE
    return state._replace(phase=phase, days=(*state.days[:-1], today), speakers=tuple(left))


def play_vote(state: WerewolfState, chosen: Mapping[int, int]) -> WerewolfState:
    """Return the state after a vote: the player with more votes than any other, and than ``nobody``, is out."""
    votes = tuple([(number, chosen[number]) for number in state.living])
    counts = Counter(chosen[number] for number in state.living).most_common(2)
    tie = len(counts) == 2 and counts[0][1] == counts[1][1]
    removed = NOBODY if tie else counts[0][0]
    today = state.days[-1]._replace(votes=votes, removed=removed)
    state = state._replace(alive=_without(state.alive, removed), days=(*state.days[:-1], today))
    return state._replace(phase=Phase.NIGHT if winner(state) is None else Phase.OVER)


def winner(state: WerewolfState) -> str | None:
    """Return ``"wolf"`` or ``"villager"``, for the side that has won; ``None`` before."""
    wolves = sum(state.roles[number] == WOLF for number in state.living)
    if not wolves:
        return VILLAGER
    return WOLF if 2 * wolves >= len(state.living) else None


def _without(alive: tuple[bool, ...], number: int) -> tuple[bool, ...]:
    return alive if number == NOBODY else (*alive[:number], False, *alive[number + 1 :])
