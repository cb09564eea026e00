"""An episode as one conversation of tool calls: games for ``GRPOTrainer(environment_factory=...)``.

TRL takes models whose chat template knows tools and whose answers transformers can parse. A model that answers in the
games' own form, ``<action>left</action>``, has neither; :func:`read_actions_as_calls` gives it both.
"""

import os
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from agents import EpisodeSession, PromptMap
from agents.loop.session import Opponents
from agents.prompt import as_text
from agents.prompt_texts import PromptTexts
from textbench.integrations.starts import Start, begin

CALLS = "calls"
"""The response mode that asks for calls of :meth:`GameEnvironment.act`; its words are in ``prompts.toml``."""


_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{% for call in message['tool_calls'] or [] %}"
    "{% if call['function']['name'] == 'act' %}<action>{{ call['function']['arguments']['action'] }}</action>"
    "{% else %}{{ call['function'] | tojson }}{% endif %}{% endfor %}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% if not loop.last %}{{ '\\n\\n' }}{% endif %}{% endfor %}"
)
_FIELDS: dict[str, Any] = {
    "reasoning_content": {"open": "<think>", "close": "</think>", "content": "text"},
    "tool_calls": {
        "open_pattern": "<action>(?=.*</action>)",  # a tag that is cut off names no action
        "close_pattern": "</action>.*",  # and nothing counts that is behind an action
        "repeats": True,
        "content": "text",
        "transform": {"type": "function", "function": {"name": "act", "arguments": {"action": "{content}"}}},
    },
    "content": {"content": "text"},
}


@cache
def _texts() -> PromptTexts:
    return PromptTexts.from_file(Path(__file__).parent / "prompts.toml")


def game_environment(
    scenario: str = "frozen-lake",
    *,
    mode: str = CALLS,
    opponents: Opponents = "random",
    prompt_map: PromptMap | None = None,
    seed: int = 0,
    **settings: Any,
) -> "Callable[[], GameEnvironment]":
    """Make an ``environment_factory`` of a scenario.

    ::

        trainer = GRPOTrainer(
            "MODEL", environment_factory=game_environment("frozen-lake"), train_dataset=start_dataset("frozen-lake")
        )

    The model sees the rules and the first observation, calls ``act(action)``, reads the next observation as the tool's
    answer, and so on, all in one sequence of at most ``max_completion_length`` tokens. The reward is the return.

    Args:
        scenario: what is played; a dataset's column ``scenario`` goes before it.
        mode: how the model is asked to answer: ``"calls"`` for models that call tools, ``"think"`` or ``"direct"`` for
            those whose actions are read as calls (:func:`textbench.integrations.trl.read_actions_as_calls`).
        opponents: who plays the other seats of a game of several players, an agent or ``{player: agent}``. Self-play
            takes :class:`textbench.integrations.trl.StepRollouts`: TRL's loop has one conversation for each episode.
        prompt_map: makes the texts, in place of ``mode``.
        seed: of the transitions.
        **settings: of the environment, in place of the scenario's: ``format_penalty=1.0``, ``size=6``.

    Raises:
        ValueError: no such scenario, agent, mode or setting.
    """
    texts = PromptMap(mode, None, _texts()) if prompt_map is None else prompt_map
    if texts.prefix:
        raise ValueError(f"a model that calls act can't continue the response prefix {texts.prefix!r}: take it out")
    begin(Start(scenario, 0, ""), 0, texts, opponents, settings)  # what can't be played is said before the training
    made = count()

    def session(row: Mapping[str, Any], entropy: Any) -> EpisodeSession:
        return begin(Start.of(row, scenario), entropy, texts, opponents, settings)

    def environment() -> GameEnvironment:
        # environments of several processes are numbered alike, and their transitions should differ even so
        return GameEnvironment(session, (seed, next(made), int(os.environ.get("RANK", 0))))

    return environment


class GameEnvironment:
    """One episode after the other, as TRL's environments are; made by :func:`game_environment`.

    Every public method but ``reset`` and ``get_reward`` is a tool, and its docstring is what the model reads of it.

    Attributes:
        session: the episode that is being played.
    """

    def __init__(self, begin: Callable[[Mapping[str, Any], Any], EpisodeSession], entropy: tuple[int, ...]) -> None:
        self._begin, self._entropy, self._episodes = begin, entropy, 0
        self.session: EpisodeSession | None = None

    def reset(self, scenario: str | None = None, layout_seed: int = 0, seat: str | None = None, **columns: Any) -> str:
        """Begin an episode, and return what the model reads first.

        Episodes that share ``layout_seed`` begin alike, also in other environments, and have transitions of their own.
        """
        entropy = (*self._entropy, self._episodes)
        self._episodes += 1
        self.session = self._begin({"scenario": scenario, "layout_seed": layout_seed, "seat": seat}, entropy)
        return "" if self.session.over else as_text(self.session.prompt)

    def act(self, action: str) -> str:
        """Play one move of the game.

        Args:
            action: The action, as the game names it.

        Returns:
            What you see after the move.
        """
        session = self._playing()
        if session.over:
            raise RuntimeError("the game is over: there is nothing left to play")
        session.respond(f"<action>{action}</action>")
        return "The game is over." if session.over else session.prompt[-1].content

    def get_reward(self) -> float:
        """Return the episode's return so far.

        An episode that the model has left, by an answer without a call or at its last token, costs the format penalty
        once, if there is one.
        """
        session = self._playing()
        left = 0.0 if session.over else float(session.task.kwargs.get("format_penalty", 0.0))
        return session.returns[session.seat] - left

    def _playing(self) -> EpisodeSession:
        if self.session is None:
            raise RuntimeError("reset comes first")
        return self.session


def read_actions_as_calls(tokenizer: Any) -> Any:
    """Give a tokenizer a chat template and a response template in which an action tag is a call of ``act``.

    As in ``textbench run`` a response ends at its first action: what is behind it isn't read. A tag that is cut off is
    no call, so with it the model leaves the episode. Messages are joined by blank lines, as models without a chat
    template read them, and an answer ends with the end-of-sequence token. The tokenizer is changed, and returned for
    ``GRPOTrainer(processing_class=...)``.
    """
    tokenizer.chat_template = _TEMPLATE
    # an answer begins where the prompt ends: what stands before, an example of an action perhaps, is no part of it
    tokenizer.response_template = {"defaults": {"role": "assistant"}, "start_anchor_pattern": r"\Z", "fields": _FIELDS}
    return tokenizer
