"""Responses under the name of a player that ships are that player's, for its models as for its scripted players."""

import shutil
from pathlib import Path

import pytest

from agents import Turn
from benchmark import evaluate
from benchmark.entries.authors import _sampled_problems, is_shipped
from benchmark.entries.validation import check_entry
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Plan
from tests.benchmark.helpers import change_manifest, lines_of, play_and_submit, write_lines
from textgames.scenarios import SUITES

EPISODES = 2


@pytest.fixture(scope="module", autouse=True)
def short_entries():
    """Of two episodes on one scenario: the tiny model is asked for every response again, on a processor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmark.entries.entry.MIN_EPISODES", EPISODES)
        patch.setattr("benchmark.entries.entry.SUITES", {**SUITES, "paper": ("frozen-lake",)})
        yield


@pytest.fixture(scope="module")
def entries(tmp_path_factory, reference_cache, short_entries):
    """Entries of a model that ships, with another temperature than its own, of the planner, and of random."""
    agents = ("--agent", "tiny", "--agent", "planner", "--agent", "random", "--scenario", "frozen-lake")
    names, more = ("tiny", "planner", "random"), ("--episodes", str(EPISODES), "--temperature", "0.7")
    return play_and_submit(tmp_path_factory.mktemp("authors"), reference_cache, names, *agents, *more)


@pytest.fixture
def entry(entries, tmp_path):
    return lambda name: Path(shutil.copytree(entries / name, tmp_path / name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "planner", "random"])
def test_true_entries_are_accepted(entries, name):
    assert is_shipped(name)
    assert check_entry(entries / name).problems == []


@pytest.mark.parametrize("spec", ["tiny", "tiny-msgrpo-snake"])
def test_the_planners_responses_dont_pass_as_a_models(entry, spec):
    model, planner = entry("tiny"), entry("planner")

    def pose(manifest):
        card = manifest["agents"][0]
        card["settings"].update(model=spec, model_name=spec)
        card.update(name=spec, spec=spec, kind=spec)
        manifest.update(agent=spec)
        manifest["settings"]["agents"] = [spec]
        for row in manifest["matchups"]:
            row["agents"] = [spec]

    change_manifest(model, pose)
    write_lines(model, [{**record, "agents": {"player_0": spec}} for record in lines_of(planner)])
    problems = check_entry(model.rename(model.with_name(spec))).problems
    assert any(f"the agent {spec!r} answers" in problem for problem in problems)
    assert spec == "tiny" or any("the card's model_weights is" in problem for problem in problems)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forge", "place"),
    [
        (lambda steps: steps[-1].update(response=steps[-1]["response"] + " "), "the agent 'tiny' answers"),
        (lambda steps: steps[0].pop("tokens"), "step 0: tokens is [0, 0], the agent 'tiny' has ["),
        ({"model_weights": "0" * 16}, "the card's model_weights is '0000000000000000', that of 'tiny' is '"),
        ({"invented": 1}, "the card's invented is 1, that of 'tiny' is None"),
        ({"model_weights": None}, "the card's model_weights is None, that of 'tiny' is '"),
    ],
)
def test_one_changed_step_or_setting_of_a_model_is_seen(entry, forge, place):
    folder = entry("tiny")
    records = lines_of(folder)
    if callable(forge):
        forge(records[0]["steps"])
        write_lines(folder, records)
    else:
        change_manifest(folder, lambda manifest: put(manifest["agents"][0], forge))
    assert any(place in problem for problem in check_entry(folder).problems)


def put(card, change):
    card["settings"] = {key: it for key, it in (card["settings"] | change).items() if it is not None}


@pytest.mark.parametrize(
    ("name", "options"), [("tiny", {"adapter": "/tmp/elsewhere"}), ("planner", {"depth": 9}), ("random", {"seed": 5})]
)
def test_options_that_would_make_it_another_player_or_another_sample_are_refused(entry, name, options):
    folder = entry(name)
    change_manifest(folder, lambda m: m["settings"].update(agent_options={name: options}))
    (problem,) = check_entry(folder).problems
    assert f"the agent {name!r} has the option {next(iter(options))!r}" in problem


class Differs:
    """Answers as an entry has it, but for the first few responses."""

    name, history_turns = "planner", 0

    def __init__(self, stored, changed):
        self._stored, self._changed = stored, changed

    def act(self, requests):
        turns = zip(requests, self._stored, strict=True)
        return [Turn("other" if place < self._changed else text) for place, (_, text) in enumerate(turns)]


def test_four_of_five_responses_of_a_larger_model_are_enough(tmp_path, workplace):
    """A larger model's sums differ between machines: exactly 80% of an episode's responses are accepted."""
    evaluate("planner", scenarios="bandit", episodes=1, out=tmp_path / "run", quiet=True)
    folder = RunFolder.open(tmp_path / "run")
    plan = Plan.from_manifest(folder.manifest)
    (record,) = folder.records()
    stored = [step.turn.response for step in record.steps]
    assert len(stored) == 25
    assert list(_sampled_problems(folder, plan, Differs(stored, 5))) == []
    (problem,) = _sampled_problems(folder, plan, Differs(stored, 6))
    assert "19 of 25 responses are those of the agent 'planner', at least 80% should be" in problem
