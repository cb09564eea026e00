"""Self-play towards an equilibrium, computed or learnt from preferences, exactly measured; what has none is refused."""

import json

import numpy as np
import pytest

from agents.analysis.exploitability import behaviour_of, requests_of
from agents.tiny import Recipe, pretrain, save
from benchmark.errors import UsageError
from research.improve.methods import nash
from research.improve.methods.nash import best_by_reward, descended, mirror_step, nash_md, sampled_wins, taught_weights
from research.improve.tests.conftest import task_of
from textgames import game_of
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

CIRCLING = "research.worlds:RockPaperScissors-v0"
CIRCLE = np.array([[0.5, 0, 1], [1, 0.5, 0], [0, 1, 0.5]])  # rock, paper, scissors
OFTEN_ROCK = np.array([0.6, 0.2, 0.2])


@pytest.mark.parametrize(
    ("mode", "scenarios", "options", "said"),
    [
        ("direct", ("kuhn-poker", "nim"), {}, "an equilibrium is of one game, got kuhn-poker, nim"),
        ("think", ("kuhn-poker",), {}, "--mode direct, not 'think'"),
        ("direct", ("frozen-lake",), {}, "frozen-lake: exploitability is defined for games of two players"),
        ("direct", ("kuhn-poker",), {"rate": 0.0}, "rate is above 0.*got rate = 0, pull = 0.05"),
        (
            "direct",
            (CIRCLING,),
            {"preferences": "liked"},
            "one of table, learned, .* got preferences = 'liked'",
        ),
        ("direct", (CIRCLING,), {"preferences": "learned", "pull": 0.5}, r"rate . pull <= 1, got .*, rate = 4 and"),
        ("direct", ("kuhn-poker",), {"preferences": "learned"}, "isn't so in KuhnPoker: --set preferences=table"),
    ],
)
def test_what_can_not_be_computed_or_learnt_is_refused(tmp_path, mode, scenarios, options, said):
    with pytest.raises(UsageError, match=said):
        nash.improve(task_of(tmp_path, {"spec": "tiny", "mode": mode}, *scenarios), **options)
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


def test_what_is_taught_is_the_equilibrium_of_a_table_and_nothing_where_play_never_leads():
    tree = expand(KuhnPoker())
    begun = as_behaviour(tree, uniform_policy(tree))
    table = descended(tree, begun, steps=3000, rate=2.0, pull=0.1, follow=0.02)
    weights = np.array(taught_weights(tree, table))
    assert weights.sum() == pytest.approx(len(tree.information_sets))
    assert 0 <= weights.min() < 1e-3
    parts = np.split(weights, [tree.decisions[0].num_sequences - 1])
    learnt = [normalised(each, np.append(1, part)) for each, part in zip(tree.decisions, parts, strict=True)]
    assert exploitability(tree, tuple(learnt)) == pytest.approx(exploitability(tree, table), abs=1e-6)
    assert exploitability(tree, table) < 0.02


def test_a_mirror_step_is_the_formula():
    tree, rng = expand(KuhnPoker()), np.random.default_rng(1)
    sets = tree.information_sets
    drawn = [[dict(zip(e.actions, rng.dirichlet(np.ones(len(e.actions))), strict=True)) for e in sets] for _ in "ab"]
    policy, magnet = (behaviour_of(tree, each) for each in drawn)
    stepped = as_policy(tree, mirror_step(tree, policy, magnet, rate=0.5, pull=2.0))
    before, held = as_policy(tree, policy), as_policy(tree, magnet)
    for key, chances in stepped.items():
        values = action_values(tree, policy, key)
        shares = {each: (p * held[key][each] * np.exp(0.5 * values[each])) ** 0.5 for each, p in before[key].items()}
        assert chances == pytest.approx({each: share / sum(shares.values()) for each, share in shares.items()})
    free = mirror_step(tree, tuple(own.round() for own in policy), magnet, rate=0.5, pull=0.0)
    assert all(((own == 0) <= (new == 0)).all() for own, new in zip(policy, free, strict=True))


@pytest.mark.slow
def test_a_model_comes_close_to_an_equilibrium_and_a_still_magnet_keeps_it_away(workplace, textbench):
    recipe = Recipe.legal_play(["kuhn-poker"], steps=150, hidden_size=32, intermediate_size=64)
    save(pretrain(recipe), workplace / "base")
    base = {"spec": f"hf:{workplace / 'base'}", "mode": "direct"}

    def told(name, **options):
        """The player, and how exploitable it was, the table is, and it is."""
        made = nash.improve(task_of(workplace / name, base, "kuhn-poker", said=(lines := [])), rank=0, **options)
        return made, [float(line.split()[1]) for line in lines if line.startswith("exploitability")]

    made, (before, _, after) = told("follows", learning_rate=3e-3)
    assert made["spec"] == f"hf:{workplace / 'follows' / 'model'}"
    assert before > 0.4
    assert after < 0.05
    measured = textbench("exploitability", made["spec"], "--mode", "direct", "--temperature", 1, "--json")
    assert json.loads(measured.out)["value"] == pytest.approx(after, abs=1e-3)
    _, (_, table, _) = told("stands still", passes=1, follow=0.0, pull=1.0)
    assert table > 0.1


def test_a_circle_leads_to_uniform_play_a_reward_to_a_corner_and_coins_nowhere():
    how = {"steps": 3000, "rate": 4.0, "pull": 0.05}
    assert nash_md(CIRCLE, OFTEN_ROCK, **how) == pytest.approx([1 / 3] * 3, abs=0.05)
    assert nash_md(CIRCLE, OFTEN_ROCK, **how, follow=0.02) == pytest.approx([1 / 3] * 3, abs=1e-3)
    counts = 4000 * np.outer(OFTEN_ROCK, OFTEN_ROCK) * CIRCLE
    assert best_by_reward(counts, OFTEN_ROCK, pull=0.05) == pytest.approx([0, 1, 0], abs=1e-3)
    coins = np.full((3, 3), 0.5)
    assert nash_md(coins, OFTEN_ROCK, **how) == pytest.approx(OFTEN_ROCK)
    assert best_by_reward(coins, OFTEN_ROCK, pull=0.05) == pytest.approx(OFTEN_ROCK)


def test_a_step_and_a_reward_are_their_formulas():
    beaten = CIRCLE @ OFTEN_ROCK  # 0.5, 0.7 and 0.3, where the policy is the reference
    shares = OFTEN_ROCK * np.exp(2 * beaten)
    assert nash_md(CIRCLE, OFTEN_ROCK, steps=1, rate=2.0, pull=0.1) == pytest.approx(shares / shares.sum())
    mixed = (shares / shares.sum()) ** 0.9 * OFTEN_ROCK**0.1  # the second step has half the rate
    mixed /= mixed.sum()
    shares = mixed * np.exp(CIRCLE @ mixed)
    assert nash_md(CIRCLE, OFTEN_ROCK, steps=2, rate=2.0, pull=0.1) == pytest.approx(shares / shares.sum())
    # 7 wins of 10 and a draw: the odds are 7.5 to 3.5, and their power of 1 / pull is what is played
    odds = (7.5 / 3.5) ** 2
    found = best_by_reward(np.array([[0.0, 7.0], [3.0, 0.0]]), np.array([0.5, 0.5]), pull=0.5)
    assert found == pytest.approx([odds / (1 + odds), 1 / (1 + odds)])


def test_pairs_are_drawn_by_the_model_and_won_by_the_rules():
    game = game_of(CIRCLING)
    chances = [dict(zip(game.actions, OFTEN_ROCK.tolist(), strict=True))] * 2
    for wins in sampled_wins(game, requests_of(expand(game, 1), game, 1), chances, 1000, seed=0):
        met = wins + wins.T
        assert wins == pytest.approx(met * CIRCLE)
        assert met[0, 1] == pytest.approx(2 * 1000 * 0.6 * 0.2, rel=0.15)


@pytest.mark.slow
def test_a_model_learns_preferences_in_a_circle_and_comes_to_play_uniformly(workplace, improve):
    recipe = Recipe.legal_play([CIRCLING], steps=60, examples=2000, hidden_size=32, intermediate_size=64)
    save(pretrain(recipe), workplace / "base")

    def told(kind: str):
        options = {"preferences": kind, "rank": 0, "learning_rate": 0.003, "passes": 100}
        done = improve("nash", "hf:base", "--mode", "direct", "--out", kind, scenario=CIRCLING, **options)
        values = [float(line.split()[1]) for line in done.err.splitlines() if line.startswith("exploitability")]
        return values, done._replace(folder=workplace / kind).changed

    (before, table, after), changed = told("learned")
    assert before > 0.3  # it likes one of the three
    assert max(table, after) < 0.1
    assert changed
    (_, table, _), changed = told("reward")
    assert table > 0.9  # a corner, which another one beats, so the agent stays as it was
    assert not changed
