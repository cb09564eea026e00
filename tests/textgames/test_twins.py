"""Twins are the game itself under another text: the same states, chances and rewards, no word of the original's."""

import pickle
import re
import tomllib
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import textgames
from tests.once_a_game import once_a_game
from textgames.conformance import check
from textgames.scenarios import SCENARIOS, Scenario
from textgames.solving.blind import blind_play
from textgames.texts.actions import UnreadableReason
from textgames.twins import Twin, UnknownTextError
from textgames.twins.phrases import by_alphabet
from textgames.twins.vocabulary import Vocabulary
from textgames.yardsticks import find_yardstick

VOCABULARIES = Path(textgames.__file__).parent / "twins" / "vocabularies"
WITH_TWINS = [name for name, scenario in SCENARIOS.items() if scenario.has_twins]
GAMES = {SCENARIOS[name].env_id: name for name in reversed(WITH_TWINS)}
"""A scenario of each game that has twins."""

# Words that mean nothing by themselves, of which texts about games consist.
COMMON = set(
    re.findall(
        r"[a-z]+",
        """a about again all also always an and any are as at be both but by can cell chance each either else end ends
    equal every first for from game gives goal good has have how if in is it its itself large larger last least left
    long many may more most moves no nobody none not nothing now number of on once one ones only or order other others
    out over own pay pays place play played player points probability random reward round rounds same second so some
    take takes than that the their them then there they this those three through time times to total turn turns two
    until up us wherever which while who whoever whole whom win wins with without won word you your lost lose draw
    neither next something such be was were when what where down right far higher lower three four five six seven
    eight nine ten after before again between beside into does doesn t don s side sides already about even so far
    makes move onto whose instead back comes full holds goes never yours
    standard deviation mean normal distribution drawn average averages evenly whatever""",
    )
)


def twin_games(name: str, numbers: tuple[int, ...]) -> list[Twin]:
    games = [SCENARIOS[name].twin(number).game() for number in numbers]
    return [game for game in games if isinstance(game, Twin)]


def states_of(game: Any, seed: int, episodes: int = 3) -> list[Any]:
    rng, states = np.random.default_rng(seed), []
    for _ in range(episodes):
        state, over, rounds = game.initial_state(rng), False, 0
        while not over and rounds < 60:
            states.append(state)
            joint = {player: game.sample_action(state, player, rng) for player in game.to_move(state)}
            state, _, over = game.transition(state, joint, rng)
            rounds += 1
        states.append(state)
    return states


@pytest.mark.parametrize("name", WITH_TWINS)
def test_states_chances_and_rewards_are_those_of_the_game(name):
    own = SCENARIOS[name].game()
    for twin in twin_games(name, (1, 2)):
        # it has every method of a game, so that only what it answers tells what its game can do
        for ability in ("has_outcomes", "has_initial_outcomes", "has_board", "reads_observations", "takes_turns"):
            assert getattr(twin, ability) == getattr(own, ability), ability
        rng, again = np.random.default_rng(5), np.random.default_rng(5)
        state, same = own.initial_state(rng), twin.initial_state(again)
        for _ in range(40):
            assert state == same
            assert own.to_move(state) == twin.to_move(same)
            joint = {player: own.sample_action(state, player, rng) for player in own.to_move(state)}
            theirs = {player: twin.sample_action(state, player, again) for player in twin.to_move(state)}
            assert theirs == {player: twin.twin_action(action) for player, action in joint.items()}
            for player in own.to_move(state):
                legal = own.legal_actions(state, player)
                assert twin.legal_actions(state, player) == tuple(map(twin.twin_action, legal))
                assert twin.default_action(state, player) == twin.twin_action(own.default_action(state, player))
            if own.has_outcomes:
                assert own.outcomes(state, joint) == twin.outcomes(state, theirs)
            state, rewards, over = own.transition(state, joint, rng)
            same, paid, ended = twin.transition(same, theirs, again)
            assert (rewards, over) == (paid, ended)
            assert [own.metrics(state, p) for p in own.players] == [twin.metrics(same, p) for p in own.players]
            if over:
                break
        assert state == same


@pytest.mark.parametrize("name", once_a_game(WITH_TWINS))
def test_the_text_holds_exactly_what_the_original_says(name):
    own = SCENARIOS[name].game()
    for twin in twin_games(name, tuple(range(1, 7))):
        for state in states_of(own, twin.number, 1):
            for player in own.players:
                told = twin.observe(state, player)
                assert told != own.observe(state, player)
                assert twin.own_observation(told) == own.observe(state, player)


@pytest.mark.parametrize("name", WITH_TWINS)
def test_replies_are_read_in_the_twins_words_and_in_no_others(name):
    own = SCENARIOS[name].game()
    for twin in twin_games(name, (1, 2, 3)):
        for state in states_of(own, twin.number, 1)[:-1]:
            player = own.to_move(state)[0]
            legal = twin.legal_actions(state, player) or (twin.sample_action(state, player, np.random.default_rng(1)),)
            for action in legal:
                assert twin.interpret(f"<action> {action.upper()} </action>", state, player) == action
            for action in set(map(twin.own_action, legal)) - set(twin.actions):
                if not own.legal_actions(state, player):
                    continue  # where anything of a form may be written, own words may be the twin's too
                why = twin.read(f"<action>{action}</action>", state, player)
                assert why.reason == UnreadableReason.UNKNOWN_NAME


@pytest.mark.parametrize("name", once_a_game(WITH_TWINS))
def test_no_word_of_the_story_is_left_over(name):
    own = SCENARIOS[name].game()

    def words(game: Any, state: Any) -> set[str]:
        text = " ".join(game.instructions(player) + "\n" + game.observe(state, player) for player in game.players)
        return set(re.findall(r"[a-z]+", text.casefold())) | {w for each in game.actions for w in each.split()}

    for twin in twin_games(name, tuple(range(1, 9))):
        for state in states_of(own, twin.number, 1):
            kept = {word for word in words(own, state) & words(twin, state) if len(word) > 3} - COMMON
            assert not kept, f"{twin.story}: {sorted(kept)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES.values())
def test_a_twin_keeps_to_the_contract(name):
    scenario = SCENARIOS[name]
    check(scenario.env_id, **{**scenario.kwargs, "max_steps": scenario.horizon, "twin": 2})


@pytest.mark.parametrize("name", WITH_TWINS)
def test_yardsticks_and_blind_play_are_the_same_numbers(name):
    scenario, twin = SCENARIOS[name], SCENARIOS[name].twin(1)
    own, game = find_yardstick(scenario.game()), twin.game()
    assert isinstance(game, Twin)
    theirs = find_yardstick(game)
    assert (own is None) == (theirs is None)
    if own is not None and theirs is not None:
        assert (own.kind, own.method, own.version) == (theirs.kind, theirs.method, theirs.version)
        state = states_of(game, 1, 1)[0]
        player = game.to_move(state)[0]
        values = own.values(state, 3, player)
        assert {game.twin_action(action): value for action, value in values.items()} == theirs.values(state, 3, player)
    blind, named = blind_play(scenario), blind_play(twin)
    if blind is not None and named is not None:
        assert blind.value == named.value
        assert {game.twin_action(action): chance for action, chance in blind.policy.items()} == named.policy


@pytest.mark.parametrize("name", GAMES.values())
def test_there_are_many_more_twins_than_stories(name):
    games = twin_games(name, tuple(range(1, 25)))
    start = games[0].initial_state(np.random.default_rng(3))
    texts = {game.instructions("player_0") + game.observe(start, "player_0") for game in games}
    assert len(texts) >= 22
    assert len(texts) > 10 * len({game.story for game in games})


def test_twins_are_made_as_games_are_and_can_be_pickled():
    env: Any = gym.make("TextFrozenLake-v0", size=4, twin=3, max_steps=8)
    plain: Any = gym.make("TextFrozenLake-v0", size=4, twin=0, max_steps=8)
    (told, info), (own, _) = env.reset(seed=7), plain.reset(seed=7)
    assert told != own
    assert not isinstance(plain.unwrapped.game, Twin)
    *_, info = env.step(f"<action>{info['legal_actions'][2]}</action>")
    plain.step("right")
    assert info["valid"]
    assert (state := env.unwrapped.state) == plain.unwrapped.state
    batch = gym.make_vec("TextFrozenLake-v0", num_envs=2, vectorization_mode="vector_entry_point", twin=3)
    assert batch.reset(seed=7)[0][0] == told
    assert textgames.parallel_env("TextFrozenLake-v0", twin=3).reset(seed=7)[0] == {"player_0": told}
    twin, again = env.unwrapped.game, pickle.loads(pickle.dumps(env.unwrapped.game))
    assert (again.actions, again.observe(state, "player_0")) == (twin.actions, twin.observe(state, "player_0"))
    assert pickle.loads(pickle.dumps(SCENARIOS["nim"].twin(1))) == SCENARIOS["nim"].twin(1)


def test_a_text_that_is_not_the_twins_is_refused():
    (twin,) = twin_games("frozen-lake", (1,))
    with pytest.raises(UnknownTextError):
        twin.own_observation("Player: (0, 0)")
    with pytest.raises(UnknownTextError, match="has no action 'left'"):
        twin.own_action("left")


def test_what_has_no_twins_says_so():
    with pytest.raises(ValueError, match=r"Werewolf has no twins.*vocabulary"):
        textgames.game_of("TextWerewolf-v0", twin=1)
    with pytest.raises(ValueError, match="twin must be a whole number"):
        textgames.game_of("TextFrozenLake-v0", twin=-1)
    with pytest.raises(ValueError, match="no phrase of the vocabulary says"):
        textgames.game_of("TextFrozenLake-v0", twin=1, relative=True)
    assert not Scenario("x", "TextFrozenLake-v0", {"relative": True}, 8, 0).has_twins


@pytest.mark.slow
def test_a_digest_tells_whether_a_twin_is_told_in_other_words():
    """A further story changes those twins that it falls to, and a changed word those of its story."""
    data = tomllib.loads((VOCABULARIES / "nim.toml").read_text())
    before = Vocabulary(data, "nim")
    first, second = data["stories"]
    more = Vocabulary({**data, "stories": {**data["stories"], "third": data["stories"][first]}}, "nim")
    changed = {number for number in range(1, 7) if before.digest(number) != more.digest(number)}
    assert changed == {3, 4, 5, 6}  # of two stories each second twin has the first, of three each third
    assert before.digest(1) == before.digest(3) != before.digest(2)  # the number itself isn't in it
    story = {**data["stories"][second], "none": "not one"}
    reworded = Vocabulary({**data, "stories": {**data["stories"], second: story}}, "nim")
    assert [before.digest(number) == reworded.digest(number) for number in (1, 2)] == [True, False]


def test_a_twin_lists_its_actions_by_alphabet():
    """The order of the original would be a hint at the game."""
    reordered = 0
    for name in GAMES.values():
        for game in twin_games(name, (1, 2)):
            state, player = game.initial_state(np.random.default_rng(0)), game.players[0]
            legal, told = game.legal_actions(state, player), game.action_help(state, player)
            if sorted(told.split(", ")) == sorted(legal):
                assert told == ", ".join(sorted(legal, key=by_alphabet))
                reordered += told != ", ".join(legal)
    assert reordered > 5
