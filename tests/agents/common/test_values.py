"""Values as people write and read them: those of ``--set``, which every command reads alike, and durations."""

import pytest

from agents.common.progress import duration
from agents.common.toml import read_setting, read_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-5", 1e-5),
        ("true", True),
        ("low", "low"),
        ("", ""),
        ("runs/x", "runs/x"),
        ('"true"', "true"),
        ("'a b'", "a b"),
        ('["p", "q"]', ["p", "q"]),
        ("{a = 1, b = [true]}", {"a": 1, "b": [True]}),
        ("stop,temperature", "stop,temperature"),
        # of JSON alone
        ("null", None),
        ('{"a": 1, "b": {"c": null}}', {"a": 1, "b": {"c": None}}),
        # of neither: a date is no value of any setting, and a digest with leading zeros no number
        ("2024-05-01", "2024-05-01"),
        ("[2024-05-01]", "[2024-05-01]"),
        ("0042", "0042"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_a_value_is_toml_or_json_or_a_text(text, value):
    read = read_value(text)
    assert (type(read), read) == (type(value), value)


def test_a_setting_without_a_value_is_refused():
    assert read_setting(" name = a=b ", "NAME=VALUE") == ("name", "a=b")
    for text in ("name", "=3"):
        with pytest.raises(ValueError, match=f"--set takes NAME=VALUE, got '{text}'"):
            read_setting(text, "NAME=VALUE")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (4.24, "4.2 s"), (9.96, "10 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")],
)
def test_a_duration_rounds_and_carries(seconds, text):
    assert duration(seconds) == text
