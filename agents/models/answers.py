"""Legal-only decoding: which tokens may follow a text, so that the response is an answer that the game accepts.

An answer is ``<action>NAME</action>``; if the model reasons first, its reasoning is free until the tag opens. A token
may follow if its *text* continues an answer, whatever the tokenisation, as in the engines that constrain by a grammar
(vLLM's structured outputs, llama.cpp's GBNF). So a model is never forced off a way of writing a name that it prefers.
Nothing here knows a model: a learner can ask for the same sets again.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

from agents.turn import TokenSet
from textgames.texts.actions import CLOSE_TAG, OPEN_TAG, THINK, THOUGHT, behind_thoughts

_OPEN, _CLOSE, _THINK, _THOUGHT = _MARKS = tuple(mark.encode() for mark in (OPEN_TAG, CLOSE_TAG, THINK, THOUGHT))
_REMEMBERED = 1024  # sets of names whose rules are kept: a game with many positions has many

NEVER_CLOSED = (
    "its engine is told whole answers, and nothing there closes reasoning in time: it can be held to legal ones in the "
    "mode direct alone"
)
CLOSED_BY_A_BUDGET = (
    "its thinking_budget closes its reasoning as well: leave that out, and max_tokens closes it in time"
)
UNLIMITED = 10**9  # tokens


@dataclass(frozen=True)
class LegalAnswers:
    """The answers that one decision accepts: the ``names`` of legal actions, whether the model ``reasons`` first, and
    the part of the response that is written already (``begun``). A ValueError without names."""

    names: tuple[str, ...]
    reasons: bool = False
    begun: str = ""

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("legal-only decoding needs the list of legal actions, and there is none here")

    def endings(self) -> list[str]:
        """Return the texts that may follow the beginning, of answers without reasoning; a ValueError without any."""
        if (said := behind_thoughts(self.begun)) is None:
            return [f"{THOUGHT}{OPEN_TAG}{name}{CLOSE_TAG}" for name in self.names]
        _, opened, inside = said.rpartition(OPEN_TAG)
        sizes = range(len(OPEN_TAG) - 1, -1, -1)
        begun = opened + inside if opened else next(OPEN_TAG[:n] for n in sizes if said.endswith(OPEN_TAG[:n]))
        texts = [f"{OPEN_TAG}{name}{CLOSE_TAG}" for name in self.names]
        if not (found := [text.removeprefix(begun) for text in texts if text.startswith(begun)]):
            raise self.no_answer()
        return found

    def no_answer(self) -> ValueError:
        """Return the error for a prefix that no legal answer continues."""
        names = ", ".join(self.names)
        return ValueError(f"no legal answer continues the response prefix {self.begun!r}; there are {names}")

    def gbnf(self) -> str:
        """Return such answers as a grammar of llama.cpp."""
        return "root ::= " + " | ".join(json.dumps(text, ensure_ascii=False) for text in self.endings())


class Vocabulary:
    """The texts of a tokenizer's tokens, by id, in bytes (a token may be a part of a character, or have no text).

    ``ends`` are the tokens that end a response, ``ids`` is ``{text: its tokens}``, ``closing`` the tokens whose text
    can complete a tag, ``encode`` the tokenizer's own way to write texts.
    """

    def __init__(
        self,
        texts: Sequence[bytes],
        ends: Iterable[int],
        encode: Callable[[list[str]], Sequence[Sequence[int]]] = lambda texts: [()] * len(texts),
    ) -> None:
        self.texts, self.ends, self.encode = texts, tuple(sorted(ends)), encode
        self._rules: dict[LegalAnswers, Rules] = {}

    @cached_property
    def ids(self) -> dict[bytes, tuple[int, ...]]:
        found: dict[bytes, tuple[int, ...]] = {}
        for token, text in enumerate(self.texts):
            if text and token not in self.ends:
                found[text] = (*found.get(text, ()), token)
        return found

    @cached_property
    def closing(self) -> tuple[int, ...]:
        return tuple(token for text, tokens in self.ids.items() if b">" in text for token in tokens)

    @classmethod
    def of(cls, tokenizer: Any, size: int, ends: Iterable[int]) -> "Vocabulary":
        """Read a tokenizer of transformers, for a model that knows ``size`` tokens."""
        known = min(size, len(tokenizer))
        texts = token_texts(tokenizer, known) + [b""] * (size - known)
        return cls(texts, ends, lambda texts: tokenizer(texts, add_special_tokens=False)["input_ids"])

    def rules(self, answers: LegalAnswers) -> "Rules":
        if (found := self._rules.get(answers)) is None:
            if len(self._rules) >= _REMEMBERED:
                self._rules.clear()
            found = self._rules[answers] = Rules(self, answers)
        return found

    def fewest(self, text: bytes) -> list[float]:
        """Return the fewest tokens that write ``text[place:]``, for every place, its end included."""
        fewest = [inf] * len(text) + [0.0]
        for place in range(len(text) - 1, -1, -1):
            stops = range(place + 1, len(text) + 1)
            fewest[place] = min((1 + fewest[stop] for stop in stops if text[place:stop] in self.ids), default=inf)
        return fewest


class State(NamedTuple):
    """The state of a response: ``text`` is the written part of the answer or, while the action has yet to be opened
    (``free``), the end of the reasoning that may become a tag. In an open ``<think>`` (``thinking``) no action may be
    opened; a forced answer closes it."""

    text: bytes
    free: bool
    thinking: bool = False


class Rules:
    """The tokens that may follow in each state of a response. It begins in ``start``; ``reserve`` tokens are enough to
    end with a legal answer from every state. A ValueError for a prefix that no answer continues, or a name that the
    tokenizer can't write."""

    def __init__(self, vocabulary: Vocabulary, answers: LegalAnswers) -> None:
        self._vocabulary = vocabulary
        texts = [f"{OPEN_TAG}{name}{CLOSE_TAG}".encode() for name in answers.names]
        # (text, the fewest tokens that write it from each of its places to its end), by whether a thought is open
        self._answers = {
            thinking: [(lead + text, vocabulary.fewest(lead + text)) for text in texts]
            for thinking, lead in ((False, b""), (True, _THOUGHT))
            if not thinking or answers.reasons or THINK in answers.begun
        }
        self._known: dict[tuple[State, int], TokenSet | None] = {}
        self._usual: dict[bytes, set[int]] = {}  # the tokenizer's own next tokens behind what is written
        for text, tokens in zip(texts, vocabulary.encode([text.decode() for text in texts]), strict=True):
            place = 0
            for token in tokens:
                self._usual.setdefault(text[:place], set()).add(token)
                piece = vocabulary.texts[token]
                place += len(piece if place else piece.lstrip())  # some tokenizers put a space in front
        for text, fewest in self._answers[False]:
            if fewest[0] == inf:
                raise ValueError(f"the model's tokenizer has no tokens for the answer {text.decode()!r}")
        every = [count for found in self._answers.values() for _, fewest in found for count in fewest]
        self.reserve = int(max(count for count in every if count != inf))
        state = self._read(State(b"", free=True), answers.begun.encode())
        if state is not None and state.free and not answers.reasons:
            state = self._forced(state)
        if state is None or not self._continues(state):
            raise answers.no_answer()
        self.start = state

    def allowed(self, state: State, left: int) -> TokenSet | None:
        """Return the tokens that may come next if the response may have ``left`` more; ``None``: all of them."""
        left = min(left, self.reserve + 1)  # more makes no difference
        key = state, left
        if key not in self._known:
            free = state.free and left > self.reserve
            self._known[key] = self._all_but(state) if free else self._only(self._forced(state), left)
        return self._known[key]

    def likely(self, state: State, allowed: TokenSet) -> int | None:
        """Return the token that alone is allowed, or that the tokenizer writes in all answers; ``None``: a choice."""
        usual = allowed.ids if len(allowed.ids) == 1 else self._usual.get(state.text, set())
        return next((token for token in usual if token in allowed.ids), None) if len(usual) == 1 else None

    def after(self, state: State, token: int, left: int) -> State:
        """Return the state behind an allowed token; ``left`` is as it was before it."""
        text = self._vocabulary.texts[token]
        if state.free and left > self.reserve:
            if not state.text and b"<" not in text:
                return state
            found = self._read(state, text)
            if found is None:
                raise ValueError(f"token {token} ({text!r}) isn't allowed behind {state.text!r}")
            return found
        state = self._forced(state)
        return state._replace(text=state.text + text)

    def _only(self, state: State, left: int) -> TokenSet:
        """Return the tokens that continue an answer which ``left`` tokens are enough for."""
        start, found = len(state.text), set[int]()
        for text, fewest in self._answers[state.thinking]:
            if text.startswith(state.text):
                for stop in range(start + 1, len(text) + 1):
                    if fewest[stop] < left:
                        found.update(self._vocabulary.ids.get(text[start:stop], ()))
        return TokenSet(tuple(sorted(found)))

    def _all_but(self, state: State) -> TokenSet | None:
        """Return all tokens but those that would end the reasoning in an answer that isn't legal, or in none."""
        wrong = set(self._vocabulary.ends)
        for token in self._vocabulary.closing:
            then = self._read(state, self._vocabulary.texts[token])
            if then is None or not self._continues(then):
                wrong.add(token)
        return TokenSet(tuple(sorted(wrong)), others=True) if wrong else None

    def _continues(self, state: State) -> bool:
        """Report whether the tokenizer can write some legal answer from here, or has written one."""
        place = len(state.text)
        return state.free or any(
            text.startswith(state.text) and fewest[place] != inf for text, fewest in self._answers[state.thinking]
        )

    def _forced(self, state: State) -> State:
        """Return the state in which nothing but the ending may follow; it continues the tag that the text has begun."""
        if not state.free:
            return state
        begun = [state._replace(text=state.text[at:], free=False) for at in range(len(state.text))]
        return next(filter(self._continues, begun), State(b"", free=False, thinking=state.thinking))

    def _read(self, state: State, text: bytes) -> State | None:
        """Return the state when free text continues; ``None`` if no legal answer can follow."""
        text, thinking = state.text + text, state.thinking
        while True:
            places = [(at, mark) for mark in _MARKS if (at := text.find(mark)) >= 0]
            if not places:  # the longest end that a tag may begin with is kept
                ends = (text[at:] for at in range(max(0, len(text) - max(map(len, _MARKS)) + 1), len(text)))
                begun = next((end for end in ends if any(mark.startswith(end) for mark in _MARKS)), b"")
                return State(begun, free=True, thinking=thinking)
            at, mark = min(places)
            if mark == _CLOSE or (mark == _OPEN and thinking):
                return None
            if mark == _OPEN:
                return State(text[at:], free=False)
            text, thinking = text[at + len(mark) :], mark == _THINK


class Guide:
    """One response as it grows: ``allowed`` returns the tokens that may come next, ``take`` is given the drawn one."""

    def __init__(self, rules: Rules, limit: int) -> None:
        self._rules, self._state, self._left = rules, rules.start, limit

    def allowed(self) -> TokenSet | None:
        return self._rules.allowed(self._state, self._left)

    def draft(self) -> tuple[tuple[int, ...], list[TokenSet]]:
        """Return the likely next tokens of a forced answer, up to a choice or its end, and the sets drawn from."""
        ahead, tokens, sets = copy(self), list[int](), list[TokenSet]()
        while (allowed := ahead.allowed()) is not None and allowed.ids:
            sets.append(allowed)
            if (token := self._rules.likely(ahead._state, allowed)) is None:
                break
            tokens.append(token)
            ahead.take(token)
        return tuple(tokens), sets

    def take(self, token: int) -> None:
        self._state = self._rules.after(self._state, token, self._left)
        self._left -= 1


def sets_of(rules: Rules, tokens: Sequence[int], limit: int) -> tuple[TokenSet | None, ...]:
    """Return the allowed tokens at every token of a response; a ValueError for a token that wasn't allowed."""
    guide, found = Guide(rules, limit), list[TokenSet | None]()
    for place, token in enumerate(tokens):
        allowed = guide.allowed()
        if allowed is not None and (token in allowed.ids) == allowed.others:
            raise ValueError(f"token {token}, number {place + 1} of a response, begins no legal answer")
        found.append(allowed)
        guide.take(token)
    return tuple(found)


def decodes_plainly(tokenizer: Any) -> bool:
    """Report whether decoding is that of the tokenizer's Rust object and nothing else, which takes a tenth as long."""
    from transformers import PreTrainedTokenizerFast

    return getattr(type(tokenizer), "_decode", None) is PreTrainedTokenizerFast._decode


def token_texts(tokenizer: Any, count: int) -> list[bytes]:
    """Return the text of each of a tokenizer's first tokens, in bytes, as it stands behind other text."""
    pieces = [piece or "" for piece in tokenizer.convert_ids_to_tokens(list(range(count)))]
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if type(getattr(backend, "decoder", None)).__name__ == "ByteLevel":
        from transformers.convert_slow_tokenizer import bytes_to_unicode

        byte_of = {letter: byte for byte, letter in bytes_to_unicode().items()}  # type: ignore[no-untyped-call]
        added = set(tokenizer.get_added_vocab().values())
        return [
            piece.encode() if token in added else bytes([byte_of[letter] for letter in piece if letter in byte_of])
            for token, piece in enumerate(pieces)
        ]
    # other tokenizers are asked what a token adds behind a letter; pieces like <0xE2> stand for a byte
    anchor = tokenizer("a", add_special_tokens=False)["input_ids"][-1:]
    rows = [anchor, *([*anchor, token] for token in range(count))]
    if decodes_plainly(tokenizer):  # a quarter of a million tokens take a second, not ten
        before, *found = backend.decode_batch(rows, skip_special_tokens=False)
    else:
        before, *found = tokenizer.batch_decode(rows, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    texts = []
    for piece, text in zip(pieces, found, strict=True):
        if byte := re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", piece):
            texts.append(bytes.fromhex(byte[1]))
        else:
            texts.append(text[len(before) :].encode() if text.startswith(before) and "�" not in text else b"")
    return texts
