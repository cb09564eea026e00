"""One round of Gathering or Cleanup: all players move at once, beams strike, nature grows, apples are eaten.

The order within a round:

1. All who play move or turn, at once. Players don't block each other and may share a cell. 2. Beams are used, all at
once, from where their players stand to where the others stand after moving. A player that took enough hits is out for a
number of whole rounds and then comes back at its own start. Cleaning happens here too. 3. Nature: apples and dirt come
and vanish, as the game has it. 4. All who play and stand on an apple eat it; of several on one cell one does, with
equal chances.

If all players are out there is none to ask, so the rounds until the first one is back pass within the same transition.
They count as rounds in the statistics.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from numpy.random import Generator

from textgames.social.commons.board import Cells
from textgames.social.commons.state import Body, CommonsConfig, CommonsState, Deed, Tally, social_statistics
from textgames.social.commons.text import CommonsText
from textgames.tsmg import Action, JointAction, Player, Rewards, Transition

STAY, BEAM, CLEAN = "stay", "beam", "clean"
STEPS = {"forward": 0, "step right": 1, "backward": 2, "step left": 3}  # quarter turns from the heading
TURNS = {"turn left": 3, "turn right": 1}
ACTIONS: tuple[Action, ...] = (STAY, *STEPS, *TURNS, BEAM)


class Moved(NamedTuple):
    """A round after all moves and beams; an entry a player in each list."""

    bodies: list[Body]
    deeds: list[Deed]
    rewards: list[float]
    dirt: Cells


class CommonsGame(CommonsText):
    """What the two games share; a subclass has its settings, its nature and the texts on both."""

    actions = ACTIONS
    noop = STAY
    pays_late = False
    first_apple = 0  # what every apple cell is at first: 0 if its apple is there
    empty_apple = 1  # what an apple cell is set to when its apple is eaten

    def __init__(self, config: CommonsConfig) -> None:
        super().__init__(config)
        deeds = config.beam_reward, getattr(config, "clean_reward", 0.0)  # only in Cleanup there is something to clean
        hits = (len(self.players) - 1) * config.hit_reward  # all others at once
        self.worst_round = min(0.0, *deeds) + min(0.0, hits)
        self._legal = {  # by whether the beam and cleaning have to wait
            (beam, clean): tuple([name for name in self.actions if name not in (BEAM * beam, CLEAN * clean)])
            for beam, clean in product((False, True), repeat=2)
        }

    @abstractmethod
    def nature(
        self, state: CommonsState, bodies: Sequence[Body], dirt: Cells, rng: Generator | None
    ) -> tuple[list[int], Cells]:
        """Return what apples and dirt become before anything is eaten; ``rng`` is ``None`` if nothing is random."""

    def clean(self, bodies: list[Body], deeds: list[Deed], rewards: list[float], dirt: Cells) -> Cells:
        """Return the dirt that is left after all cleaning. Only Cleanup has dirt."""
        return dirt

    def initial_state(self, rng: Generator) -> CommonsState:
        homes = rng.permutation(len(self._map.starts))[: len(self.players)]
        headings = rng.integers(4, size=len(self.players))
        return self.beginning((self._map.starts[home] for home in homes), (int(heading) for heading in headings))

    def beginning(self, homes: Iterable[int], headings: Iterable[int]) -> CommonsState:
        bodies = tuple(Body(home, heading, home) for home, heading in zip(homes, headings, strict=True))
        tallies = (Tally(),) * len(bodies)
        return CommonsState(bodies, (self.first_apple,) * len(self._map.apples), self._map.dirt, 0, (), tallies)

    def to_move(self, state: CommonsState) -> tuple[Player, ...]:
        """Return all who aren't out. Those who are keep playing: they are asked again when they are back."""
        bodies = state.bodies
        return tuple([player for player, body in zip(self.players, bodies, strict=True) if not body.out])

    def legal_actions(self, state: CommonsState, player: Player) -> tuple[Action, ...]:
        body = state.bodies[self._numbers[player]]
        return self._legal[bool(body.beam_wait), bool(body.clean_wait)]

    def transition(self, state: CommonsState, joint_action: JointAction, rng: Generator) -> Transition[CommonsState]:
        """Play one round, or more if all are out; the game never ends by itself."""
        moved = self._act(state, joint_action)
        apples, dirt = self.nature(state, moved.bodies, moved.dirt, rng)
        winners = [
            (place, some[0] if len(some) == 1 else some[int(rng.integers(len(some)))])
            for place, some in self._eaters(apples, moved.bodies)
        ]
        return *self._eat(state, moved._replace(dirt=dirt), apples, winners, rng), False

    def _act(self, state: CommonsState, joint_action: JointAction) -> Moved:
        bodies: list[Body] = []
        deeds: list[Deed] = []
        for player, body in zip(self.players, state.bodies, strict=True):
            if body.out:
                bodies.append(body)
                deeds.append(Deed())
                continue
            action = joint_action.get(player, "")
            if action not in self.legal_actions(state, player):
                accepted = ", ".join(self.legal_actions(state, player))
                raise ValueError(f"{player} needs a legal action, one of {accepted}; got {action!r}")
            cell, heading, home, hits, out, beam_wait, clean_wait = body
            if action in STEPS:
                cell = self._map.steps[(heading + STEPS[action]) % 4][cell]
            elif action in TURNS:
                heading = (heading + TURNS[action]) % 4
            bodies.append(Body(cell, heading, home, hits, out, max(0, beam_wait - 1), max(0, clean_wait - 1)))
            deeds.append(Deed(action))
        rewards = [0.0] * len(bodies)
        dirt = self.clean(bodies, deeds, rewards, state.dirt)
        self._strike(bodies, deeds, rewards)
        return Moved(bodies, deeds, rewards, dirt)

    def _strike(self, bodies: list[Body], deeds: list[Deed], rewards: list[float]) -> None:
        """Use all beams at once: a player that is hit may still hit others."""
        config, hits = self.config, [0] * len(bodies)
        for number in [number for number, deed in enumerate(deeds) if deed.action == BEAM]:
            reached = self._beams[bodies[number].heading][bodies[number].cell]
            struck = [i for i, body in enumerate(bodies) if i != number and not body.out and body.cell in reached]
            for other in struck:
                hits[other] += 1
            rewards[number] += config.beam_reward
            deeds[number] = deeds[number]._replace(struck=tuple(struck))
            bodies[number] = bodies[number]._replace(beam_wait=config.beam_cooldown)
        for number, count in enumerate(hits):
            if not count:
                continue
            body = bodies[number]
            rewards[number] += count * config.hit_reward
            if body.hits + count < config.hits_until_out:
                bodies[number] = body._replace(hits=body.hits + count)
            else:  # one more than it misses, since every round's end takes one off
                bodies[number] = body._replace(cell=body.home, hits=0, out=config.out_rounds + 1)

    def _eaters(self, apples: Sequence[int], bodies: Sequence[Body]) -> list[tuple[int, list[int]]]:
        """Return ``[(place of an apple, numbers of the players on it), ...]``."""
        found = []
        cells = [-1 if body.out else body.cell for body in bodies]
        for place, cell in enumerate(self._map.apples):
            if not apples[place] and cell in cells:
                found.append((place, [number for number, at in enumerate(cells) if at == cell]))
        return found

    def _eat(
        self,
        state: CommonsState,
        moved: Moved,
        apples: list[int],
        winners: Sequence[tuple[int, int]],
        rng: Generator | None,
    ) -> tuple[CommonsState, Rewards]:
        """Let winners eat, ``(place of an apple, number of a player)``, and pass the rounds in which all are out."""
        deeds, rewards, apples = moved.deeds.copy(), moved.rewards.copy(), apples.copy()
        for place, winner in winners:
            apples[place] = self.empty_apple
            rewards[winner] += self.config.apple_reward
            deeds[winner] = deeds[winner]._replace(ate=True)
        tallies = [
            Tally(
                tally.total + reward,
                tally.paid + (reward > 0),
                tally.paid_at + (state.round if reward > 0 else 0),
                tally.missed + (not deed.action),
                tally.hits + len(deed.struck),
                tally.cleaned + deed.cleaned,
            )
            for tally, reward, deed in zip(state.tallies, rewards, deeds, strict=True)
        ]
        back = tuple([body._replace(out=body.out - 1) if body.out else body for body in moved.bodies])
        after = CommonsState(back, tuple(apples), moved.dirt, state.round + 1, tuple(deeds), tuple(tallies))
        while all(body.out for body in after.bodies):
            apples, dirt = self.nature(after, after.bodies, after.dirt, rng)
            after = after._replace(  # the deeds of the last round that was played stay told
                bodies=tuple([body._replace(out=body.out - 1) for body in after.bodies]),
                apples=tuple(apples),
                dirt=dirt,
                round=after.round + 1,
                tallies=tuple([tally._replace(missed=tally.missed + 1) for tally in after.tallies]),
            )
        return after, dict(zip(self.players, rewards, strict=True))

    def metrics(self, state: CommonsState, player: Player) -> dict[str, float]:
        tally = state.tallies[self._numbers[player]]
        own = {"rounds_out": float(tally.missed), "hits": float(tally.hits)}
        return {**social_statistics(state.tallies, state.round), **own}
