"""An episode's luck splits its return without remainder and is fair; corrected returns are unbiased and covered."""

from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from agents.common import intervals as stats
from agents.episode import Episode, Step
from agents.turn import Turn, TurnRequest
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Plan
from benchmark.runs.replay import Replay, replay
from benchmark.score import results as cells
from benchmark.score.luck import FOLDS, LEAST, LuckValues, corrected, cross_fitted, episode_luck
from benchmark.score.results import Cell
from benchmark.score.stopping import confidence_of, looks
from tests.benchmark.score.simulation import rounds
from textgames.environments.rules import EpisodeRules
from textgames.scenarios import SCENARIOS, Scenario
from textgames.snake import Snake, SnakeState

ENTRIES = Path(__file__).parents[3] / "leaderboards"
ICE = SCENARIOS["frozen-lake-slippery"]


def lake(**settings):
    """A slippery lake with a hole beside the start and the goal three moves away, of three rounds."""
    return Scenario("lake", "TextFrozenLake-v0", {"desc": ["SHF", "FFG"], "is_slippery": True, **settings}, 3, 0)


def record_of(scenario, seed, responses):
    steps = tuple(Step(k, "player_0", "", Turn(text), "", True, None, 0.0) for k, text in enumerate(responses))
    return Episode(scenario.name, seed, None, {"player_0": "a"}, steps, {}, {}, False, False)


def played(scenario, seed, responses):
    """The replay of as many of the responses as the episode takes, and its luck."""
    values = LuckValues.of(scenario.game())
    for count in range(1, len(responses) + 1):
        found = replay(record_of(scenario, seed, responses[:count]), scenario)
        if found.over:
            return found, episode_luck(found, values)
    raise AssertionError("the episode takes more responses")


@pytest.mark.parametrize(
    ("game", "name"),
    [
        *((ICE.name, name) for name in ("planner", "tiny-msgrpo-snake")),
        ("snake", "planner"),
    ],
)
def test_the_stored_returns_split_without_remainder(game, name):
    folder = RunFolder.open(ENTRIES / name)
    scenario = Plan.from_manifest(folder.manifest).scenarios[game]  # by the entry's protocol
    values = LuckValues.of(scenario.game())
    records = [record for record in folder.records() if record.scenario == game]
    assert len(records) == 50
    for record in records if values.exact else records[:20]:
        found = episode_luck(replay(record, scenario), values)
        assert found.start + found.skill + found.luck == pytest.approx(record.returns["player_0"], abs=1e-12)
        if values.exact:  # no action is better than the best
            assert found.skill <= 1e-12
            assert name != "planner" or found.skill == pytest.approx(0, abs=1e-12)


def test_one_round_by_hand():
    """On the last round beside the goal: 1/3 to go right, so Q = 1/3 and luck is 2/3 or -1/3."""
    scenario = Scenario("last", "TextFrozenLake-v0", {"desc": ["SG"], "is_slippery": True}, 1, 0)
    seen = set()
    for seed in range(20):
        found, luck = played(scenario, seed, ["right"])
        assert luck.start == pytest.approx(1 / 3)
        assert luck.skill == pytest.approx(0, abs=1e-12)
        assert luck.luck == pytest.approx(found.episode.returns["player_0"] - 1 / 3)
        assert luck.variance == pytest.approx(1 / 3 * 2 / 3)
        seen.add(round(luck.luck, 3))
    assert seen == {0.667, -0.333}


def test_luck_is_fair_for_every_way_to_play_and_every_fixed_value():
    """By enumeration: whatever three actions are played, luck has mean 0 and the variance that is said."""
    scenario = lake()
    game = scenario.game()
    values = LuckValues.of(game)
    wrong = LuckValues(game, Wrong())
    start = game.initial_state(np.random.default_rng(0))
    for actions in product(game.actions, repeat=3):
        for luck_values in (values, wrong):
            check_fair(game, start, actions, luck_values)


def check_fair(game, start, actions, values):
    mean = variance = said = 0.0
    for chance, path in paths(game, start, actions):
        luck = episode_luck(path, values)
        mean += chance * luck.luck
        variance += chance * luck.luck**2
        said += chance * luck.variance
        returns = sum(step.reward for step in path.steps)
        assert luck.start + luck.skill + luck.luck == pytest.approx(returns, abs=1e-12)
    assert mean == pytest.approx(0, abs=1e-12)
    assert variance == pytest.approx(said, abs=1e-12)


@pytest.mark.parametrize("actions", [("up", "right"), ("right", "up"), ("left", "down"), ("up", "right", "down")])
def test_luck_is_fair_in_snake_by_a_guess(actions):
    """By enumeration, on a board of six cells: of the opponent's moves, of what it eats and where food reappears."""
    game = Snake(width=3, height=2, num_apples=1)
    start = SnakeState(((0,), (5,)), (1,), (), ())
    values = LuckValues.of(game)
    assert not values.exact
    check_fair(game, start, actions, values)


def test_a_round_with_too_many_outcomes_leaves_luck_untold():
    scenario = SCENARIOS["snake"]
    values = LuckValues.of(scenario.game())
    record = next(r for r in RunFolder.open(ENTRIES / "planner").records() if r.scenario == "snake")
    played = replay(record, scenario)
    assert episode_luck(played, values) is not None
    snake, opponent = played.states[0].snakes
    hungry = SnakeState((snake, opponent), (), (), ())  # a board that lacks five apples at once
    steps = (replace(played.steps[0], state=hungry), *played.steps[1:])
    assert episode_luck(replace(played, episode=replace(played.episode, steps=steps)), values) is None


class Wrong:
    """A value that has nothing to do with the game: it costs variance, never bias."""

    kind, method, version = "reference", "nonsense", "1"

    def value(self, state, steps_left, player):
        return state.position * 0.3 - (steps_left or 0)


def paths(game, start, actions):
    """``(probability, replay)`` of everything that may come of these actions."""
    unfinished = [(1.0, (start,), ())]
    while unfinished:
        chance, states, steps = unfinished.pop()
        for part, state, rewards, over in game.outcomes(states[-1], {"player_0": actions[len(steps)]}):
            action = actions[len(steps)]
            turn = Turn(action)
            step = Step(len(steps), "player_0", "", turn, action, True, None, rewards["player_0"], states[-1], out=over)
            path = (chance * part, (*states, state), (*steps, step))
            if over or len(path[2]) == len(actions):
                names = {"player_0": "a"}
                episode = Episode("s", 0, None, names, path[2], {}, {}, over, not over, end_state=state)
                asked = tuple(TurnRequest("", legal_actions=("left", "down", "right", "up")) for _ in path[2])
                yield path[0], Replay(episode, True, EpisodeRules(len(actions), 0.0, "default"), asked, game)
            else:
                unfinished.append(path)


def test_an_unreadable_response_is_the_players_own_doing():
    """The default action, left, is an action like any other, and the penalty is no luck either."""
    for seed in range(10):
        _, plain = played(lake(), seed, ["left", "left", "left"])
        found, fined = played(lake(format_penalty=0.25, invalid_action="default"), seed, ["?", "?", "?"])
        assert fined.luck == pytest.approx(plain.luck)
        assert fined.variance == pytest.approx(plain.variance)
        assert fined.skill == pytest.approx(plain.skill - 0.25 * len(found.steps))
        assert fined.start + fined.skill + fined.luck == pytest.approx(found.episode.returns["player_0"], abs=1e-12)
    found, luck = played(lake(invalid_action="terminate"), 0, ["?"])  # gives away what was to be won
    assert found.over
    assert (luck.luck, luck.variance) == (0, 0)
    assert luck.skill == -luck.start < 0


def test_a_random_substitute_is_luck():
    """Which action stands in is a draw: the expectation is over the actions, and the variance grows by theirs."""
    game = lake().game()
    values = LuckValues.of(game)
    state = game.initial_state(np.random.default_rng(0))
    each = [values.expects(state, (action,), 3) for action in game.actions]
    together = values.expects(state, game.actions, 3)
    assert together.mean == pytest.approx(np.mean([one.mean for one in each]))
    between = np.var([one.mean for one in each])
    assert together.variance == pytest.approx(np.mean([one.variance for one in each]) + between)
    drawn = Counter()
    for seed in range(12):
        found, luck = played(lake(invalid_action="random"), seed, ["?", "?", "?"])
        drawn[found.steps[0].action] += 1
        assert luck.start + luck.skill + luck.luck == pytest.approx(found.episode.returns["player_0"], abs=1e-12)
    assert len(drawn) > 1


def test_values_include_the_horizon():
    """Nothing can be won in the last round far from the goal, so nothing that happens there is luck."""
    values = LuckValues.of(lake().game())
    state = lake().game().initial_state(np.random.default_rng(0))
    assert values.value(state, 2) == 0  # three moves away
    assert values.value(state, 3) == pytest.approx(1 / 27)
    assert values.expects(state, ("down",), 1) == (0, 0)
    assert LuckValues.of(SCENARIOS["snake-duel"].game()) is None  # others' moves are no chance


@pytest.mark.slow
@pytest.mark.parametrize(("skill", "until"), [(0.95, 0.1), (0.5, 0.2)])
def test_the_interval_at_which_until_stops_covers_the_truth(skill, until):
    """A run looks at its first 50, 100 and 200 episodes, and ends as soon as half of the interval is ``until``."""
    runs, most = 200, 200
    confidence = confidence_of({"until": until, "episodes": most})
    true, played = rounds(skill, runs, most, np.random.default_rng(7))
    covered, ends = [], []
    for columns in zip(*played, strict=True):
        for count in looks(most):
            returns, start, luck, _, blind = (column[:count] for column in columns)
            free = corrected(returns, start, luck, (0.0, 1.0))
            table = np.stack([free.values, blind, start], axis=1)
            (one,) = stats.bootstrap(table, [stats.normalised(0, 1, 2, ends=free.ends)], confidence)
            low, high = one.low or one.value, one.high or one.value
            if (high - low) / 2 <= until:
                break
        covered.append(low - 1e-9 <= true <= high + 1e-9)
        ends.append(count)
    assert np.mean(covered) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)  # three standard errors
    assert len(set(ends)) > 1  # some runs end early, by their interval


def test_an_optimal_players_score_is_one_exactly():
    _, played = rounds(1.0, 20, 50, np.random.default_rng([1, 50]))
    found = []
    for returns, start, luck, _, blind in zip(*played, strict=True):
        free = corrected(returns, start, luck, (0.0, 1.0))
        table = np.stack([returns, blind, start, free.values], axis=1)
        figures = [stats.normalised(0, 1, 2, (0.0, 1.0)), stats.normalised(3, 1, 2, ends=free.ends)]
        found.append(stats.bootstrap(table, figures))
    plain, free = zip(*found, strict=True)
    assert np.allclose([one.value for one in free], 1.0, rtol=0, atol=1e-12)
    assert all(0.85 < one.low < 0.98 for one in free)  # the next episode may still hold a mistake
    assert np.allclose([one.high for one in free], 1.0, rtol=0, atol=1e-9)
    assert np.std([one.value for one in plain]) > 0.1


def test_an_episode_has_no_part_in_its_own_coefficient():
    rng = np.random.default_rng(0)
    luck, outcome = rng.normal(size=(2, 40))
    outcome += 0.5 * luck
    before = cross_fitted(outcome, luck)
    for episode in (0, 13):
        changed = outcome.copy()
        changed[episode] += 5
        after = cross_fitted(changed, luck)
        fold = np.arange(40) % FOLDS == episode % FOLDS
        assert np.array_equal(before[fold], after[fold])
        assert not np.array_equal(before[~fold], after[~fold])
    returns = np.arange(float(LEAST))
    found = corrected(returns, np.zeros(LEAST), np.zeros(LEAST))  # luck that never varies is left in
    assert np.array_equal(found.values, returns)
    assert found.beta == 0


def test_very_many_episodes_are_not_played_again(monkeypatch):
    asked = []
    cell = Cell(planned=30, ask_luck=lambda: asked.append(1))
    for name, values in cell.columns.items():
        values.extend(range(30) if name == "seed" else [0.0] * 30)
    monkeypatch.setattr(cells, "CONTROLLED_LIMIT", 29)
    snake = SCENARIOS["snake"]
    assert cells.without_luck(cell, snake) == (None, False)
    assert not asked
    monkeypatch.setattr(cells, "CONTROLLED_LIMIT", 30)
    cell.memo.clear()
    assert cells.without_luck(cell, snake) == (None, False)  # nobody knew the luck
    assert asked
    assert cells.luck_free(cell, snake) is None
