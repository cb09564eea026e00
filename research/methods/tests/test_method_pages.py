"""The pages of the site have the methods of this folder, too."""

import pytest
from pages import overview
from pages.methods import formulas, method_page

from agents.msgrpo.configuration.settings import POINTS

METHODS = [(point, name) for point, registry in POINTS.items() for name in registry.names]


def test_there_is_a_formula_for_every_method_and_for_nothing_else():
    assert sorted(METHODS) == sorted((point, name) for point, found in formulas().items() for name in found)


def test_costs_are_found():
    named, _ = overview.costs()
    assert named["tasks.ghpo"][0] in method_page("tasks", "ghpo")
    assert named["tasks.ghpo"][0] != named["tasks.dynamic"][0]


@pytest.mark.parametrize("name", ["hiper", "hcapo"])
def test_a_cost_that_was_not_measured_is_not_told(name):
    assert "wasn't measured" in method_page("credit", name)
    assert "times the processor time" not in method_page("credit", name)
