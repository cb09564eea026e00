"""What the conformance suite refuses: one small game for each way to break the contract, and the sentence for it.

Every broken game is a sound one with one method changed. ``Race`` has two players, and a game that is broken for the
second of them only must be refused as well.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple

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


class Hops(Race):
    """All go on by one place, whatever they choose."""

    def transition(self, state: Places, joint_action: Joint, rng: Rng) -> Any:
        if any(joint_action.get(p) not in self.actions for p in self.players if self.is_playing(state, p)):
            raise ValueError(joint_action)
        places = [place + (place < 4) for place in state]
        return Places(*places), dict.fromkeys(self.players, 0.0), min(places) >= 4


@dataclass(frozen=True)
class OwnHash:
    place: int = 0

    def __hash__(self) -> int:
        return id(self)

    def __getitem__(self, i: int) -> int:
        return self.place


@dataclass(unsafe_hash=True)
class Changeable:
    place: int = 0
    seen: list[int] = field(default_factory=list, compare=False)

    def __getitem__(self, i: int) -> int:
        return self.place


def returning(change: Any, base: Any = Race) -> Any:
    """A transition whose result is changed by a function of it and the state before."""
    return lambda self, state, joint, rng: change(*base.transition(self, state, joint, rng), state)


def checked(self: Any, state: Any, joint_action: Joint) -> None:
    if joint_action.get("player_0") not in self.legal_actions(state, "player_0"):
        raise ValueError(joint_action)


def changes_its_state(self: Any, state: Any, joint_action: Joint, rng: Rng) -> Any:
    checked(self, state, joint_action)
    state.place += 1
    return state, {"player_0": 0.0}, state.place >= 4


def hidden_field(self: Any, state: Any, joint_action: Joint, rng: Rng) -> Any:
    """Equal states differ in what their equality leaves out."""
    checked(self, state, joint_action)
    state.seen.append(1)
    return Changeable(state.place + 1), {"player_0": float(len(state.seen))}, state.place >= 3


def changes_the_joint_action(self: Any, state: Places, joint_action: Any, rng: Rng) -> Any:
    result = Race.transition(self, state, joint_action, rng)
    joint_action.clear()
    return result


def is_tired(self: Any, state: Places, joint_action: Joint, rng: Rng) -> Any:
    if joint_action.get("player_1") == "run" and state.second == 2:
        raise ValueError("player_1 is tired")
    return Race.transition(self, state, joint_action, rng)


def listens_to_the_dead(self: Any, state: Places, joint_action: Joint, rng: Rng) -> Any:
    after, rewards, over = Race.transition(self, state, joint_action, rng)
    rewards["player_1"] -= state.first >= 4 and "player_0" in joint_action
    return after, rewards, over


def finds_names_in_words(self: Any, text: str, state: Places, player: str) -> str | None:
    found = [name for name in self.legal_actions(state, player) if name in text.casefold()]
    return found[0] if found and "><" not in text else None


ME = "player_0"
RAISED = r"names: action_names\(\) raised ValueError: "
NO_NAME = r"texts: the instructions for player_0 don't name the action 'run' as a word of its own"
GLOBAL = r"purity: the game draws from a global generator"
TWO_REWARDS = r"states: transition\(\) must return a reward for each of player_0, player_1 and nobody else, got"
TRANSITION, NOT = r"actions: transition\(\) accepted ", r" of player_\d, which is not legal: "
UNREAD, READ = r"interpretation: interpret\(\) must not read ", r"interpretation: interpret\(\) must read "
GIVING_UP = r"scores: forfeit\(\) pays \d.* more than random play still got"

Change = dict[str, Any]
BREAKS: list[tuple[type[TSMG[Any]], str, Change]] = [
    (Race, r"names: players has a name twice", {"players": ("player_0", "player_0")}),
    (Race, r"names: actions must be a tuple .*, got \['walk', 'run'\]", {"actions": ["walk", "run"]}),
    (Race, RAISED + r"action names are lower case.* got 'ß'", {"actions": ("ss", "ß")}),  # is read as "ss"
    (Guess, r"names: a game .* no actions needs a default_action\(\)", {"default_action": TSMG.default_action}),
    # states
    (Walk, r"states: .* hashed as .*: TypeError: unhashable type: 'list'", {"initial_state": [0], "is_playing": True}),
    (Walk, r"states: a state must not be None", {"initial_state": lambda *_: None, "is_playing": True}),
    (Walk, r"states: equal states .* hashes; __hash__ must agree with", {"initial_state": lambda *_: OwnHash()}),
    (Race, r"states: the episode of player_1 is over in the initial state",
     {"initial_state": lambda self, rng: Places(0, 4 * (rng.random() < 0.2))}),
    (Walk, r"states: transition\(\) changed the state that it was given",
     {"initial_state": lambda *_: Changeable(), "transition": changes_its_state}),
    # what a transition returns
    (Race, r"states: transition\(\) must return \(state, rewards, terminated\), got",
     {"transition": returning(lambda s, paid, over, before: (s, paid))}),
    (Race, r"states: terminated must be True or False, got (np\.)?False",
     {"transition": returning(lambda s, paid, over, before: (s, paid, np.bool_(over)))}),
    (Race, TWO_REWARDS, {"transition": returning(lambda s, paid, over, before: (s, {ME: 0.0}, over))}),
    (Race, r"states: the reward of player_1 must be a finite float, got nan",
     {"transition": returning(lambda s, paid, over, before: (s, {**paid, "player_1": float("nan")}, over))}),
    (Walk, r"states: the reward of player_0 must be a finite float, got 1",
     {"transition": returning(lambda s, paid, over, before: (s, {ME: 1}, over), Walk)}),
    (Race, r"states: player_1 was out before the round and is paid 1.0, but pays_late is False",
     {"pays_late": False, "transition": returning(lambda s, paid, over, _: (s, {**paid, "player_1": 1.0}, over))}),
    (Race, r"states: player_1 was out before the round and plays again after it",
     {"transition": returning(lambda s, *rest: (s._replace(second=0) if rest[2].second >= 4 else s, *rest[:2]))}),
    (Race, r"states: nobody plays any more, but transition\(\) did not say that the game is over",
     {"transition": returning(lambda s, paid, over, before: (s, paid, False))}),
    (Race, r"states: transition\(\) raised IndexError: list index out of range",
     {"transition": returning(lambda s, paid, over, before: (s, paid, [over, over][before.first]))}),
    (Race, r"states: succeeded\(\) of player_0 must be True or .*, got \d", {"succeeded": lambda self, s, p: s.first}),
    (Race, r"states: transition\(\) changed the joint action", {"transition": changes_the_joint_action}),
    (Race, r"states: transition\(\) refused .*'player_1': 'run'.*legal: player_1 is tired", {"transition": is_tired}),
    # who moves, and what may be chosen
    (Race, r"states: to_move\(\) must name at least one player while the game is not over, got \(\)",
     {"to_move": lambda self, state: () if state.first == 1 else Race.to_move(self, state)}),
    (Race, r"states: to_move\(\) names player_[01], whose own .* is over", {"to_move": lambda self, _: self.players}),
    (Race, r"states: to_move\(\) must name each player once, in .*, got \('player_1', 'player_0'\)",
     {"to_move": lambda self, state: Race.to_move(self, state)[::-1]}),
    (Race, r"states: legal_actions\(\) of player_0 has a name twice",
     {"legal_actions": lambda self, *asked: (*Race.legal_actions(self, *asked), "walk")}),
    (Race, r"states: legal_actions\(\) of player_1 has names that are not among .*\['swim'\]",
     {"legal_actions": lambda self, state, player: ("walk", "swim")[: 1 + (player != ME)]}),
    (Walk, r"states: legal_actions\(\) of player_0 must be a tuple of at least one name, got \(\)",
     {"legal_actions": lambda self, state, player: self.actions[: 2 - state.first]}),
    (Race, r"states: sample_action\(\) of player_0 gave 'swim', which is not legal", {"sample_action": "swim"}),
    # purity
    (Walk, r"purity: .* when asked again", {"initial_state": lambda *_: Changeable(), "transition": hidden_field}),
    (Race, r"purity: transition\(\) gave another result when asked again",
     {"transition": lambda self, *given: Race.transition(self, *given[:2], np.random.default_rng())}),
    (Race, GLOBAL, {"transition": returning(lambda s, paid, over, _: (s, paid, over or np.random.random() < 0))}),
    (Race, r"purity: instructions\(\) of player_0 said .* and .* when asked again",
     {"instructions": lambda *_: f"Walk or run; hint {np.random.default_rng().integers(1000)}."}),
    # actions
    (Hops, f"{TRANSITION}'run'{NOT}", {}),
    (Race, TRANSITION + r"a round without an action of player_1: \{'player_0': '\w+'\}",
     {"transition": lambda self, s, joint, rng: Race.transition(self, s, {"player_1": "walk", **joint}, rng)}),
    (Walk, r"actions: transition\(\) raised KeyError for a round without an action of player_0: \{\}; it must raise ",
     {"transition": lambda self, s, joint, rng: Walk.transition(self, s, {ME: joint[ME]}, rng)}),
    (Race, r"actions: the actions of players who are not to move must be ignored", {"transition": listens_to_the_dead}),
    # chances, scores, metrics, reading back
    (Coin, r"outcomes: outcomes\(\) of .*'toss'} gives .* the probability 0.3, it came \d+ times", {"heads": 0.5}),
    (Coin, r"outcomes: the probabilities of outcomes\(\) of {'player_0': 'toss'} sum to 0.6",
     {"outcomes": lambda self, *given: Coin.outcomes(self, *given)[:1] * 2}),
    (Coin, r"outcomes: transition\(\) gave .*, which outcomes\(\) doesn't list",
     {"outcomes": lambda self, state, _: [(1.0, state + 1, {ME: -1.0}, state >= 2)]}),
    (Coin, r"scores: a round paid player_0 \d, less than worst_round, which is 5.0", {"worst_round": 5.0}),
    (Coin, r"scores: an episode paid player_0 \d+, .* not within .*, \(5.0, 7.5\)", {"return_range": (5.0, 7.5)}),
    (Coin, r"scores: zero_sum is for two players, got 1", {"zero_sum": True}),
    (Race, r"scores: the returns of a zero_sum game sum to 0, got \{'player_0'", {"zero_sum": True}),
    (Coin, r"scores: forfeit\(\) of player_0 must return .* no strangers in it, got \{\}", {"forfeit": {}}),
    (Coin, GIVING_UP, {"return_range": (0.0, 3.0), "forfeit": {ME: 4.0}}),
    (Race, r"scores: forfeit\(\) of player_[01] must pay the other player of a zero_sum game what it costs",
     {"zero_sum": True, "forfeit": lambda self, state, player, left: {player: -1.0},
      "transition": returning(lambda s, paid, over, before: (s, dict.fromkeys(paid, 0.0), over))}),
    (Coin, r"success: player_0 succeeded, but success_means is empty", {"succeeded": True}),
    (Coin, r"states: an episode goes on after 1 rounds, which longest_episode says", {"longest_episode": 1}),
    (Coin, r"metrics: the metric 'tosses' of player_0 must be .*, got inf", {"metrics": {"tosses": math.inf}}),
    (Coin, r"reading_back: read_observation\(\) of player_0 lost something of 'Toss 1.'",
     {"read_observation": lambda self, *given: 0 * Coin.read_observation(self, *given)}),
    # the action map
    (Guess, f"{READ}.* of player_0 as 'WORD', got 'word'", {"default_action": "WORD"}),
    (Guess, f"{UNREAD}.* of player_0 as an action",
     {"read": lambda self, text, *given: "thought" if "<think>" in text else Guess.read(self, text, *given)}),
    (Race, f"{UNREAD}'' of player_0 as an action, got 'walk'",
     {"interpret": lambda self, *given: Race.interpret(self, *given) or "walk"}),
    (Race, f"{UNREAD}'walkset' of player_0 as an action, got 'walk'", {"interpret": finds_names_in_words}),
    (Race, READ + r"' walk\\n' of player_0 as 'walk', got None",
     {"interpret": lambda self, text, *given: text if text in self.legal_actions(*given) else None}),
    # texts and pictures
    (Race, NO_NAME, {"instructions": "Walk, or turn into a runner; re-run nothing."}),
    (Race, r"texts: observe\(\) of player_1 returned a text that is not printable: '\\x1b\[1m'",
     {"observe": lambda self, state, player: "You." if player == ME else "\x1b[1m"}),
    (Race, r"texts: action_help\(\) of player_0 must say what may be written", {"action_help": ""}),
    (Race, r"gymnasium: ValueError: board\(\) must return .* one length, got \('abc', 'a'\)", {"board": ("abc", "a")}),
    (Walk, r"rendering: the palette is of the board's characters, .*\['me'\] are none", {"palette": {"me": (1, 2, 3)}}),
    (Walk, r"rendering: the colour of '1' must be \(red, .*, got \(1, 2, 300\)", {"palette": {"1": (1, 2, 300)}}),
    (Walk, r"rendering: seen_by\(\) shows player_0 two boards where it reads one text, 'A walk.'",
     {"observe": "A walk.", "seen_by": lambda self, state, player: ((str(state.first),), {})}),
]  # fmt: skip


def made(base: type[TSMG[Any]], changes: Change, number: int) -> type[TSMG[Any]]:
    """``base`` with other attributes, and methods, or what they return in all cases."""
    changes = dict(changes)
    for name, value in changes.items():
        if callable(getattr(base, name, None)):
            method = value if isinstance(value, FunctionType) else lambda *_, value=value: value
            code = method.__code__.replace(co_name=name)  # errors say which method it was
            changes[name] = FunctionType(code, globals(), name, method.__defaults__, method.__closure__)
            changes[name].__kwdefaults__ = method.__kwdefaults__
    return type(f"Broken{number}", (base,), changes)


BROKEN = {made(base, changes, number): sentence for number, (base, sentence, changes) in enumerate(BREAKS)}
"""The sentence by game: the name of the check, and what it says."""


@pytest.mark.parametrize("game", [Race, Walk, Coin, Guess], ids=lambda game: game.__name__)
def test_sound_games_pass(game):
    """One of them shows umlauts, Chinese characters and emoji, and goes through Gymnasium's own check_env."""
    textgames.register(f"Test{game.__name__}-v0", game, max_steps=8)
    check(f"Test{game.__name__}-v0")


@pytest.mark.parametrize(("game", "sentence"), BROKEN.items())
def test_a_broken_game_is_refused_with_a_sentence_that_says_why(game, sentence):
    env_id = f"Test{game.__name__}-v0"
    textgames.register(env_id, game, max_steps=8)
    with pytest.raises(ConformanceError, match=rf"^{env_id}: {sentence}"):
        check(env_id)


def test_a_misspelt_name_of_the_contract_is_refused():
    """Nothing would ever ask for it, so the game would be played by the default that it wanted to replace."""
    method = {"to_moves": lambda self, state, player: ("walk",)}
    textgames.register("TestMisspelt-v0", type("Misspelt", (Coin,), method), max_steps=8)
    with pytest.raises(ConformanceError, match=r"^TestMisspelt-v0: names: .*has to_moves.*did you mean 'to_move'"):
        check("TestMisspelt-v0")
    both = {**method, "to_move": Coin.to_move}  # the contract's name as well: it knows what it is called
    textgames.register("TestMisspelt-v0", type("Misspelt", (Coin,), both), max_steps=8)
    run_check("names", "TestMisspelt-v0")


def test_unknown_ids_and_checks_are_refused_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'TextSnake-v0'"):
        check("TextSnaek-v0")
    with pytest.raises(ValueError, match="did you mean 'states'"):
        run_check("state", "TextSnake-v0")
