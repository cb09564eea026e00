"""Settings: what is wrong with a command line is a sentence, and a number may be either end of its range."""

from typing import Literal

import pytest

from agents.common.progress import duration
from agents.common.settings import Parser, option, part, place, settings, switch
from agents.common.toml import read_setting, read_value


@settings
class Inner:
    """Settings that stand in others."""

    size: int = option(1, "N", "a size", ge=1)
    hidden: int = option(1, "N", "a size", ge=1)


@settings
class Make:
    """Make something."""

    what: Literal["suites", "agents"] | None = place("WHAT", "what", None)
    out: str | None = option(None, "DIR", "where")
    plot: str | None = option(None, "FILE", "where")
    config: str | None = option(None, "FILE", "where")
    keep: Literal["all", "best"] = option("all", "NAME", "which", needs=("--out", "--plot"))
    agents: tuple[str, ...] = option((), "NAME", "who")
    folders: tuple[str, ...] = place("RUN", "folders", ())
    full: bool = switch("all", apart="weights")
    rank: str | None = option(None, "R", "some", apart="weights")
    count: int = option(3, "N", "how many", ge=2, le=5)
    share: float = option(0.5, "X", "how much", gt=0, le=1)
    inner: Inner = part(Inner, ["size"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("agens", "there is no 'agens' (did you mean 'agents'?); accepted: suites, agents"),
        ("--out a --keep bst", "--keep can't be 'bst' (did you mean 'best'?); accepted: all, best"),
        ("--keep best", "--keep changes nothing without --out or --plot"),
        ("--config=a --plot c --config b", "--config takes one value and was given 'a' and 'b': name one"),
        ("--out", "--out takes a value, and none is given"),
        ("--rank 4 --full", "--rank and --full exclude each other"),
        ("--outt a", "there is no option '--outt' (did you mean '--out'?)"),
        ("--hidden 2", "there is no option '--hidden'"),
    ],
)
def test_what_is_wrong_is_one_sentence(words, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        Parser(Make, "textbench make").read(words.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"textbench: {sentence} (see textbench make --help)\n"


@pytest.mark.parametrize(
    ("flag", "accepted", "good", "bad"),
    [
        ("--count", "a whole number from 2 to 5", ("2", "5"), ("1", "6", "2.5", "", "9" * 5000)),
        ("--share", "a number above 0 and at most 1", ("1", "1e-9"), ("0", "1.1", "nan", "one")),
        ("--size", "a whole number of at least 1", ("1", "99"), ("0",)),
    ],
)
def test_a_number_is_in_its_range_and_finite(flag, accepted, good, bad):
    parser = Parser(Make, "textbench make")
    for text in good:
        made = parser.read([flag, text])
        assert float(text) in (made.count, made.share, made.inner.size)
    for text in bad:
        with pytest.raises(ValueError, match=f"{flag} must be {accepted}, got '{text[:50]}"):
            parser.read([f"{flag}={text}"])


def test_what_loses_nothing_is_accepted():
    words = ["agents", "--out", "a", "--keep", "best", "--agent", "x", "--agent", "y", "--out=b"]
    read = Parser(Make, "textbench make").read(words)
    assert (read.what, read.out, read.keep, read.agents) == ("agents", "b", "best", ("x", "y"))
    assert Parser(Make, "textbench make").read(["--plot", "p", "--", "suites"]).keep == "all"


def test_a_value_is_toml_or_json_or_a_text_and_a_setting_without_one_is_refused():
    for text, value in (
        ("1e-5", 1e-5),
        ("true", True),
        ('"true"', "true"),
        ("{a = 1, b = [true]}", {"a": 1, "b": [True]}),
        ('{"a": 1, "b": {"c": null}}', {"a": 1, "b": {"c": None}}),  # of JSON alone
        # of neither: a date is no value of any setting, and a digest with leading zeros no number
        *((text, text) for text in ("", "2024-05-01", "0042", "9" * 5000)),
    ):
        read = read_value(text)
        assert (type(read), read) == (type(value), value)
    assert read_setting(" name = a=b ", "NAME=VALUE") == ("name", "a=b")
    for text in ("name", "=3"):
        with pytest.raises(ValueError, match=f"--set takes NAME=VALUE, got '{text}'"):
            read_setting(text, "NAME=VALUE")


def test_a_duration_rounds_and_carries():
    assert [duration(seconds) for seconds in (4.24, 9.96, 59.6, 7800)] == ["4.2 s", "10 s", "1 min 00 s", "2 h 10 min"]
