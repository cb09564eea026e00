"""The language-agent policy ``pi = (rho, p_theta, decoding)`` (Dilkes et al., arXiv 2508.10839, section 4)."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from agents.models.answers import LegalAnswers
from agents.models.base import (
    CLOSE_TAG,
    AsyncLanguageModel,
    Decoding,
    LanguageModel,
    check_prefix,
    settings_of,
    why_unconstrained,
)
from agents.models.tools import Tool, check_takes_tools, read_call, with_calls
from agents.prompt import PromptMap
from agents.turn import Prompt, Turn, TurnRequest, prefix_of
from textgames.settings import check_whole

if TYPE_CHECKING:
    from textgames.tsmg import TSMG

T = TypeVar("T")

DEFAULT_REQUESTS_IN_FLIGHT = 64


def as_request(request: TurnRequest | str) -> TurnRequest:
    """Make a request of a bare observation; a TypeError for anything else."""
    if isinstance(request, TurnRequest):
        return request
    if isinstance(request, str):
        return TurnRequest(observation=request)
    raise TypeError(f"a policy is asked with a TurnRequest or an observation string, got {type(request).__name__}")


def as_requests(requests: Sequence[TurnRequest | str]) -> list[TurnRequest]:
    """Make requests of a batch; a lone string is a mistake, as its letters would be taken for observations."""
    if isinstance(requests, str | TurnRequest):
        raise TypeError("act() takes a list of requests or observations; write act([observation])")
    return [as_request(request) for request in requests]


class LanguageAgentPolicy:
    """A player that asks a language model, in this process or behind a server.

    Args:
        model: the model ``p_theta``; a TypeError if it is of neither kind.
        prompt_map: the prompt map ``rho``; thinking, without history, when not given.
        decoding: temperature and the like; temperature 0.5 and 256 tokens when not given.
        name: what results call the player; the model's name when not given.
        max_concurrency: the most requests to a server in flight during one :meth:`act`; the loop has its own.
        legal_only: draw only tokens that continue some legal answer (:mod:`agents.models.answers`). The text before the
            action is free, and so are decisions that list no actions. A ValueError if the model can't be constrained.
            A function of the request returns the names that are accepted in place of all legal ones, or none.
        tools: offer every decision's action as a tool, and take the call as the answer (:mod:`agents.models.tools`). A
            ValueError if the model can't be offered one.
    """

    def __init__(
        self,
        model: LanguageModel | AsyncLanguageModel,
        prompt_map: PromptMap | None = None,
        decoding: Decoding | None = None,
        name: str | None = None,
        max_concurrency: int = DEFAULT_REQUESTS_IN_FLIGHT,
        *,
        legal_only: bool | Callable[[TurnRequest], tuple[str, ...]] = False,
        tools: bool = False,
    ) -> None:
        check_whole("max_concurrency", max_concurrency, 1, None)
        self._server = model if isinstance(model, AsyncLanguageModel) else None
        self._local = model if isinstance(model, LanguageModel) else None
        if self._server is None and self._local is None:
            raise TypeError(f"a model has a name and generate() or generate_async(), got {type(model).__name__}")
        self.model: LanguageModel | AsyncLanguageModel = model
        self.takes_images = bool(getattr(model, "takes_images", False))  # whether requests' pictures reach it
        self.prompt_map = PromptMap() if prompt_map is None else prompt_map
        if self.prompt_map.prefix:
            check_prefix(model, self.prompt_map.prefix)
        self.decoding = Decoding() if decoding is None else decoding
        self.name = model.name if name is None else name
        self.max_concurrency = max_concurrency
        self.legal_only, self.tools = legal_only, tools
        if tools:
            check_takes_tools(self.name, model)
            self.prompt_map, self.decoding = with_calls(self.prompt_map), replace(self.decoding, stop=())
        if legal_only and (reason := why_unconstrained(model, self._reasons)) is not None:
            raise ValueError(f"{self.name} can't be played legal-only: {reason}")
        if legal_only and self.decoding.stop != (CLOSE_TAG,):
            raise ValueError(
                f"legal-only responses end at {CLOSE_TAG} and nowhere else, got stop = {self.decoding.stop!r}"
            )

    @property
    def served(self) -> bool:
        """Whether the model is behind a server, so that the loop should ask request by request."""
        return self._server is not None

    @property
    def history_turns(self) -> int | None:
        """How much of :attr:`~agents.turn.TurnRequest.history` the loop has to fill in."""
        return self.prompt_map.turns_read

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that decides the responses, as plain data without secrets, for manifests."""
        return {
            "kind": "language-agent",
            "model": settings_of(self.model),
            "decoding": asdict(self.decoding) | {"stop": list(self.decoding.stop)},
            "prompt": self.prompt_map.settings,
            **({"legal_only": True} if self.legal_only else {}),
            **({"tools": True} if self.tools else {}),
        }

    def check_game(self, game: "TSMG[Any]") -> None:
        if self.legal_only and (reason := why_not_legal_only(game)) is not None:
            raise ValueError(reason)

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        """Answer every request with a turn, in order. A model of this process sees the whole batch at once."""
        asked = as_requests(requests)
        if not asked:
            return []
        if self._local is None:
            return run_coroutine(self._act_concurrently(asked))
        prompts = [self.prompt_map(request) for request in asked]
        answers = [self._answers(*pair) for pair in zip(asked, prompts, strict=True)]
        constrained = (answers,) if self.legal_only else ()
        generate: Any = self._local.generate  # models that can be constrained take the answers besides
        started = perf_counter()
        completions = generate(prompts, self.decoding, [request.seed for request in asked], *constrained)
        seconds = perf_counter() - started
        if len(completions) != len(prompts):
            raise RuntimeError(f"{self.name} returned {len(completions)} completions for {len(prompts)} prompts")
        return [turn_of(*pair, seconds) for pair in zip(prompts, completions, strict=True)]

    async def act_async(self, request: TurnRequest | str) -> Turn:
        """Answer one request. A provider's error is in :attr:`Turn.error`, never raised."""
        asked = as_request(request)
        if self._server is None:
            return (await asyncio.to_thread(self.act, [asked]))[0]
        prompt = self.prompt_map(asked)
        constrained = (self._answers(asked, prompt),) if self.legal_only or self.tools else ()
        generate: Any = self._server.generate_async
        answer = await generate(prompt, self.decoding, asked.seed, *constrained)
        return turn_of(prompt, read_call(answer) if self.tools else answer)

    def _answers(self, request: TurnRequest, prompt: Prompt) -> LegalAnswers | Tool | None:
        """Return the tool, or the legal answers; ``None`` if legal actions can't be listed, such as talk."""
        if self.tools:
            return Tool(request.legal_actions if request.moves_listed else (), self.prompt_map.actions(request))
        names = self.legal_only(request) if callable(self.legal_only) else request.legal_actions
        return LegalAnswers(names, self._reasons, prefix_of(prompt)) if self.legal_only and names else None

    @property
    def _reasons(self) -> bool:
        return self.prompt_map.mode != "direct"

    def unknown_model(self) -> str | None:
        """Ask the server why it has no model of this name, as half a sentence; ``None`` if it has, or can't say."""

        async def unknown() -> str | None:
            try:
                name: str | None = await self._server.unknown_name()  # type: ignore[union-attr]
                return name
            finally:
                await self.aclose()

        return run_coroutine(unknown()) if hasattr(self._server, "unknown_name") else None

    async def _act_concurrently(self, requests: Sequence[TurnRequest]) -> list[Turn]:
        limit = asyncio.Semaphore(self.max_concurrency)

        async def act_within_limit(request: TurnRequest) -> Turn:
            async with limit:
                return await self.act_async(request)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(act_within_limit(request)) for request in requests]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await self.aclose()
        return [task.result() for task in tasks]

    async def aclose(self) -> None:
        """Release the connections of the running event loop; the policy can be used again."""
        close = getattr(self.model, "aclose", None)
        if close is not None:
            await close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, mode={self.prompt_map.mode!r}, {self.decoding})"


def turn_of(prompt: Prompt, answer: Turn, seconds: float = 0.0) -> Turn:
    """Complete a model's answer: its prompt, the prefix of its response, and ``seconds`` if it has none."""
    whole = answer.response if answer.error is not None else prefix_of(prompt) + answer.response
    return replace(answer, prompt=prompt, response=whole, seconds=answer.seconds or seconds)


def why_not_legal_only(game: "TSMG[Any]") -> str | None:
    """Return the reason if answers in a game can't be held to legal ones, else ``None``."""
    if lists_actions(game):
        return None
    return (
        f"{type(game).__name__} doesn't list its legal actions, so there is nothing to hold answers to: play it "
        "without legal_only"
    )


def lists_actions(game: "TSMG[Any]") -> bool:
    """Return whether a game lists the legal actions of its first decision."""
    state = game.initial_state(np.random.default_rng(0))
    return all(game.legal_actions(state, player) for player in game.to_move(state))


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also from within a running event loop (a notebook's), then on a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
