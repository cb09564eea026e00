"""PARL in tables: its gradient beside finite differences, and rewards that gain by being tuned, or can't."""

import json
from itertools import islice

import numpy as np
import pytest

from research.robustness.tests.test_worst_case import lake
from research.robustness.worst_case.parl import payments, tune, upper

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
