"""The prompt map ``rho``: from what a player may know to what its language model is sent.

``observation (and the last k turns) -> prompt``. All wording is data (:mod:`agents.prompt_texts`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.prompt_texts import PromptTexts, fill, shows_steps_left
from agents.turn import Message, Prompt, TurnRequest, prefix_of, without_prefix
from textgames.names import did_you_mean


@dataclass(frozen=True)
class PromptMap:
    """``rho``: builds the prompt of one decision.

    Attributes:
        mode: which response template ends the prompt: ``"think"``, ``"direct"``, or one of the texts' own.
        history_turns: how many of the episode's last turns come before the observation, as chat turns; 0 for none (a
            step's prompt then doesn't grow with the episode), ``None`` for all.
        texts: the wording.

    Raises:
        ValueError: a mode that the texts don't have, or a negative number of turns.
    """

    mode: str = "think"
    history_turns: int | None = 0
    texts: PromptTexts = field(default_factory=PromptTexts.default)

    def __post_init__(self) -> None:
        modes = tuple(self.texts.response)
        if self.mode not in modes:
            raise ValueError(
                f"unknown mode {self.mode!r}{did_you_mean(str(self.mode), modes)}; there are {', '.join(modes)}"
            )
        turns = self.history_turns
        if turns is not None and (isinstance(turns, bool) or not isinstance(turns, int) or turns < 0):
            raise ValueError(f"history_turns is a whole number of at least 0, or None for all turns, got {turns!r}")

    @classmethod
    def from_file(cls, path: str | Path, mode: str = "think", history_turns: int | None = 0) -> "PromptMap":
        return cls(mode, history_turns, PromptTexts.from_file(path))

    @property
    def turns_read(self) -> int | None:
        """How many of the episode's last turns a prompt is made of; ``None`` for all, which a memory may go back to."""
        return None if self.texts.memory else self.history_turns

    @property
    def prefix(self) -> str:
        """What every response begins with; empty if the model begins itself."""
        return fill(self.texts.prefix.get(self.mode, ""), {})

    @property
    def tells_steps_left(self) -> bool:
        """Whether prompts depend on how many moves are left."""
        return shows_steps_left(self.texts.read_in(self.mode))

    @property
    def settings(self) -> dict[str, Any]:
        return {"mode": self.mode, "history_turns": self.history_turns, "texts": self.texts.as_data()}

    def __call__(self, request: TurnRequest) -> Prompt:
        """Return the prompt of one decision. Nothing in it is random.

        The last message is the user's; or the assistant's, if the texts have a prefix for the mode: what the model
        says goes on from it, and the response is both together (:func:`agents.turn.prefix_of`). Texts of several
        wordings take the one of the episode's seed, which is the first number of the request's.
        """
        texts = self.texts
        if texts.wordings and request.seed:
            return PromptMap(self.mode, self.history_turns, texts.of_seed(request.seed[0]))(request)
        values = self._values(request)
        messages = []
        if system := fill(texts.system, values):
            messages.append(Message("system", system))
        parts = [fill(texts.opening, values)]
        for ago, (observation, response) in self._last_turns(request):
            left = self._left_then(request, ago)
            then = values | {"observation": self._cut(observation), "steps_left": self._steps_left_text(left)}
            then["memory"] = self._memory(request.history[: len(request.history) - ago])
            parts += [fill(texts.observation, then), self._clock(left, then)]
            messages += [Message("user", _join(parts)), Message("assistant", response)]
            parts = []
        template = texts.response[self.mode]
        if request.action_help and not request.legal_actions:
            template = texts.open_response.get(self.mode, template)
        parts += [fill(texts.observation, values), self._clock(request.steps_left, values), fill(template, values)]
        messages.append(Message("user", _join(parts)))
        for refused in request.refused:
            messages.append(Message("assistant", refused.turn.response))
            messages.append(Message("user", self._complaint(refused.unreadable, values)))
        if self.prefix:
            messages.append(Message("assistant", self.prefix))
        return tuple(messages)

    def _complaint(self, unreadable: str, values: Mapping[str, str]) -> str:
        """Return what a player is told whose answer couldn't be read."""
        own, ours = self.texts, PromptTexts.default()
        reason = own.reasons.get(unreadable) or ours.reasons[unreadable]
        return fill(own.complaint or ours.complaint, {**values, "reason": reason}).strip("\n")

    def _last_turns(self, request: TurnRequest) -> list[tuple[int, tuple[str, str]]]:
        """Return ``(how many turns ago, (observation, response))`` of the turns that are shown, oldest first."""
        turns = len(request.history) if self.history_turns is None else self.history_turns
        shown = request.history[-turns:] if turns else ()
        return [(len(shown) - index, turn) for index, turn in enumerate(shown)]

    def _values(self, request: TurnRequest) -> dict[str, str]:
        return {
            "instructions": self._instructions(request.instructions),
            "observation": self._cut(request.observation),
            "actions": self._actions(request),
            "player": request.player,
            "steps_left": self._steps_left_text(request.steps_left),
            "memory": self._memory(request.history),
        }

    def _cut(self, observation: str) -> str:
        if self.texts.cut_at:
            observation = observation.partition(self.texts.cut_at)[0].rstrip("\n")
        if self.texts.leave_out:
            unseen = tuple(self.texts.leave_out.split("\n"))
            observation = "\n".join([line for line in observation.split("\n") if not line.startswith(unseen)])
        return observation

    def _instructions(self, told: str) -> str:
        for today, then in self.texts.reworded.items():
            told = told.replace(today, then)
        return told

    def _actions(self, request: TurnRequest) -> str:
        if request.legal_actions and not request.moves_listed:
            return self.texts.unlisted or PromptTexts.default().unlisted
        return request.action_help or ", ".join(request.legal_actions) or self.texts.no_actions

    def _memory(self, history: Sequence[tuple[str, str]]) -> str:
        """Return what the player wrote last in the tag that it remembers."""
        if tag := re.escape(self.texts.memory):
            for _, response in reversed(history):
                if written := re.findall(f"<{tag}>(.*?)</{tag}>", response, re.DOTALL):
                    return str(written[-1]).strip()
        return self.texts.no_memory

    def _steps_left_text(self, steps_left: int | None) -> str:
        return self.texts.no_limit if steps_left is None else str(steps_left)

    def _clock(self, steps_left: int | None, values: Mapping[str, str]) -> str:
        """Return what says how many moves are left; nothing if there is no limit."""
        return "" if steps_left is None else fill(self.texts.clock, values)

    def _left_then(self, request: TurnRequest, ago: int) -> int | None:
        """Return the rounds that were left so many of the player's turns ago.

        If nobody told, as in a request that somebody made by hand, the player has moved in every round.
        """
        if request.history_steps_left:
            return request.history_steps_left[-ago]
        return None if request.steps_left is None else request.steps_left + ago


def _join(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def as_text(prompt: Prompt) -> str:
    """Return the prompt for a model without a chat template: the contents, joined by blank lines.

    A response follows its prompt without a blank line, and so does the prefix of one.
    """
    return "\n\n".join(message.content for message in without_prefix(prompt)) + prefix_of(prompt)
