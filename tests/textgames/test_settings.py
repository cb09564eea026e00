"""What a class or function takes as settings, as :func:`textgames.settings.taken_by` reads its signature."""

from typing import Any

from textgames.settings import taken_by


def made(model: str, /, *more: str, size: int = 3, slippery: bool = True) -> None: ...


def open_to_all(model: str, size: int = 3, **options: Any) -> None: ...


class Made:
    def __init__(self, size: int, *, slippery: bool = True) -> None: ...


class Plain: ...


def test_settings_are_the_parameters_that_have_a_name_after_the_first_arguments():
    assert {name: one.default for name, one in taken_by(made).named.items()} == {"size": 3, "slippery": True}
    assert list(taken_by(open_to_all).named) == ["model", "size"]
    assert list(taken_by(open_to_all, arguments=1).named) == ["size"]
    assert list(taken_by(Made).named) == ["size", "slippery"]
    assert not taken_by(Plain).named


def test_others_are_taken_by_who_takes_any_name():
    assert taken_by(open_to_all, arguments=1).others
    assert not any(taken_by(one).others for one in (made, Made, Plain))
