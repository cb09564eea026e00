"""A model that plays back responses: for tests, demonstrations and dry runs. No network, no torch."""

import threading
from collections.abc import Callable, Iterable, Sequence

from agents.models.base import Decoding
from agents.turn import Prompt, Turn, Usage

Script = Callable[[Prompt, Decoding, tuple[int, ...]], str | Turn]


class ScriptExhaustedError(RuntimeError):
    """A scripted model was asked more often than it has responses."""


class ScriptedModel:
    """A :class:`~agents.models.base.LanguageModel` with prepared responses.

    Args:
        responses: the responses in the order of the calls (perhaps endless), or a function
            ``(prompt, decoding, seed) -> response``. A response is a text or a whole :class:`~agents.turn.Turn`.
        name: what results call it.
    """

    def __init__(self, responses: Iterable[str | Turn] | Script, name: str = "scripted") -> None:
        if isinstance(responses, str):
            raise TypeError(f"responses is a list or a function, got the string {responses!r}; write [{responses!r}]")
        self.name = name
        remaining = iter(()) if callable(responses) else iter(responses)
        self._script = responses if callable(responses) else lambda *_: next(remaining, None)
        self._lock = threading.Lock()
        self.calls = 0
        """Responses given so far."""

    def generate(self, prompts: Sequence[Prompt], decoding: Decoding, seeds: Sequence[tuple[int, ...]]) -> list[Turn]:
        """Return the next response for each prompt; :class:`ScriptExhaustedError` is raised when there are no more."""
        turns = []
        for prompt, seed in zip(prompts, seeds, strict=True):
            with self._lock:
                response = self._script(prompt, decoding, seed)
                if response is None:
                    raise ScriptExhaustedError(
                        f"the scripted model {self.name!r} has given all of its {self.calls} responses and was asked "
                        "for another one; give it more, an endless iterator (itertools.cycle), or a function"
                    )
                self.calls += 1
            if not isinstance(response, Turn):
                words = sum(len(message.content.split()) for message in prompt)
                response = Turn(response, usage=Usage(words, len(response.split())))
            turns.append(response)
        return turns
