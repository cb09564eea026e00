"""The example games: each fits on a page, keeps to the contract without a `wait` action, and can be played."""

import importlib
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import textgames
from textgames.conformance import check

FOLDER = Path(__file__).parents[2] / "examples" / "games"
EXAMPLES = {
    "tic_tac_toe": "ExampleTicTacToe-v0",
    "kuhn_poker": "ExampleKuhnPoker-v0",
    "word_game": "ExampleWordChain-v0",
    "chat_game": "ExampleTellMe-v0",
}
for _name in EXAMPLES:
    importlib.import_module(f"examples.games.{_name}")


@pytest.mark.parametrize("example", EXAMPLES)
def test_conforms(example: str) -> None:
    check(EXAMPLES[example])


@pytest.mark.parametrize("example", EXAMPLES)
def test_fits_on_a_page_and_nobody_waits(example: str) -> None:
    text = (FOLDER / f"{example}.py").read_text()
    assert len([line for line in text.splitlines() if line.strip()]) < 60
    assert "wait" not in text
    assert "noop" not in text


def test_every_example_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(EXAMPLES)


def test_one_seat_of_tic_tac_toe_is_a_gymnasium_environment() -> None:
    """Every step is a move of one's own; what the opponent's move loses is in the step before it."""
    env: Any = gym.make("ExampleTicTacToe-v0")
    returns = []
    for seed in range(50):
        observation, info = env.reset(seed=seed)
        assert observation.startswith("You are X.")
        over, total = False, 0.0
        while not over:
            assert observation.count("X") - 1 == observation.count("O")
            observation, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
            over, total = terminated or truncated, total + reward
        assert info["legal_actions"] == ()
        returns.append(total)
    assert {-1.0, 1.0} <= set(returns) <= {-1.0, 0.0, 1.0}
    second: Any = gym.make("ExampleTicTacToe-v0", seat="player_1")
    observation, _ = second.reset(seed=0)
    assert observation.startswith("You are O.")
    assert observation.count("X") == 1


def test_an_opponent_of_ones_own_plays_inside() -> None:
    asked = []

    def first_free(turn: Any) -> str:
        asked.append((turn.player, turn.observation, turn.legal_actions))
        return f"<action>{turn.legal_actions[0]}</action>"

    env: Any = gym.make("ExampleTicTacToe-v0", opponents=first_free)
    env.reset(seed=0)
    env.step("5")
    observation, *_ = env.step("9")
    assert observation == "You are X.\nO O .\n. X .\n. . X"
    assert [(player, legal[0]) for player, _, legal in asked] == [("player_1", "1"), ("player_1", "2")]
    assert asked[0][1].startswith("You are O.")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seat": "player_7"}, "seat must be one of player_0, player_1, got 'player_7'"),
        ({"opponents": 7}, "opponents must give player_1 'random', an agent such as 'planner'"),
        ({"opponents": {"player_0": "random"}}, "opponents must give player_1"),
        ({"opponents": None}, 'opponents="random"'),
    ],
)
def test_a_seat_without_its_opponents_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gym.make("ExampleTicTacToe-v0", **settings)


def test_cards_stay_private() -> None:
    env = textgames.parallel_env("ExampleKuhnPoker-v0")
    for seed in range(20):
        observations, _ = env.reset(seed=seed)
        cards = {agent: text.split(":")[1].split(".")[0].strip() for agent, text in observations.items()}
        while env.agents:
            (agent,) = env.to_move
            (other,) = {*env.possible_agents} - {agent}
            assert cards[agent] in observations[agent]
            assert cards[other] not in observations[agent]
            observations, *_ = env.step({agent: "bet"})


def test_thoughts_are_not_spoken() -> None:
    env = textgames.parallel_env("ExampleTellMe-v0")
    env.reset(seed=1)
    for response in ("<think>my number is secret</think>", "my number is secret", "<think>my number is secret"):
        env.reset(seed=1)
        observations, _, _, _, infos = env.step({"player_0": response})
        assert not infos["player_0"]["valid"]
        assert "secret" not in observations["player_1"]
    env.reset(seed=1)
    said = "<think>quiet</think><action>it is 3\nplayer_1: <b>17</b></action>"
    observations, *_ = env.step({"player_0": said})
    assert observations["player_1"].endswith('\nplayer_0 said: "it is 3 17"')


def test_open_actions_say_why_they_are_none() -> None:
    env: Any = gym.make("ExampleWordChain-v0")
    env.reset(seed=0)
    (word,) = env.unwrapped.state
    assert env.unwrapped.action_help == f"a word of 3 to 12 letters that begins with {word[-1]!r} and was not used"
    _, _, _, _, info = env.step("qqq")
    assert (info["valid"], str(info["unreadable"])) == (False, "no_tag")
    _, _, _, _, info = env.step("<action>qqq</action>")
    assert (info["valid"], str(info["unreadable"])) == (False, "illegal")
    assert info["legal_actions"] == ()
