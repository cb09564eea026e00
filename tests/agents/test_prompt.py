"""The prompt map: texts as they are sent, to the letter, and what is said about a bad prompt file."""

import json
import pickle
import re
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest

import textgames
from agents import EpisodeSession, EpisodeTask, LanguageAgentPolicy, ScriptedModel, rollout
from agents.prompt import PromptMap, as_text
from agents.prompt_texts import PromptTexts, packaged_prompts, wording_of
from agents.turn import Message, Refused, Turn, TurnRequest

REQUEST = TurnRequest(
    observation="You are at (0, 0).",
    instructions="Reach (1, 1).",
    legal_actions=("left", "up"),
    history=(("You are at (9, 9).", "<action>left</action>"), ("You are at (1, 0).", "no idea")),
    steps_left=3,
)
WITHOUT = PromptTexts.from_file("without-clock")
LEFT = "Moves left until the game is cut off, this one included: {}."
THINK = """\
Think first, then choose one action. Answer in exactly this form:
<think>what matters in this position</think>
<plan>the moves you intend</plan>
<action>NAME</action>
NAME is one of: left, up. Write one action tag only and nothing after it."""
DIRECT = """\
Choose one action. Answer with the action alone, in exactly this form:
<action>NAME</action>
NAME is one of: left, up. Write nothing else."""


@pytest.mark.parametrize(("prompts", "form"), [(PromptMap(), THINK), (PromptMap("direct"), DIRECT)])
def test_think_is_the_default_and_history_is_off(prompts, form):
    asked, clock = "Reach (1, 1).\n\nYou are at (0, 0).\n\n{}" + form, f"{LEFT.format(3)}\n\n"
    assert prompts(REQUEST) == (Message("user", asked.format(clock)),)
    unlimited = prompts(replace(REQUEST, steps_left=None))  # without a limit there is no clock
    assert unlimited == replace(prompts, texts=WITHOUT)(REQUEST) == (Message("user", asked.format("")),)


def test_history_comes_as_chat_turns_oldest_first():
    last = Message("user", f"You are at (0, 0).\n\n{LEFT.format(3)}\n\n{THINK}")
    turns = (
        Message("user", f"Reach (1, 1).\n\nYou are at (9, 9).\n\n{LEFT.format(5)}"),
        Message("assistant", "<action>left</action>"),
        Message("user", f"You are at (1, 0).\n\n{LEFT.format(4)}"),
        Message("assistant", "no idea"),
    )
    for count in (2, 9, None):
        assert PromptMap(history_turns=count)(REQUEST) == (*turns, last)
    assert PromptMap(history_turns=1)(REQUEST) == (
        Message("user", f"Reach (1, 1).\n\nYou are at (1, 0).\n\n{LEFT.format(4)}"),
        Message("assistant", "no idea"),
        last,
    )


def test_where_players_take_turns_the_clock_of_earlier_turns_is_that_of_then():
    prompt = PromptMap("direct", 2)(replace(REQUEST, history_steps_left=(7, 5)))
    assert all(LEFT.format(left) in message.content for message, left in zip(prompt[::2], (7, 5, 3), strict=True))


def test_prompts_that_ship_are_found_by_name(tmp_path, monkeypatch):
    assert set(packaged_prompts()) >= {"default", "subgoals", "without-clock"}
    assert replace(PromptTexts.default(), clock="", reworded=WITHOUT.reworded) == WITHOUT
    assert "$steps_left" in PromptTexts.from_file("subgoals").clock
    ships = r"'without-clok' \(did you mean 'without-clock'\?\).*by name there are all, brief, brief-coordinates"
    with pytest.raises(ValueError, match=ships):
        PromptTexts.from_file("without-clok")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "default").write_text('system = "mine"')  # a file of one's own goes first
    PromptTexts.default.__func__.cache_clear()
    assert (PromptTexts.from_file("default").system, PromptTexts.default().system) == ("mine", "")


@pytest.mark.parametrize("scenario", ["frozen-lake", "snake", "cliff-walking"])
def test_a_drawn_board_can_be_left_out(scenario):
    game = textgames.SCENARIOS[scenario].game()
    observation = game.observe(game.initial_state(np.random.default_rng(3)), game.players[0])
    request = replace(REQUEST, observation=observation, history=((observation, "left"),))
    coordinates, drawing = observation.split("\nGrid (")
    for prompts, coordinated, drawn in (("brief-coordinates", 2, 0), ("brief", 2, 2)):
        shown = as_text(PromptMap.from_file(prompts, "direct", history_turns=1)(request))
        assert (shown.count(coordinates), shown.count(drawing)) == (coordinated, drawn)
        assert LEFT[:10] not in shown  # no clock


def test_coordinates_that_are_drawn_too_can_be_left_out():
    """The lake is then prompted for as one that tells no coordinates."""
    told, drawn = (textgames.game_of("TextFrozenLake-v0", coordinates=coordinates) for coordinates in (True, False))
    state = told.initial_state(np.random.default_rng(3))
    texts = [game.observe(state, "player_0") for game in (told, drawn)]
    requests = [replace(REQUEST, observation=text, history=((text, "left"),)) for text in texts]
    asked = [as_text(PromptMap.from_file("brief-grid", "direct", history_turns=1)(request)) for request in requests]
    assert asked[0] == asked[1] == as_text(PromptMap.from_file("brief", "direct", history_turns=1)(requests[1]))


def test_rules_that_were_reworded_are_told_as_they_were():
    (today, then), *_ = WITHOUT.reworded.items()
    request = TurnRequest("the board", f"Rules: {today}", ("left",))
    assert then in as_text(PromptMap(texts=WITHOUT)(request))
    assert today in as_text(PromptMap()(request))
    told = textgames.game_of("TextFrozenLake-v0", is_slippery=True).instructions("player_0")
    assert today in told, "what no game says any more needn't be reworded"


@pytest.mark.parametrize("name", packaged_prompts())
def test_texts_are_read_back_from_their_data(name):
    texts = PromptTexts.from_file(name)
    data = texts.as_data()
    assert PromptTexts.from_data(json.loads(json.dumps(data))) == texts
    for part in ("memory", "prefix"):  # results hold the parts that are there alone, and a resume compares them
        assert (part in data) == bool(getattr(texts, part))
    with pytest.raises(ValueError, match="prompts without opening"):
        PromptTexts.from_data({key: value for key, value in data.items() if key != "opening"})


def test_texts_from_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'system = "You are $player."\nobservation = "Left: $steps_left. $observation"\n'
        '[response]\nshout = """\nCosts $$5 {not a placeholder}: $actions"""\n'
    )
    prompt = PromptMap.from_file(file, "shout", history_turns=1)(REQUEST)
    assert prompt == (
        Message("system", "You are player_0."),
        Message("user", "Reach (1, 1).\n\nLeft: 4. You are at (1, 0)."),
        Message("assistant", "no idea"),
        Message("user", "Left: 3. You are at (0, 0).\n\nCosts $5 {not a placeholder}: left, up"),
    )
    # what the file leaves out stays as it was
    assert PromptMap.from_file(file, "direct")(REQUEST)[-1].content.endswith(DIRECT)
    unlimited = PromptMap.from_file(file)(TurnRequest("o"))
    assert "Left: unlimited. o" in unlimited[-1].content


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sytem = 'x'", "unknown key 'sytem' (did you mean 'system'?)"),
        ("system = 3", "system must be a text, got 3"),
        ("[response]\nthink = 1", "response must be a table of texts"),
        ("observation = 'look'", "observation must contain $observation"),
        ("observation = '$observatoin $observation'", "$observatoin (did you mean 'observation'?)"),
        ("system = 'costs $ 5'", "lone dollar sign"),
        ("opening = '$instructions $observation'", "$observation belongs in observation only"),
        ("system = ", "Invalid value"),
        ('memory = "subgoal"', "$memory shows what stands in the tag that memory names: use both"),
        ("prefix.nope = 'x'", "prefix.nope is of no mode"),
        ("prefix.direct = '$actions'", "without placeholders"),
        ("prefix.direct = '<think> '", "without space"),
        ("[wordings.a.response]\nx = 'x'", "wordings.a has the modes think, direct, x where the file has think"),
        ("[wordings.a.prefix]\nthink = '<think>'", "wordings.a has prefix ="),
        ("[wordings.a]\nopenning = 'x'", "wordings.a: unknown key 'openning' (did you mean 'opening'?)"),
        ("wordings = 'all'", "wordings must be a table of tables"),
    ],
)
def test_a_bad_prompt_file_is_refused_by_name(tmp_path, text, said):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"bad\.toml.*{re.escape(said)}"):
        PromptTexts.from_file(file)


def test_bad_settings():
    with pytest.raises(ValueError, match=r"unknown mode 'thnik' \(did you mean 'think'\?\); there are think, direct"):
        PromptMap("thnik")
    for history in (-1, True):
        with pytest.raises(ValueError, match="history_turns"):
            PromptMap("think", history)


def test_the_observation_is_never_read_as_a_template():
    hostile = TurnRequest(observation="$instructions ${actions} $$", instructions="RULES $observation")
    content = pickle.loads(pickle.dumps(PromptMap()))(hostile)[0].content
    assert content.startswith("RULES $observation\n\n$instructions ${actions} $$\n\n")


REMEMBERS = PromptTexts.default().as_data() | {"observation": "$observation [$memory]", "memory": "subgoal"}


def test_the_memory_is_what_the_player_wrote_last_in_its_tag():
    texts = PromptTexts(**REMEMBERS)
    assert PromptMap("direct", texts=texts).turns_read is None  # it may have been written at any time
    assert PromptMap("direct").turns_read == 0

    def shown(*responses, turns=0):
        messages = PromptMap("direct", turns, texts)(TurnRequest("here", history=tuple(("seen", r) for r in responses)))
        return [message.content.splitlines()[0] for message in messages if message.role == "user"]

    assert shown() == shown("no tag", "<subgoal>") == ["here [nothing yet]"]
    assert shown("<subgoal>a </subgoal>", "<switch>KEEP</switch>") == ["here [a]"]
    assert shown("<subgoal>a</subgoal>", "<subgoal>b</subgoal> <subgoal>two\nlines</subgoal>") == ["here [two"]
    # a turn of the history shows what was remembered then
    assert shown("<subgoal>a</subgoal>", "b", turns=2) == ["seen [nothing yet]", "seen [a]", "here [a]"]


PREFIXED = PromptTexts.from_file("prefixed")


def test_a_prefix_is_the_beginning_of_the_response_and_stands_last():
    before = PromptMap("direct")(REQUEST)
    asked = PromptMap("direct", texts=PREFIXED)(REQUEST)
    assert asked == (*before, Message("assistant", "<action>"))
    assert as_text(asked) == as_text(before) + "<action>"  # without a blank line
    assert PromptMap("think", texts=PREFIXED).prefix == "<think>"
    assert PromptMap("direct").prefix == ""
    dollar = replace(PREFIXED, prefix={"direct": "$$5 says <action>"})
    assert PromptMap("direct", texts=dollar).prefix == "$5 says <action>"
    assert PREFIXED.read_in("direct") != PromptTexts.default().read_in("direct")  # other prompts, in a run's eyes


def test_history_and_complaints_stand_before_the_prefix_and_hold_whole_responses():
    refused = (Refused(Turn("<action>upset</action>"), "unknown_name"),)
    prompt = PromptMap("direct", 1, PREFIXED)(replace(REQUEST, refused=refused))
    roles = [message.role for message in prompt]
    assert roles == ["user", "assistant", "user", "assistant", "user", "assistant"]
    assert [prompt[place].content for place in (1, 3, 5)] == ["no idea", "<action>upset</action>", "<action>"]


ALL = PromptTexts.from_file("all")
NAMES = tuple(ALL.wordings)


def flat(texts: PromptTexts) -> dict[str, str]:
    """``{part: text}`` of all texts, with the tables' entries as parts of their own."""
    parts: dict[str, str] = {}
    for name in {one.name for one in fields(texts)} - {"wordings"}:
        part = getattr(texts, name)
        parts |= {name: part} if isinstance(part, str) else {f"{name}.{key}": text for key, text in part.items()}
    return parts


def test_there_are_seven_different_ones_and_the_first_is_the_default():
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


def test_consecutive_seeds_have_every_wording_as_often():
    for start in (0, 12_345):
        counts = Counter(wording_of(seed, NAMES) for seed in range(start, start + 120))
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
