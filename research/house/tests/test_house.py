"""What holds a redesign to the code of before tells equal from unequal, and the shortest walk stays short."""

import json
import sys

import pytest

from research.house import gates, walks


def test_a_response_passes_few_functions():
    passed = walks.walk_step()
    assert any(name.endswith(":TextGameEnv.step") for name in passed.names)
    assert passed.files <= 7
    assert passed.functions <= 17, passed.names


def test_a_gate_tells_every_difference_with_its_place(monkeypatch, tmp_path, capsys):
    figures = {"scores": [{"agent": "a", "value": 0.1}, {"agent": "b", "value": 0.2}]}
    monkeypatch.setitem(gates.GATES, "board", lambda: figures)

    def run(what):
        monkeypatch.setattr(sys, "argv", ["gates", what, str(tmp_path / "gates.json"), "--gate", "board"])
        return gates.main()

    assert run("record") == 0
    assert run("check") == 0
    figures["scores"][1]["value"] = 0.2000000000000001
    assert run("check") == 1
    assert "scores[1].value: 0.2 before" in capsys.readouterr().out
    assert json.loads((tmp_path / "gates.json").read_text())["board"]["scores"][1]["value"] == 0.2


def test_all_transcripts_are_held():
    assert len(gates.transcripts()) >= 23


def test_numbers_are_held_to_the_last_bit():
    assert gates.exact(0.1 + 0.2) != gates.exact(0.3)
    assert gates.exact(3) == "3"


@pytest.mark.slow
def test_the_other_walks_arrive():
    for name, arrives in {
        "episode": ":rollout",
        "reward": ":MSGRPOTrainer.iterate",
        "interval": ":read_results",
    }.items():
        passed = walks.WALKS[name]()
        assert any(one.endswith(arrives) for one in passed.names)
        assert passed.files > 10
