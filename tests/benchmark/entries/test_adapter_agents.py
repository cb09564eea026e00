"""Agents that are adapters: found by their folders, named, listed, told apart, trained on, entered and asked again."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("peft")

from agents import load_agent
from agents.models import embedded, provider
from agents.models.local.loading.adapters import weights_fingerprint
from agents.models.provider import model_folder
from benchmark.entries.authors import is_larger, is_shipped
from benchmark.entries.validation import check_entry
from tests.agents.adapters.made import make_adapter, settings_in
from tests.benchmark.helpers import lines_of, play_and_submit, write_lines
from textgames.scenarios import SUITES

NAME = "smollm2-test"
WEIGHTS = Path(embedded.__file__).parents[1] / "adapters" / "weights"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder of one adapter, as it would ship; its base is a folder beside it."""
    place = tmp_path_factory.mktemp("shelf")
    shutil.copytree(embedded.FOLDER / "tiny", place / "base")
    make_adapter(place / "weights" / NAME, base=str(place / "base"), scenarios=("frozen-lake",))
    return place


@pytest.fixture(scope="module", autouse=True)
def registered(shelf):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(provider._PROVIDERS, "adapters", embedded.provider_of(shelf / "weights"))
        patch.setattr("benchmark.entries.entry.MIN_EPISODES", 2)
        patch.setattr("benchmark.entries.entry.SUITES", {**SUITES, "paper": ("frozen-lake", "frozen-lake-slippery")})
        yield


def test_only_folders_with_an_adapter_are_agents(tmp_path, shelf):
    (tmp_path / "nothing").mkdir()
    assert embedded.provider_of(tmp_path).models == {}
    assert embedded.provider_of(tmp_path / "missing").models == {}
    assert set(embedded.provider_of(shelf / "weights").models) == {NAME}
    assert set(embedded.ADAPTERS.models) == {file.parent.name for file in WEIGHTS.glob("*/adapter_config.json")}


@pytest.mark.parametrize("folder", sorted(WEIGHTS.glob("*/")), ids=lambda path: path.name)
def test_what_ships_is_small_portable_and_has_a_card(folder):
    assert settings_in(folder)["base_model_name_or_path"] == "smollm2"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 10_500_000
    assert json.loads((folder / "textbench.json").read_text())["scenarios"]
    assert not list(folder.glob("tokenizer*"))  # the base's


def test_lists_doctor_and_misspelt_names_know_it(textbench):
    listed = json.loads(textbench("list", "agents", "--json").out)
    (agent,) = [each for each in listed["agents"] if each["spec"] == NAME]
    assert agent["text"].endswith("ships with textbench; trained on frozen-lake")
    assert not any(each["spec"].startswith("adapters") for each in listed["agents"])  # no form NAME:MODEL
    done = textbench("doctor", "--agent", NAME)
    assert done.code == 0
    assert "<action>" in done.out
    wrong = textbench("run", "--agent", "smollm2-tets", "--scenario", "frozen-lake")
    assert wrong.code == 2
    assert f"did you mean '{NAME}'" in wrong.err
    plan = textbench("run", "--dry-run")  # nobody waits for a large model who hasn't asked for it
    assert plan.code == 0
    assert NAME not in plan.out


def test_its_name_stands_for_its_folder_in_training(shelf):
    assert model_folder(NAME) == str(shelf / "weights" / NAME)
    from agents.msgrpo import MSGRPOConfig
    from agents.msgrpo.__main__ import load
    from agents.msgrpo.learner.prepare import prepare_model

    config = MSGRPOConfig(model=NAME)
    model, tokenizer = load(config)
    trained = prepare_model(model, tokenizer, config)
    assert {name.split(".")[-3] for name, each in trained.named_parameters() if each.requires_grad} == {
        "lora_A", "lora_B",
    }  # fmt: skip


@pytest.fixture(scope="module")
def entry(tmp_path_factory, reference_cache, registered):
    games = ("--scenario", "frozen-lake", "--scenario", "frozen-lake-slippery")
    run = ("--agent", NAME, *games, "--episodes", "2", "--max-tokens", "40")
    return play_and_submit(tmp_path_factory.mktemp("entry"), reference_cache, [NAME], *run) / NAME


@pytest.mark.slow
def test_a_true_entry_is_accepted_and_one_of_other_responses_or_another_adapter_refused(entry, shelf, tmp_path):
    assert is_shipped(NAME)
    assert is_larger(NAME)
    assert not any(map(is_larger, ("tiny", "tiny-msgrpo", "random", "hf:x", "human")))
    assert check_entry(entry).problems == []
    # all that a replay needs is left as it was: the actions are the stored ones, said in other words
    folder = Path(shutil.copytree(entry, tmp_path / NAME))
    records = lines_of(folder)
    for step in (step for record in records for step in record["steps"]):
        step["response"] = "Up. " + step["response"]
    found = set()
    for seconds in range(3):  # which nothing shows to be true, so it has no say in which episodes are asked for again
        for record in records:
            record["measured"]["seconds"] = seconds
        write_lines(folder, records)
        found.add(tuple(check_entry(folder).problems))
    (problems,) = found
    assert any("responses are those of the agent 'smollm2-test', at least 80% should be" in each for each in problems)
    with pytest.MonkeyPatch.context() as patch:
        make_adapter(tmp_path / "weights" / NAME, base=str(shelf / "base"), rank=1, scenarios=("frozen-lake",))
        patch.setitem(provider._PROVIDERS, "adapters", embedded.provider_of(tmp_path / "weights"))
        assert any("model_adapter_weights" in each for each in check_entry(entry).problems)


def test_its_identity_covers_base_weights_and_scale(shelf):
    def identity(**changed: Any) -> dict[str, str]:
        before = config.read_text()
        config.write_text(json.dumps(settings_in(config.parent) | changed))
        try:
            settings = load_agent(NAME).model.settings  # type: ignore[attr-defined]
        finally:
            config.write_text(before)
        return {name: settings[name] for name in ("weights", "adapter_weights", "adapter_settings")}

    config = shelf / "weights" / NAME / "adapter_config.json"
    first, scaled = identity(), identity(lora_alpha=5)
    assert first["weights"] == weights_fingerprint(shelf / "base")
    assert scaled == first | {"adapter_settings": scaled["adapter_settings"]}
    assert scaled != first
    assert identity(base_model_name_or_path="tiny") == first  # the same, elsewhere
