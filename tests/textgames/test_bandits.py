"""Bandits and online learning: rules and regrets by hand, values against brute force, and the players' formulas."""

from functools import cache

import numpy as np
import pytest

from agents.baselines.games.learning import BanditPlayer, LinearBelief, OnlineLearningPlayer, ucb
from agents.baselines.search import find_search_player
from agents.turn import TurnRequest
from textgames import SCENARIOS
from textgames.exploration import contextual_bandit
from textgames.exploration.bandit import STORIES, Bandit, BanditState, Evidence, read_evidence
from textgames.exploration.contextual_bandit import CONTEXTS, NOBODY, ContextualBandit, ContextualState, Visit
from textgames.exploration.online_learning import PATTERNS, OnlineLearning, OnlineState, read_losses
from textgames.solving.bayes_bandit import bayes_bandit

ME = "player_0"

# ---------------------------------------------------------------- the bandit


def request(game, state, steps_left=None, seed=0):
    return TurnRequest(game.observe(state, ME), steps_left=steps_left, game=game, seed=(seed,))


@pytest.mark.parametrize(("prior", "style"), [("gap", "summary"), ("uniform", "raw"), ("gaussian", "raw")])
def test_counts_follow_the_rewards_and_can_be_read_back(prior, style):
    game, rng = Bandit(num_arms=3, rounds=7, prior=prior, observation=style, scale=3.0), np.random.default_rng(5)
    state, sums = game.initial_state(rng), [0.0, 0.0, 0.0]
    for arm in (0, 2, 2, 0, 2, 0, 2):
        state, paid, over = game.transition(state, {ME: game.actions[arm]}, rng)
        sums[arm] += paid[ME]
    assert over
    assert state.pulls == (3, 0, 4)
    assert state.last == (6, 0, 7)
    assert state.sums == pytest.approx(sums)
    evidence = read_evidence(game.observe(state, ME), game.actions)
    assert evidence.pulls == state.pulls
    assert evidence.sums == pytest.approx(state.sums, abs=0.005 * 4)  # two decimals a number are shown
    assert game.transition(state, {ME: "red"}, rng) == (state, {ME: 0.0}, True)


def test_gaussian_rewards():
    game = Bandit(num_arms=2, rounds=10_000, prior="gaussian", scale=3.0)
    starts = [game.initial_state(np.random.default_rng(seed)).means for seed in range(2000)]
    assert np.std(starts) == pytest.approx(3, rel=0.05)
    state, rng = game.initial_state(np.random.default_rng(1)), np.random.default_rng(2)
    rewards = [game.transition(state, {ME: "blue"}, rng)[1][ME] for _ in range(5000)]
    assert (np.mean(rewards), np.std(rewards)) == pytest.approx((state.means[1], 3), abs=0.15)
    assert game.return_range is None
    assert game.forfeit(BanditState((0.5, -2.0), (3, 1), (0.0, 0.0), (4, 3)), ME, 99) == {ME: -2.0 * 9_996}
    with pytest.raises(NotImplementedError, match="continuum"):
        game.outcomes(state, {ME: "red"})


def test_metrics_of_a_bandit_by_hand():
    game = Bandit(num_arms=3, gap=0.5, rounds=8)
    gave_up = BanditState((0.25, 0.75, 0.25), (4, 3, 1), (1.0, 2.0, 0.0), (8, 4, 5))
    assert game.metrics(gave_up, ME) == {"regret": 2.5, "suffix_failure": 1.0, "best_arm_share": 3 / 8}
    assert game.metrics(gave_up._replace(last=(8, 5, 4)), ME)["suffix_failure"] == 0.0
    tied = BanditState((0.5, 0.5), (1, 0), (1.0, 0.0), (1, 0))
    assert game.metrics(tied, ME)["suffix_failure"] == 0.0  # one of two best arms was chosen


def test_instructions_tell_the_prior_or_not():
    for prior, told in (("gap", "0.75"), ("uniform", "evenly between 0 and 1"), ("gaussian", "standard deviation 1")):
        assert told in Bandit(prior=prior).instructions(ME)
        assert told not in Bandit(prior=prior, tell_prior=False).instructions(ME)
    assert all(len(set(story.names.split())) == 20 for story in STORIES.values())


def brute_force(gap: float | None, wins: tuple[int, ...], losses: tuple[int, ...], left: int) -> list[float]:
    """Action values from Bayes' rule over the hypotheses written out, without any sorting of arms."""

    def chance(arm: int, wins: tuple[int, ...], losses: tuple[int, ...]) -> float:
        if gap is None:
            return (wins[arm] + 1) / (wins[arm] + losses[arm] + 2)
        likelihoods = []
        for best in range(len(wins)):
            p = [0.5 + (gap if a == best else -gap) / 2 for a in range(len(wins))]
            likelihoods.append(np.prod([p[a] ** wins[a] * (1 - p[a]) ** losses[a] for a in range(len(wins))]))
        paid = [0.5 + (gap if arm == best else -gap) / 2 for best in range(len(wins))]
        return float(np.average(paid, weights=likelihoods))

    def more(counts: tuple[int, ...], arm: int) -> tuple[int, ...]:
        return tuple(count + (a == arm) for a, count in enumerate(counts))

    @cache
    def values(wins: tuple[int, ...], losses: tuple[int, ...], left: int) -> tuple[float, ...]:
        if not left:
            return (0.0,)
        found = []
        for arm in range(len(wins)):
            p = chance(arm, wins, losses)
            won, lost = values(more(wins, arm), losses, left - 1), values(wins, more(losses, arm), left - 1)
            found.append(p * (1 + max(won)) + (1 - p) * max(lost))
        return tuple(found)

    return list(values(wins, losses, left))


@pytest.mark.parametrize("gap", [None, 0.5, 0.2])
@pytest.mark.parametrize(("wins", "losses", "left"), [((0, 0, 0), (0, 0, 0), 6), ((2, 0, 1), (0, 1, 1), 4)])
def test_bayes_optimal_values_against_brute_force(gap, wins, losses, left):
    solved = bayes_bandit(gap, 3, left + sum(wins) + sum(losses)).action_values(wins, losses)
    assert solved == pytest.approx(brute_force(gap, wins, losses, left), abs=1e-12)


def test_problems_too_large_or_at_their_end_are_refused():
    with pytest.raises(ValueError, match="accepted: 2 arms up to 60 rounds"):
        bayes_bandit(None, 2, 61)
    with pytest.raises(ValueError, match="none is left to value"):
        bayes_bandit(None, 2, 5).action_values((2, 1), (1, 1))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value", "uniform"), [("bandit", 15.136, 8.75), ("bandit-bayes", 31.9967, 25)])
def test_the_planner_of_a_bandit_knows_its_exact_value(name, value, uniform):
    game = SCENARIOS[name].game()
    player = find_search_player(game)
    assert isinstance(player, BanditPlayer)
    assert (player.exact, player.method) == (True, "Bayes-optimal")
    first = request(game, game.initial_state(np.random.default_rng(0)), SCENARIOS[name].horizon)
    assert max(player.values(first).values()) == pytest.approx(value, abs=5e-4)
    assert player.uniform_value(first) == pytest.approx(uniform)


def test_the_planner_of_a_bandit_reads_nothing_but_text():
    game = Bandit(num_arms=2, prior="uniform", rounds=20)
    player = BanditPlayer(game)
    text = "Round 4 of 20. Total reward so far: 1.\nred: pressed 2 times, total reward 0, average 0.00\n"
    text += "blue: pressed 1 time, total reward 1, average 1.00"
    expected = brute_force(None, (0, 1), (2, 0), 5)
    assert list(player.values(TurnRequest(text, steps_left=5, game=game)).values()) == pytest.approx(expected)
    assert player.plan(TurnRequest(text, steps_left=17, game=game)).action == "blue"
    with pytest.raises(ValueError, match="not an observation of a bandit"):
        player.plan(TurnRequest("You are on a lake.", steps_left=5, game=game))


def test_ucb_and_greedy_by_hand():
    assert ucb(Evidence((1, 0, 0), (1.0, 0.0, 0.0))) == 1
    # 3/4 + sqrt(.5 ln 6 / 4) = 1.223 against 1/2 + sqrt(.5 ln 6 / 2) = 1.169
    assert ucb(Evidence((4, 2), (3.0, 1.0))) == 0
    assert ucb(Evidence((8, 2), (6.0, 1.0))) == 1  # .75 + .379 against .5 + .759
    assert ucb(Evidence((8, 2), (6.0, 1.0)), 0.0) == 0


@pytest.mark.parametrize(
    ("prior", "name"), [("gap", "largest posterior mean"), ("uniform", "Thompson sampling"), ("gaussian", "UCB")]
)
def test_fallbacks_are_named_and_not_called_exact(prior, name):
    game, rng = Bandit(num_arms=20, rounds=100, prior=prior), np.random.default_rng(1)
    player, state = BanditPlayer(game), game.initial_state(rng)
    assert (player.exact, player.method) == (False, name)
    for action in game.actions:
        state, _, _ = game.transition(state, {ME: action}, rng)
    choices = {player.plan(request(game, state, 80, seed)).action for seed in range(30)}
    assert choices == {game.actions[int(np.argmax(state.sums))]} if prior != "uniform" else len(choices) > 1


def test_thompson_samples_the_posterior():
    """P(Beta(4, 1) > Beta(1, 2)) = 1 - integral of x^4 * 2 (1 - x) = 14/15."""
    game = Bandit(num_arms=2, prior="uniform", rounds=10)
    player = BanditPlayer(game)
    player._method = "thompson"  # which larger games are left to
    state = BanditState((0.5, 0.5), (3, 1), (3.0, 0.0), (3, 4))
    red = [player.plan(request(game, state, 6, seed)).action == "red" for seed in range(2000)]
    assert np.mean(red) == pytest.approx(14 / 15, abs=0.02)


# ---------------------------------------------------------------- the contextual bandit

WEIGHTS = ((1.0, 0.0, 0.0), (0.0, 2.0, -1.0))
HERE = CONTEXTS.index((0.5, 1.0, -0.5))


def test_a_reward_is_the_weights_times_the_numbers_and_the_noise():
    assert contextual_bandit.expected_rewards(WEIGHTS, HERE) == (0.5, 2.5)
    game, rng = ContextualBandit(num_arms=2, rounds=3, noise=0.2), np.random.default_rng(0)
    state = ContextualState(WEIGHTS, HERE)
    rewards = {round(game.transition(state, {ME: "travel"}, rng)[1][ME], 9) for _ in range(40)}
    assert rewards == {2.3, 2.7}
    after, paid, over = game.transition(state, {ME: "cooking"}, rng)
    assert not over
    assert after.log == (Visit(HERE, 0, paid[ME]),)
    evidence = contextual_bandit.read_evidence(game.observe(after, ME), game.actions)
    assert evidence.context == after.context
    assert [visit[:2] for visit in evidence.log] == [(HERE, 0)]
    assert evidence.log[0].reward == pytest.approx(paid[ME], abs=0.0051)
    for _ in range(2):
        after, _, over = game.transition(after, {ME: "cooking"}, rng)
    assert over
    assert after.context == NOBODY
    assert game.transition(after, {ME: "cooking"}, rng) == (after, {ME: 0.0}, True)
    with pytest.raises(ValueError, match="not an observation of a contextual bandit"):
        contextual_bandit.read_evidence("Round 1 of 25. Nothing was pressed yet.", game.actions)


def test_regret_of_a_contextual_bandit_by_hand():
    game = ContextualBandit(num_arms=2)
    state = ContextualState(WEIGHTS, NOBODY, (Visit(HERE, 0, 0.7), Visit(HERE, 1, 2.3), Visit(HERE, 0, 0.3)))
    assert game.metrics(state, ME) == {"regret": pytest.approx(4.0)}  # 2.5 instead of .5, twice; noise plays no part
    rest = ContextualBandit(num_arms=2, rounds=5)
    assert rest.forfeit(state, ME, 2) == {ME: -3.0 * 2}  # the second arm for (any, -1, 1) in the rounds that are left


def test_regression_is_ridge_regression():
    """The posterior mean solves (I + X'X/s^2) w = X'y/s^2."""
    rng, x = np.random.default_rng(0), [3, 50, 77, 120]
    rewards = rng.normal(size=4)
    belief = LinearBelief(2, 0.5, tuple(Visit(c, 1, r) for c, r in zip(x, rewards, strict=True)))
    design = np.array([CONTEXTS[c] for c in x])
    expected = np.linalg.solve(np.eye(3) + 4 * design.T @ design, 4 * design.T @ rewards)
    assert belief.means[1] == pytest.approx(expected)
    assert belief.means[0] == pytest.approx(np.zeros(3))
    here = np.array(CONTEXTS[HERE])
    assert belief.rewards(HERE)[1][0] == pytest.approx(np.linalg.norm(here))  # the prior's own deviation


# ---------------------------------------------------------------- online learning

STATE = OnlineState(((3.0, 1.0), (0.0, 10.0), (5.0, 4.0)))


def test_patterns_are_what_they_are_called():
    rng = np.random.default_rng(0)
    lines = PATTERNS["trend"](25, 2, rng)
    rest = lines - np.polynomial.Polynomial.fit(np.arange(25), lines[:, 0], 1)(np.arange(25))[:, None]
    assert rest[:, 0].std() == pytest.approx(0.5, abs=0.2)
    wave = PATTERNS["sine"](25, 2, rng)
    assert np.abs(wave.mean(axis=0) - 5).max() < 1.5
    assert np.ptp(wave, axis=0).min() > 6
    hit = PATTERNS["adversarial"](25, 2, rng)
    leaders = np.cumsum(hit, axis=0)[:-1].argmin(axis=1)
    assert (hit[1:].argmax(axis=1) == leaders).mean() > 0.9  # up to the first head start, whoever leads is hit
    with pytest.raises(ValueError, match="not an observation of online learning"):
        read_losses("Round 1 of 3.")


def test_a_round_costs_what_the_row_says():
    game, rng = OnlineLearning(rounds=3), np.random.default_rng(0)
    state, rewards = STATE, []
    for action in ("highway", "bridge", "highway"):
        listed = game.outcomes(state, {ME: action})
        state, paid, over = game.transition(state, {ME: action}, rng)
        assert listed == [(1.0, state, paid, over)]
        rewards.append(paid[ME])
    assert over
    assert rewards == [-3, -10, -5]
    # "bridge instead of highway" would have gained 3 on days 1 and 3, "highway instead of bridge" 10 on day 2
    regrets = {"external_regret": 10.0, "average_regret": pytest.approx(10 / 3), "swap_regret": 13.0}
    assert game.metrics(state, ME) == regrets
    assert game.transition(state, {ME: "bridge"}, rng) == (state, {ME: 0.0}, True)


def ask(game: OnlineLearning, rows: tuple[tuple[float, ...], ...]) -> TurnRequest:
    state = OnlineState(rows + ((0.0,) * game.num_actions,) * 25, (0,) * len(rows))
    return TurnRequest(game.observe(state, ME), legal_actions=game.actions, game=game, steps_left=25 - len(rows))


def test_the_planner_of_online_learning_forecasts_and_greedy_follows_the_leader():
    game = OnlineLearning(rounds=25)
    player = find_search_player(game)
    assert isinstance(player, OnlineLearningPlayer)
    assert (player.kind, player.method) == ("reference", "Bayesian mixture of the patterns")
    # before anything was seen, all cost the same
    assert player.values(ask(game, ())) == pytest.approx({"highway": -5.0, "bridge": -5.0})
    # steady losses: shrunk means, in the order of the sums
    steady = ask(game, ((3.0, 6.0), (7.0, 8.0), (2.0, 6.5), (5.0, 4.5), (2.5, 8.0)))
    assert player.plan(steady).action == player.greedy(steady).action == "highway"
    assert player.values(steady)["highway"] == pytest.approx(-(19.5 + 5 * 1.92) / 6.92, abs=0.3)
    # two lines that cross: the highway has cost more so far, and will cost less; then: whoever leads is hit
    trend = ask(game, tuple((9.0 - 0.6 * day, 1.0 + 0.5 * day) for day in range(9)))
    hit = ask(game, ((9.0, 1.0), (0.5, 9.5), (9.2, 1.1), (0.3, 8.8), (8.9, 1.7)))
    for asked in (trend, hit):
        assert player.greedy(asked).action == "bridge"
        assert player.plan(asked).action == "highway"
