"""Real training with TRL's GRPOTrainer: the tiny model, a few iterations on the CPU."""

import math
from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import EpisodeTask, load_agent, rollout
from agents.common.settings import read_words
from textbench.integrations.trl import StepRollouts, game_environment
from textbench.integrations.trl.__main__ import Train, main, make_trainer

INSTALLED = find_spec("trl") is not None and find_spec("datasets") is not None
pytestmark = [
    pytest.mark.skipif(not INSTALLED, reason="TRL isn't installed: pip install -c constraints.txt -e '.[trl]'"),
    pytest.mark.filterwarnings("ignore"),  # TRL's own calls of what transformers has renamed
    pytest.mark.slow,
]
SMALL = ("--cpu", "--iterations", "2", "--starts", "8", "--group", "8", "--batch", "16", "--seed", "3")


def options(tmp_path: Path, *words: str) -> Namespace:
    return read_words(Train, [*words[:1], *SMALL, "--out", str(tmp_path), *words[1:]], "trl")


def weights(trainer: Any) -> np.ndarray:
    return np.concatenate([w.detach().numpy().ravel() for w in trainer.model.parameters()])


def train(trainer: Any) -> list[dict[str, float]]:
    trainer.train()
    logs = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert len(logs) == trainer.args.max_steps
    assert all(math.isfinite(entry[name]) for entry in logs for name in ("reward", "loss", "grad_norm"))
    return logs


def test_every_step_a_sample(tmp_path):
    words = ("--temperature", "1.5", "--steps-per-episode", "2", "--group", "16", "--batch", "32")
    trainer = make_trainer(options(tmp_path, "steps", *words))
    rollouts = trainer.rollout_func
    assert isinstance(rollouts, StepRollouts)
    batches: list[dict[str, list[Any]]] = []

    def recorded(prompts: Any, trainer: Any) -> dict[str, list[Any]]:
        batches.append(rollouts(prompts, trainer))
        return batches[-1]

    trainer.rollout_func = recorded
    before = weights(trainer)
    logs = train(trainer)
    assert not np.array_equal(before, weights(trainer)), "every group had equal returns: take another seed"
    assert logs[0]["invalid_rate"] >= 0
    assert len(batches) == 2
    episodes = rollouts.episodes
    assert len(episodes) == 16  # 32 samples, 2 of each episode; groups of 16 samples are 8 episodes
    for group in (episodes[:8], episodes[8:]):
        assert len({episode.steps[0].observation for episode in group}) == 1
        assert len({episode.seed for episode in group}) == 8
    assert episodes[0].steps[0].observation != episodes[8].steps[0].observation
    rows = batches[-1]
    known = {(tuple(s.turn.prompt_ids or ()), s.turn.response_ids) for e in episodes for s in e.steps}
    asked = list(zip(rows["prompt_ids"], rows["completion_ids"], strict=True))
    assert all((tuple(prompt), tuple(answer)) in known for prompt, answer in asked)
    assert rows["return_of_episode"] == [r for e in episodes for r in [e.returns["player_0"]] * 2]
    assert max(len(prompt) for prompt in rows["prompt_ids"]) < 60  # a prompt doesn't grow with its episode


def test_an_episode_as_one_conversation(tmp_path):
    trainer = make_trainer(options(tmp_path, "calls", "--max-tokens", "160", "--temperature", "1.5"))
    before = weights(trainer)
    logs = train(trainer)
    assert not np.array_equal(before, weights(trainer)), "every group had equal returns: take another seed"
    assert logs[0]["tools/call_frequency"] > 1
    tasks = [environment.session.task for environment in trainer.environments]
    assert len(tasks) == 16
    assert len({task.seed for task in tasks}) == 16
    for group in (tasks[:8], tasks[8:]):
        assert len({task.layout_seed for task in group}) == 1
    assert tasks[0].layout_seed != tasks[8].layout_seed


def test_self_play_learns_as_one_seat_of_a_group(tmp_path):
    words = "--scenario kuhn-poker --mode direct --opponents self --max-tokens 6 --iterations 1"
    trainer = make_trainer(options(tmp_path, "steps", *words.split()))
    train(trainer)
    rollouts: Any = trainer.rollout_func
    assert {name for episode in rollouts.episodes for name in episode.agents.values()} == {
        rollouts.episodes[0].agents["player_0"]
    }
    seats = [row["seat"] for row in trainer.train_dataset]
    assert sorted(set(seats)) == ["player_0", "player_1"]
    assert trainer.train_dataset[0]["layout_seed"] == trainer.train_dataset[1]["layout_seed"]


def test_what_the_command_leaves_is_played_with_the_prompts_that_it_was_trained_with(tmp_path):
    out = tmp_path / "out"
    assert main(["steps", *SMALL, "--iterations", "1", "--out", str(out)]) == 0
    made, tiny = load_agent(f"hf:{out}"), load_agent("tiny")
    assert made.prompt_map == tiny.prompt_map
    (episode,) = rollout(made, [EpisodeTask.of("frozen-lake", 1)])
    assert all(step.valid for step in episode.steps)


def test_who_is_out_before_being_asked_counts_and_teaches_nothing():
    (episode,) = rollout(load_agent("random"), [EpisodeTask.of("werewolf-5", 1)])
    assert not episode.steps_of("player_3")
    rows = list(StepRollouts(steps_per_episode=2)._samples(episode, "player_3", np.random.default_rng(0), 7))
    assert [row["env_mask"] for row in rows] == [[0], [0]]
    assert [row["return_of_episode"] for row in rows] == [episode.returns["player_3"]] * 2


def test_what_cannot_be_followed_is_said(tmp_path):
    trainer = make_trainer(options(tmp_path, "steps"))
    trainer.rollout_func.steps_per_episode = 3
    with pytest.raises(ValueError, match="multiples of 3"):
        trainer.train()
    trainer = make_trainer(options(tmp_path, "steps"))
    trainer.repetition_penalty = 1.2
    with pytest.raises(ValueError, match=r"repetition_penalty=1\.0, got 1\.2"):
        trainer.train()
    trainer = make_trainer(options(tmp_path, "steps"))
    trainer.train_dataset = trainer.train_dataset.map(lambda row: {"prompt": [{"role": "user", "content": "Hi"}]})
    with pytest.raises(ValueError, match="start_dataset"):
        trainer.train()


@pytest.mark.parametrize(
    ("behind", "action"),
    [
        ("<action>up</action>", "up"),
        ("<action>up</action> or <action>down</action>", "up"),
        ("<action>up<action>down</action>", "up<action>down"),
        ("<action>up", None),
    ],
)
def test_actions_are_read_as_calls_behind_an_example_of_one(behind, action):
    from transformers import AutoTokenizer
    from trl.chat_template_utils import parse_response

    from textbench.integrations.trl import read_actions_as_calls
    from textbench.integrations.trl.__main__ import TINY

    tokenizer = read_actions_as_calls(AutoTokenizer.from_pretrained(TINY))
    environment = game_environment(mode="think")()
    prompt = environment.reset(layout_seed=1)
    assert "<action>NAME</action>" in prompt
    told = f"<think>goal is up</think><plan>up</plan>{behind}<|endoftext|>"
    parsed = parse_response(tokenizer, tokenizer(told)["input_ids"], prefix=tokenizer(prompt)["input_ids"])
    calls = [call["function"] for call in parsed.get("tool_calls", [])]
    assert calls == ([] if action is None else [{"name": "act", "arguments": {"action": action}}])
    assert parsed["reasoning_content"] == "goal is up"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("steps --scenario frozen-lak", "error: unknown scenario 'frozen-lak'"),
        ("steps --batch 8 --group 4 --steps-per-episode 3", "error: an episode gives --steps-per-episode 3 samples of"),
        ("calls --scenario kuhn-poker --opponents self", "error: --opponents self takes steps: with calls"),
    ],
)
def test_command_says_what_is_wrong(tmp_path, words, message, capsys):
    assert main([*words.split(), "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith(message)
