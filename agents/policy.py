"""The language-agent policy ``pi = (rho, p_theta, decoding)``: prompt map, model, decoding.

``request -> rho -> prompt -> p_theta -> response``. The response goes to the game as it is; the game's action map reads
the action from it. (Dilkes et al., arXiv 2508.10839, section 4.)
"""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

from agents.models.base import AsyncLanguageModel, Completion, Decoding, LanguageModel
from agents.prompt import PromptMap
from agents.turn import Prompt, Turn, TurnRequest

T = TypeVar("T")

DEFAULT_REQUESTS_IN_FLIGHT = 64


def as_request(request: TurnRequest | str) -> TurnRequest:
    """A bare observation as a request about which nothing else is known.

    Raises:
        TypeError: neither a request nor a string.
    """
    if isinstance(request, TurnRequest):
        return request
    if isinstance(request, str):
        return TurnRequest(observation=request)
    raise TypeError(f"a policy is asked with a TurnRequest or an observation string, got {type(request).__name__}")


def as_requests(requests: Sequence[TurnRequest | str]) -> list[TurnRequest]:
    """The requests of a batch; a lone string is a mistake, as its letters would be taken for observations."""
    if isinstance(requests, str | TurnRequest):
        raise TypeError("act() takes a list of requests or observations; write act([observation])")
    return [as_request(request) for request in requests]


class LanguageAgentPolicy:
    """A player that asks a language model.

    With a model behind a server (an :class:`~agents.models.base.AsyncLanguageModel`) the object that is built is an
    :class:`AsyncLanguageAgentPolicy`, which answers many requests at a time.

    Args:
        model: the model ``p_theta``.
        prompt_map: the prompt map ``rho``; thinking, without history, when not given.
        decoding: temperature and the like; temperature 0.5 and 256 tokens when not given.
        name: what results call the player; the model's name when not given.
    """

    def __new__(cls, model: Any = None, *args: Any, **kwargs: Any) -> "LanguageAgentPolicy":
        """Choose the class by the kind of the model."""
        if cls is LanguageAgentPolicy and isinstance(model, AsyncLanguageModel):
            return object.__new__(AsyncLanguageAgentPolicy)
        return object.__new__(cls)

    def __init__(
        self,
        model: LanguageModel | AsyncLanguageModel,
        prompt_map: PromptMap | None = None,
        decoding: Decoding | None = None,
        name: str | None = None,
    ) -> None:
        self._check_model(model)
        self.model: LanguageModel | AsyncLanguageModel = model
        self.prompt_map = PromptMap() if prompt_map is None else prompt_map
        self.decoding = Decoding() if decoding is None else decoding
        self.name = model.name if name is None else name

    @staticmethod
    def _check_model(model: object) -> None:
        if not isinstance(model, LanguageModel):
            raise TypeError(f"a model has a name and generate() or generate_async(), got {type(model).__name__}")

    @property
    def history_turns(self) -> int | None:
        """How much of :attr:`~agents.turn.TurnRequest.history` the loop has to fill in."""
        return self.prompt_map.history_turns

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that decides the responses, as plain data without secrets, for manifests."""
        decoding = self.decoding
        return {
            "kind": "language-agent",
            "model": getattr(self.model, "settings", {"name": self.model.name}),
            "decoding": {
                "temperature": decoding.temperature,
                "top_p": decoding.top_p,
                "max_tokens": decoding.max_tokens,
                "stop": list(decoding.stop),
            },
            "prompt": self.prompt_map.settings,
        }

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        """One turn per request, in order; the model sees the whole batch at once."""
        asked = as_requests(requests)
        if not asked:
            return []
        prompts = [self.prompt_map(request) for request in asked]
        completions = self._complete(prompts, [request.seed for request in asked])
        if len(completions) != len(prompts):
            raise RuntimeError(f"{self.name} returned {len(completions)} completions for {len(prompts)} prompts")
        return [turn_of(*pair) for pair in zip(prompts, completions, strict=True)]

    def _complete(self, prompts: list[Prompt], seeds: list[tuple[int, ...]]) -> list[Completion]:
        assert isinstance(self.model, LanguageModel)
        started = perf_counter()
        completions = self.model.generate(prompts, self.decoding, seeds)
        if all(completion.seconds for completion in completions):
            return completions
        seconds = perf_counter() - started
        return [c if c.seconds else _timed(c, seconds) for c in completions]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, mode={self.prompt_map.mode!r}, {self.decoding})"


class AsyncLanguageAgentPolicy(LanguageAgentPolicy):
    """A player whose model is behind a server; also usable as a batched one through :meth:`act`.

    Args:
        max_concurrency: the most requests in flight during one :meth:`act`. The loop
            (:func:`agents.loop.rollout.rollout`) has its own limit and doesn't use this one.
    """

    def __init__(
        self,
        model: AsyncLanguageModel,
        prompt_map: PromptMap | None = None,
        decoding: Decoding | None = None,
        name: str | None = None,
        max_concurrency: int = DEFAULT_REQUESTS_IN_FLIGHT,
    ) -> None:
        super().__init__(model, prompt_map, decoding, name)
        self._served = model
        if max_concurrency < 1:
            raise ValueError(f"max_concurrency is a whole number of at least 1, got {max_concurrency!r}")
        self.max_concurrency = max_concurrency

    @staticmethod
    def _check_model(model: object) -> None:
        if not isinstance(model, AsyncLanguageModel):
            raise TypeError(f"a model behind a server has a name and generate_async(), got {type(model).__name__}")

    async def act_async(self, request: TurnRequest | str) -> Turn:
        """The turn of one request. A provider's error is in :attr:`Turn.error`, never raised."""
        asked = as_request(request)
        prompt = self.prompt_map(asked)
        return turn_of(prompt, await self._served.generate_async(prompt, self.decoding, asked.seed))

    async def aclose(self) -> None:
        """Release the connections of the running event loop; the policy can be used again."""
        close = getattr(self.model, "aclose", None)
        if close is not None:
            await close()

    def _complete(self, prompts: list[Prompt], seeds: list[tuple[int, ...]]) -> list[Completion]:
        return _run(self._complete_all(prompts, seeds))

    async def _complete_all(self, prompts: list[Prompt], seeds: list[tuple[int, ...]]) -> list[Completion]:
        limit = asyncio.Semaphore(self.max_concurrency)

        async def complete(prompt: Prompt, seed: tuple[int, ...]) -> Completion:
            async with limit:
                return await self._served.generate_async(prompt, self.decoding, seed)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(complete(*pair)) for pair in zip(prompts, seeds, strict=True)]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await self.aclose()
        return [task.result() for task in tasks]


def turn_of(prompt: Prompt, completion: Completion) -> Turn:
    """The decision that a completion makes."""
    return Turn(
        response=completion.text,
        prompt=prompt,
        prompt_ids=completion.prompt_ids,
        response_ids=completion.token_ids,
        logprobs=completion.logprobs,
        finish_reason=completion.finish_reason,
        usage=completion.usage,
        seconds=completion.seconds,
        error=completion.error,
    )


def _timed(completion: Completion, seconds: float) -> Completion:
    return replace(completion, seconds=seconds)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also from within a running event loop (a notebook), then on a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    outcome: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]
