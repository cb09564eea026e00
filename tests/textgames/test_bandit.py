"""The multi-armed bandit: rules, texts, exact values against brute force and published figures, and its players."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from agents.baselines.games.bandit import BanditPlayer, ucb
from agents.baselines.search import find_search_player
from agents.turn import TurnRequest
from textgames import SCENARIOS
from textgames.exploration.bandit import STORIES, Bandit, BanditState, Evidence, read_evidence
from textgames.solving.bayes_bandit import OneGoodArm, bayes_bandit

ME = "player_0"


def play(game: Bandit, arms: list[int], rng: np.random.Generator) -> tuple[BanditState, list[float], bool]:
    state, rewards, over = game.initial_state(rng), [], False
    for arm in arms:
        state, paid, over = game.transition(state, {ME: game.actions[arm]}, rng)
        rewards.append(paid[ME])
    return state, rewards, over


def request(game: Bandit, state: BanditState, steps_left: int | None = None, seed: int = 0) -> TurnRequest:
    return TurnRequest(game.observe(state, ME), steps_left=steps_left, game=game, seed=(seed,))


# ---------------------------------------------------------------- rules and texts


@pytest.mark.parametrize("style", ["summary", "raw"])
@pytest.mark.parametrize("prior", ["gap", "uniform", "gaussian"])
def test_counts_follow_the_rewards_and_can_be_read_back(prior, style):
    game = Bandit(num_arms=3, rounds=7, prior=prior, observation=style, scale=3.0)
    arms = [0, 2, 2, 0, 2, 0, 2]
    state, rewards, over = play(game, arms, np.random.default_rng(5))
    assert over
    assert state.pulls == (3, 0, 4)
    assert state.last == (6, 0, 7)
    for arm in range(3):
        assert state.sums[arm] == pytest.approx(sum(r for a, r in zip(arms, rewards, strict=True) if a == arm))
    evidence = read_evidence(game.observe(state, ME), game.actions)
    assert evidence.pulls == state.pulls
    assert evidence.sums == pytest.approx(state.sums, abs=0.005 * 4)  # two decimals a number are shown
    assert bool(state.log) == (style == "raw")
    assert game.transition(state, {ME: "red"}, np.random.default_rng()) == (state, {ME: 0.0}, True)


def test_gaussian_rewards():
    game = Bandit(num_arms=2, rounds=10_000, prior="gaussian", scale=3.0)
    starts = [game.initial_state(np.random.default_rng(seed)).means for seed in range(2000)]
    assert np.std(starts) == pytest.approx(3, rel=0.05)
    state, rng = game.initial_state(np.random.default_rng(1)), np.random.default_rng(2)
    rewards = [game.transition(state, {ME: "blue"}, rng)[1][ME] for _ in range(5000)]
    assert np.mean(rewards) == pytest.approx(state.means[1], abs=0.15)
    assert np.std(rewards) == pytest.approx(3, rel=0.05)
    assert not game.has_outcomes
    assert game.return_range is None
    assert game.forfeit(BanditState((0.5, -2.0), (3, 1), (0.0, 0.0), (4, 3)), ME, 99) == {ME: -2.0 * 9_996}
    with pytest.raises(NotImplementedError, match="continuum"):
        game.outcomes(state, {ME: "red"})


def test_metrics_by_hand():
    game = Bandit(num_arms=3, gap=0.5, rounds=8)
    means = (0.25, 0.75, 0.25)
    gave_up = BanditState(means, (4, 3, 1), (1.0, 2.0, 0.0), (8, 4, 5))
    assert game.metrics(gave_up, ME) == {"regret": 2.5, "suffix_failure": 1.0, "best_arm_share": 3 / 8}
    came_back = BanditState(means, (4, 3, 1), (1.0, 2.0, 0.0), (8, 5, 4))
    assert game.metrics(came_back, ME)["suffix_failure"] == 0.0
    tied = BanditState((0.5, 0.5), (1, 0), (1.0, 0.0), (1, 0))
    assert game.metrics(tied, ME)["suffix_failure"] == 0.0  # one of two best arms was chosen


@pytest.mark.parametrize("story", STORIES)
def test_instructions_tell_the_prior_or_not(story):
    for prior, told in (("gap", "0.75"), ("uniform", "evenly between 0 and 1"), ("gaussian", "standard deviation 1")):
        assert told in Bandit(story=story, prior=prior).instructions(ME)
        assert told not in Bandit(story=story, prior=prior, tell_prior=False).instructions(ME)
    assert len(set(STORIES[story].names.split())) == 20


# ---------------------------------------------------------------- exact values


def brute_force(gap: float | None, wins: tuple[int, ...], losses: tuple[int, ...], left: int) -> list[float]:
    """Action values from Bayes' rule over the hypotheses written out, without any sorting of arms."""

    def chance(arm: int, wins: tuple[int, ...], losses: tuple[int, ...]) -> float:
        if gap is None:
            return (wins[arm] + 1) / (wins[arm] + losses[arm] + 2)
        likelihoods = []
        for best in range(len(wins)):
            p = [0.5 + (gap if a == best else -gap) / 2 for a in range(len(wins))]
            likelihoods.append(np.prod([p[a] ** wins[a] * (1 - p[a]) ** losses[a] for a in range(len(wins))]))
        return float(
            sum(weight * (0.5 + (gap if arm == best else -gap) / 2) for best, weight in enumerate(likelihoods))
            / sum(likelihoods)
        )

    @cache
    def values(wins: tuple[int, ...], losses: tuple[int, ...], left: int) -> tuple[float, ...]:
        if not left:
            return (0.0,)
        found = []
        for arm in range(len(wins)):
            p = chance(arm, wins, losses)
            more = (1 if a == arm else 0 for a in range(len(wins)))
            one = tuple(more)
            won = tuple(a + b for a, b in zip(wins, one, strict=True))
            lost = tuple(a + b for a, b in zip(losses, one, strict=True))
            found.append(p * (1 + max(values(won, losses, left - 1))) + (1 - p) * max(values(wins, lost, left - 1)))
        return tuple(found)

    return list(values(wins, losses, left))


@pytest.mark.parametrize("gap", [None, 0.5, 0.2])
@pytest.mark.parametrize(("wins", "losses", "left"), [((0, 0, 0), (0, 0, 0), 6), ((2, 0, 1), (0, 1, 1), 4)])
def test_bayes_optimal_values_against_brute_force(gap, wins, losses, left):
    solved = bayes_bandit(gap, 3, left + sum(wins) + sum(losses)).action_values(wins, losses)
    assert solved == pytest.approx(brute_force(gap, wins, losses, left), abs=1e-12)


def test_with_one_good_arm_it_is_enough_to_be_greedy_about_the_posterior():
    """Why the planner takes the largest posterior mean where the beliefs are too many."""
    solved, prior = bayes_bandit(0.5, 3, 7), OneGoodArm(0.5)
    for wins in product(range(3), repeat=3):
        for losses in product(range(3), repeat=3):
            if sum(wins) + sum(losses) < 7:
                chances = prior.chances(prior.beliefs(np.array([wins]), np.array([losses])))[0]
                values = solved.action_values(wins, losses)
                assert values[int(np.argmax(chances))] == pytest.approx(max(values), abs=1e-12)


def test_too_large_problems_are_refused():
    with pytest.raises(ValueError, match="accepted: 2 arms up to 60 rounds"):
        bayes_bandit(None, 2, 61)
    with pytest.raises(ValueError, match="none is left to value"):
        bayes_bandit(None, 2, 5).action_values((2, 1), (1, 1))


# ---------------------------------------------------------------- players


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("bandit", 15.136), ("bandit-bayes", 31.9967)])
def test_the_planner_gets_its_exact_value(name, value):
    scenario = SCENARIOS[name]
    game = scenario.game()
    assert isinstance(game, Bandit)
    player = find_search_player(game)
    assert isinstance(player, BanditPlayer)
    assert player.exact
    assert player.method == "Bayes-optimal"
    first = request(game, game.initial_state(np.random.default_rng(0)), scenario.horizon)
    assert max(player.values(first).values()) == pytest.approx(value, abs=5e-4)
    assert player.uniform_value(first) == pytest.approx({"bandit": 8.75, "bandit-bayes": 25}[name])
    returns, rng = [], np.random.default_rng(0)
    for _ in range(60):
        state, total, over = game.initial_state(rng), 0.0, False
        while not over:
            left = game.rounds_left(state)
            state, paid, over = game.transition(state, {ME: player.plan(request(game, state, left)).action}, rng)
            total += paid[ME]
        returns.append(total)
    assert abs(np.mean(returns) - value) < 4 * np.std(returns) / np.sqrt(len(returns))


def test_the_planner_reads_nothing_but_text():
    game = Bandit(num_arms=2, prior="uniform", rounds=20)
    player = BanditPlayer(game)
    text = "Round 4 of 20. Total reward so far: 1.\nred: pressed 2 times, total reward 0, average 0.00\n"
    asked = TurnRequest(text + "blue: pressed 1 time, total reward 1, average 1.00", steps_left=17, game=game)
    expected = brute_force(None, (0, 1), (2, 0), 5)
    assert list(player.values(TurnRequest(asked.observation, steps_left=5, game=game)).values()) == pytest.approx(
        expected
    )
    assert player.plan(asked).action == "blue"
    with pytest.raises(ValueError, match="not an observation of a bandit"):
        player.plan(TurnRequest("You are on a lake.", steps_left=5, game=game))


def test_ucb_and_greedy_by_hand():
    assert ucb(Evidence((1, 0, 0), (1.0, 0.0, 0.0))) == 1
    # 3/4 + sqrt(.5 ln 6 / 4) = 1.223 against 1/2 + sqrt(.5 ln 6 / 2) = 1.169
    assert ucb(Evidence((4, 2), (3.0, 1.0))) == 0
    assert ucb(Evidence((8, 2), (6.0, 1.0))) == 1  # .75 + .379 against .5 + .759
    assert ucb(Evidence((8, 2), (6.0, 1.0)), 0.0) == 0


def test_fallbacks_are_named_and_not_called_exact():
    names = {"gap": "largest posterior mean", "uniform": "Thompson sampling", "gaussian": "UCB"}
    for prior, name in names.items():
        game = Bandit(num_arms=20, rounds=100, prior=prior)
        player = BanditPlayer(game)
        assert (player.exact, player.method) == (False, name)
        state, _, _ = play(game, list(range(20)), np.random.default_rng(1))
        best = game.actions[int(np.argmax(state.sums))]
        choices = {player.plan(request(game, state, 80, seed)).action for seed in range(30)}
        assert choices == {best} if prior != "uniform" else len(choices) > 1


def test_thompson_samples_the_posterior():
    """P(Beta(4, 1) > Beta(1, 2)) = 1 - integral of x^4 * 2 (1 - x) = 14/15."""
    game = Bandit(num_arms=2, prior="uniform", rounds=10)
    player = BanditPlayer(game)
    player._method = "thompson"  # which larger games are left to
    state = BanditState((0.5, 0.5), (3, 1), (3.0, 0.0), (3, 4))
    red = [player.plan(request(game, state, 6, seed)).action == "red" for seed in range(2000)]
    assert np.mean(red) == pytest.approx(14 / 15, abs=0.02)
