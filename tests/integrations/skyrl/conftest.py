"""SkyRL 0.3 on Python 3.11, with which pydantic takes no ``typing.TypedDict``: another module's stands for it."""

import typing
from importlib.util import find_spec

import typing_extensions

if find_spec("skyrl") is not None:
    typing.TypedDict = typing_extensions.TypedDict
