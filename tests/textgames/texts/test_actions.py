"""The action map: what counts, what doesn't and why, and properties over any text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgames.texts.actions import ActionNames, Unreadable, UnreadableReason, parse_action

NAMES = ActionNames(("left", "down", "right", "up"))
R = UnreadableReason


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("right", "right"),
        (" Right\n", "right"),
        ("<action>up</action>", "up"),
        ("<action>\n UP\t</action>", "up"),
        ("<think>left? no</think><plan>down</plan><action>down</action>", "down"),
        ("<action>down</action> not up, left", "down"),
        ("[left] <action>right</action>", "right"),
        ("<think><action>up</action></think><action>down</action>", "down"),
        ("<think>I could answer <action>left</action></think>\n<action>right</action>", "right"),
        ("left or <action>up</action>?</think><action>down</action>", "down"),  # the prompt has opened it
        ("<think>a</think><action>up</action><think>no</think><action> Down</action>", "down"),
        ("<think>left?</think>\nRight", "right"),
        ("<think>a<think>b</think><action>up</action>", "up"),
    ],
)
def test_read(text, name):
    assert parse_action(text, NAMES) == parse_action(text, tuple(NAMES)) == name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", R.EMPTY),
        (" \n", R.EMPTY),
        ("<action></action>", R.EMPTY),
        ("<action> \n</action>", R.EMPTY),
        ("I go up", R.NO_TAG),
        ("[down] not [up]", R.NO_TAG),
        ("upset", R.NO_TAG),
        ("bright", R.NO_TAG),
        ("left, right", R.NO_TAG),
        ("<ACTION>up</ACTION>", R.NO_TAG),
        ("<action>up", R.UNCLOSED_TAG),
        ("up</action>", R.UNCLOSED_TAG),
        ("<action>up</action", R.UNCLOSED_TAG),
        ("</action>up<action>", R.UNCLOSED_TAG),
        ("<action>up</action><action>up</action>", R.SEVERAL_TAGS),
        ("<think>a</think><action>up</action><action>up</action>", R.SEVERAL_TAGS),
        ("<think>I could answer <action>left</action>", R.UNCLOSED_THINK),
        ("<think>a</think><think>b <action>left</action>", R.UNCLOSED_THINK),
        ("<action>left</action><think>no", R.UNCLOSED_THINK),
        ("<think>cut off at the lim", R.UNCLOSED_THINK),
        ("<think>left?</think>", R.EMPTY),
        ("<think><action>up</action></think>I go up", R.NO_TAG),
        ("<think><action></think>up</action>", R.UNCLOSED_TAG),
        ("<action><action>up</action></action>", R.SEVERAL_TAGS),
        ("<action>up<action>", R.SEVERAL_TAGS),
        ("<action>up</action></action>", R.SEVERAL_TAGS),
        ("</action><action>up</action>", R.SEVERAL_TAGS),
        ("<action>upset</action>", R.UNKNOWN_NAME),
        ("<action>up.</action>", R.UNKNOWN_NAME),
        ("<action>up down</action>", R.UNKNOWN_NAME),
        ("<action>jump</action>", R.UNKNOWN_NAME),
        ("<action>u p</action>", R.UNKNOWN_NAME),
    ],
)
def test_unreadable(text, reason):
    outcome = parse_action(text, NAMES)
    assert isinstance(outcome, Unreadable)
    assert outcome.reason is reason


# texts rich in what the parser looks for
tags = ["<action>", "</action>", "<think>", "</think>"]
pieces = st.sampled_from([*tags, "up", "Down", "left ", "\n", "upset", "<", "action", "ſ", "İ", "\x00"])
texts = st.one_of(st.text(max_size=200), st.lists(st.one_of(pieces, st.text(max_size=3)), max_size=12).map("".join))


@pytest.mark.slow
@given(texts)
@settings(max_examples=400, deadline=None)
def test_never_raises_and_never_invents_a_move(text):
    outcome = parse_action(text, NAMES)
    if isinstance(outcome, Unreadable):
        assert outcome.reason in R
        return
    # an independent reading of the rule: split at the tags, and look at what lies between
    text = text.split("</think>")[-1]
    assert "<think>" not in text
    parts = text.split("<action>")
    inside = text if len(parts) == 1 else parts[1].split("</action>")[0]
    assert text.count("<action>") == text.count("</action>") == len(parts) - 1 <= 1
    assert inside.strip().casefold() == outcome


@pytest.mark.slow
@given(
    st.sampled_from(list(NAMES)), st.text(max_size=50), st.text(max_size=50), st.text(" \n\t", max_size=3), st.randoms()
)
@settings(max_examples=300, deadline=None)
def test_every_name_comes_through_any_text_around_it(name, before, after, pad, random):
    written = "".join(c.upper() if random.random() < 0.5 else c for c in name)  # type: ignore[attr-defined]
    if "action>" in before + after or "think>" in before + after:
        return
    assert parse_action(f"{before}<action>{pad}{written}{pad}</action>{after}", NAMES) == name
    assert parse_action(pad + written + pad, NAMES) == name


@pytest.mark.parametrize("names", [("up", "up"), ("Up",), (" up",), ("",), ("<action>",)])
def test_names_that_could_never_be_read_are_refused(names):
    with pytest.raises(ValueError, match="name"):
        ActionNames(names)
