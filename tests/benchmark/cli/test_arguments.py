"""Numbers on the command line: the ends of their ranges are accepted, and nothing beyond them."""

from argparse import ArgumentTypeError
from math import inf

import pytest

from benchmark.cli.arguments import real_number, whole_number


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
