"""What a class or function takes as settings, as :func:`textgames.settings.taken_by` reads its signature."""

import math
from typing import Any

import pytest

from textgames.environments.rules import make_game
from textgames.frozen_lake.game import FrozenLake
from textgames.settings import check_number, taken_by


def made(model: str, /, *more: str, size: int = 3, slippery: bool = True) -> None: ...


def open_to_all(model: str, size: int = 3, **options: Any) -> None: ...


class Made:
    def __init__(self, size: int, *, slippery: bool = True) -> None: ...


class Plain: ...


def test_settings_are_the_parameters_that_have_a_name_after_the_first_arguments() -> None:
    assert {name: one.default for name, one in taken_by(made).named.items()} == {"size": 3, "slippery": True}
    assert list(taken_by(open_to_all).named) == ["model", "size"]
    assert list(taken_by(open_to_all, arguments=1).named) == ["size"]
    assert list(taken_by(Made).named) == ["size", "slippery"]
    assert not taken_by(Plain).named


def test_others_are_taken_by_who_takes_any_name() -> None:
    assert taken_by(open_to_all, arguments=1).others
    assert not any(taken_by(one).others for one in (made, Made, Plain))


@pytest.mark.parametrize(
    ("ends", "bad", "accepted"),
    [
        ((0, 1), 10**400, "a number from 0 to 1"),
        ((0, math.inf), math.inf, "a finite number of at least 0"),
        ((-math.inf, 0), math.nan, "a finite number of at most 0"),
        ((-math.inf, math.inf), "1", "a finite number"),
        ((0, math.inf), 10**400, "a finite number of at least 0"),
        ((0, math.inf), None, "a finite number of at least 0"),
    ],
)
def test_what_is_no_number_in_its_range_is_refused(ends: tuple[float, float], bad: object, accepted: str) -> None:
    with pytest.raises(ValueError, match=rf"^scale must be {accepted}, got {bad!r}$"):
        check_number("scale", bad, *ends)
    check_number("scale", 0, *ends)


class Shouting(FrozenLake):
    actions = ("LEFT", "DOWN", "RIGHT", "UP")


def test_a_game_whose_actions_no_response_could_name_is_refused_when_it_is_made() -> None:
    with pytest.raises(ValueError, match=r"action names are lower case.*got 'LEFT'"):
        make_game(Shouting, {})
