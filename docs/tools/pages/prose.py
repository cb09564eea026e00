"""Docstrings, which are reStructuredText, as Markdown; and what they say of each argument."""

import inspect
import re
from collections.abc import Collection
from textwrap import dedent
from typing import Any

from textgames.settings import explained

_SECTIONS = ("Args", "Raises", "Returns", "Attributes")


def markdown(text: str) -> str:
    """Return a docstring's text as Markdown: literals, references and blocks of code; emphasis and lists are the
    same."""
    blocks = re.split(r"\n\s*\n", text.strip())
    made: list[str] = []
    code = False
    for block in blocks:
        if code and block.startswith(" "):
            if made[-1].endswith("\n```"):
                made[-1] = f"{made[-1][:-4]}\n\n{dedent(block)}\n```"
            else:
                made.append(f"```text\n{dedent(block)}\n```")
            continue
        code = block.rstrip().endswith("::")
        made.append(_inline(re.sub(r"\s+::$|(?<=:):$", "", block.rstrip())))
    return "\n\n".join(made)


def _inline(text: str) -> str:
    text = re.sub(r":\w+:`~?([^`]*)`", lambda found: f"`{found[1].rpartition('.')[2]}`", text)
    return text.replace("``", "`")


def one_line(text: str) -> str:
    """Return a docstring's sentence as Markdown without line ends."""
    return _inline(" ".join(text.split()))


def summary(cls: type[Any]) -> str:
    """Return a class's docstring up to its sections, as Markdown."""
    text = inspect.getdoc(cls) or ""
    return markdown(re.split(rf"\n(?:{'|'.join(_SECTIONS)}):\n", text)[0])


def arguments(cls: type[Any]) -> dict[str, str]:
    """Return ``{argument: what its class's docstring says of it}``, as Markdown."""
    return {name: one_line(about) for name, about in explained(cls).items()}


def table(heads: list[str], rows: list[list[str]], numbers: Collection[str] = ()) -> str:
    """Write a Markdown table; the columns whose heads are in ``numbers`` are set to the right."""
    marks = ["--:" if head in numbers else ":--" for head in heads]
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(marks) + "|"]
    return "\n".join(lines + ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows])


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def fenced(text: str) -> str:
    """Return a text as it is, in a block."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"
