"""The prompt map: texts as they are sent, to the letter, and what is said about a bad prompt file."""

import json
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

import textgames
from agents.prompt import PromptMap, as_text
from agents.prompt_texts import PromptTexts, packaged_prompts
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
    content = f"Reach (1, 1).\n\nYou are at (0, 0).\n\n{LEFT.format(3)}\n\n{form}"
    assert prompts(REQUEST) == (Message("user", content),)


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


def test_the_clock_stands_behind_every_observation_and_nowhere_without_a_limit():
    unlimited = replace(REQUEST, steps_left=None)
    for turns in (0, 2):
        prompt = PromptMap("direct", turns)(REQUEST)
        said = re.findall(r"Moves left .*?: (\d+)\.", "".join(message.content for message in prompt))
        assert said == ["5", "4", "3"][-1 - turns :]
        assert PromptMap("direct", turns)(unlimited) == PromptMap("direct", turns, WITHOUT)(REQUEST)
    assert "left" not in PromptMap("direct", 0, WITHOUT)(REQUEST)[0].content.replace("left, up", "")


def test_where_players_take_turns_the_clock_of_earlier_turns_is_that_of_then():
    prompt = PromptMap("direct", 2)(replace(REQUEST, history_steps_left=(7, 5)))
    assert all(LEFT.format(left) in message.content for message, left in zip(prompt[::2], (7, 5, 3), strict=True))


def test_prompts_that_ship_are_found_by_name(tmp_path, monkeypatch):
    assert set(packaged_prompts()) >= {"default", "subgoals", "without-clock"}
    assert PromptTexts.from_file("default") == PromptTexts.default()
    assert PromptTexts.from_file("without-clock") == WITHOUT
    assert replace(PromptTexts.default(), clock="", reworded=WITHOUT.reworded) == WITHOUT
    assert "$steps_left" in PromptTexts.from_file("subgoals").clock
    with pytest.raises(
        ValueError,
        match=r"'without-clok' \(did you mean 'without-clock'\?\).*by name there are all, brief, brief-coordinates",
    ):
        PromptTexts.from_file("without-clok")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "default").write_text('system = "mine"')  # a file of one's own goes first
    assert PromptTexts.from_file("default").system == "mine"


def test_prompts_in_the_authors_form_have_rules_a_template_and_a_limit_of_words():
    (message,) = PromptMap.from_file("paper")(REQUEST)
    parts = re.split(r"^## (\w+)\n", message.content, flags=re.MULTILINE)
    assert parts[1::2] == ["Rules", "Position", "Answer"]
    assert REQUEST.instructions in parts[2]
    assert REQUEST.observation in parts[4]
    assert re.search(r"at most \d+ words", parts[6])
    assert re.search(r"<think>.*</think>\n<plan>.*</plan>\n<action>NAME</action>", parts[6])


@pytest.mark.parametrize("mode", ["direct", "think"])
def test_brief_prompts_of_a_game_differ_at_their_end_alone(mode):
    first, second = (
        PromptMap.from_file("brief", mode)(replace(REQUEST, observation=f"the {colour} door", steps_left=left))
        for colour, left in (("red", 5), ("blue", 4))
    )
    assert first[-1].content == {"direct": "<action>", "think": "<think>"}[mode]  # what the response begins with
    rest = {one[-2].content.replace(colour, "_") for one, colour in ((first, "red"), (second, "blue"))}
    (text,) = rest  # no clock
    assert text.index("<action>NAME</action>") < text.index("the _ door")


@pytest.mark.parametrize("scenario", ["frozen-lake", "snake", "cliff-walking"])
def test_a_drawn_board_can_be_left_out(scenario):
    game = textgames.SCENARIOS[scenario].game()
    observation = game.observe(game.initial_state(np.random.default_rng(3)), game.players[0])
    request = replace(REQUEST, observation=observation, history=((observation, "left"),))
    coordinates, drawing = observation.split("\nGrid (")
    shown = as_text(PromptMap.from_file("brief-coordinates", "direct", history_turns=1)(request))
    assert shown.count(coordinates) == 2
    assert "Grid (" not in shown
    whole = as_text(PromptMap.from_file("brief", "direct", history_turns=1)(request))
    assert whole.count(drawing) == 2


def test_coordinates_that_are_drawn_too_can_be_left_out():
    """The lake is then prompted for as one that tells no coordinates."""
    told, drawn = (textgames.game_of("TextFrozenLake-v0", coordinates=coordinates) for coordinates in (True, False))
    state = told.initial_state(np.random.default_rng(3))
    texts = [game.observe(state, "player_0") for game in (told, drawn)]
    requests = [replace(REQUEST, observation=text, history=((text, "left"),)) for text in texts]
    asked = [as_text(PromptMap.from_file("brief-grid", "direct", history_turns=1)(request)) for request in requests]
    assert asked[0] == asked[1] == as_text(PromptMap.from_file("brief", "direct", history_turns=1)(requests[1]))
    grid, brief = PromptTexts.from_file("brief-grid"), PromptTexts.from_file("brief")
    assert grid.read_in("direct") != brief.read_in("direct")  # other prompts, in a run's eyes


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
    # results hold the parts that are there alone, and a resume compares them
    assert {part: part in data for part in ("memory", "prefix")} == {
        part: bool(getattr(texts, part)) for part in ("memory", "prefix")
    }
    with pytest.raises(ValueError, match="prompts without opening"):
        PromptTexts.from_data({key: value for key, value in data.items() if key != "opening"})


def test_a_bare_observation_has_no_empty_parts():
    (message,) = PromptMap("direct")(TurnRequest("obs"))
    assert message.content == (
        "obs\n\nChoose one action. Answer with the action alone, in exactly this form:\n<action>NAME</action>\n"
        "NAME is one of: the actions of the game. Write nothing else."
    )


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
        ("response = 'x'", "response must be a table"),
        ("[response]\nthink = 1", "response must be a table of texts"),
        ("observation = 'look'", "observation must contain $observation"),
        ("opening = 'Play!'", "opening (or system) must contain $instructions"),
        ("observation = '$observatoin $observation'", "$observatoin (did you mean 'observation'?)"),
        ("system = 'costs $ 5'", "lone dollar sign"),
        ("clock = 'Left: $steps'", "clock has the unknown placeholder $steps"),
        ("opening = '$instructions $observation'", "$observation belongs in observation only"),
        ("system = ", "can't read the prompt file"),
        ('memory = "subgoal"', "$memory shows what stands in the tag that memory names: use both"),
        ('opening = "$instructions $memory"', "$memory shows what stands in the tag that memory names: use both"),
        ("prefix.nope = 'x'", "prefix.nope is of no mode"),
        ("prefix.direct = '$actions'", "without placeholders"),
        ("prefix.direct = '<think> '", "without space"),
        (None, "can't read the prompt file"),
    ],
)
def test_a_bad_prompt_file_is_refused_by_name(tmp_path, text, said):
    file = tmp_path / "bad.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ValueError) as caught:
        PromptTexts.from_file(file)
    assert said in str(caught.value)
    assert "bad.toml" in str(caught.value)


def test_bad_settings():
    with pytest.raises(ValueError, match="unknown mode 'thnik' \\(did you mean 'think'\\?\\); there are think, direct"):
        PromptMap("thnik")
    for turns in (-1, 1.5, True):
        with pytest.raises(ValueError, match="history_turns"):
            PromptMap(history_turns=turns)


def test_the_observation_is_never_read_as_a_template():
    hostile = TurnRequest(observation="$instructions ${actions} $$", instructions="RULES $observation")
    content = PromptMap()(hostile)[0].content
    assert content.startswith("RULES $observation\n\n$instructions ${actions} $$\n\n")


def test_settings_are_plain_and_the_map_travels_between_processes():
    prompt_map = PromptMap("direct", 2)
    assert prompt_map.settings["mode"] == "direct"
    assert prompt_map.settings["texts"]["response"]["think"].startswith("Think first")
    assert pickle.loads(pickle.dumps(prompt_map))(REQUEST) == prompt_map(REQUEST)


REMEMBERS = PromptTexts.default().as_data() | {"observation": "$observation [$memory]", "memory": "subgoal"}


def test_the_memory_is_what_the_player_wrote_last_in_its_tag():
    prompts = PromptMap("direct", texts=PromptTexts(**REMEMBERS))
    assert prompts.turns_read is None  # it may have been written at any time
    assert PromptMap("direct").turns_read == 0

    def shown(*responses):
        history = tuple(("seen", response) for response in responses)
        return prompts(TurnRequest("here", history=history))[0].content.splitlines()[0]

    assert shown() == shown("no tag", "<subgoal>") == "here [nothing yet]"
    assert shown("<subgoal>a </subgoal>", "<switch>KEEP</switch>") == "here [a]"
    assert shown("<subgoal>a</subgoal>", "<subgoal>b</subgoal> <subgoal>two\nlines</subgoal>") == "here [two"


def test_a_turn_of_the_history_shows_what_was_remembered_then():
    history = (("one", "<subgoal>a</subgoal>"), ("two", "<subgoal>b</subgoal>"))
    messages = PromptMap("direct", 2, PromptTexts(**REMEMBERS))(TurnRequest("three", history=history))
    seen = [message.content.splitlines()[0] for message in messages if message.role == "user"]
    assert seen == ["one [nothing yet]", "two [a]", "three [b]"]


PREFIXED = PromptTexts.from_file("prefixed")


def test_a_prefix_is_the_beginning_of_the_response_and_stands_last():
    before = PromptMap("direct")(REQUEST)
    assert PromptMap("direct", texts=PREFIXED)(REQUEST) == (*before, Message("assistant", "<action>"))
    assert PromptMap("think", texts=PREFIXED).prefix == "<think>"
    assert PromptMap("direct").prefix == ""


def test_history_and_complaints_stand_before_the_prefix_and_hold_whole_responses():
    refused = (Refused(Turn("<action>upset</action>"), "unknown_name"),)
    prompt = PromptMap("direct", 1, PREFIXED)(replace(REQUEST, refused=refused))
    roles = [message.role for message in prompt]
    assert roles == ["user", "assistant", "user", "assistant", "user", "assistant"]
    assert [prompt[place].content for place in (1, 3, 5)] == ["no idea", "<action>upset</action>", "<action>"]


def test_prompts_with_another_prefix_are_others():
    assert PREFIXED.read_in("direct") != PromptTexts.default().read_in("direct")
    dollar = replace(PREFIXED, prefix={"direct": "$$5 says <action>"})
    assert PromptMap("direct", texts=dollar).prefix == "$5 says <action>"


def test_a_plain_prompt_goes_on_from_its_prefix_without_a_blank_line():
    prompt = (Message("user", "a"), Message("assistant", "b"), Message("user", "c"), Message("assistant", "<action>"))
    assert as_text(prompt) == "a\n\nb\n\nc<action>"
    assert as_text((Message("system", "a"), Message("user", "b"))) == "a\n\nb"


def test_a_folder_named_default_is_not_the_default_texts(tmp_path, monkeypatch):
    (tmp_path / "default").mkdir()
    monkeypatch.chdir(tmp_path)
    PromptTexts.default.__func__.cache_clear()
    assert PromptTexts.default().response["direct"] == DIRECT.replace("left, up", "$actions")
