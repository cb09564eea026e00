"""Self-play towards an equilibrium: a model comes close to one, exactly measured, and what has none is refused."""

import json

import numpy as np
import pytest

from agents.analysis.exploitability import behaviour_of
from agents.tiny import Recipe, pretrain, save
from benchmark.cli import main
from benchmark.errors import UsageError
from benchmark.runs.plan import find_scenario
from research.improve.budget import Budget, SpendingMeter
from research.improve.methods.preferring.nash import descended, improve, mirror_step, taught_weights
from research.improve.task import ImprovementTask
from textgames.solving.equilibrium import (
    action_values,
    as_behaviour,
    as_policy,
    expected_values,
    exploitability,
    normalised,
    uniform_policy,
)
from textgames.solving.game_tree import expand
from textgames.strategy.kuhn_poker import KuhnPoker


def task_of(out, agent, *scenarios, say=lambda line: None):
    out.mkdir(parents=True, exist_ok=True)
    return ImprovementTask(agent, scenarios, SpendingMeter(Budget(), out / "seconds"), 0, out, say, quiet=True)


@pytest.mark.parametrize(
    ("agent", "scenarios", "options", "said"),
    [
        ({"mode": "direct"}, ("kuhn-poker", "nim"), {}, "an equilibrium is of one game, got kuhn-poker, nim"),
        ({}, ("kuhn-poker",), {}, "--mode direct, not 'think'"),
        ({"mode": "direct"}, ("frozen-lake",), {}, "frozen-lake: exploitability is defined for games of two players"),
        ({"mode": "direct"}, ("kuhn-poker",), {"rate": 0.0}, "rate is above 0.*got rate = 0, pull = 0.05"),
    ],
)
def test_what_has_no_equilibrium_to_be_computed_is_refused(tmp_path, agent, scenarios, options, said):
    with pytest.raises(UsageError, match=said):
        improve(task_of(tmp_path, {"spec": "tiny", **agent}, *scenarios), **options)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(("follow", "least", "most"), [(0.05, 0.0, 0.02), (0.0, 0.05, 0.4)])
def test_mirror_descent_comes_to_an_equilibrium_where_its_magnet_follows(follow, least, most):
    tree = expand(KuhnPoker())
    policy = magnet = as_behaviour(tree, uniform_policy(tree))
    for _ in range(300):
        policy = mirror_step(tree, policy, magnet, rate=0.5, pull=1.0)
        magnet = tuple((1 - follow) * own + follow * other for own, other in zip(magnet, policy, strict=True))
    assert least < exploitability(tree, policy) < most  # else it stays between equilibrium and magnet
    assert expected_values(tree, policy)["player_0"] == pytest.approx(-1 / 18, abs=0.03)


def test_a_mirror_step_is_the_formula():
    tree = expand(KuhnPoker())
    rng = np.random.default_rng(1)
    policy, magnet = (
        behaviour_of(
            tree,
            [dict(zip(e.actions, rng.dirichlet(np.ones(len(e.actions))), strict=True)) for e in tree.information_sets],
        )
        for _ in range(2)
    )
    stepped = as_policy(tree, mirror_step(tree, policy, magnet, rate=0.5, pull=2.0))
    before, held = as_policy(tree, policy), as_policy(tree, magnet)
    for key, chances in stepped.items():
        values = action_values(tree, policy, key)
        shares = {each: (p * held[key][each] * np.exp(0.5 * values[each])) ** 0.5 for each, p in before[key].items()}
        assert chances == pytest.approx({each: share / sum(shares.values()) for each, share in shares.items()})
    free = mirror_step(tree, tuple(own.round() for own in policy), magnet, rate=0.5, pull=0.0)
    assert all(((own == 0) <= (new == 0)).all() for own, new in zip(policy, free, strict=True))


@pytest.mark.slow
def test_what_is_taught_of_leduc_poker_is_the_equilibrium_of_a_table_and_nothing_where_play_never_leads():
    scenario = find_scenario("leduc-poker", "learn")
    tree = expand(scenario.game(), scenario.horizon)
    begun = behaviour_of(tree, [dict.fromkeys(each.actions, 1 / len(each.actions)) for each in tree.information_sets])
    assert exploitability(tree, begun) > 2
    table = descended(tree, begun, steps=3000, rate=4 / 13, pull=0.05 * 13, follow=0.02)  # a second
    weights = np.array(taught_weights(tree, table))
    assert weights.sum() == pytest.approx(len(tree.information_sets))
    assert 0 <= weights.min() < 1e-3
    parts = np.split(weights, [tree.decisions[0].num_sequences - 1])
    learnt = [normalised(each, np.append(1, part)) for each, part in zip(tree.decisions, parts, strict=True)]
    assert exploitability(tree, tuple(learnt)) < 0.05


@pytest.mark.slow
def test_a_model_comes_close_to_an_equilibrium_and_a_still_magnet_keeps_it_away(workplace, capsys):
    recipe = Recipe.legal_play(["kuhn-poker"], steps=150, hidden_size=32, intermediate_size=64)
    save(pretrain(recipe), workplace / "base")
    base = {"spec": f"hf:{workplace / 'base'}", "mode": "direct"}

    def told(name, **options):
        """The player, and how exploitable it was, the table is, and it is."""
        lines = []
        made = improve(task_of(workplace / name, base, "kuhn-poker", say=lines.append), rank=0, **options)
        return made, [float(line.split()[1]) for line in lines if line.startswith("exploitability")]

    made, (before, _, after) = told("follows", learning_rate=3e-3)
    assert made["spec"] == f"hf:{workplace / 'follows' / 'model'}"
    assert before > 0.4
    assert after < 0.05
    assert main(["exploitability", made["spec"], "--mode", "direct", "--temperature", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(after, abs=1e-3)
    _, (_, table, _) = told("stands still", passes=1, follow=0.0, pull=1.0)
    assert table > 0.1
