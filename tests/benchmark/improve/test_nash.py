"""Self-play towards an equilibrium: a model comes close to one, exactly measured, and what has none is refused."""

import json

import pytest

from agents.tiny import Recipe, pretrain, save
from benchmark.cli import main
from benchmark.errors import UsageError
from benchmark.improve.budget import Budget, SpendingMeter
from benchmark.improve.improver import ImprovementTask
from benchmark.improve.methods.nash import improve


def task_of(out, agent, *scenarios, say=lambda line: None):
    out.mkdir(parents=True, exist_ok=True)
    return ImprovementTask(agent, scenarios, SpendingMeter(Budget(), out / "seconds"), 0, out, say, quiet=True)


@pytest.mark.parametrize(
    ("agent", "scenarios", "options", "said"),
    [
        ({"mode": "direct"}, ("kuhn-poker", "nim"), {}, "an equilibrium is of one game, got kuhn-poker, nim"),
        ({}, ("kuhn-poker",), {}, "--mode direct, not 'think'"),
        ({"mode": "direct"}, ("frozen-lake",), {}, "frozen-lake: exploitability is of games for two players"),
        ({"mode": "direct"}, ("kuhn-poker",), {"rate": 0.0}, "rate is above 0.*got rate = 0, pull = 0.2"),
    ],
)
def test_what_has_no_equilibrium_to_be_computed_is_refused(tmp_path, agent, scenarios, options, said):
    with pytest.raises(UsageError, match=said):
        improve(task_of(tmp_path, {"spec": "tiny", **agent}, *scenarios), **options)
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_a_model_comes_close_to_an_equilibrium_and_a_still_magnet_keeps_it_away(workplace, capsys):
    recipe = Recipe.legal_play(["kuhn-poker"], steps=150, hidden_size=32, intermediate_size=64)
    save(pretrain(recipe), workplace / "base")
    base = {"spec": f"hf:{workplace / 'base'}", "mode": "direct"}
    exploitable, options = {}, {"rank": 0, "learning_rate": 3e-3, "passes": 300}
    for name, follow, pull in (("follows", 0.05, 0.2), ("stands still", 0.0, 1.0)):
        lines = []
        made = improve(
            task_of(workplace / name, base, "kuhn-poker", say=lines.append), follow=follow, pull=pull, **options
        )
        assert made["spec"] == f"hf:{workplace / name / 'model'}"
        told = [float(line.split()[1]) for line in lines if line.startswith("exploitability")]
        assert told[0] > 0.4
        assert main(["exploitability", made["spec"], "--mode", "direct", "--temperature", "1", "--json"]) == 0
        exploitable[name] = told[-1]
        assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(told[-1], abs=1e-3)
    assert exploitable["follows"] < 0.05
    assert exploitable["stands still"] > 0.1
