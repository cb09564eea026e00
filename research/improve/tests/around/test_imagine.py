"""``imagine(A, B)``: a true model of the world helps who heeds it, a false one doesn't; and what is measured."""

import json
import re
from collections.abc import Sequence

import numpy as np
import pytest

from agents import load_agent
from agents.analysis.world_model import world_fidelity
from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.turn import Policy, Turn, TurnRequest
from benchmark.cli import main
from research.improve.around.reading import FalseWorld, ImaginePolicy, TrueWorld
from textgames.scenarios import SCENARIOS


class Careful:
    """Answers at random, and otherwise than before where it is told that it would be in a hole."""

    name = "careful"

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [Turn(f"<action>{self.choice(each)}</action>") for each in requests]  # type: ignore[arg-type]

    def choice(self, request: TurnRequest) -> str:
        drowned, fine = [], []
        for part in request.observation.split("If you answer ")[1:]:
            action = part.partition(",")[0]
            player, holes = re.search(r"Player: (.*)", part), re.search(r"Holes: (.*)", part)
            (drowned if player and holes and player[1] in holes[1] else fine).append(action)
        left = [each for each in request.legal_actions if each not in drowned] or list(request.legal_actions)
        return fine[-1] if fine else str(np.random.default_rng(request.seed).choice(left))


def drowned(policy: Policy) -> float:
    """The share of the episodes that end in a hole."""
    played = rollout(policy, [EpisodeTask.of("frozen-lake", seed) for seed in range(120)])
    return float(np.mean([episode.terminated and not all(episode.successes.values()) for episode in played]))


@pytest.mark.slow
def test_a_true_world_model_keeps_a_player_out_of_the_holes_and_a_false_one_does_not():
    alone = drowned(load_agent("random"))
    assert alone > 0.4
    assert drowned(ImaginePolicy(Careful(), TrueWorld(), revisions=6)) == 0.0
    assert drowned(ImaginePolicy(Careful(), FalseWorld(), revisions=6)) >= alone - 0.15


def test_what_the_two_are_asked():
    asked = list[str]()

    class Says:
        def __init__(self, name: str, *answers: str) -> None:
            self.name, self.answers = name, list(answers)

        def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
            asked.extend(each.observation for each in requests)  # type: ignore[union-attr]
            return [Turn(self.answers.pop(0)) for _ in requests]

    player, world = Says("a", "<action>up</action>", "<action>down</action>"), Says("b", "a wall")
    (turn,) = ImaginePolicy(player, world).act([TurnRequest("where", legal_actions=("up", "down"))])
    assert turn.response == "<action>down</action>"
    assert asked == [
        "where",
        "where\n\nThe player answers: up\nWhat is shown next?",
        "where\n\nIf you answer up, this is what you will see:\na wall\nNow answer.",
    ]
    for answers in (("?",), ("<action>up</action>", "?")):  # what can't be read is neither imagined nor played instead
        (turn,) = ImaginePolicy(Says("a", *answers), Says("b", "x")).act([TurnRequest("w", legal_actions=("up",))])
        assert turn.response == answers[0]


def test_what_is_measured_of_a_world_model():
    true = world_fidelity(TrueWorld(), SCENARIOS["frozen-lake-slippery"], starts=6, samples=40)
    assert true.possible == (1.0, None, None)
    assert 0.3 < true.probability.value < true.attainable.value < 0.7  # three directions, some of them walls
    assert true.distance.value < 0.12
    false = world_fidelity(FalseWorld(), SCENARIOS["frozen-lake"], starts=6, samples=8)
    assert false.possible.high < 0.6
    assert false.attainable == (1.0, None, None)
    assert false.distance.low > 0.4
    nothing = world_fidelity(Careful(), SCENARIOS["frozen-lake"], starts=3)  # a move is no prediction
    assert nothing.possible.value == 0


@pytest.mark.parametrize("scenario", ["kuhn-poker", "mastermind"])
def test_games_that_do_not_tell_are_refused(scenario):
    with pytest.raises(ValueError, match=scenario):
        world_fidelity(TrueWorld(), SCENARIOS[scenario], starts=2)


def test_the_command_measures_a_world_model(capsys):
    from benchmark.cli import main

    world = "research.improve.around.reading:TrueWorld"
    asked = ["inspect", world, "--scenario", "cliff-walking", "--world-model", "--starts", "2", "--samples", "1"]
    assert main(asked) == 0
    assert re.search(r"predictions that can come about +1\.000\n", capsys.readouterr().out)
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["probability"] == {"value": 1.0, "low": None, "high": None}


def test_a_player_of_moves_is_no_model_of_the_world():
    with pytest.raises(ValueError, match="planner answers with a move whatever it is asked"):
        world_fidelity(load_agent("planner"), SCENARIOS["frozen-lake"])


@pytest.mark.parametrize("world", ["TrueWorld", "FalseWorld"])
@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("prisoners-dilemma", "whose players answer at the same time"),
        ("word-guess", "which doesn't list its actions"),
        ("kuhn-poker", "can't tell the whole state from an observation"),
    ],
)
def test_a_game_that_they_cannot_read_is_refused_before_it_is_played(capsys, tmp_path, world, scenario, reason):
    agent = f"imagine(random, research.improve.around.reading:{world})"
    out = tmp_path / "run"
    assert main(["run", "--agent", f"i={agent}", "--scenario", scenario, "--episodes", "2", "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"textbench: agent 'i' on {scenario}: ")
    assert reason in told
    assert told.count("\n") == 1
    assert not out.exists()
