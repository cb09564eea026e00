"""Small games for three and five players, registered as scenarios of suites of their own."""

import sys
from pathlib import Path
from types import MappingProxyType

import pytest

GAMES = '''
from agents.turn import Turn
from textgames import TSMG, register
from textgames.yardsticks import Yardstick, register_yardstick


class Share(TSMG):
    """Everybody takes or gives for some rounds: taking pays 1, every giver pays 1 to each of the others."""

    actions = ("take", "give")

    def __init__(self, num_players: int = 3, rounds: int = 2) -> None:
        self.players = tuple(f"player_{i}" for i in range(num_players))
        self.rounds = rounds

    def initial_state(self, rng):
        return (0, int(rng.integers(len(self.players))), (0,) * len(self.players))  # round, who is lucky, gifts

    def transition(self, state, joint_action, rng):
        number, lucky, gifts = state
        gave = [joint_action[player] == "give" for player in self.players]
        rewards = {
            player: float(sum(gave) - gave[seat] + (not gave[seat]) + (seat == lucky))
            for seat, player in enumerate(self.players)
        }
        gifts = tuple(gift + given for gift, given in zip(gifts, gave, strict=True))
        return (number + 1, lucky, gifts), rewards, number + 1 == self.rounds

    def observe(self, state, player):
        return f"Round {state[0] + 1} of {self.rounds}. You are {player}."

    def instructions(self, player):
        return "Choose take or give. Who takes gets 1; who gives lets each of the others get 1."

    def metrics(self, state, player):
        return {"gifts": float(state[2][self.players.index(player)]), "gifts of all": float(sum(state[2]))}


class TwoPileGame(TSMG):
    """Take one or two stones in turn; the last stone wins. Player 1 may write what it likes of it."""

    players = ("player_0", "player_1")
    actions = ("one", "two")
    return_range = (-1.0, 1.0)

    def initial_state(self, rng):
        return (int(rng.integers(4, 8)), 0)  # stones, whose turn

    def to_move(self, state):
        return (self.players[state[1]],)

    def legal_actions(self, state, player):
        return self.actions[: state[0]]

    def transition(self, state, joint_action, rng):
        stones, turn = state
        stones -= 1 + self.actions.index(joint_action[self.players[turn]])
        paid = float(stones == 0)
        return (stones, 1 - turn), {self.players[turn]: paid, self.players[1 - turn]: -paid}, stones == 0

    def observe(self, state, player):
        return f"Stones: {state[0]}"

    def read_observation(self, observation, player):
        return (int(observation.split()[-1]), self.players.index(player))

    def instructions(self, player):
        return "Take one or two. Whoever takes the last stone wins."


class TwoPileValues(Yardstick):
    """Whoever is to move loses at multiples of three, and wins elsewhere."""

    method = "arithmetic"

    def __init__(self, game):
        self.game = game

    def values(self, state, steps_left, player):
        taken = {name: 1 + index for index, name in enumerate(self.game.legal_actions(state, player))}
        return {name: 1.0 if (state[0] - count) % 3 == 0 else -1.0 for name, count in taken.items()}


class Fixed:
    """A player that always gives the same answer, where it may."""

    def __init__(self, name, wish):
        self.name, self.wish = name, wish

    def act(self, requests):
        return [Turn(self.wish if self.wish in one.legal_actions else one.legal_actions[0]) for one in requests]


giver, taker = Fixed("giver", "give"), Fixed("taker", "take")
ones, twos = Fixed("ones", "one"), Fixed("twos", "two")

register("TestShare-v0", "several_players_game:Share", max_steps=4)
register("TestTwoPile-v0", "several_players_game:TwoPileGame", max_steps=10)
register_yardstick("several_players_game:TwoPileGame", "several_players_game:TwoPileValues")
'''


@pytest.fixture
def suite_with_strangers(workplace, monkeypatch):
    """The name of a suite: Frozen Lake, and games for three and five players that no searching player can play."""
    from textgames.scenarios import ABOUT_SUITES, SCENARIOS, SUITES, Scenario

    Path("several_players_game.py").write_text(GAMES)
    monkeypatch.syspath_prepend(str(workplace))
    __import__("several_players_game")
    made = {
        "share-three": Scenario("share-three", "TestShare-v0", {"num_players": 3}, 4, 910_000),
        "spread-five": Scenario("spread-five", "TestShare-v0", {"num_players": 5}, 4, 920_000),
    }
    suites = {**SUITES, "strangers": ("frozen-lake", *made), "strangers-only": tuple(made)}
    made["two-pile"] = Scenario("two-pile", "TestTwoPile-v0", {}, 10, 930_000)
    about = {**ABOUT_SUITES, "strangers": "a lake and two strangers", "strangers-only": "two strangers"}
    suites["all"] = (*SUITES["all"], *made)
    import benchmark.cli.catalogue
    import benchmark.play.agents.choice  # noqa: F401 - so that the modules that keep the tables are there to be changed

    for module in [module for name, module in sys.modules.items() if name.startswith(("benchmark.", "textgames."))]:
        if getattr(module, "SCENARIOS", None) is SCENARIOS:
            monkeypatch.setattr(module, "SCENARIOS", MappingProxyType({**SCENARIOS, **made}))
        if getattr(module, "SUITES", None) is SUITES:
            monkeypatch.setattr(module, "SUITES", MappingProxyType(suites))
        if getattr(module, "ABOUT_SUITES", None) is ABOUT_SUITES:
            monkeypatch.setattr(module, "ABOUT_SUITES", MappingProxyType(about))
    yield "strangers"
    sys.modules.pop("several_players_game", None)
