"""The prompt map ``rho``: ``observation (and the last k turns) -> prompt``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.prompt_texts import PromptTexts, fill, shows_steps_left
from agents.turn import Message, Prompt, TurnRequest, prefix_of, without_prefix
from textgames.names import did_you_mean
from textgames.settings import check_whole

PICTURED, EARLIER = "(The picture shows what you see now.)", "(A picture, which isn't shown again.)"
"""Sentences of prompts in place of an observation that is a picture alone, now and of an earlier turn."""


@dataclass(frozen=True)
class PromptMap:
    """``rho``: builds the prompt of one decision."""

    mode: str = "think"  #: which response template ends the prompt: ``"think"``, ``"direct"``, or one of the texts' own
    history_turns: int | None = 0  #: how many of the last turns come before, as chat turns; ``None`` for all
    texts: PromptTexts = field(default_factory=PromptTexts.default)  #: the wording

    def __post_init__(self) -> None:
        modes = tuple(self.texts.response)
        if self.mode not in modes:
            raise ValueError(
                f"unknown mode {self.mode!r}{did_you_mean(str(self.mode), modes)}; there are {', '.join(modes)}"
            )
        if self.history_turns is not None:
            check_whole("history_turns (None: all turns)", self.history_turns, 0, None)

    @classmethod
    def from_file(cls, path: str | Path | None, mode: str = "think", history_turns: int | None = 0) -> "PromptMap":
        """Build it with the wording of a file; ``None`` for the default one."""
        return cls(mode, history_turns, PromptTexts.default() if path is None else PromptTexts.from_file(path))

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

        The last message is the user's; or the assistant's, if the texts have a prefix for the mode, which the response
        then begins with. Texts of several wordings take the one of the episode's seed, the request's first number.
        """
        texts = self.texts
        if texts.wordings and request.seed:
            return PromptMap(self.mode, self.history_turns, texts.of_seed(request.seed[0]))(request)
        instructions = request.instructions
        for today, then in texts.reworded.items():
            instructions = instructions.replace(today, then)
        values = {"instructions": instructions, "actions": self.actions(request), "player": request.player}
        seen = request.observation if request.reads_text else PICTURED
        values |= self._then(seen, request.steps_left, request.history)
        messages = []
        if system := fill(texts.system, values):
            messages.append(Message("system", system))
        parts = [fill(texts.opening, values)]
        turns = len(request.history) if self.history_turns is None else self.history_turns
        shown = request.history[-turns:] if turns else ()
        for ago, (observation, response) in zip(range(len(shown), 0, -1), shown, strict=True):
            before, left = request.history[: len(request.history) - ago], _left_then(request, ago)
            parts += self._shown(values | self._then(observation if request.reads_text else EARLIER, left, before))
            messages += [Message("user", _join(parts)), Message("assistant", response)]
            parts = []
        template = texts.response[self.mode]
        if request.action_help and not request.legal_actions:
            template = texts.open_response.get(self.mode, template)
        told = _join([*parts, *self._shown(values), fill(template, values)])
        messages.append(Message("user", told, request.picture))
        default = PromptTexts.default()
        for refused in request.refused:
            reason = texts.reasons.get(refused.unreadable) or default.reasons[refused.unreadable]
            complaint = fill(texts.complaint or default.complaint, {**values, "reason": reason}).strip("\n")
            messages += [Message("assistant", refused.turn.response), Message("user", complaint)]
        if self.prefix:
            messages.append(Message("assistant", self.prefix))
        return tuple(messages)

    def actions(self, request: TurnRequest) -> str:
        """Return the words on what may be answered, which ``$actions`` stands for."""
        if request.legal_actions and not request.moves_listed:
            return self.texts.unlisted or PromptTexts.default().unlisted
        return request.action_help or ", ".join(request.legal_actions) or self.texts.no_actions

    def _then(self, observation: str, left: int | None, before: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Return the placeholders that differ from turn to turn, of one with these turns ``before`` it."""
        texts = self.texts
        if texts.cut_at:
            observation = observation.partition(texts.cut_at)[0].rstrip("\n")
        if texts.leave_out:
            unseen = tuple(texts.leave_out.split("\n"))
            observation = "\n".join([line for line in observation.split("\n") if not line.startswith(unseen)])
        memory = texts.no_memory
        if tag := re.escape(texts.memory):
            written = (re.findall(f"<{tag}>(.*?)</{tag}>", response, re.DOTALL) for _, response in reversed(before))
            memory = next((str(found[-1]).strip() for found in written if found), memory)
        steps_left = texts.no_limit if left is None else str(left)
        return {"observation": observation, "steps_left": steps_left, "memory": memory}

    def _shown(self, values: Mapping[str, str]) -> list[str]:
        """Return an observation and its clock, which is left out if there is no limit."""
        limited = values["steps_left"] != self.texts.no_limit
        return [fill(self.texts.observation, values), fill(self.texts.clock, values) if limited else ""]


def _left_then(request: TurnRequest, ago: int) -> int | None:
    """Return the rounds left ``ago`` of the player's turns ago; if unknown, as if it had moved in every round."""
    if request.history_steps_left:
        return request.history_steps_left[-ago]
    return None if request.steps_left is None else request.steps_left + ago


def _join(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def as_text(prompt: Prompt) -> str:
    """Join the contents by blank lines, for a model without a chat template; a response follows directly."""
    return "\n\n".join(message.content for message in without_prefix(prompt)) + prefix_of(prompt)
