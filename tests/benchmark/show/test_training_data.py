"""Data to train on: every line is a legal answer to what was asked, and a chosen answer is worth more."""

import json
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest

from agents import EpisodeSession, PromptMap, load_agent
from agents.analysis.inspection import inspect_episode
from agents.prompt_texts import prompt_path
from benchmark.runs.folder import RunFolder
from tests.benchmark.helpers import PLAYERS, change_manifest

needs_trl = pytest.mark.skipif(
    find_spec("trl") is None, reason="TRL isn't installed: pip install -c constraints.txt -e '.[trl]'"
)


def lines_of(file):
    return [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]


def exported(textbench, *arguments, what="sft"):
    done = textbench("export", *arguments, f"--{what}", "out.jsonl")
    assert done.code == 0, done.err
    return lines_of("out.jsonl")


def played_again(lines, mode="think"):
    """Play the completions in fresh episodes: every prompt must be the one that is asked, every answer a legal one."""
    episodes = defaultdict(list)
    for line in lines:
        episodes[line["agent"], line["scenario"], line["seed"]].append(line)
    for (_, scenario, seed), own in episodes.items():
        session = EpisodeSession(scenario, seed, opponents=None, prompt_map=PromptMap(mode))
        for line in own:
            assert session.player == line["player"]
            assert line["prompt"] == session.messages
            (message,) = line["completion"]
            assert message["role"] == "assistant"
            outcome = session.respond(message["content"])
            if outcome.valid is not None:  # None: the other players answer before the round is played
                assert outcome.valid
                assert outcome.action == line["action"]
        yield session.episode, own


@pytest.mark.parametrize("mode", ["think", "direct"])
def test_demonstrations_are_the_episodes_as_chats_or_texts(textbench, small_run, mode):
    lines = exported(textbench, small_run, "--mode", mode)
    records = list(RunFolder.open(small_run).records())
    assert len(lines) == sum(len(record.steps) for record in records)
    episodes = list(played_again(lines, mode))
    assert len(episodes) == len(records)
    for episode, own in episodes:
        assert {line["return"] for line in own} == set(episode.returns.values())
    for text, chat in zip(exported(textbench, small_run, "--mode", mode, "--text"), lines, strict=True):
        assert [text[name] for name in ("prompt", "completion")] == [
            chat[name][0]["content"] for name in ("prompt", "completion")
        ]


def test_best_episodes_and_best_actions_are_kept(textbench, small_run):
    everything = exported(textbench, small_run)
    best = exported(textbench, small_run, "--keep", "best")
    assert 0 < len(best) < len(everything)
    for scenario in {line["scenario"] for line in everything}:
        episodes = {
            (line["agent"], line["seed"]): line["return"] for line in everything if line["scenario"] == scenario
        }
        kept = {line["return"] for line in best if line["scenario"] == scenario}
        mean = sum(episodes.values()) / len(episodes)
        equal = len(set(episodes.values())) == 1
        assert kept == {value for value in episodes.values() if value > mean or equal}
    valued = exported(textbench, small_run, "--keep", "value")
    assert 0 < len(valued) < len(everything)
    assert all(line.pop("values") == "exact" and line.pop("value") <= 1 for line in valued)
    assert all(line in everything for line in valued)


@pytest.mark.parametrize("mode", ["think", "direct"])
def test_chosen_is_worth_more_than_rejected(textbench, small_run, mode):
    lines = exported(textbench, small_run, "--mode", mode, what="preferences")
    assert lines
    for line in lines:
        assert line["value_chosen"] > line["value_rejected"]
        chosen, rejected = line["chosen"][0]["content"], line["rejected"][0]["content"]
        assert chosen.endswith(f"<action>{line['better']}</action>")
        assert rejected.endswith(f"<action>{line['action']}</action>")
        assert ("<think>" in chosen) == ("<think>" in rejected) == (mode == "think")
        asked = line["prompt"][-1]["content"]
        listed = asked.rpartition("NAME is one of: ")[2].partition(".")[0].split(", ")
        assert {line["better"], line["action"]} <= set(listed)
    # where the lake isn't slippery, a lost goal is a lost point: the values say so, and the planner plays so
    dry = [line for line in lines if (line["agent"], line["scenario"]) == ("random", "frozen-lake")]
    assert dry
    assert all((line["value_chosen"], line["value_rejected"]) == (1.0, 0.0) for line in dry)


@pytest.mark.parametrize("game", ["kuhn-poker", pytest.param("leduc-poker", marks=pytest.mark.slow)])
def test_no_move_of_an_equilibrium_is_worse_than_another_that_it_mixes(textbench, game):
    """Not even by the error of its solver: who learns one of them alone can be exploited."""
    played = ("run", "--agent", "planner", "--agent", "random", "--scenario", game, "--episodes", 8, "--quiet")
    assert textbench(*played, "--out", "duel").code == 0
    assert len(exported(textbench, "duel", "--agent", "planner", "--keep", "value")) == len(
        exported(textbench, "duel", "--agent", "planner")
    )
    pairs = exported(textbench, "duel", what="preferences")
    assert {pair["agent"] for pair in pairs} == {"random"}
    for seed in range(8):
        for step in inspect_episode(load_agent("planner"), game, seed, samples=1).steps:
            assert step.step.action in step.best


def test_what_was_trained_on_is_not_to_be_evaluated_on(textbench, small_run):
    assert "must be evaluated on others" in textbench("export", small_run, "--sft", "-").err
    apart = ("--scenario", "frozen-lake", "--episodes", 1, "--seed-offset", 100_000, "--out", "apart", "--quiet")
    assert textbench("run", "--agent", "planner", *apart).code == 0
    assert "evaluated" not in textbench("export", "apart", "--sft", "-").err


def test_a_game_without_values_says_so(textbench, suite_with_strangers):
    run = ("run", "--agent", "random", "--scenario", "share-three", "--episodes", 1)
    assert textbench(*run, "--quiet", "--out", "r").code == 0
    for command in (("--preferences", "p.jsonl"), ("--sft", "a.jsonl", "--keep", "value")):
        done = textbench("export", "r", *command)
        assert done.code == 2
        assert "the value of an action isn't known in share-three: choose by return" in done.err


def test_a_player_without_reasoning_is_exported_directly(textbench):
    run = ("run", "--agent", f"{PLAYERS}:Always", "--scenario", "frozen-lake", "--episodes", 2, "--quiet", "--out", "r")
    assert textbench(*run).code == 0
    done = textbench("export", "r", "--sft", "a.jsonl")
    assert (done.code, "add --mode direct" in done.err) == (2, True)
    for _, own in played_again(exported(textbench, "r", "--mode", "direct"), "direct"):
        assert {line["action"] for line in own} == {"right"}


def test_episodes_of_other_rules_are_left_out_and_that_is_said(textbench, small_run):
    lines = (small_run / "episodes.jsonl").read_text().splitlines()
    changed = [json.dumps({**json.loads(line), "observations_digest": "0" * 32}) for line in lines]
    for written, code, said in (
        ([changed[0], *lines[1:]], 0, "1 episodes were left out: "),
        (changed, 2, "nothing to write to a.jsonl"),
    ):
        (small_run / "episodes.jsonl").write_text("\n".join([*written, ""]))
        done = textbench("export", small_run, "--sft", "a.jsonl")
        assert (done.code, said in done.err) == (code, True)


CHAT = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


@needs_trl
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # TRL's own calls of what transformers has renamed
@pytest.mark.parametrize(("what", "form"), [("sft", "chat"), ("preferences", "text")])
def test_trl_trains_on_it(textbench, small_run, what, form):
    import torch
    from datasets import load_dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

    from agents.models.embedded import FOLDER

    written = exported(textbench, small_run, *(["--text"] if form == "text" else []), what=what)
    data = load_dataset("json", data_files="out.jsonl", split="train", cache_dir="cache")
    assert len(data) == len(written)
    model, tokenizer = (kind.from_pretrained(FOLDER / "tiny") for kind in (AutoModelForCausalLM, AutoTokenizer))
    if form == "chat":
        tokenizer.chat_template = CHAT
    before = torch.cat([weight.detach().ravel().clone() for weight in model.parameters()])
    trainer, config = (SFTTrainer, SFTConfig) if what == "sft" else (DPOTrainer, DPOConfig)
    here = {"use_cpu": True, "bf16": False, "report_to": "none"}
    args = config("trained", max_steps=1, per_device_train_batch_size=4, max_length=None, **here)
    made = trainer(model, args=args, train_dataset=data, processing_class=tokenizer)
    made.train()
    assert not torch.equal(before, torch.cat([weight.detach().ravel() for weight in made.model.parameters()]))


@pytest.mark.slow
def test_prompts_are_asked_without_the_prefix_of_responses_which_are_whole(textbench):
    """The tiny model begins with <think> itself, so that going on from it changes nothing."""
    texts = prompt_path("without-clock").read_text() + '\n[prefix]\nthink = "<think>"\n'
    Path("mine.toml").write_text(texts)
    arguments = ("run", "--agent", "tiny", "--scenario", "frozen-lake", "--episodes", "4", "--temperature", "0")
    for more in (("--out", "without"), ("--out", "with", "--prompts", "mine.toml")):
        done = textbench(*arguments, *more)
        assert done.code == 0, done.err
    without, given = (
        [step.turn.response for record in RunFolder.open(Path(name)).records() for step in record.steps]
        for name in ("without", "with")
    )
    assert given == without
    lines = exported(textbench, "with")
    assert [line["completion"] for line in lines] == [line["completion"] for line in exported(textbench, "without")]
    for line in lines:
        assert [message["role"] for message in line["prompt"]] == ["user"]
        assert line["completion"][0]["content"].startswith("<think>")


@pytest.mark.slow
def test_whose_prompts_records_do_not_hold_is_left_out_and_that_is_said(textbench, added_players):
    """Advice isn't on record, and without it an answer to it would be one to another question."""
    named = ("a=told(tiny, planner)", "s=many(tiny)", "r=either(tiny, tiny-lake)")
    agents = [word for one in named for word in ("--agent", one)]
    lake = ("--scenario", "frozen-lake", "--episodes", "1", "--mode", "think")
    assert textbench("run", *agents, *lake, "--out", "wrapped").code == 0
    done = textbench("export", "wrapped", "--sft", "sft.jsonl")
    assert {json.loads(line)["agent"] for line in Path("sft.jsonl").read_text().splitlines()} == {"s", "r"}
    assert "1 episodes were left out: told(tiny, planner) was told more than its records hold" in done.err

    def other_prompts(manifest):
        (card,) = [each for each in manifest["agents"] if each["name"] == "r"]
        card["settings"]["either"]["others"][0]["prompt_map"]["mode"] = "direct"

    change_manifest("wrapped", other_prompts)
    done = textbench("export", "wrapped", "--sft", "sft.jsonl")
    assert "the players in either(tiny, tiny-lake) are asked with different prompts" in done.err
