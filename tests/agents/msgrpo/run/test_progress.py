"""What a training shows while it runs: the table in the terminal, a line for each iteration, and sample episodes."""

import re
from dataclasses import replace

import pytest

from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.run.evaluating import EvaluationResult, without_success
from agents.msgrpo.run.reporting import RunLog
from tests.agents.msgrpo import runs

METRICS = {"success": 0.0, "invalid_rate": 0.0, "entropy": 1.5, "grad_norm": 0.1, "seconds": 2.0}
SHORT = replace(runs.SHORT, iterations=2, **runs.ALONE)


@pytest.fixture
def terminal(monkeypatch, capsys):
    """A terminal of 100 columns; called, it gives what was drawn since, frame by frame."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")

    def frames() -> list[str]:
        text = re.sub(r"\x1b\[[0-9]*[AK]", "\n", capsys.readouterr().err)  # a frame is drawn over
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")
        return ["MS-GRPO iteration" + frame for frame in text.split("MS-GRPO iteration")[1:]]

    return frames


def result(scenario: str, mean: float, success: float = 0.0) -> EvaluationResult:
    return EvaluationResult(scenario, 10, mean, None, None, success, 0.0, 5.0, 0)


def test_the_table_has_a_new_evaluation_at_once_and_the_one_before(terminal):
    with RunLog(MSGRPOConfig(iterations=20), None) as run:
        run.evaluation(0, [result("frozen-lake", 0.935, 0.9)])
        run.iteration({"iteration": 1, "return": 0.5, **METRICS})
        run.evaluation(1, [result("frozen-lake", 0.960, 0.95)])
        last = terminal()[-1]  # no later iteration is needed
    assert "frozen-lake 0.960 (95.0% success), 0.935 after 0" in last


def test_the_trend_is_the_mean_of_the_last_ten_iterations_beside_the_ten_before(terminal):
    with RunLog(MSGRPOConfig(iterations=40), None) as run:
        for number in range(1, 21):
            run.iteration({"iteration": number, "return": number / 10, **METRICS})
    (row,) = [line for line in terminal()[-1].splitlines() if "return" in line]
    assert re.findall(r"\d+\.\d+", row) == ["2.000", "1.550", "0.550"]


def test_a_line_without_a_terminal_has_the_trend_too(capsys):
    with RunLog(MSGRPOConfig(iterations=40), None) as run:
        for number in range(1, 13):
            run.iteration({"iteration": number, "return": number / 10, **METRICS})
    lines = capsys.readouterr().err.splitlines()
    assert "return 0.100, success 0.0%" in lines[0]
    assert "return 1.200 (last 10: 0.750)" in lines[-1]


def test_a_game_without_success_is_not_said_to_have_none(terminal, capsys):
    assert without_success(["matching-pennies", "frozen-lake"]) == {"matching-pennies"}
    with RunLog(MSGRPOConfig(), None, games=["a"], without_success={"a"}) as run:
        run.iteration({"iteration": 1, "return": 0.5, **METRICS})
        run.evaluation(1, [result("a", 0.1), result("b", 0.2)])
    told = "".join(terminal())
    lines = [line for line in told.splitlines() if "evaluation after 1: a" in line]
    assert lines
    assert not any("success" in line for line in lines)
    assert "0.200 (0.0% success)" in told
    assert not re.search(r"│ success", told)
    with RunLog(MSGRPOConfig(), None, games=["a", "b"], without_success={"a"}) as run:
        run.iteration({"iteration": 1, "return": 0.5, **METRICS})
    assert re.search(r"│ success", terminal()[-1])


def test_a_resumed_run_shows_the_whole_table_from_the_start(make_trainer, tmp_path, terminal):
    config = replace(SHORT, out=str(tmp_path / "run"), eval_every=2, eval_episodes=2)
    make_trainer(config).train()
    resumed = make_trainer(replace(config, iterations=3), resume=tmp_path / "run")
    resumed.quiet = False
    resumed.train()
    first = terminal()[0].splitlines()
    assert first[0].strip() == "MS-GRPO iteration 2 of 3"
    assert any("gradient norm" in line for line in first)
    assert any("evaluation after 2: TestCorridor-v0" in line for line in first)


def test_samples_say_what_was_learnt_from_an_episode_and_how_it_ended(make_trainer, tmp_path):
    config = replace(SHORT, iterations=4, out=str(tmp_path), samples_every=1, samples_shown=8, episodes_drawn=3)
    trainer = make_trainer(config)
    trainer.train()
    samples = (tmp_path / "samples.txt").read_text().split("=====")[1:]
    assert len(samples) == 4 * 8
    drawn = sum("drawn for the update" in sample and "not drawn" not in sample for sample in samples)
    assert drawn == sum(metrics["episodes_drawn"] for metrics in trainer.history) > 0
    for sample in samples:
        assert re.search(r"ended after [1-4] rounds: (the game was over|cut off by the step limit)\n", sample)
        steps = [float(x) for x in re.findall(r"reward \S+, advantage (\S+)", sample)]
        assert len(steps) == sample.count("\n= ")
        (mean,) = re.findall(r"player_0: mean advantage (\S+),", sample)
        assert float(mean) == pytest.approx(sum(steps) / len(steps), abs=1e-3)
        assert "cut off" in sample or "successes {'player_0': True}" in sample
    assert any("advantage +0.000, not drawn" not in sample for sample in samples)
