"""Dead runs are called dead, before the first update or soon after, and good ones are left alone."""

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import agents
from agents.episode import EpisodeTask
from agents.models.local.transformers import TransformersModel
from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.__main__ import main
from agents.msgrpo.errors import DeadRunError, UnusableModelError
from agents.msgrpo.run.advice import another_start
from agents.msgrpo.run.preflight import Preflight
from agents.msgrpo.run.watch import Watch
from agents.msgrpo.trajectories import first_prompts
from agents.prompt import PromptMap

BASE = Path(agents.__file__).parent / "tiny" / "weights" / "tiny"
CONFIG = MSGRPOConfig(scenarios=("frozen-lake",), iterations=200)
GOOD = {
    "return": 0.5, "success": 0.5, "invalid_rate": 0.02, "entropy": 0.1, "grad_norm": 0.2, "skipped": False,
    "optimizer_steps": 1,
}  # fmt: skip


# ---------------------------------------------------------------- real runs


def test_tiny_on_a_game_that_it_does_not_know_is_refused_before_anything_is_written(
    tiny_config: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", tiny_config(scenarios='["sliding-puzzle"]')]) == 2
    error = capsys.readouterr().err
    assert "0.0% of" in error
    for way_out in ("export --sft", "tiny-legal", "response_mode = 'direct'", "min_valid_share = 0 trains it"):
        assert way_out in error
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_without_a_preflight_a_run_in_which_nothing_can_be_read_still_does_not_end_well(
    tiny_config: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tiny_config(scenarios='["sliding-puzzle"]', preflight_episodes="0", iterations="30", horizon="3")
    assert main(["--config", file, "--quiet"]) == 1
    error = capsys.readouterr().err
    assert "iteration 10: the run is dead" in error
    assert "for 10 iterations nearly all responses were invalid" in error
    assert main(["--config", file, "--quiet", "--set", "iterations=2", "--set", f"out={tmp_path / 'short'}"]) == 1
    assert "all updates of the last 2 iterations were skipped" in capsys.readouterr().err


def test_a_rate_of_50_is_stopped_and_leaves_the_weights_from_before_it(
    tiny_config: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tiny_config(learning_rate="50.0", iterations="12", checkpoint_every="3", eval_every="4", eval_episodes="2")
    assert main(["--config", file, "--quiet"]) == 1
    error = capsys.readouterr().err
    assert "nearly all responses were invalid (before, " in error
    assert "Lower learning_rate (now 50)" in error
    run = tmp_path / "run"
    done = int((run / "last").resolve().name.removeprefix("iteration-"))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    valid = [line["invalid_rate"] < 0.5 for line in lines if "evaluation" not in line]
    assert valid[: done + 1] == [True] * (done + 1)  # what was saved was still playing
    assert not any(valid[done + 1 :])
    assert (run / "best").resolve() == (run / "last").resolve()
    if done == 0:  # at this rate the first update is enough
        base, kept = (TransformersModel.from_pretrained(each, device="cpu").model for each in (BASE, run / "last"))
        assert all(torch.equal(a, b) for a, b in zip(base.parameters(), kept.parameters(), strict=True))
    command = error.strip().rpartition("to go on: python -m agents.msgrpo ")[2]
    assert f"--resume {run} --set learning_rate=5" in command
    sane = ["--set", "learning_rate=1e-5", "--set", f"iterations={done + 2}", "--quiet"]
    assert main([*shlex.split(command), *sane]) == 0


def test_a_prompt_that_grows_while_a_game_is_played_is_found_before_the_training(
    tiny_config: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    reader = TransformersModel.from_pretrained(BASE, device="cpu")
    (first,) = reader.encode(first_prompts(EpisodeTask.of("mastermind", 0), PromptMap("think")))
    file = tiny_config(scenarios='["mastermind"]', max_prompt_tokens=str(len(first) + 20))
    assert main(["--config", file]) == 2
    assert f"max_prompt_tokens is {len(first) + 20}: raise it" in capsys.readouterr().err


def test_an_evaluation_says_what_blind_play_and_the_optimum_are(
    tiny_config: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", tiny_config(iterations="1", eval_every="1", eval_episodes="4")]) == 0
    told = capsys.readouterr().err
    assert "before the first update, 8 episodes: " in told
    evaluation = next(line for line in told.splitlines() if line.startswith("evaluation after 0: frozen-lake"))
    assert "(blind play 0.2" in evaluation
    assert "optimum 1.000)" in evaluation
    assert "not surely better than blind play, which reads nothing" in evaluation  # by four episodes
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    result = next(line["evaluation"] for line in lines if "evaluation" in line)
    assert 0.2 < result["blind"] < 0.35
    assert (result["reference"], result["reference_kind"]) == (1.0, "optimal")


# ---------------------------------------------------------------- the preflight's judgement

FINE = Preflight(64, answers=400, valid=380, groups=8, groups_with_spread=7, all_succeeded=False, longest_prompt=300)


def test_a_base_that_learns_the_form_by_and_by_is_not_refused() -> None:
    assert FINE.check(CONFIG) == []
    some = FINE._replace(valid=60)  # 15%
    assert "few answers are valid" in some.check(CONFIG)[0]
    with pytest.raises(UnusableModelError, match="10 of 400 answers"):
        FINE._replace(valid=10).check(CONFIG)  # 2.5%, as the model that thinks has in direct mode
    assert FINE._replace(valid=10).check(replace(CONFIG, min_valid_share=0.0))
    assert FINE._replace(answers=16, valid=0).check(CONFIG)  # none of so few says little


def test_groups_without_spread_and_long_prompts_are_told() -> None:
    (alike,) = FINE._replace(groups_with_spread=0).check(CONFIG)
    assert "no group has returns that differ" in alike
    (won,) = FINE._replace(groups_with_spread=0, all_succeeded=True).check(CONFIG)
    assert "nothing to learn" in won
    (near,) = FINE._replace(longest_prompt=1450).check(CONFIG)
    assert "near max_prompt_tokens = 1500" in near
    with pytest.raises(ConfigError, match="a prompt has 1501 tokens, max_prompt_tokens is 1500"):
        FINE._replace(longest_prompt=1501).check(CONFIG)


def test_a_tiny_legal_base_is_only_advised_where_it_can_be_made() -> None:
    assert "tiny-legal" in another_start(CONFIG)
    assert "tiny-legal" not in another_start(replace(CONFIG, scenarios=("mastermind",)))
    assert "tiny-legal" not in another_start(replace(CONFIG, model="tiny-legal"))


# ---------------------------------------------------------------- the watch


def watched(iterations: list[dict[str, Any]], config: MSGRPOConfig = CONFIG) -> Watch:
    """A watch that has checked these iterations."""
    watch = Watch(config)
    for each in iterations:
        watch.see(each)
        watch.check()
    return watch


@pytest.mark.parametrize("name", ["tiny-frozen-lake-think", "tiny-self-play-kuhn-poker", "tiny-self-play-tic-tac-toe"])
def test_recorded_runs_of_the_recipes_show_no_sign(name: str) -> None:
    """Their curves, with the think recipe's 134 skipped updates and its single gradients 40 times the median."""
    columns = json.loads((Path(__file__).parent / "good_runs.json").read_text())[name]
    iterations = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    watch = watched(iterations, replace(CONFIG, iterations=len(iterations)))
    watch.check_end(sum(each["skipped"] for each in iterations))
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
def test_a_sign_that_stands_stops_the_run(sign: dict[str, Any], count: int, words: str, spoiled: bool) -> None:
    before, bad = [GOOD] * 20, {**GOOD, **sign}
    watch = watched(before + [bad] * (count - 1) + [GOOD] + [bad] * (count - 1))  # it has to stand in a row
    assert watch.suspects == spoiled
    watch.see(bad)
    with pytest.raises(DeadRunError, match=words) as error:
        watch.check()
    assert error.value.spoiled == spoiled
    watched(before + [bad] * 100, replace(CONFIG, stop_after=0))


def test_what_looks_like_a_sign_and_is_none() -> None:
    won = {**GOOD, "return": 1.0, "success": 1.0, "skipped": True, "optimizer_steps": 0, "entropy": 0.0}
    watched([GOOD] * 20 + [won] * 100)  # all is won, and there is nothing left to learn
    sure = {**GOOD, "return": 0.9, "entropy": 1e-6}
    watched([GOOD] * 20 + [sure] * 100)  # sure of itself, and right
    learning = [{**GOOD, "invalid_rate": 0.85 - 0.01 * number} for number in range(80)]
    assert not watched(learning).suspects  # the form is learnt from 15% on


def test_who_resumes_a_dead_run_with_other_settings_gets_the_time_to_see_them_work() -> None:
    bad = {**GOOD, "invalid_rate": 1.0}
    watch = Watch(CONFIG, [GOOD] * 20 + [bad] * 10)
    watch.check()
    for _ in range(9):
        watch.see(bad)
        watch.check()
    watch.see(bad)
    with pytest.raises(DeadRunError):
        watch.check()
