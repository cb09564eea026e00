"""The seven wordings of the default prompts: equal content, and one of them for every seed."""

import re
from collections import Counter
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from agents import EpisodeSession, EpisodeTask, LanguageAgentPolicy, PromptMap, PromptTexts, TurnRequest, rollout
from agents.models.scripted import ScriptedModel
from agents.prompt_texts import wording_of
from textgames import SCENARIOS

ALL = PromptTexts.from_file("all")
NAMES = tuple(ALL.wordings)


def flat(texts: PromptTexts) -> dict[str, str]:
    """``{part: text}`` of all texts, with the tables' entries as parts of their own."""
    parts: dict[str, Any] = {one.name: getattr(texts, one.name) for one in fields(texts) if one.name != "wordings"}
    tables = {name: part for name, part in parts.items() if not isinstance(part, str)}
    single = {name: part for name, part in parts.items() if isinstance(part, str)}
    return single | {f"{name}.{key}": text for name, table in tables.items() for key, text in table.items()}


def test_there_are_seven_and_the_first_is_the_default():
    assert NAMES == ("default", "reordered", "formal", "terse", "example", "markdown", "german")
    assert ALL.wordings["default"] == PromptTexts.default()
    assert len({repr(texts.as_data()) for texts in ALL.wordings.values()}) == 7


@pytest.mark.parametrize("name", NAMES)
def test_a_wording_holds_what_the_default_holds(name):
    own, ours = flat(ALL.wordings[name]), flat(PromptTexts.default())
    assert own.keys() == ours.keys()
    for part, text in ours.items():
        assert bool(own[part]) == bool(text), part
        assert sorted(re.findall(r"\$\w+", own[part])) == sorted(re.findall(r"\$\w+", text)), part
        # the same tags are asked for, opened and closed in the same order; an example has them again
        times = 2 if name == "example" and "response" in part else 1
        assert re.findall(r"</?\w+>", own[part]) == re.findall(r"</?\w+>", text) * times, part


@pytest.mark.slow
def test_the_example_is_an_answer_in_the_form_that_is_asked_for_and_a_move_of_no_game():
    told, answers = ALL.wordings["example"], set()
    for template in (*told.response.values(), *told.open_response.values()):
        form, _, rest = template.partition('For example, in a game whose only action is "ring":\n')
        answer = rest.rpartition("\n")[0]
        assert re.findall(r"</?\w+>", answer) == re.findall(r"</?\w+>", form)
        answers.add(answer)
    for scenario in SCENARIOS.values():
        for one in (scenario, *map(scenario.twin, (1, 2, 3) if scenario.has_twins else ())):
            game = one.game()
            state = game.initial_state(np.random.default_rng(0))
            assert "ring" not in game.actions
            for player in game.to_move(state):
                assert {game.interpret(answer, state, player) for answer in answers} == {None}, one.name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("table", ["response", "open_response"])
def test_every_wording_states_the_rule_of_one_action(name, table):
    texts = getattr(ALL.wordings[name], table)
    think, direct = (re.sub(r"[*`]", "", texts[mode].lower()) for mode in ("think", "direct"))
    assert re.search(
        r"one action tag( only)?(,| and|, and) nothing after it|nur ein action-tag und nichts danach", think
    )
    assert re.search(r"nothing else|sonst nichts", direct)
    assert re.search(r"\bthink|deliberate|denke", think.split("<think>")[0] + think.rpartition(">")[2])


def test_consecutive_seeds_have_every_wording_as_often():
    for start in (0, 1_000_000, 12_345):
        drawn = [wording_of(seed, NAMES) for seed in range(start, start + 120)]
        counts = Counter(drawn)
        assert len(counts) == 7
        assert max(counts.values()) - min(counts.values()) <= 2
    # neither in turn nor by the order in which they are named
    assert len({tuple(wording_of(7 * block + place, NAMES) for place in range(7)) for block in range(20)}) > 15
    assert [wording_of(seed, NAMES[::-1]) for seed in range(50)] == [wording_of(seed, NAMES) for seed in range(50)]


def test_an_episode_is_prompted_in_the_wording_of_its_seed():
    policy = LanguageAgentPolicy(ScriptedModel(["<action>right</action>"] * 400), PromptMap("direct", texts=ALL))
    seen = set()
    for episode in rollout(policy, [EpisodeTask.of("frozen-lake", seed) for seed in range(12)]):
        name = wording_of(episode.seed, NAMES)
        ending = ALL.wordings[name].response["direct"].partition("$")[0]
        assert all(step.turn.prompt[-1].content.count(ending) == 1 for step in episode.steps)
        seen.add(name)
    assert seen == set(NAMES)
    session = EpisodeSession("frozen-lake", 3, prompt_map=PromptMap("direct", texts=ALL))
    assert session.prompt == PromptMap("direct", texts=ALL.of_seed(3))(session.request)
    alone = TurnRequest("a board", "rules", ("up",))  # without a seed, in the texts outside of the wordings
    assert PromptMap(texts=ALL)(alone) == PromptMap()(alone)


def test_ones_own_file_has_wordings_of_its_own(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('opening = "Mine: $instructions"\n[wordings.a]\n[wordings.b]\nclock = "$steps_left to go"\n')
    texts = PromptTexts.from_file(file)
    assert [own.opening for own in texts.wordings.values()] == ["Mine: $instructions"] * 2
    assert [own.clock for own in texts.wordings.values()] == [PromptTexts.default().clock, "$steps_left to go"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[wordings.a.response]\nshort = 'x'", "wordings.a has the modes think, direct, short where the file has"),
        ("[wordings.a.prefix]\nthink = '<think>'", "wordings.a has prefix ="),
        ("[wordings.a.wordings.b]", "wordings.a has wordings of its own"),
        ("[wordings.a]\nopenning = 'x'", r"wordings.a: unknown key 'openning' \(did you mean 'opening'\?\)"),
        ("wordings = 'all'", "wordings must be a table of tables"),
    ],
)
def test_wordings_that_cant_stand_for_each_other_are_refused(tmp_path, written, said):
    (tmp_path / "mine.toml").write_text(written)
    with pytest.raises(ValueError, match=said):
        PromptTexts.from_file(tmp_path / "mine.toml")
