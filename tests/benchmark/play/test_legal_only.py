"""``--legal-only``: one protocol by every way of asking for it, never mixed on a board, refused where it can't be."""

import json
from pathlib import Path

import pytest

from benchmark import evaluate
from benchmark.entries.validation import replay_problems
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import read_manifest
from benchmark.runs.plan import Plan

PLAY = ("run", "--scenario", "frozen-lake", "--episodes", "3", "--quiet", "--agent", "tiny", "--agent", "random")
pytest.importorskip("torch")


@pytest.mark.slow
@pytest.mark.parametrize("how", [("--legal-only",), ("--set", "tiny.legal_only=true"), ("--config", "legal.toml")])
def test_every_way_of_asking_is_the_same_protocol(textbench, how):
    Path("legal.toml").write_text("legal_only = true\n")
    done = textbench(*PLAY, "--out", "run", "--json", *how)
    assert done.code == 0, done.err
    scores = json.loads(done.out)["scores"]
    assert {(row["protocol"], row["moves"]) for row in scores} == {("legal-only", "listed")}
    assert {row["agent"]: row["invalid_rate"]["value"] for row in scores} == {"tiny": 0.0, "random": 0.0}
    manifest = read_manifest(Path("run"))
    assert manifest["settings"]["protocol"] == "legal-only"
    cards = {card["name"]: card["settings"].get("legal_only") for card in manifest["agents"]}
    assert cards == {"tiny": True, "random": None}
    assert textbench("resume", "run", "--quiet").code == 0  # with nothing left to play
    if how[0] == "--legal-only":  # a board never mixes it with free answers
        assert textbench(*PLAY, "--out", "free").code == 0
        rows = json.loads(textbench("leaderboard", "run", "free", "--json").out)["scores"]
        played = {(row["protocol"], row["scenario"]) for row in rows}
        assert played == {("legal-only", "frozen-lake (legal-only)"), ("random", "frozen-lake")}


def test_a_forged_answer_is_found_by_replay(textbench):
    assert textbench(*PLAY, "--out", "run", "--protocol", "random", "--set", "tiny.max_tokens=1").code == 0
    folder = RunFolder.open(Path("run"))
    scenario = Plan.from_manifest(folder.manifest).scenarios["frozen-lake"]
    (record, *_) = [one for one in folder.records() if not all(step.valid for step in one.steps)]
    assert not list(replay_problems(record, scenario))
    problems = list(replay_problems(record, scenario._replace(protocol="legal-only")))
    assert problems
    assert all("is no legal answer, and the protocol is legal-only" in problem for problem in problems)


@pytest.mark.slow
def test_from_python():
    results = evaluate({"mine": {"spec": "tiny", "legal_only": True}}, scenarios="frozen-lake", episodes=2, quiet=True)
    assert [row["protocol"] for row in results.leaderboard().scores] == ["legal-only"]
    from agents import LanguageAgentPolicy, PromptMap, load_agent

    policy = LanguageAgentPolicy(load_agent("tiny").model, PromptMap("direct"), legal_only=True)
    with pytest.raises(UsageError, match="plays legal-only and the run does not, which is another protocol"):
        evaluate(policy, scenarios="frozen-lake", episodes=2, quiet=True)
    results = evaluate(policy, scenarios="frozen-lake", episodes=2, legal_only=True, quiet=True)
    assert [row["invalid_rate"]["value"] for row in results.leaderboard().scores] == [0.0]
