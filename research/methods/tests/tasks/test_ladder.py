"""The curriculum: which levels an iteration plays, when it steps up, and that it resumes at its level."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from agents.baselines.random import RandomPlayer
from agents.baselines.search import PlannerPlayer
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.rollouts import Rollouts
from agents.msgrpo.run import health as checks
from agents.msgrpo.tasks import SAMPLERS
from research.methods.tasks.ladder import LadderSampling
from tests.agents.msgrpo.played import iteration_of, play
from textgames import SCENARIOS, TRAINING_SEEDS, known_scenario


def lake(policy: Any = None, **settings: Any) -> Rollouts:
    return iteration_of("frozen-lake", policy, **{"groups": 8, "group_size": 3, **settings})


def played(sampler: LadderSampling, policy: Any, iterations: int) -> list[dict[str, float]]:
    metrics = []
    for number in range(iterations):
        sampler.sample(lake(policy, groups=4, number=number), np.random.default_rng(number))
        metrics.append(sampler.metrics)
    return metrics


def test_groups_are_of_the_level_the_next_one_and_easier_ones():
    sampler = LadderSampling(start=5)
    tasks = sampler.tasks(lake(), np.random.default_rng(0))
    levels = [int(task.scenario.removeprefix("frozen-lake-level-")) for task in tasks]
    assert levels[::3] == levels[1::3] == levels[2::3]  # a group has one
    counted = Counter(levels[::3])
    assert (counted[5], counted[6], sum(count for level, count in counted.items() if level < 5)) == (4, 2, 2)
    for task in tasks:
        scenario, rules = known_scenario(task.scenario), {"format_penalty": 1.0, "invalid_action": "default"}
        assert task.kwargs == {**scenario.kwargs, **rules, "max_steps": scenario.horizon}
        assert task.layout_seed in TRAINING_SEEDS
    for one, plain in zip(tasks, lake().tasks(), strict=True):
        assert (one.seed, one.noise, one.layout_seed) == (plain.seed, plain.noise, plain.layout_seed)


def test_every_game_is_played_at_the_level_and_beside_it():
    """Groups are dealt to games in turn: levels in order would leave the second game at the next level for ever."""
    seen: Counter[str] = Counter()
    for number in range(24):
        made = Rollouts(MSGRPOConfig(groups=2, group_size=2), ["frozen-lake", "taxi"], number, RandomPlayer(), play)
        found = LadderSampling(start=2).tasks(made, np.random.default_rng(number))
        assert [task.scenario.rpartition("-level-")[0] for task in found] == ["frozen-lake"] * 2 + ["taxi"] * 2
        seen.update(task.scenario for task in found)
    assert set(seen) == {f"{game}-level-{level}" for game in ("frozen-lake", "taxi") for level in (1, 2, 3)}


def test_the_first_and_the_last_level_have_no_others():
    first = LadderSampling().tasks(lake(), np.random.default_rng(0))
    last = LadderSampling(start=10).tasks(lake(), np.random.default_rng(0))
    assert {task.scenario for task in first} == {"frozen-lake-level-1", "frozen-lake-level-2"}
    assert "frozen-lake-level-11" not in {task.scenario for task in last}
    alone = LadderSampling(share=0.1).tasks(lake(groups=1), np.random.default_rng(0))
    assert {task.scenario for task in alone} == {"frozen-lake-level-1"}


def test_the_horizon_of_a_run_makes_episodes_no_longer():
    tasks = LadderSampling(start=4).tasks(lake(max_steps=9), np.random.default_rng(0))
    limits = {task.scenario: task.kwargs["max_steps"] for task in tasks}
    assert limits["frozen-lake-level-4"] == 9  # its own is 10
    assert max(limits.values()) == 9


def test_it_steps_up_where_half_is_kept_and_only_there():
    good = played(LadderSampling(window=2), PlannerPlayer(), 7)
    assert [row["ladder_level"] for row in good] == [1, 1, 2, 2, 3, 3, 4]
    assert all(row["ladder_kept"] == pytest.approx(1.0, abs=0.02) for row in good)
    bad = played(LadderSampling(window=2), None, 5)
    assert {row["ladder_level"] for row in bad} == {1}
    assert all(row["ladder_kept"] < 0 for row in bad)


def test_penalties_for_the_form_say_nothing_of_the_level():
    sampler = LadderSampling()

    class Mumbling(PlannerPlayer):
        def act(self, requests: Any) -> Any:
            return [turn if number else type(turn)("hm") for number, turn in enumerate(super().act(requests))]

    trajectories = lake(Mumbling(), groups=1, group_size=4).play(
        LadderSampling().tasks(lake(groups=1, group_size=4), np.random.default_rng(0))
    )
    invalid = [each for each in trajectories if not each.valid.all()]
    assert invalid
    kept = [sampler.share_kept(each) for each in invalid]
    assert all(share is not None and share >= -1.5 for share in kept)  # a return of 0 or 1, whatever was charged


def test_what_it_has_learnt_is_carried_over():
    whole = LadderSampling(window=3)
    first = played(whole, PlannerPlayer(), 4)
    again = LadderSampling(window=3)
    again.load_state_dict(whole.state_dict())
    assert played(again, PlannerPlayer(), 4) == played(whole, PlannerPlayer(), 4)
    assert first[-1]["ladder_level"] == 2


@pytest.mark.nightly
def test_a_resumed_run_is_the_same_run(tokenizer, make_llama, prompt_file, tmp_path, monkeypatch):
    settings: dict[str, Any] = {
        "groups": 3,
        "group_size": 2,
        "response_mode": "direct",
        "max_response_tokens": 1,
        "eval_every": 0,
        "samples_every": 0,
        "prompt_file": prompt_file,
        "task_sampling": "ladder",
        "method_settings": {"tasks": {"ladder": {"window": 2}}},
        "max_prompt_tokens": 6000,
    }

    def trainer(iterations: int, out: str) -> MSGRPOTrainer:
        config = MSGRPOConfig(**settings, iterations=iterations, out=str(tmp_path / out))
        return MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "frozen-lake", config, quiet=True)

    # a model of one token keeps nothing; this one is said to keep all, so that it is cut in the middle of a window
    monkeypatch.setattr(LadderSampling, "share_kept", lambda self, trajectory: 1.0)
    whole = trainer(5, "whole").train()
    assert [row["ladder_level"] for row in whole] == [1, 1, 2, 2, 3]
    trainer(3, "parts").train()
    resumed = trainer(5, "parts")
    resumed.resume(tmp_path / "parts")
    told = resumed.train()
    for name in ("return", "ladder_level", "ladder_kept", "response_tokens"):
        assert [row[name] for row in told] == [row[name] for row in whole]


def test_other_games_are_refused_before_anything_is_played():
    for name in ("snake", "frozen-lake-big", "TextFrozenLake-v0"):
        with pytest.raises(ConfigError, match=f"'{name}' has 0 of them: choose a scenario of docs/research/ladders.md"):
            LadderSampling().games([name])
    with pytest.raises(ConfigError, match=r"from level 11 on, and 'frozen-lake' has 10"):
        LadderSampling(start=11).tasks(lake(), np.random.default_rng(0))
    with pytest.raises(ConfigError, match=r"\[tasks.ladder\] share must be .* got 0"):
        SAMPLERS.make("ladder", {"share": 0})


def test_all_levels_are_looked_at_before_a_run(monkeypatch):
    """A level's board may be larger than the one that is named, and its prompts longer."""
    games = LadderSampling().games(["frozen-lake", SCENARIOS["sokoban"]])
    assert [one.name for one in games[:10]] == [f"frozen-lake-level-{level}" for level in range(1, 11)]
    assert games[10:] == list(SCENARIOS["sokoban"].levels)
    config = MSGRPOConfig(max_prompt_tokens=600)
    monkeypatch.setattr(checks, "prompt_lengths", lambda task, *_: [task.kwargs["size"] * 50])
    checks.check_prompts(config, games[:5], None, _Reader())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="a prompt has 700 tokens"):
        checks.check_prompts(config, games[:10], None, _Reader())  # type: ignore[arg-type]


class _Reader:
    context_length = None
