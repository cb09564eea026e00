"""What the conformance suite refuses: one small game for each way to break the contract, and the sentence for it.

Every broken game is a sound one with one method changed. ``Race`` has two players, and a game that is broken for the
second of them only must be refused as well.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import textgames
from textgames import TSMG
from textgames.conformance import ConformanceError, check, run_check

Rng = np.random.Generator
Joint = Mapping[str, str]


class Places(NamedTuple):
    first: int = 0
    second: int = 0


class Race(TSMG[Places]):
    """Two players walk or run to place 4; whoever is there is out. Running is legal on even places only."""

    players = ("player_0", "player_1")
    actions = ("walk", "run")

    def initial_state(self, rng: Rng) -> Places:
        return Places()

    def legal_actions(self, state: Places, player: str) -> tuple[str, ...]:
        return ("walk",) if self.place(state, player) % 2 else self.actions

    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> tuple[Any, Any, Any]:
        places, rewards = list(state), dict.fromkeys(self.players, 0.0)
        for i, player in enumerate(self.players):
            if self.is_playing(state, player):
                if joint_action.get(player) not in self.legal_actions(state, player):
                    raise ValueError(f"{player} can't do this: {joint_action}")
                places[i] += 1 + self.actions.index(joint_action[player])
                rewards[player] = float(rng.random() < 0.5)
        after = Places(*places)
        return after, rewards, min(after) >= 4

    def is_playing(self, state: Places, player: str) -> bool:
        return self.place(state, player) < 4

    def place(self, state: Places, player: str) -> int:
        return state[self.players.index(player)]

    def observe(self, state: Places, player: str) -> str:
        return f"You ({player}) are at {self.place(state, player)} of 4. Weiter, 走れ 🏃!"

    def instructions(self, player: str) -> str:
        return "Walk, or run. Who is at 4 is out."


class Walk(Race):
    """The same for one player."""

    players = ("player_0",)

    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> tuple[Any, Any, Any]:
        after, rewards, _ = super().transition(state, joint_action, rng)
        return after, rewards, after.first >= 4


BROKEN: dict[type[TSMG[Any]], str] = {}
"""The sentence by game: the name of the check, and what it says."""


def refused(sentence: str) -> Any:
    def add(game: type[TSMG[Any]]) -> type[TSMG[Any]]:
        BROKEN[game] = sentence
        return game

    return add


def broken(base: type[TSMG[Any]], sentence: str, **changed: Any) -> None:
    """``base`` with other attributes, and methods, or what they return in all cases."""
    for name, value in changed.items():
        if callable(getattr(base, name, None)) and not callable(value):
            changed[name] = lambda *_, value=value: value
    refused(sentence)(type(f"Broken{len(BROKEN)}", (base,), changed))


# ---------------------------------------------------------------- names


broken(Race, r"names: players has a name twice", players=("player_0", "player_0"))
broken(Race, r"names: players must be a tuple of at least one name, got \(\)", players=())
broken(Race, r"names: actions must be a tuple of at least one name, got \['walk', 'run'\]", actions=["walk", "run"])
RAISED = r"names: action_names\(\) raised ValueError: "
broken(Race, RAISED + r"a game has no action's name twice", actions=("walk", "run", "run"))
broken(Race, RAISED + r"action names are lower case.* got 'Run'", actions=("walk", "Run"))
broken(Race, RAISED + r"action names are lower case.* got '<run>'", actions=("walk", "<run>"))
broken(Race, RAISED + r"action names are lower case.* got 'ß'", actions=("ss", "ß"))  # is read as "ss"
broken(Race, r"names: noop must be None or one of the actions, got 'stay'", noop="stay")
broken(TSMG, r"names: TypeError: Can't instantiate abstract class Broken.*observe", actions=("walk",))


# ---------------------------------------------------------------- states


@refused(r"states: states must be copied, .* hashed as tuples .*: TypeError: unhashable type: 'list'")
class ListState(Walk):
    def initial_state(self, rng: Rng) -> Any:
        return [0]

    def is_playing(self, state: Any, player: str) -> bool:
        return True


@dataclass(frozen=True)
class Board:
    cells: Any = field(default_factory=lambda: np.zeros(2))

    def __hash__(self) -> int:
        return 1

    def __getitem__(self, i: int) -> int:
        return int(self.cells[i])


@refused(r"states: states must be .* compared .*: ValueError: The truth value of an array")
class StateWithAnArray(Walk):
    def initial_state(self, rng: Rng) -> Any:
        return Board()


@refused(r"states: a state must not be None")
class NoState(Walk):
    def initial_state(self, rng: Rng) -> Any:
        return None

    def is_playing(self, state: Any, player: str) -> bool:
        return True


class Identity:
    """A state that is equal to nothing but itself, and can be hashed and pickled."""

    def __getitem__(self, i: int) -> int:
        return 0


@refused(r"states: a copy of a state is not equal to it; states must be compared by value")
class StatesByIdentity(Walk):
    def initial_state(self, rng: Rng) -> Any:
        return Identity()


broken(Walk, r"states: states must be copied, pickled, .*: \w+: Can't", initial_state=(0, lambda: 0))


@dataclass(frozen=True)
class OwnHash:
    place: int = 0

    def __hash__(self) -> int:
        return id(self)

    def __getitem__(self, i: int) -> int:
        return self.place


@refused(r"states: equal states have different hashes; __hash__ must agree with __eq__")
class HashesByIdentity(Walk):
    def initial_state(self, rng: Rng) -> Any:
        return OwnHash()


@dataclass(unsafe_hash=True)
class Changeable:
    place: int = 0
    seen: list[int] = field(default_factory=list, compare=False)

    def __getitem__(self, i: int) -> int:
        return self.place


@refused(r"states: transition\(\) changed the state that it was given")
class ChangesItsState(Walk):
    def initial_state(self, rng: Rng) -> Any:
        return Changeable()

    def transition(self, state: Any, joint_action: Joint, rng: Rng) -> Any:
        if joint_action.get("player_0") not in self.legal_actions(state, "player_0"):
            raise ValueError(joint_action)
        state.place += 1
        return state, {"player_0": 0.0}, state.place >= 4


broken(Walk, r"states: the episode of player_0 is over in the initial state", initial_state=lambda *_: Places(4))


@refused(r"states: the episode of player_1 is over in the initial state")
class OverAtOnceForTheSecond(Race):
    def initial_state(self, rng: Rng) -> Places:
        return Places(0, 4 * (rng.random() < 0.2))


# ---------------------------------------------------------------- what a transition returns


def returning(change: Any) -> Any:
    """A transition whose result is changed by a function of it, the state before and the game."""

    def transition(self: Any, state: Any, joint_action: Joint, rng: Rng) -> Any:
        base = Race if isinstance(self, Race) and len(self.players) == 2 else Walk
        return change(*base.transition(self, state, joint_action, rng), state)

    return transition


@refused(r"states: transition\(\) must return \(state, rewards, terminated\), got")
class TwoResults(Race):
    transition = returning(lambda after, rewards, over, state: (after, rewards))


@refused(r"states: terminated must be True or False, got (np\.)?False")
class NumpyTruth(Race):
    transition = returning(lambda after, rewards, over, state: (after, rewards, np.bool_(over)))


@refused(r"states: transition\(\) must return a reward for each of player_0, player_1 and nobody else, got")
class RewardMissing(Race):
    transition = returning(lambda after, rewards, over, state: (after, {"player_0": 0.0}, over))


@refused(r"states: transition\(\) must return a reward for each of player_0 and nobody else, got")
class RewardOfAStranger(Walk):
    transition = returning(lambda after, rewards, over, state: (after, {**rewards, "player_7": 0.0}, over))


@refused(r"states: the reward of player_1 must be a finite float, got nan")
class NotANumber(Race):
    transition = returning(lambda after, rewards, over, state: (after, {**rewards, "player_1": float("nan")}, over))


@refused(r"states: the reward of player_0 must be a finite float, got 1")
class WholeReward(Walk):
    transition = returning(lambda after, rewards, over, state: (after, {"player_0": 1}, over))


@refused(r"states: player_1 was out before the round and is paid 1.0, but pays_late is False")
class RewardForTheDead(Race):
    pays_late = False
    transition = returning(lambda after, rewards, over, state: (after, {**rewards, "player_1": 1.0}, over))


@refused(r"states: player_1 was out before the round and plays again after it")
class Resurrection(Race):
    transition = returning(
        lambda after, rewards, over, state: (after._replace(second=0) if state.second >= 4 else after, rewards, over)
    )


@refused(r"states: nobody plays any more, but transition\(\) did not say that the game is over")
class NeverOver(Race):
    transition = returning(lambda after, rewards, over, state: (after, rewards, False))


@refused(r"states: succeeded\(\) of player_0 must be True or False, got \d")
class CountsSuccesses(Race):
    def succeeded(self, state: Places, player: str) -> Any:
        return state.first


@refused(r"states: transition\(\) changed the joint action that it was given")
class ChangesTheJointAction(Race):
    def transition(self, state: Places, joint_action: Any, rng: Rng) -> Any:
        result = super().transition(state, joint_action, rng)
        joint_action.clear()
        return result


@refused(r"states: transition\(\) raised IndexError: list index out of range")
class RaisesInARound(Race):
    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        after, rewards, over = super().transition(state, joint_action, rng)
        return after, rewards, [over, over][state.first]


# ---------------------------------------------------------------- purity


@refused(r"purity: transition\(\) gave another result when asked again")
class HiddenCounter(Race):
    rounds = 0

    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        after, rewards, over = super().transition(state, joint_action, rng)
        self.rounds += 1
        return after, rewards, over or self.rounds % 30 == 0


@refused(r"purity: .* when asked again")
class HiddenFieldOfTheState(Walk):
    """Equal states that differ in what their equality leaves out."""

    def initial_state(self, rng: Rng) -> Any:
        return Changeable()

    def transition(self, state: Any, joint_action: Joint, rng: Rng) -> Any:
        if joint_action.get("player_0") not in self.legal_actions(state, "player_0"):
            raise ValueError(joint_action)
        state.seen.append(1)
        return Changeable(state.place + 1), {"player_0": float(len(state.seen))}, state.place >= 3


@refused(r"purity: transition\(\) gave another result when asked again")
class OwnGenerator(Race):
    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        return super().transition(state, joint_action, np.random.default_rng())


@refused(r"purity: transition\(\) gave another result when asked again")
class KeptGenerator(Race):
    def initial_state(self, rng: Rng) -> Places:
        self.rng = rng
        return Places()

    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        return super().transition(state, joint_action, self.rng)


@refused(r"purity: the game draws from a global generator")
class NumpysGlobalGenerator(Race):
    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        after, rewards, over = super().transition(state, joint_action, rng)
        return after, rewards, over or np.random.random() < 0


broken(Race, r"purity: the game draws from a global generator", initial_state=lambda *_: Places(random.randrange(2)))


@refused(r"purity: initial_state\(\) gave different states for equal generators")
class StartOfItsOwn(Race):
    def initial_state(self, rng: Rng) -> Places:
        return Places(int(np.random.default_rng().integers(3)))


@refused(r"purity: initial_state\(\) gave different states for equal generators")
class LevelsThatGoOn(Race):
    level = 0

    def initial_state(self, rng: Rng) -> Places:
        self.level += 1
        return Places(self.level % 3)


@refused(r"purity: instructions\(\) of player_0 said .* and .* when asked again")
class RandomInstructions(Race):
    def instructions(self, player: str) -> str:
        return f"Walk or run; hint {np.random.default_rng().integers(1000)}."


@refused(r"purity: observe\(\) of player_0 said .* and .* when asked again")
class ObservesHistory(Race):
    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        self.last = dict(joint_action)
        return super().transition(state, joint_action, rng)

    def observe(self, state: Places, player: str) -> str:
        return f"{state}, after {getattr(self, 'last', None)}"


@refused(r"purity: observe\(\) of player_1 said .* when asked")
class RemembersForTheSecond(Race):
    reads = 0

    def observe(self, state: Places, player: str) -> str:
        self.reads += player == "player_1"
        return f"{state}, seen {self.reads * (player == 'player_1')} times"


@refused(r"states: sample_action\(\) of player_0 gave 'run', which is not legal")
class LegalActionsByMood(Race):
    moods = 0

    def legal_actions(self, state: Places, player: str) -> tuple[str, ...]:
        self.moods += 1
        return ("walk",) if self.moods % 7 == 0 else self.actions

    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        places = [place + (place < 4) for place in state]
        return Places(*places), dict.fromkeys(self.players, 0.0), min(places) >= 4


@refused(r"purity: what_happened\(\) of player_0 said 'round \d+', and .* when asked again")
class CountsWhatHappened(Race):
    rounds = 0

    def what_happened(self, state: Places, joint_action: Joint, next_state: Places, player: str) -> str:
        self.rounds += 1
        return f"round {self.rounds}"


# ---------------------------------------------------------------- actions


@refused(r"states: legal_actions\(\) of player_0 has a name twice")
class LegalTwice(Race):
    def legal_actions(self, state: Places, player: str) -> tuple[str, ...]:
        return (*super().legal_actions(state, player), "walk")


@refused(r"states: legal_actions\(\) of player_1 has names that are not among .*\['swim'\]")
class StrangeLegalAction(Race):
    def legal_actions(self, state: Places, player: str) -> tuple[str, ...]:
        return ("walk", "swim") if player == "player_1" else ("walk",)


@refused(r"states: legal_actions\(\) of player_0 must be a tuple of at least one name, got \(\)")
class NothingToDo(Walk):
    def legal_actions(self, state: Places, player: str) -> tuple[str, ...]:
        return self.actions[: 2 - state.first]


class Lenient(Race):
    """Takes whatever it is given; the base of those that take it from one player."""

    lenient = ("player_0", "player_1")

    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        given = dict(joint_action)
        for player in self.lenient:
            if given.get(player) not in self.legal_actions(state, player):
                given[player] = "walk"
        return super().transition(state, given, rng)


broken(Lenient, r"actions: transition\(\) accepted 'no such action' of player_0, which is not legal: ")


@refused(r"actions: transition\(\) accepted 'no such action' of player_1, which is not legal: ")
class AcceptsAnythingOfTheSecond(Lenient):
    lenient = ("player_1",)


@refused(r"actions: transition\(\) accepted 'run' of player_0, which is not legal: ")
class AcceptsIllegalActions(Race):
    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        if any(joint_action.get(p) not in self.actions for p in self.players if self.is_playing(state, p)):
            raise ValueError(joint_action)
        places = [place + (place < 4) for place in state]
        return Places(*places), dict.fromkeys(self.players, 0.0), min(places) >= 4


@refused(r"actions: transition\(\) accepted a round without an action of player_1: \{'player_0': '\w+'\}")
class NeedsNoAnswer(Race):
    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        return super().transition(state, {"player_1": "walk", **joint_action}, rng)


@refused(
    r"actions: transition\(\) raised KeyError for a round without an action of player_0: \{\}; it must raise ValueError"
)
class RaisesKeyError(Walk):
    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        return super().transition(state, {"player_0": joint_action["player_0"]}, rng)


@refused(r"states: transition\(\) refused .*'player_1': 'run'.*, where every action is legal: player_1 is tired")
class RefusesALegalAction(Race):
    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        if joint_action.get("player_1") == "run" and state.second == 2:
            raise ValueError("player_1 is tired")
        return super().transition(state, joint_action, rng)


@refused(r"actions: the actions of players who are not to move must be ignored")
class ListensToTheDead(Race):
    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        after, rewards, over = super().transition(state, joint_action, rng)
        rewards["player_1"] -= state.first >= 4 and "player_0" in joint_action
        return after, rewards, over


@refused(r"states: to_move\(\) must name at least one player while the game is not over, got \(\)")
class NobodysTurn(Race):
    def to_move(self, state: Places) -> tuple[str, ...]:
        return () if state.first == 1 else super().to_move(state)


broken(Race, r"states: to_move\(\) names player_[01], whose own episode is over", to_move=lambda self, *_: self.players)


@refused(r"states: to_move\(\) must name each player once, in the order of players, got \('player_1', 'player_0'\)")
class TurnsOutOfOrder(Race):
    def to_move(self, state: Places) -> tuple[str, ...]:
        return super().to_move(state)[::-1]


class Coin(TSMG[int]):
    """Heads pay 1; three coins are tossed. Sound, and tells its chances."""

    actions = ("toss",)
    heads = 0.3

    def initial_state(self, rng: Rng) -> int:
        return 0

    def transition(self, state: int, joint_action: Joint, rng: Rng) -> tuple[Any, Any, Any]:
        if joint_action.get("player_0") != "toss":
            raise ValueError("toss")
        return state + 1, {"player_0": float(rng.random() < self.heads)}, state >= 2

    def outcomes(self, state: int, joint_action: Joint) -> list[Any]:
        return [(p, state + 1, {"player_0": pay}, state >= 2) for p, pay in ((0.3, 1.0), (0.7, 0.0))]

    def observe(self, state: int, player: str) -> str:
        return f"Toss {state}."

    def instructions(self, player: str) -> str:
        return "Toss."

    def metrics(self, state: int, player: str) -> Mapping[str, float]:
        return {"tosses": state}

    def read_observation(self, observation: str, player: str) -> int:
        return int(observation.removeprefix("Toss ").removesuffix("."))


@refused(r"outcomes: outcomes\(\) of {'player_0': 'toss'} gives .* the probability 0.3, it came \d+ times of 2000")
class LoadedCoin(Coin):
    heads = 0.5


@refused(r"outcomes: the probabilities of outcomes\(\) of {'player_0': 'toss'} sum to 0.6")
class HalfTold(Coin):
    def outcomes(self, state: int, joint_action: Joint) -> list[Any]:
        return super().outcomes(state, joint_action)[:1] * 2


@refused(r"outcomes: transition\(\) gave .*, which outcomes\(\) doesn't list")
class OnlyTails(Coin):
    def outcomes(self, state: int, joint_action: Joint) -> list[Any]:
        return [(1.0, state + 1, {"player_0": -1.0}, state >= 2)]


class Patience(Coin):
    """Pays after sixty tosses, which is more than the checks play. Sound."""

    longest_episode = 60
    return_range = (1.0, 1.0)

    def transition(self, state: int, joint_action: Joint, rng: Rng) -> tuple[Any, Any, Any]:
        super().transition(state, joint_action, rng)
        return state + 1, {"player_0": float(state >= 59)}, state >= 59

    def outcomes(self, state: int, joint_action: Joint) -> list[Any]:
        return [(1.0, state + 1, {"player_0": float(state >= 59)}, state >= 59)]


class Dice(TSMG[tuple[int, int]]):
    """Two dice are rolled again, or are paid: chance plays in some rounds and not in others. Sound."""

    actions = ("stop", "roll")
    skew = 0

    def initial_state(self, rng: Rng) -> tuple[int, int]:
        return 2 + int(rng.random() * 6) + int(rng.random() * 6), 4

    def legal_actions(self, state: tuple[int, int], player: str) -> tuple[str, ...]:
        return self.actions if state[1] else ("stop",)

    def transition(self, state: tuple[int, int], joint_action: Joint, rng: Rng) -> tuple[Any, Any, Any]:
        if joint_action.get("player_0") not in self.legal_actions(state, "player_0"):
            raise ValueError("stop or roll")
        if joint_action["player_0"] == "stop":
            return state, {"player_0": float(state[0])}, True
        return (self.initial_state(rng)[0], state[1] - 1), {"player_0": 0.0}, False

    def outcomes(self, state: tuple[int, int], joint_action: Joint) -> list[Any]:
        if joint_action["player_0"] == "stop":
            return [(1.0, state, {"player_0": float(state[0])}, True)]
        weights = {total: (6 - abs(total - 7)) * float(total**self.skew) for total in range(2, 13)}
        chances = [(weight / sum(weights.values()), total) for total, weight in weights.items()]
        return [(chance, (total, state[1] - 1), {"player_0": 0.0}, False) for chance, total in chances]

    def observe(self, state: tuple[int, int], player: str) -> str:
        return f"The dice show {state[0]}, and {state[1]} rolls are left."

    def instructions(self, player: str) -> str:
        return "Stop, or roll."


@refused(r"outcomes: outcomes\(\) of {'player_0': 'roll'} gives .* the probability .*, it came \d+ times of 2000")
class SkewedDice(Dice):
    skew = 3


broken(Dice, r"scores: a round paid player_0 0, less than worst_round, which is 5.0", worst_round=5.0)


@refused(r"scores: an episode paid player_0 \d+, which is not within return_range, \(0.0, 1.5\)")
class NarrowRange(Dice):
    return_range = (0.0, 1.5)


broken(Dice, r"scores: zero_sum is for two players, got 1", zero_sum=True)
broken(Race, r"scores: the returns of a zero_sum game sum to 0, got \{'player_0'", zero_sum=True)
broken(
    Dice, r"scores: forfeit\(\) of player_0 must return .* with player_0 and no strangers in it, got \{\}", forfeit={}
)


@refused(r"scores: forfeit\(\) pays \d.* more than random play still got")
class GivingUpPays(Dice):
    return_range = (2.0, 12.0)

    def forfeit(self, state: tuple[int, int], player: str, rounds_left: float) -> dict[str, float]:
        return {player: 12.0}


@refused(r"scores: forfeit\(\) of player_[01] must pay the other player of a zero_sum game what it costs")
class NobodyGains(Race):
    zero_sum = True

    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> tuple[Any, Any, Any]:
        after, rewards, over = super().transition(state, joint_action, rng)
        return after, dict.fromkeys(rewards, 0.0), over

    def forfeit(self, state: Places, player: str, rounds_left: float) -> dict[str, float]:
        return {player: -1.0}


@refused(r"metrics: the metric 'tosses' of player_0 must be a finite number, got inf")
class EndlessMetric(Coin):
    def metrics(self, state: int, player: str) -> Mapping[str, float]:
        return {"tosses": float("inf")}


@refused(r"reading_back: read_observation\(\) of player_0 lost something of 'Toss 1.'")
class ReadsAnotherState(Coin):
    def read_observation(self, observation: str, player: str) -> int:
        return 0 * super().read_observation(observation, player)


class Guess(TSMG[str]):
    """A word is written and that is it. Sound, and lists no actions."""

    def initial_state(self, rng: Rng) -> str:
        return ""

    def legal_actions(self, state: str, player: str) -> tuple[str, ...]:
        return ()

    def read_action(self, inside: str, state: str, player: str) -> Any:
        word = inside.strip().casefold()
        return word if word.isalpha() and word.isascii() and len(word) < 10 else textgames.Unreadable("unknown_name")  # type: ignore[arg-type]

    def default_action(self, state: str, player: str) -> str:
        return "word"

    def sample_action(self, state: str, player: str, rng: Rng) -> str:
        return "abcdef"[int(rng.integers(6))] * 3

    def action_help(self, state: str, player: str) -> str:
        return "a word"

    def transition(self, state: str, joint_action: Joint, rng: Rng) -> tuple[Any, Any, Any]:
        word = joint_action.get("player_0", "")
        if not word.isalpha():
            raise ValueError("a word, please")
        return word, {"player_0": 1.0}, True

    def observe(self, state: str, player: str) -> str:
        return f"Word: {state}"

    def instructions(self, player: str) -> str:
        return "Write a word."


@refused(r"names: a game that lists no actions needs a default_action\(\) of its own")
class NoDefault(Guess):
    default_action = TSMG.default_action


broken(Guess, r"scores: forfeit\(\) pays \d.* more than random play still got", worst_round=1.0)  # of one round
broken(Guess, r"interpretation: interpret\(\) must read .* of player_0 as 'WORD', got 'word'", default_action="WORD")


@refused(r"interpretation: interpret\(\) must not read .* of player_0 as an action")
class ReadsThoughts(Guess):
    def read(self, text: str, state: str, player: str) -> Any:
        return super().read(text, state, player) if "<think>" not in text else "thought"


# ---------------------------------------------------------------- the action map


@refused(r"interpretation: interpret\(\) must not read '' of player_0 as an action, got 'walk'")
class Guesses(Race):
    def interpret(self, text: str, state: Places, player: str) -> str | None:
        return super().interpret(text, state, player) or "walk"


@refused(r"interpretation: interpret\(\) must not read 'walkset' of player_0 as an action, got 'walk'")
class FindsNamesInWords(Race):
    def interpret(self, text: str, state: Places, player: str) -> str | None:
        found = [name for name in self.legal_actions(state, player) if name in text.casefold()]
        return found[0] if found and "><" not in text else None


@refused(r"interpretation: interpret\(\) must not read 'run' of player_1 as an action, got 'run'")
class ReadsIllegalActions(Race):
    def interpret(self, text: str, state: Places, player: str) -> str | None:
        if player == "player_1" and text == "run":
            return "run"
        return super().interpret(text, state, player)


@refused(r"interpretation: interpret\(\) must read ' walk\\n' of player_0 as 'walk', got None")
class CaseSensitive(Race):
    def interpret(self, text: str, state: Places, player: str) -> str | None:
        return text if text in self.legal_actions(state, player) else None


@refused(r"interpretation: interpret\(\) raised IndexError")
class RaisesForSomeTexts(Race):
    def interpret(self, text: str, state: Places, player: str) -> str | None:
        return super().interpret(text, state, player) if text[0] else None


broken(Race, r"interpretation: why_invalid\(\) of '' must be an Unreadable, got 'because'", why_invalid="because")


# ---------------------------------------------------------------- texts


broken(
    Race, r"texts: the instructions for player_0 don't name the action 'run' as a word of its own", instructions="Walk."
)


@refused(r"texts: the instructions for player_0 don't name the action 'run' as a word of its own")
class NamedInsideAnotherWord(Race):
    def instructions(self, player: str) -> str:
        return "Walk, or turn into a runner; re-run nothing."


@refused(r"texts: the instructions for player_1 don't name the action 'run' as a word of its own")
class SilentToTheSecond(Race):
    def instructions(self, player: str) -> str:
        return "Walk or run." if player == "player_0" else "Walk."


@refused(r"texts: the instructions for player_0 don't name the action 'run' as a word of its own")
class NamedInsideALongerAction(Race):
    actions = ("walk", "run", "run away")

    def instructions(self, player: str) -> str:
        return "Walk or run away."


broken(Race, r"texts: instructions\(\) for player_0 must be a string, got None", instructions=lambda *_: None)
broken(Race, r"texts: observe\(\) of player_0 must return a string, got Places", observe=lambda self, state, *_: state)


@refused(r"texts: observe\(\) of player_1 returned a text that is not printable: '\\x1b\[1m'")
class TerminalCodes(Race):
    def observe(self, state: Places, player: str) -> str:
        return "\x1b[1m" if player == "player_1" else "You."


broken(Race, r"texts: what_happened\(\) of player_0 must return a string, got None", what_happened=lambda *_: None)


@refused(r"gymnasium: ValueError: board\(\) must return a tuple of rows of one length, got \('abc', 'a'\)")
class RaggedBoard(Race):
    def board(self, state: Places) -> tuple[str, ...]:
        return "abc", "a"


broken(Race, r"texts: action_help\(\) of player_0 must say what may be written", action_help="")
broken(
    Walk, r"rendering: the palette is of the board's characters, of which \['me'\] are none", palette={"me": (1, 2, 3)}
)


@refused(r"rendering: the colour of '1' must be \(red, green, blue\), each from 0 to 255, got \(1, 2, 300\)")
class NoSuchColour(Walk):
    palette: ClassVar[Mapping[str, tuple[int, int, int]]] = {"1": (1, 2, 300)}


# ---------------------------------------------------------------- the tests


@pytest.mark.parametrize("game", [Race, Walk, Coin, Patience, Dice, Guess], ids=lambda game: game.__name__)
def test_sound_games_pass(game: type[TSMG[Any]]) -> None:
    """One of them shows umlauts, Chinese characters and emoji, and goes through Gymnasium's own check_env."""
    textgames.register(f"Test{game.__name__}-v0", game, max_steps=8)
    check(f"Test{game.__name__}-v0")


@pytest.mark.parametrize(("game", "sentence"), BROKEN.items())
def test_a_broken_game_is_refused_with_a_sentence_that_says_why(game: type[TSMG[Any]], sentence: str) -> None:
    env_id = f"Test{game.__name__}-v0"
    textgames.register(env_id, game, max_steps=8)
    with pytest.raises(ConformanceError, match=rf"^{env_id}: {sentence}"):
        check(env_id)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("legal_action", "legal_actions"), ("to_moves", "to_move"), ("sucess_means", "success_means")],
)
def test_a_misspelt_name_of_the_contract_is_refused(name: str, meant: str) -> None:
    """Nothing would ever ask for it, so the game would be played by the default that it wanted to replace."""
    method = {name: lambda self, state, player: ("walk",)}
    textgames.register("TestMisspelt-v0", type("Misspelt", (Coin,), method), max_steps=8)
    with pytest.raises(
        ConformanceError, match=rf"^TestMisspelt-v0: names: .*Misspelt has {name}.*did you mean '{meant}'"
    ):
        check("TestMisspelt-v0")
    both = {**method, meant: getattr(Coin, meant)}  # the contract's name as well: it knows what it is called
    textgames.register("TestMisspelt-v0", type("Misspelt", (Coin,), both), max_steps=8)
    run_check("names", "TestMisspelt-v0")
