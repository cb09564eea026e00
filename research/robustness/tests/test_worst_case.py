"""Perturbed rules beside linear programs and duals; DR-RPO, the policy cliff and PARL by bounds and differences."""

import json
from dataclasses import fields
from itertools import islice

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

from research.robustness.worst_case.dr_rpo import Estimate, features_of, learn, optimise
from research.robustness.worst_case.perturbed import Perturbed, Timed
from research.robustness.worst_case.rewards import jumps, payments, tune, upper
from research.robustness.worst_case.solver import (
    BALLS,
    Model,
    distance,
    divergence,
    follow,
    greedy,
    relative_entropy,
    soft,
    total_variation,
)
from textgames import SCENARIOS, conformance, find_yardstick, game_of
from textgames.solving import ValueIteration

RISKY = {"size": 5, "is_slippery": True, "success_rate": 0.9}  # ice on which detours are worth something


def rounds(seed):
    """Random rounds of four outcomes, some of which have equal worths, and some fewer outcomes."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(4), 30)
    chances[::3, 3] = 0
    return chances / chances.sum(axis=1, keepdims=True), rng.integers(-3, 4, (30, 4)) * 0.7


def lake(starts=4, horizon=20, **settings):
    game = game_of("TextFrozenLake-v0", **(settings or RISKY))
    return game, Model.of(game, [game.initial_state(np.random.default_rng(seed)) for seed in range(starts)], horizon)


@pytest.mark.parametrize("radius", [0.0, 0.07, 0.4, 1.0])
def test_total_variation_is_the_linear_program(radius):
    chances, worths = rounds(0)
    found = total_variation(chances, worths, radius)
    assert (distance(found, chances) <= radius + 1e-12).all()
    for p, worth, q in zip(chances, worths, found, strict=True):
        n = len(p)  # min q worth, with t >= |q - p| and sum t <= 2 radius
        above = np.block([[np.eye(n), -np.eye(n)], [-np.eye(n), -np.eye(n)], [np.zeros(n), np.ones(n)]])
        program = linprog(
            np.append(worth, np.zeros(n)),
            A_ub=above,
            b_ub=[*p, *-p, 2 * radius],
            A_eq=[[1] * n + [0] * n],
            b_eq=[1],
            bounds=[(0, None if each else 0) for each in p] + [(0, None)] * n,
        )
        assert q @ worth == pytest.approx(program.fun, abs=1e-9)


@pytest.mark.parametrize("radius", [0.0, 0.02, 0.3, 5.0])
def test_relative_entropy_reaches_its_dual(radius):
    chances, worths = rounds(1)
    found = relative_entropy(chances, worths, radius)
    assert (divergence(found, chances) <= radius + 1e-9).all()
    for p, worth, q in zip(chances, worths, found, strict=True):
        least = worth[p > 0].min()

        def dual(logarithm, p=p, above=worth - least):
            beta = np.exp(logarithm)
            return beta * np.log(p @ np.exp(-np.where(p > 0, above, 0) / beta)) + beta * radius

        best = least - minimize_scalar(dual, bounds=(-12, 12), method="bounded", options={"xatol": 1e-10}).fun
        assert q @ worth == pytest.approx(best, abs=1e-4)  # no chances of the ball are worse than the dual's value


@pytest.mark.parametrize("name", ["frozen-lake-slippery", "taxi"])
def test_without_a_radius_values_are_those_of_value_iteration(name):
    game, horizon = SCENARIOS[name].game(), 12
    start = game.initial_state(np.random.default_rng(3))
    model = Model.of(game, [start], horizon)
    plain = ValueIteration(game).value(start, horizon, "player_0")
    for ball in BALLS.values():
        assert model.start_values(model.solve(greedy, ball)) == pytest.approx([plain], abs=1e-9)


@pytest.mark.parametrize("ball", BALLS)
def test_nature_of_the_game_that_is_played_is_the_solvers(ball):
    game, model = lake(1)
    shift = {"settings": RISKY, "horizon": 20, "radius": 0.1, "ball": ball}
    start = Timed(next(iter(model.space.numbers)), 0)
    against_it = Perturbed(against="optimal", **shift)
    robust = model.start_values(model.solve(greedy, BALLS[ball], 0.1))[0]
    # a saddle point: against nature's choice for the robust policy nothing gets more than that policy
    assert find_yardstick(against_it).value(start, 20, "player_0") == pytest.approx(robust)
    nominal = model.solve()

    def plays(state, left):
        number = model.space.numbers[getattr(state, "state", state)]
        first = model.space.first_round[number]
        return dict(zip(game.actions, nominal.policy[left - 1, first : first + 4], strict=True))

    worst = model.start_values(model.solve(follow(nominal.policy), BALLS[ball], 0.1))[0]
    for against in ("nominal", plays):
        played = Model.of(Perturbed(against=against, **shift), [start], 20)
        assert played.start_values(played.solve(played.policy(plays)))[0] == pytest.approx(worst)
    assert worst < robust - 1e-3


def test_it_is_a_game_like_any_other():
    conformance.check("PerturbedLake-v0", radius=0.2)
    with pytest.raises(ValueError, match="ball must be one of tv, kl, got 'l2'"):
        Perturbed(ball="l2")
    with pytest.raises(ValueError, match="no exact worst case"):
        Perturbed(scenario="kuhn-poker")


@pytest.mark.parametrize("ball", BALLS)
def test_dr_rpo_comes_to_the_robust_optimum_and_gains_nothing_without_a_ball(ball):
    _, model = lake()
    nominal = model.policy("nominal")
    for radius, temperature in ((0.1, 0.03), (0.1, 1e-4), (0.0, 1e-4)):
        (found,) = islice(optimise(model, BALLS[ball], radius, temperature=temperature), 60, 61)
        regularised = model.start_values(model.solve(soft(temperature), BALLS[ball], radius))
        assert model.start_values(found) == pytest.approx(regularised, abs=2e-3)
        at_worst, plain, best = (
            model.start_values(model.solve(each, BALLS[ball], radius))
            for each in (follow(found.policy), nominal, greedy)
        )
        assert (at_worst <= best + 1e-9).all()
        if temperature < 0.01:
            assert at_worst == pytest.approx(best, abs=5e-3)
            assert (at_worst - plain).mean() > 0.01 if radius else (at_worst <= plain + 1e-9).all()


@pytest.mark.parametrize(("features", "radius"), [("states", 0.0), ("states", 0.15), ("outcomes", 0.0)])
def test_values_by_features_are_the_tables_if_every_outcome_was_seen_as_often_as_it_comes(features, radius):
    _, model = lake(1)
    table = features_of("states", model)
    if features == "outcomes":  # an action mixes the ways that lead out of its state, each a feature
        state = np.repeat(np.arange(len(model.space.decisions)), np.diff(model.space.first_round))
        places = [(at, outcome) for at, outcome in np.argwhere(model.chances).tolist()]
        ways = [(state[at], model.successors[at, outcome], model.paid[at, outcome]) for at, outcome in places]
        table = np.zeros((len(table), len(known := list(dict.fromkeys(ways)))))
        for (at, outcome), way in zip(places, ways, strict=True):
            table[at, known.index(way)] += model.chances[at, outcome]
    told = {each.name: getattr(model, each.name) for each in fields(model)}
    estimate = Estimate(**told, features=table, seen=1e6 * model.chances, ridge=1e-6, bonus=0.0)
    found, exact = (each.solve(greedy, total_variation, radius).values for each in (estimate, model))
    assert found == pytest.approx(exact, abs=1e-6)


def test_dr_rpo_from_play_comes_to_the_tables_policy_by_features_of_states_and_by_useless_ones_does_not():
    _, model = lake(1, size=4, is_slippery=True, success_rate=0.9)
    (table,) = islice(optimise(model, total_variation, 0.1), 60, 61)
    by_states, by_actions = (learn(model, features_of(name, model), 0.1, 1000) for name in ("states", "actions"))
    exact, nominal, learned, useless = (
        model.start_values(model.solve(each, total_variation, 0.1))
        for each in (follow(table.policy), model.policy("nominal"), by_states, by_actions)
    )
    assert learned == pytest.approx(exact, abs=2e-3)
    assert learned > nominal + 0.01
    assert useless < 0.1 * exact


def test_the_optimum_jumps_at_any_price_and_the_soft_one_keeps_to_its_bound():
    _, model = lake(size=4)
    prices = (1e-6, 1e-3, 1e-2)
    hard, smooth = list(jumps(model, (0.0, *prices))), list(jumps(model, prices, (0.02, 0.2)))
    assert hard[0].moved == hard[0].farthest == 0
    assert [jump.moved for jump in hard[1:]] == pytest.approx([hard[1].moved] * 3)
    assert hard[1].moved > 0.1
    for jump in (*hard, *smooth):
        assert jump.farthest <= jump.bound
        assert -1e-12 <= jump.lost <= jump.price * model.horizon + jump.temperature * model.horizon * np.log(4)
    assert smooth[0].moved < 1e-3 * hard[1].moved


def test_the_command_tells_both(textbench):
    row = json.loads(textbench("robust", "worst", "frozen-lake-slippery", "--set", "success_rate=0.9", "--radius",
                               "0.1", "--agent", "random", "--starts", "3", "--json").out)["rows"][0]  # fmt: skip
    assert row["optimal"]["value"] >= row["nominal"]["value"] > row["agent"]["value"]
    told = textbench("robust", "cliff", "frozen-lake", "--starts", "2").out
    assert "farthest" in told
    learned = textbench("robust", "worst", "frozen-lake-slippery", "--starts", "2", "--radius", "0.1", "--learn", "200")
    assert "learned_gain" in learned.out
    for more, why in (("--ball", "kl"), "accepted is tv"), (("--starts", "50"), "take fewer --starts"):
        refused = textbench("robust", "worst", "frozen-lake-slippery", "--learn", "9", *more)
        assert refused.code == 2
        assert why in refused.err
    wrong = textbench("robust", "worst", "kuhn-poker")
    assert wrong.code == 2
    assert "no exact worst case" in wrong.err


# ---- PARL: rewards that gain by being tuned, or can't ----------------------------------------------------------------

LEVELS = {"temperature": 0.1, "charge": 0.5}


@pytest.fixture(scope="module")
def model():
    return lake()[1]


@pytest.fixture(scope="module")
def features(model):
    return np.array([*payments(model).values()])


def test_progress_is_rounds_nearer_to_the_goal_on_a_line():
    """SFFFG: the goal is 4, 3, 2, 1 rounds away; a step to the right pays 1, one to the left costs 1, a bump 0."""
    _, line = lake(1, 6, desc=["SFFFG"])
    of_steps = payments(line)
    assert of_steps["progress"].ravel().tolist() == [0, 0, 1, 0, -1, 0, 1, 0, -1, 0, 1, 0, -1, 0, 1, 0]
    assert (of_steps["step"] == 1).all()


@pytest.mark.parametrize("parameters", [(0.0, 0.0), (-0.02, 0.03), (0.05, -0.1)])
def test_the_bilevel_gradient_is_that_of_finite_differences_and_a_fixed_policys_is_wrong(model, features, parameters):
    at, moves = np.array(parameters), np.eye(2) * 1e-5

    def worth(move):
        return upper(model, features, at + move, **LEVELS).objective.mean()

    differences = [(worth(move) - worth(-move)) / 2e-5 for move in moves]
    found = upper(model, features, at, **LEVELS)
    assert found.gradient == pytest.approx(differences, rel=1e-4)
    assert np.abs(found.fixed - differences).max() > 0.2


def test_the_true_return_gains_by_progress_but_not_along_a_fixed_policys_gradient(model, features):
    (_, before), *_, (_, after) = islice(tune(model, features, **LEVELS), 6)
    assert (after.returned - before.returned).mean() > 0.05
    assert after.objective.mean() <= model.start_values(model.solve()).mean()
    _, (parameters, stayed) = islice(tune(model, features, **LEVELS, bilevel=False), 2)
    assert (parameters == 0).all()
    assert (stayed.returned == before.returned).all()


def test_the_command_tunes_from_no_payments_on(textbench):
    told = textbench("robust", "reward", "frozen-lake-slippery", "--starts", "3", "--ascents", "3", "--json")
    first, *_, last = json.loads(told.out)["rows"]
    assert first["step"] == first["progress"] == first["gain"]["value"] == 0
    assert last["gain"]["value"] > 0.05
    assert last["objective"]["value"] > first["objective"]["value"]
    assert "--charge must be" in textbench("robust", "reward", "frozen-lake", "--charge", "-1").err
