"""The adapters that ship with the package."""

from importlib.util import find_spec

import pytest

pytest.importorskip("gguf", reason="gguf isn't installed: pip install -c constraints.txt -e '.[smollm2]'")
pytest.importorskip("torch")

from agents import EpisodeTask, load_agent, rollout
from agents.models.adapters import PROVIDER
from textgames import SCENARIOS, extras


def test_the_lake_ships_with_what_it_was_asked():
    assert "smollm2-lake" in PROVIDER.models
    assert PROVIDER.card is not None
    card = PROVIDER.card("smollm2-lake")
    assert card is not None
    assert card.modes == ("direct",)
    assert card.texts.prefix["direct"] == "<action>"


def test_what_an_adapter_needs_is_one_extra(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "peft" else find_spec(name))
    with pytest.raises((ModuleNotFoundError, ValueError), match=r"smollm2-lake needs peft: pip install .*smollm2"):
        load_agent("smollm2-lake")


@pytest.mark.parametrize(
    ("name", "lakes", "least"),
    [
        pytest.param("smollm2-lake", 12, 9, marks=pytest.mark.slow),
        pytest.param("smollm2-lake-words", 3, 2, marks=pytest.mark.nightly),
    ],
)
def test_the_lake_is_crossed(name, lakes, least):
    """As the documents say: 0.91 and 0.93 of fresh lakes, where blind play gets 0.28. Words take ten times as long."""
    first = SCENARIOS["frozen-lake"].seed(2000)
    tasks = [EpisodeTask.of("frozen-lake", first + k) for k in range(lakes)]
    episodes = list(rollout(load_agent(name), tasks, max_concurrency=32))
    assert all(step.valid for episode in episodes for step in episode.steps)
    assert sum(episode.returns["player_0"] for episode in episodes) >= least


@pytest.mark.nightly
def test_snake_is_played_in_words():
    """As the documents say: 1.75 on fresh episodes, where blind play gets -0.37."""
    first = SCENARIOS["snake"].seed(2000)
    tasks = [EpisodeTask.of("snake", first + k) for k in range(8)]
    episodes = list(rollout(load_agent("smollm2-snake"), tasks, max_concurrency=16))
    steps = [step for episode in episodes for step in episode.steps]
    assert all(step.valid for step in steps)
    assert all("<think>head (" in turn.response for step in steps for turn in step.turns)
    assert sum(episode.returns["player_0"] for episode in episodes) / len(episodes) > 0.8
