"""Dead runs are called dead, before the first update or soon after, and good ones are left alone."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents.common.settings import Parser
from agents.episode import EpisodeTask
from agents.models.local.transformers import TransformersModel
from agents.msgrpo import ConfigError, MSGRPOConfig, UnusableModelError, main, prompts_of_random_play
from agents.msgrpo.credit.batch import Trajectory
from agents.msgrpo.errors import DeadRunError
from agents.msgrpo.run.health import Preflight, Watch, another_start, warm_start
from agents.msgrpo.trajectories import rollout_metrics
from agents.prompt import PromptMap
from benchmark.cli import warmup
from benchmark.cli.settings import Warmup
from tests.agents.msgrpo.hand_made import trajectory

BASE = Path(agents.__file__).parent / "tiny" / "weights" / "tiny"
CONFIG = MSGRPOConfig(scenarios=("frozen-lake",), iterations=200)
GOOD = {
    "return": 0.5, "success": 0.5, "invalid_rate": 0.02, "entropy": 0.1, "grad_norm": 0.2, "skipped": False,
    "optimizer_steps": 1,
}  # fmt: skip


# ---------------------------------------------------------------- real runs


def test_tiny_on_a_game_that_it_does_not_know_is_refused_before_anything_is_written(tiny_config, tmp_path, capsys):
    assert main(["--config", tiny_config(scenarios='["sliding-puzzle"]', max_steps="5")]) == 2
    error = capsys.readouterr().err
    assert "0.0% of" in error
    assert "textbench warmup --model tiny --scenario sliding-puzzle --teacher planner --mode think" in error
    assert "min_valid_share = 0 trains it" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_rate_of_50_is_stopped_and_leaves_the_weights_from_before_it(tiny_config, tmp_path, capsys):
    file = tiny_config(learning_rate="50.0", iterations="12", checkpoint_every="3", eval_every="4", eval_episodes="2")
    assert main(["--config", file, "--quiet"]) == 1
    error, run = capsys.readouterr().err, tmp_path / "run"
    assert "nearly all responses were invalid (before, " in error
    assert "Lower learning_rate (now 50)" in error
    done = int((run / "last").resolve().name.removeprefix("iteration-"))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    valid = [line["invalid_rate"] < 0.5 for line in lines if "evaluation" not in line]
    assert valid == [True] * (done + 1) + [False] * (len(valid) - done - 1)  # what was saved was still playing
    assert (run / "best").resolve() == (run / "last").resolve()
    command = error.strip().rpartition("to go on: python -m agents.msgrpo ")[2]
    assert f"--resume {run} --set learning_rate=5" in command
    sane = ["--set", "learning_rate=1e-5", "--set", f"iterations={done + 2}", "--quiet"]
    assert main([*shlex.split(command), *sane]) == 0


def test_a_prompt_that_grows_while_a_game_is_played_is_found_before_the_training(tiny_config, capsys):
    reader = TransformersModel.from_pretrained(BASE, device="cpu")
    _, prompt = next(prompts_of_random_play(EpisodeTask.of("mastermind", 0), PromptMap("think")))
    (first,) = reader.encode([prompt])
    file = tiny_config(scenarios='["mastermind"]', max_prompt_tokens=str(len(first) + 20))
    assert main(["--config", file]) == 2
    assert f"max_prompt_tokens is {len(first) + 20}: raise it" in capsys.readouterr().err


def test_an_evaluation_says_what_blind_play_and_the_optimum_are(tiny_config, tmp_path, capsys):
    assert main(["--config", tiny_config(iterations="1", eval_every="1", eval_episodes="4")]) == 0
    told = capsys.readouterr().err
    assert "before the first update, 8 episodes: " in told
    evaluation = next(line for line in told.splitlines() if line.startswith("evaluation after 0: frozen-lake"))
    for words in ("(blind play 0.2", "optimum 1.000)", "not surely better than blind play"):  # by four episodes
        assert words in evaluation
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    result = next(line["evaluation"] for line in lines if "evaluation" in line)
    assert 0.2 < result["blind"] < 0.35
    assert (result["reference"], result["reference_kind"]) == (1.0, "optimal")


# ---------------------------------------------------------------- the preflight's judgement

FINE = Preflight(
    64, answers=400, valid=380, groups=8, groups_with_spread=7, groups_paid_apart=6, all_succeeded=False,
    longest_prompt=300,
)  # fmt: skip


@pytest.mark.parametrize(
    ("found", "settings", "words"),
    [
        ({"valid": 60}, {}, "few answers are valid"),  # 15%: a base may learn the form by and by
        ({"answers": 16, "valid": 0}, {}, "few answers are valid"),  # none of so few says little
        ({"groups_with_spread": 0}, {}, "no group has returns that differ"),
        ({"groups_with_spread": 0, "all_succeeded": True}, {}, "nothing to learn"),
        ({"longest_prompt": 1450}, {}, "near max_prompt_tokens = 1500"),
        ({"groups_paid_apart": 0}, {}, "ends in format collapse.* legal_only = true"),
        ({"groups_paid_apart": 0}, {}, "format_penalty = 0 (now 1) with invalid_action = 'random' (now 'default')"),
    ],
)
def test_what_the_preflight_warns_of(found, settings, words):
    (warning,) = FINE._replace(**found).check(replace(CONFIG, **settings))
    assert re.search(words.replace("(now", r"\(now").replace(")", r"\)"), warning)


def test_what_the_preflight_refuses_and_what_it_passes():
    assert FINE.check(CONFIG) == []
    with pytest.raises(UnusableModelError, match="10 of 400 answers"):
        FINE._replace(valid=10).check(CONFIG)  # 2.5%, as the model that thinks has in direct mode
    with pytest.raises(ConfigError, match="a prompt has 1501 tokens, max_prompt_tokens is 1500"):
        FINE._replace(longest_prompt=1501).check(CONFIG)
    (warning,) = FINE._replace(groups_paid_apart=0).check(replace(CONFIG, legal_only=True, format_penalty=0.0))
    assert "legal_only" not in warning
    assert "format_penalty = 0" not in warning


def test_the_preflight_sees_what_the_game_pays_apart_from_the_penalty():
    def part(group: str, rewards: list[float], valid: list[bool]) -> Trajectory:
        return trajectory(rewards, group=group, valid=np.array(valid))

    charged = [part("a", [-0.3, 0.0], [False, True]), part("a", [0.0, 0.0], [True, True])]
    found = Preflight.of(charged, 2, 0.3)
    assert (found.groups_with_spread, found.groups_paid_apart) == (1, 0)
    paid = [*charged, part("b", [0.0, 1.0], [True, True]), part("b", [-0.3, 0.0], [False, True])]
    found = Preflight.of(paid, 4, 0.3)
    assert (found.groups_with_spread, found.groups_paid_apart) == (2, 1)


def test_the_advised_command_asks_as_the_training_does_and_a_tiny_legal_base_is_advised_where_it_can_be_made():
    """The command's own parser reads it, and its settings are the training's."""
    own = {"model": "./a b", "scenarios": ("frozen-lake-twin-1",), "legal_only": True, "prompt_file": "brief"}
    told = shlex.split(warm_start(replace(CONFIG, **own)))
    config = warmup.config_of(Parser(Warmup, "textbench warmup").read(told[2:]))
    assert {name: getattr(config, name) for name in own} == own
    for scenarios, said in (((), "SCENARIO"), (("frozen-lake", "TestButtons-v0"), "frozen-lake TestButtons-v0")):
        assert f"--scenario {said} --teacher random" in warm_start(replace(CONFIG, scenarios=scenarios))
    assert "--model MODEL --scenario frozen-lake --teacher planner" in another_start(CONFIG)
    assert "model = 'tiny-legal'" in another_start(CONFIG)
    for without in ({"scenarios": ("mastermind",)}, {"model": "tiny-legal"}):
        assert "model = 'tiny-legal'" not in another_start(replace(CONFIG, **without))


# ---------------------------------------------------------------- the watch


def watched(iterations: list[dict[str, Any]], config: MSGRPOConfig = CONFIG) -> Watch:
    watch = Watch(config)
    for each in iterations:
        watch.see(each)
        watch.check()
    return watch


@pytest.mark.parametrize("name", ["tiny-frozen-lake-think", "tiny-self-play-kuhn-poker", "tiny-self-play-tic-tac-toe"])
def test_recorded_runs_of_the_recipes_show_no_sign(name):
    """Their curves, with the think recipe's 134 skipped updates and its single gradients 40 times the median."""
    columns = json.loads((Path(__file__).parent / "good_runs.json").read_text())[name]
    iterations = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    watch = watched(iterations, replace(CONFIG, iterations=len(iterations)))
    watch.check_end()
    assert not watch.suspects


@pytest.mark.parametrize(
    ("sign", "count", "words", "spoiled"),
    [
        ({"invalid_rate": 0.6}, 10, r"before, 98.0% were valid\). Lower learning_rate", True),
        ({"entropy": 1e-6, "return": 0.4}, 10, "the model answers the same whatever happens", True),
        ({"grad_norm": 25.0}, 10, "above max_grad_norm_rise = 100 times", True),
        ({"skipped": True, "optimizer_steps": 0, "entropy": 0.0}, 30, "there was nothing to learn from", False),
    ],
)
def test_a_sign_that_stands_stops_the_run(sign, count, words, spoiled):
    before, bad = [GOOD] * 20, {**GOOD, **sign}
    watch = watched(before + [bad] * (count - 1) + [GOOD] + [bad] * (count - 1))  # it has to stand in a row
    assert watch.suspects == spoiled
    watch.see(bad)
    with pytest.raises(DeadRunError, match=words) as error:
        watch.check()
    assert error.value.spoiled == spoiled
    watched(before + [bad] * 100, replace(CONFIG, stop_after=0))


def collapsing(**other: Any) -> list[dict[str, Any]]:
    """A pretrained model's run from its base, as it was recorded: form in a dozen iterations, and "left" for ever."""
    shares = [0.94, 0.9, 0.87, 0.83, 0.75, 0.65, 0.55, 0.45, 0.35, 0.28, 0.2, 0.15, 0.08, 0.03, *[0.01] * 20]
    entropies = [3.4, 3.3, 3.2, 3.0, 2.8, 2.5, 2.2, 1.9, 1.6, 1.3, 1.0, 0.7, 0.5, 0.4, *[0.1] * 20]
    told = {"success": 0.0, "game_return": 0.0, "most_frequent_action": 0.95}
    return [
        {**GOOD, **told, "return": -8 * share, "invalid_rate": share, "entropy": entropy, **other}
        for share, entropy in zip(shares, entropies, strict=True)
    ]


def test_format_collapse_is_called_by_its_name_and_by_what_helps():
    words = (
        r"iteration 18: .*format collapse: for 10 .*from the base again: a warm start \(textbench warmup --model MODEL"
    )
    with pytest.raises(DeadRunError, match=words) as error:  # entropy is half of what it was at the ninth
        watched(collapsing())
    assert not error.value.spoiled
    watched(collapsing(), replace(CONFIG, stop_after=0))
    for ends_well in (
        {"most_frequent_action": 0.4},  # it answers this and that
        {"invalid_rate": 0.0},  # the form was there from the start
        {"entropy": 0.4},  # as many-sided as it began
    ):
        watched(collapsing(**ends_well))
    watched([{**each, "game_return": 0.01 * number} for number, each in enumerate(collapsing())])  # the action is right
    watched([{name: each[name] for name in GOOD} for each in collapsing()])  # runs of before don't tell


def test_metrics_tell_what_the_game_pays_and_how_often_the_first_action_is_chosen():
    valid = [np.array([False, True]), np.array([True, True])]
    parts = [
        trajectory([-0.5, 1.0], actions=("left", "up"), valid=valid[0]),
        trajectory([0.0, 0.0], actions=("up", "down"), valid=valid[1]),
    ]
    metrics = rollout_metrics(parts, np.array([0.5, 0.0]), 0.5)
    assert (metrics["return"], metrics["game_return"]) == (0.25, 0.5)
    assert metrics["most_frequent_action"] == pytest.approx(2 / 3)  # of valid answers: what stood in for one isn't


def test_a_resumed_run_is_dead_without_any_update_and_gets_the_time_to_recover_from_signs():
    vain, bad = {**GOOD, "skipped": True, "optimizer_steps": 0}, {**GOOD, "invalid_rate": 1.0}
    for ends in (Watch(CONFIG, [vain] * 4), watched([vain] * 4)):
        with pytest.raises(DeadRunError, match="all updates of the last 4 iterations were skipped"):
            ends.check_end()
    watched([GOOD, vain]).check_end()
    watch = Watch(CONFIG, [GOOD] * 20 + [bad] * 10)
    for _ in range(9):
        watch.see(bad)
        watch.check()
    watch.see(bad)
    with pytest.raises(DeadRunError):
        watch.check()


def test_what_looks_like_a_sign_and_is_none():
    won = {**GOOD, "return": 1.0, "success": 1.0, "skipped": True, "optimizer_steps": 0, "entropy": 0.0}
    watched([GOOD] * 20 + [won] * 100)  # all is won, and there is nothing left to learn
    sure = {**GOOD, "return": 0.9, "entropy": 1e-6}
    watched([GOOD] * 20 + [sure] * 100)  # sure of itself, and right
    learning = [{**GOOD, "invalid_rate": 0.85 - 0.01 * number} for number in range(80)]
    assert not watched(learning).suspects  # the form is learnt from 15% on
