"""A game's vocabulary, which is data, and what one of its twins is drawn to be.

A vocabulary is a TOML file with two halves. ``[own]`` has the phrases that the game itself uses, by names; every story
has what its twins say in their place::

    [own.words]
    card = ["jack", "queen", "king"]           # a kind of slot: any of these words
    [own.observation]
    own_card = "Your card is the {held:card}."
    [stories.auction.ranked]
    card = ["bronze", "silver", "gold", "ruby"] # three of them are drawn for a twin, in this order
    [stories.auction.observation]
    own_card = "The sealed crate that you know of holds {held}."

Kinds of slots: those of ``words``; ``number``; ``cell`` for coordinates and ``direction``, which are mirrored together;
``action``; ``parts``, which are phrases of their own; ``drawing``, a board; ``tally``, a number in strokes; ``amount``,
a number in another unit. ``{at:cell*}`` is a list with commas, or the word ``none``; ``{code:card+}`` has spaces
between them. A twin's template may also hold a word as the twin says it: ``{card=king}``.

``rules`` (told once, so slots may be left out), ``observation``, ``help`` and ``actions`` are the texts. What a story
draws from is in ``words`` (in any order), ``ranked`` (the order stays), ``laid`` (on a board row by row, which may be
turned and mirrored) and ``fixed`` (one for one). Whether the data is
whole is checked when a twin is made.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from textgames.tsmg import TSMG
from textgames.twins.boards import WAYS, Drawing, Symmetry, cells_kind, name_of_cell
from textgames.twins.phrases import NUMBER, Kind, Phrase, Phrasebook, amounts, several, tally, words

_CONSTANT = re.compile(r"\{(\w+)=([^}]+)\}")
_SOURCES = ("fixed", "words", "ranked", "laid")

ORDERS = ("as told", "reversed", "last first")
MARKS = ("", "> ", "| ")


class Layout(NamedTuple):
    """How the lines of an observation are arranged."""

    order: str  # one of :data:`ORDERS`
    mark: str  # what stands before every line

    def arrange(self, lines: Sequence[str]) -> str:
        return "\n".join(f"{self.mark}{line}" for line in "\n".join(self._ordered(lines, -1)).split("\n"))

    def bare(self, text: str) -> str:
        return "\n".join(line.removeprefix(self.mark) for line in text.split("\n"))

    def as_told(self, lines: Sequence[str]) -> str:
        return "\n".join(self._ordered(lines, 1))

    def _ordered(self, lines: Sequence[str], first: int) -> Sequence[str]:
        if self.order == "last first":
            return [*lines[first:], *lines[:first]]
        return lines[::-1] if self.order == "reversed" else lines


class Drawn(NamedTuple):
    """What one twin says."""

    story: str  # its name
    rules: Phrasebook  # rules, observation, help, actions: the phrases of each kind of text
    observation: Phrasebook
    help: Phrasebook
    actions: Phrasebook
    names: Mapping[str, str]  # ``{own name: twin's name}`` of a game's listed actions; empty if they can't be listed
    layout: Layout  # of observations


class Vocabulary:
    """The table of one game.

    The file's name takes part in what is drawn.
    """

    def __init__(self, data: Mapping[str, Any], name: str) -> None:
        self._own, self._stories, self._name = data["own"], data["stories"], name
        self.stories = tuple(self._stories)

    def _story_of(self, number: int) -> str:
        return str(self.stories[(number - 1) % len(self.stories)])

    def digest(self, number: int) -> str:
        """Return 16 hexadecimal digits, which any change of the words that a twin is told with changes."""
        story = self._story_of(number)
        told = json.dumps([self._name, story, self._own, self._stories[story]], sort_keys=True)
        return sha256(told.encode()).hexdigest()[:16]

    @staticmethod
    @cache
    def read(file: Path) -> "Vocabulary":
        return Vocabulary(tomllib.loads(file.read_text(encoding="utf-8")), file.stem)

    def draw(self, game: TSMG[Any], number: int) -> Drawn:
        """Draw twin ``number``, from 1, or raise ValueError if the table doesn't fit; stories are taken in turn."""
        story = self._story_of(number)
        try:
            return _Draw(self._own, self._stories[story], game, [crc32(self._name.encode()), number]).drawn(story)
        except (KeyError, AttributeError, TypeError) as error:
            raise ValueError(
                f"the story {story!r} of the vocabulary {self._name!r} isn't made for {type(game).__name__} with these "
                f"settings: {type(error).__name__}: {error}"
            ) from error


class _Draw:
    def __init__(self, own: Mapping[str, Any], story: Mapping[str, Any], game: TSMG[Any], seed: list[int]) -> None:
        self._own, self._story, self._game = own, story, game
        self._rng = np.random.default_rng(seed)
        self._words: dict[str, dict[str, str]] = {}
        self._kinds: dict[str, Kind] = {"number": NUMBER}

    def drawn(self, name: str) -> Drawn:
        # always in this order, so that equal numbers draw equal twins
        sizes = self._own.get("size", (1, 1))
        width, height = (size if isinstance(size, int) else attrgetter(size)(self._game) for size in sizes)
        symmetries = Symmetry.all_of(int(width), int(height))
        symmetry = self._any(symmetries if self._story.get("mirrored", True) else symmetries[:1])
        for kind in self._own.get("words", {}):
            self._add(kind, self._drawn_words(kind, symmetry))
        if "directions" in self._own:
            twin = self._any(self._story["directions"])
            # the constants of ``way`` are the twin's own words; ``direction`` is seen in the mirror
            self._words["way"] = dict(zip(("left", "right", "down", "up"), twin, strict=True))
            seen = [twin[WAYS.index(symmetry.way(way))] for way in WAYS]
            self._add("direction", dict(zip(self._own["directions"], seen, strict=True)))
        if "cells" in self._story:
            form, means = self._any(self._story["cells"]).values()
            self._kinds["cell"] = cells_kind(form, symmetry)
            self._words["cells"] = {"means": means, "corner": name_of_cell(form, (0, 0))}
        if "tally" in self._story:
            self._kinds["tally"] = tally(self._any(self._story["tally"]))
        if "amount" in self._story:
            factor, lowest, highest = self._any(self._story["amount"])
            self._kinds["amount"] = amount = amounts(factor, int(self._rng.integers(lowest, highest + 1)))
            # every number of the rules is one of its constants
            self._words["amount"] = {str(n): amount.to_twin(str(n)) for n in range(-1, 101)}
        names: dict[str, str] = {}
        actions = self._book("actions")
        if self._game.actions:
            names = {own: "".join(actions.translate(own)) for own in self._game.actions}
            self._add("action", names, order=self._game.actions)
        for part in self._own.get("parts", {}):
            self._kinds[part] = self._phrase("parts", part).kind
            self._add_list(part)
        for drawing, how in self._own.get("drawing", {}).items():
            view = self._story["drawing"][drawing]
            self._kinds[drawing] = Drawing(
                frame=how.get("frame", "plain"),
                view=view["view"],
                line=self._with_words(view.get("line", "")),
                empty=how.get("empty", ""),
                nothing=view.get("nothing", self._story.get("none", "none")),
                symbols={own: twin for kind in how["symbols"] for own, twin in self._words[kind].items()},
                names=self._words.get(how.get("names", ""), {}),
                cells=how.get("cells", ()),
                symmetry=symmetry,
            ).kind()
        layout = Layout(self._any(self._story.get("orders", ORDERS)), self._any(self._story.get("marks", MARKS)))
        books = {book: self._book(book) for book in ("rules", "observation", "help")}
        return Drawn(name, **books, actions=actions, names=names, layout=layout)

    # ---- drawing

    def _any(self, choices: Sequence[Any]) -> Any:
        return choices[int(self._rng.integers(len(choices)))]

    def _drawn_words(self, kind: str, symmetry: Symmetry) -> dict[str, str]:
        told = self._own["words"][kind]
        own = list(self._game.actions) if told == "actions" else told
        (source,) = [each for each in _SOURCES if kind in self._story.get(each, {})]
        pool = [self._with_words(word) for word in self._story[source][kind]]
        if source == "fixed":
            return dict(zip(own, pool[: len(own)], strict=True))
        if source == "laid":
            rows = [(x, y) for y in reversed(range(symmetry.height)) for x in range(symmetry.width)]
            return {name: pool[rows.index(symmetry.cell(at))] for name, at in zip(own, rows, strict=True)}
        if len(pool) < len(own):
            raise ValueError(f"{kind} draws {len(own)} words from the {len(pool)} of {pool}")
        chosen = self._rng.choice(len(pool), size=len(own), replace=False).tolist()
        return dict(zip(own, [pool[at] for at in (sorted(chosen) if source == "ranked" else chosen)], strict=True))

    def _add(self, kind: str, pairs: dict[str, str], order: Sequence[str] = ()) -> None:
        self._words[kind] = pairs
        self._kinds[kind] = words(pairs)
        self._add_list(kind, order)

    def _add_list(self, kind: str, order: Sequence[str] = ()) -> None:
        none = self._own.get("none", "none"), self._story.get("none", "none")
        self._kinds[f"{kind}*"] = several(self._kinds[kind], ", ", none, order)
        self._kinds[f"{kind}+"] = several(self._kinds[kind], " ")

    # ---- phrases

    def _book(self, book: str) -> Phrasebook:
        phrases = [self._phrase(book, name) for name in self._own.get(book, {})]
        extra = set(self._story.get(book, {})) - set(self._own.get(book, {}))
        if extra:
            raise ValueError(f"{book} of the story has phrases that the game doesn't say: {', '.join(sorted(extra))}")
        return Phrasebook(phrases, both_ways=book not in ("rules", "help"))

    def _phrase(self, book: str, name: str) -> Phrase:
        own, twin = self._own[book][name], self._with_words(self._story[book][name])
        if "cell" in self._kinds and "cell*" not in self._kinds:
            self._add_list("cell")
        return Phrase(own, twin, self._kinds, both_ways=book not in ("rules", "help"))

    def _with_words(self, text: str) -> str:
        """Return a twin's template with its constants filled in; a place's meaning may hold some itself."""
        while _CONSTANT.search(text):
            text = _CONSTANT.sub(lambda found: self._words[found[1]][found[2]], text)
        return text
