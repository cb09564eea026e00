"""What holds a redesign to the code of before tells equal from unequal, walks stay short, and mutants can be made."""

import json
import subprocess
import sys

import pytest

from research.house import gates, mutants, walks
from research.house.mutants import Mutant


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


MUTANTS = mutants.read_mutants()
PACKAGES = ("textgames/", "agents/", "agents/msgrpo/", "benchmark/", "textbench/", "research/")


def test_there_are_forty_over_all_packages():
    assert len(MUTANTS) == 40
    assert all(sum(each.file.startswith(package) for each in MUTANTS) > 1 for package in PACKAGES)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_made_in_one_place_and_has_tests(mutant):
    sound = (mutants.ROOT / mutant.file).read_text(encoding="utf-8")
    changed = mutant.applied(sound)
    assert changed != sound
    compile(changed, mutant.file, "exec")
    assert mutant.what.endswith(".")
    assert mutant.tests
    for test in mutant.tests:
        place, _, name = test.partition("::")
        assert (mutants.ROOT / place).exists(), f"there is no {place}"
        assert not name or f"def {name.partition('[')[0]}(" in (mutants.ROOT / place).read_text(encoding="utf-8")


def test_a_mutant_of_moved_code_is_refused():
    with pytest.raises(ValueError, match=r"'moved': its old text occurs 0 times in a\.py, and once is accepted"):
        Mutant("moved", "", "a.py", "x = 1", "x = 2", []).applied("y = 1")


@pytest.mark.slow
def test_the_runner_tells_outcomes_apart_and_goes_on(tmp_path, monkeypatch):
    root, out = tmp_path / "project", tmp_path / "mutants.json"
    root.mkdir()
    (root / "code_of_it.py").write_text("A = 1\nB = 2\n")
    (root / "pytest.ini").write_text("[pytest]\naddopts = -m 'not slow'\nmarkers = slow\n")
    (root / "test_code.py").write_text(
        "import code_of_it\nimport pytest\n\n"
        "@pytest.mark.slow\ndef test_a():\n    assert code_of_it.A == 1\n\n"
        "def test_fails():\n    assert 0\n"
    )
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all of it"]):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=root, check=True)
    monkeypatch.setattr(mutants, "ROOT", root)

    def mutant(name, old, new, test="test_code.py::test_a"):
        return Mutant(name, "", "code_of_it.py", old, new, [test])

    listed = [
        mutant("killed", "A = 1", "A = 2"),
        mutant("survived", "B = 2", "B = 3"),
        mutant("does-not-compile", "A = 1", "A = ("),
        mutant("fails-anyway", "B = 2", "B = 3", "test_code.py::test_fails"),
        mutant("cannot-be-imported", "A = 1", "A = nothing"),
    ]
    found = mutants.try_mutants(listed, 2, out)
    outcomes = ["killed", "survived", "broken", "broken", "broken"]
    assert [found[each.name]["outcome"] for each in listed] == outcomes
    assert found["killed"]["by"] == "test_code.py::test_a"
    assert found["fails-anyway"]["by"] == "test_code.py::test_fails doesn't pass without it"
    monkeypatch.setattr(mutants, "try_mutant", lambda *_: pytest.fail("a result is there"))
    assert mutants.try_mutants(listed, 2, out) == found
