"""Every scenario from outside: hostile responses, damaged texts, and what a player can learn of what is hidden."""

import inspect
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.textgames.own_game import OwnGame
from textgames import SCENARIOS, TSMG, aec_env, conformance, parallel_env, register
from textgames.conformance.play import written
from textgames.environments.rules import load_game
from textgames.exploration.contextual_bandit import CONTEXTS
from textgames.registry import settings_of
from textgames.solving.blind import blind_value
from textgames.yardsticks import find_yardstick

HOSTILE = (
    "", " ", "<action>", "</action>", "<action></action>", "<action><action>left</action></action>",
    "<action>left</action><action>left</action>", "<think><action>hit</action></think>left", "\u202eleft",
    "<action>" + "9" * 5000 + "</action>", "<action>-1</action>", "<action>٣</action>", "<action>²</action>",
    "<action>\ud800</action>", "<action>\x00</action>", "<ACTION>left</ACTION>", "<action>guess 5\nguess 6</action>",
    "<action>" + "hello " * 1000 + "</action>", "<action>İ</action>", "<action>player_１</action>",
)  # fmt: skip


def response(game: TSMG[Any], state: Any, player: str, rng: np.random.Generator) -> str:
    if rng.random() < 0.3:
        return HOSTILE[int(rng.integers(len(HOSTILE)))]
    return written(game, game.sample_action(state, player, rng))


@pytest.mark.parametrize("invalid_action", ["random", "terminate", "forfeit"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_form_of_environment_pays_the_same_for_the_same_responses(name, invalid_action):
    """Whatever players write, the episode ends in time, and both of PettingZoo's forms ask and pay alike."""
    scenario = SCENARIOS[name]
    settings = {**scenario.kwargs, "max_steps": scenario.horizon, "invalid_action": invalid_action}
    parallel = parallel_env(scenario.env_id, format_penalty=0.5, **settings)
    parallel.reset(seed=1)
    rng, paid = np.random.default_rng(1), dict.fromkeys(parallel.possible_agents, 0.0)
    asked: list[tuple[str, str]] = []
    while parallel.agents:
        here, movers = set(parallel.agents), parallel.to_move
        written_by = {agent: response(parallel.game, parallel.state(), agent, rng) for agent in movers}
        asked += written_by.items()
        others: dict[str, Any] = {agent: None for agent in here if agent not in written_by}  # never looked at
        observations, rewards, terminations, truncations, infos = parallel.step({**written_by, **others})
        assert here == set(observations) == set(terminations) == set(truncations) == set(infos)
        for agent in here:
            assert not (terminations[agent] and truncations[agent])
            assert (terminations[agent] or truncations[agent]) == (agent not in parallel.agents)
        for agent, reward in rewards.items():
            paid[agent] += reward
    assert parallel.elapsed_steps <= scenario.horizon

    aec = aec_env(scenario.env_id, format_penalty=0.5, **settings)
    aec.reset(seed=1)
    responses, cumulated = iter(asked), dict.fromkeys(paid, 0.0)
    for agent in aec.agent_iter():
        _, reward, terminated, truncated, _ = aec.last()
        cumulated[agent] += reward
        if terminated or truncated:
            aec.step(None)
        else:
            player, text = next(responses)
            assert player == agent
            aec.step(text)
    assert next(responses, None) is None
    assert cumulated == pytest.approx(paid)


@pytest.mark.parametrize("name", [name for name, each in SCENARIOS.items() if len(each.game().players) > 1])
def test_one_seat_plays_on_from_a_snapshot_whatever_its_opponents_say(name):
    scenario = SCENARIOS[name]
    for seat in scenario.game().players[:2]:
        env: Any = gym.make(
            scenario.env_id, **scenario.kwargs, max_steps=scenario.horizon, seat=seat,
            opponents=lambda turn: HOSTILE[len(turn.observation) % len(HOSTILE)],
        ).unwrapped  # fmt: skip
        env.reset(seed=3, options={"layout_seed": 4})
        rng, snapshot, steps, over = np.random.default_rng(0), env.save_state(), [], False
        while not over:
            my_turn = seat in env.game.to_move(env.state)
            text = response(env.game, env.state, seat, rng) if my_turn else "too late"
            steps.append((text, env.step(text)))
            over = steps[-1][1][2] or steps[-1][1][3]
        assert len(steps) <= scenario.horizon
        env.restore_state(snapshot)
        assert [env.step(text) for text, _ in steps] == [step for _, step in steps]


@pytest.mark.parametrize("env_id", dict.fromkeys(each.env_id for each in SCENARIOS.values()))
def test_a_setting_of_a_wrong_type_is_refused_by_name(env_id):
    cls = load_game(settings_of(env_id)["game"])
    for name, parameter in inspect.signature(cls).parameters.items():
        for value in (1.5j, *(["false", 2, None] if isinstance(parameter.default, bool) else [])):
            with pytest.raises((TypeError, ValueError), match=name) as refused:
                gym.make(env_id, **{name: value})  # type: ignore[arg-type]
            assert repr(value) in str(refused.value)
    with pytest.raises(TypeError, match="has no setting 'misspelt'"):
        gym.make(env_id, misspelt=1)


HIDING = [name for name, scenario in SCENARIOS.items() if scenario.game().hidden_information]


@pytest.mark.parametrize("name", HIDING)
def test_a_start_shows_a_player_its_own_part_and_nothing_else(name):
    """As many first observations as there are cards, dice or roles of one's own; a single one where all is hidden."""
    own_parts = {
        "bandit-context": len(CONTEXTS),
        "kuhn-poker": 3,
        "leduc-poker": 6,
        "liars-dice": 6,
        "werewolf-5": 3,
        "werewolf-7": 3 + 6,  # a wolf also knows the other one
    }
    game, rng = SCENARIOS[name].game(), np.random.default_rng(0)
    starts = [game.initial_state(rng) for _ in range(1000)]
    for player in game.players:
        read = Counter(game.observe(state, player) for state in starts)
        assert len(read) == own_parts.get(name, 1)


@pytest.mark.parametrize("name", HIDING)
def test_a_player_who_has_seen_the_same_is_asked_the_same(name):
    """Nothing that a player is given beside its observations tells more than these: not its legal actions, the words on
    them, nor the action in place of an unreadable response. Starts differ in what is hidden, random play is repeated.
    """
    game = SCENARIOS[name].game()
    asked: dict[Any, dict[Any, set[int]]] = defaultdict(lambda: defaultdict(set))
    for seed in range(150):
        rng, choices = np.random.default_rng([1, seed]), np.random.default_rng(seed % 5)
        state, over = game.initial_state(rng), False
        seen: dict[str, tuple[Any, ...]] = dict.fromkeys(game.players, ())
        for _ in range(5):
            if over:
                break
            for player in game.players:
                seen[player] += (game.observe(state, player),)
            joint = {player: game.sample_action(state, player, choices) for player in game.to_move(state)}
            for player in joint:
                told = [ask(state, player) for ask in (game.legal_actions, game.default_action, game.action_help)]
                asked[player, seen[player]][tuple(told)].add(seed)
            state, rewards, over = game.transition(state, joint, rng)
            for player in game.players:
                seen[player] += (joint.get(player), rewards[player])
    assert all(len(answers) == 1 for answers in asked.values())
    assert any(len(seeds) > 1 for answers in asked.values() for seeds in answers.values())  # or nothing was compared


def damaged(text: str, rng: np.random.Generator) -> Iterator[str]:
    """The text with something left out, doubled, or another digit."""
    lines = text.split("\n")
    place, line = int(rng.integers(len(text))), int(rng.integers(len(lines)))
    yield text[:place]
    yield text[:place] + text[place + 1 :]
    yield "\n".join(lines[:line] + lines[line + 1 :])
    yield "\n".join([*lines[: line + 1], *lines[line:]])
    digits = [place for place, char in enumerate(text) if char.isdigit()]
    if digits:
        place = digits[int(rng.integers(len(digits)))]
        for digit in "07²":
            yield text[:place] + digit + text[place + 1 :]


READ_BACK = [name for name, each in SCENARIOS.items() if each.game().reads_observations]


@pytest.mark.parametrize("name", READ_BACK)
def test_a_damaged_observation_is_refused(name):
    """Players that search would else compute their move in a position that nobody showed them."""
    game, rng = SCENARIOS[name].game(), np.random.default_rng(0)
    for _ in range(5):
        state, over, rounds = game.initial_state(rng), False, 0
        while not over and rounds < 6:
            for player in game.to_move(state):
                for text in damaged(game.observe(state, player), rng):
                    try:
                        read = game.read_observation(text, player)
                    except ValueError:
                        continue
                    assert game.observe(read, player) == text
            joint = {player: game.sample_action(state, player, rng) for player in game.to_move(state)}
            state, _, over = game.transition(state, joint, rng)
            rounds += 1


class BeforeTheFirstTurn(OwnGame):
    """``player_1`` moves first and may end the game; ``player_0`` is paid meanwhile. Its actions are single letters,
    such as stand in the word "action", too."""

    players = ("player_0", "player_1")
    actions = ("a", "i")

    def initial_state(self, rng: np.random.Generator) -> tuple[int, bool]:
        return 0, False

    def to_move(self, state: tuple[int, bool]) -> tuple[str, ...]:
        rounds, over = state
        return () if over else ("player_1",) if rounds < 2 else ("player_0",)

    def outcomes(self, state: tuple[int, bool], joint_action: Any) -> Any:
        (player,) = self.to_move(state)
        if joint_action.get(player) not in self.actions:
            raise ValueError(f"{player} must choose a or i, got {joint_action!r}")
        over = joint_action[player] == "i" or state[0] == 2
        return [(1.0, (state[0] + 1, over), {"player_0": 1.0, "player_1": -1.0}, over)]


def test_an_episode_that_ends_before_the_players_first_turn():
    """By the rules it is terminated, also in the last round that there may be; cut off by the limit it is truncated."""
    register("TestBeforeTheFirstTurn-v0", BeforeTheFirstTurn)
    conformance.check("TestBeforeTheFirstTurn-v0")
    for says, limit, ended in (("i", None, "rules"), ("i", 1, "rules"), ("a", 1, "limit"), ("a", 2, "limit")):
        settings: dict[str, Any] = {"opponents": lambda turn, says=says: says, "max_steps": limit}
        env = gym.make("TestBeforeTheFirstTurn-v0", **settings)
        batch = gym.make_vec("TestBeforeTheFirstTurn-v0", 2, "vector_entry_point", **settings)
        rounds = 1 if says == "i" else limit
        _, info = env.reset(seed=0)
        _, infos = batch.reset(seed=0)
        assert info["legal_actions"] == infos["legal_actions"][0] == ()
        _, reward, terminated, truncated, info = env.step("a")
        assert (reward, terminated, truncated) == (rounds, ended == "rules", ended == "limit")
        assert info["action"] == ""
        _, rewards, terminations, truncations, _ = batch.step(["a", "a"])
        assert (rewards[0], terminations[0], truncations[0]) == (reward, terminated, truncated)


def searched(game: TSMG[Any], state: Any, steps_left: int, player: str) -> dict[str, tuple[float, float]]:
    """``{action: (value of the best play after it, of uniform play)}``, by looking at everything that can happen.

    Of one player, or of two who take turns and play for opposite rewards.
    """
    found = {}
    (mover,) = game.to_move(state)
    for action in game.legal_actions(state, mover):
        best = uniform = 0.0
        for chance, after, rewards, over in game.outcomes(state, {mover: action}):
            later = {} if over or steps_left == 1 else searched(game, after, steps_left - 1, player)
            mine = not later or game.to_move(after) == (player,)
            plays = [value for value, _ in later.values()] or [0.0]
            best += chance * (rewards[player] + (max if mine else min)(plays))
            uniform += chance * (rewards[player] + sum(value for _, value in later.values()) / max(1, len(later)))
        found[action] = best, uniform
    return found


MEASURED = [
    name
    for name, scenario in SCENARIOS.items()
    if (yardstick := find_yardstick(scenario.game())) is not None
    and yardstick.kind != "reference"
    and scenario.game().has_outcomes
    and (len(scenario.game().players) == 1 or scenario.game().takes_turns)
]


@pytest.mark.parametrize("name", MEASURED)
def test_exact_values_are_those_of_looking_at_everything(name):
    """Up to three rounds ahead, in states that random play comes to."""
    game, rng = SCENARIOS[name].game(), np.random.default_rng(7)
    yardstick = find_yardstick(game)
    assert yardstick is not None
    state, over = game.initial_state(rng), False
    for _ in range(4):
        if over:
            break
        (player,) = game.to_move(state)
        branches = sum(len(game.outcomes(state, {player: action})) for action in game.legal_actions(state, player))
        steps = 3 if branches <= 12 else 2 if branches <= 50 else 1
        for steps_left in range(1, steps + 1):
            plain = searched(game, state, steps_left, player)
            values = yardstick.values(state, steps_left, player)
            assert list(values) == list(plain)
            assert list(values.values()) == pytest.approx([best for best, _ in plain.values()], abs=1e-9)
            uniform = blind_value(game, state, steps_left, player, {})
            if uniform is not None:
                assert uniform == pytest.approx(np.mean([each for _, each in plain.values()]), abs=1e-9)
        state, _, over = game.transition(state, {player: game.sample_action(state, player, rng)}, rng)
