"""Command lines: what is wrong with one is a sentence; the ends of numbers are accepted, and nothing beyond them."""

from argparse import ArgumentTypeError
from math import inf

import pytest

from agents.common.arguments import Parser, real_number, whole_number


def test_a_whole_number_may_be_either_end_of_its_range() -> None:
    read = whole_number(2, 5)
    assert [read("2"), read("5")] == [2, 5]
    for text in ("1", "6", "-2", "2.0", "", "two"):
        with pytest.raises(ArgumentTypeError, match=f"must be a whole number from 2 to 5, got '{text}'"):
            read(text)
    with pytest.raises(ArgumentTypeError, match="of at least 1, got '0'"):
        whole_number(1)("0")


def test_a_number_may_be_either_end_of_its_range_and_is_finite() -> None:
    read = real_number(0, 1)
    assert [read("0"), read("1"), read("2.5e-1")] == [0.0, 1.0, 0.25]
    for text in ("-0.1", "1.1", "nan", "inf", "one"):
        with pytest.raises(ArgumentTypeError, match=f"must be a number from 0 to 1, got '{text}'"):
            read(text)
    for most in (inf, 1e300):
        with pytest.raises(ArgumentTypeError, match="got 'inf'"):
            real_number(0, most)("inf")
    assert real_number(0, above=True)("1e-9") == 1e-9
    for text in ("0", "-1", "nan"):
        with pytest.raises(ArgumentTypeError, match=f"must be a number above 0, got '{text}'"):
            real_number(0, above=True)(text)


def parser() -> Parser:
    made = Parser(prog="textbench make")
    made.add_argument("what", nargs="?", choices=("suites", "agents"))
    made.add_argument("--out", metavar="DIR")
    made.add_argument("--plot", metavar="FILE")
    made.add_argument("--config", metavar="FILE")
    made.add_argument("--keep", choices=("all", "best"), default="all")
    made.add_argument("--agent", action="append", default=[])
    either = made.add_mutually_exclusive_group()
    either.add_argument("--full", action="store_true")
    either.add_argument("--rank")
    made.only_with(["--out", "--plot"], "--keep")
    return made


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("agens", "there is no 'agens' (did you mean 'agents'?); accepted: suites, agents"),
        ("--out a --keep bst", "--keep can't be 'bst' (did you mean 'best'?); accepted: all, best"),
        ("--keep best", "--keep changes nothing without --out or --plot"),
        ("--config a --config b", "--config takes one value and was given 'a' and 'b': name one"),
        ("--config=a --plot c --config b", "--config takes one value and was given 'a' and 'b': name one"),
        ("--out", "--out takes a value, and none is given"),
        ("--rank 4 --full", "--rank and --full exclude each other"),
        ("--outt a", "there is no option '--outt' (did you mean '--out'?)"),
    ],
)
def test_what_is_wrong_is_one_sentence(words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"textbench: {sentence} (see textbench make --help)\n"


def test_what_loses_nothing_is_accepted() -> None:
    read = parser().parse_args(["agents", "--out", "a", "--keep", "best", "--agent", "x", "--agent", "y", "--out=b"])
    assert (read.what, read.out, read.keep, read.agent) == ("agents", "b", "best", ["x", "y"])
    assert parser().parse_args(["--plot", "p", "--", "suites"]).keep == "all"
