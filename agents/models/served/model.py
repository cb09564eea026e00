"""A model behind a server, whatever carries the requests: asking, asking again, and keeping secrets out of answers."""

import asyncio
import logging
import re
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from agents.common.redaction import Redactor
from agents.models.answers import NEVER_CLOSED, LegalAnswers
from agents.models.base import Decoding, seed_number
from agents.models.reasoning import Begun
from agents.models.served import pacing
from agents.models.served.answers import MAX_ANSWER_BYTES, ProviderError, usage_in
from agents.models.served.dialect import FIXES, OMITTABLE, QUESTION, SMALL, Dialect, read_names, refusal_of, why_unknown
from agents.models.served.pacing import PerLoop
from agents.models.served.routes import CONTINUE, ROUTES, Route
from agents.models.tools import Tool
from agents.turn import Prompt, Turn, Usage, eaten_up, total_usage

MESSAGE_LENGTH = 400
NAME_SECONDS = 10.0  # for either question whether a server has a model
BUDGET_MARGIN = 16  # tokens that a server may take to close the reasoning

Told = Tool | Mapping[str, Any] | None  # what a request tells a server of the answers

GRAMMARS = ("gbnf", "structured_outputs")  # llama.cpp's field "grammar", and vLLM's

NOTICES = logging.getLogger("agents.models.served")
"""Warnings about a server while it is asked: parameters that it refuses, budgets that reasoning ate up."""


class Transport(Protocol):
    """The carrier of requests to a server, which messages call by its ``url``; nothing in that is secret."""

    url: str

    async def complete(self, path: str, fields: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers (names in small letters) and body of an answer; a ProviderError if there is no whole
        one in time."""

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""


class ServedModel:
    """An :class:`~agents.models.base.AsyncLanguageModel` over any transport; ``dialect`` is what the server takes, and
    ``redactor`` knows the secrets that are sent. The options are those of :class:`~agents.models.openai.OpenAIModel`.
    """

    takes_tools = True

    def __init__(
        self,
        name: str,
        transport: Transport,
        dialect: Dialect,
        redactor: Redactor,
        *,
        max_retries: int,
        patience: float,
        send_seed: bool,
        extra_body: Mapping[str, Any] | None,
        grammar: str = "",
    ) -> None:
        if grammar not in ("", *GRAMMARS):
            raise ValueError(f"grammar is {' or '.join(GRAMMARS)}, got {grammar!r}")
        if max_retries < 0 or not patience >= 0:
            raise ValueError(
                f"max_retries and patience are numbers of at least 0, got {max_retries!r} and {patience!r}"
            )
        for field in ("model", "messages", "input", "prompt"):
            if field in (extra_body or {}):
                raise ValueError(f"extra_body has {field!r}, which the agent and its prompts decide: leave it out")
        self.name = name
        self._transport, self._dialect, self._redactor = transport, dialect, redactor
        self.takes_images = self.takes_tools = dialect.route != "completions"
        self._max_retries, self._patience = int(max_retries), float(patience)
        self._send_seed, self._extra_body, self._grammar = send_seed, dict(extra_body or {}), grammar
        self._pacers: PerLoop[pacing.Pacer] = PerLoop()  # requests of one loop wait for each other
        self._noticed: set[str] = set()

    @property
    def settings(self) -> dict[str, Any]:
        grammar = {"grammar": self._grammar} if self._grammar else {}
        return {**self._dialect.settings, "send_seed": self._send_seed, "extra_body": self._extra_body, **grammar}

    def why_unconstrained(self, reasons: bool) -> str | None:
        if self._grammar:
            return NEVER_CLOSED if reasons else None
        return (
            "OpenAI's API takes no grammar (its JSON schemas are another form); a llama.cpp server does, with the "
            'option grammar="gbnf", and vLLM\'s with grammar="structured_outputs"'
        )

    async def generate_async(
        self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...], answers: LegalAnswers | Tool | None = None
    ) -> Turn:
        """Return the completion of one prompt; a provider's failure comes back in its ``error``."""
        started = perf_counter()
        number = seed_number(seed) if self._send_seed else None
        try:
            limit = decoding.max_tokens
            told = self._constraint(answers, limit) if isinstance(answers, LegalAnswers) else answers
        except ValueError as error:
            return Turn("", finish_reason="error", error=str(error))
        failures, discarded = 0, list[Usage]()
        pacer = self._pacers.get(lambda: pacing.Pacer(self._patience))
        while True:
            try:
                completion = await pacer.send(lambda: self._ask(prompt, decoding, number, told, discarded))
                break
            except ProviderError as error:
                failure = error
            failures += 1
            if not failure.may_pass or failures > self._max_retries:
                text = self._redactor.scrub_message(" ".join(str(failure).split()))
                text = text if len(text) <= MESSAGE_LENGTH else text[:MESSAGE_LENGTH] + "..."
                text += f" (the last of {failures} attempts)" if failures > 1 else ""
                completion = Turn("", finish_reason="error", error=text)
                break
            await asyncio.sleep(pacing.back_off(failures - 1, pacing.FIRST_BACK_OFF))
        return replace(completion, seconds=perf_counter() - started, discarded=total_usage(discarded))

    def _constraint(self, answers: LegalAnswers, max_tokens: int) -> dict[str, Any]:
        """Return the fields that hold a response to legal answers; a ValueError if one may not fit."""
        endings = answers.endings()
        if max_tokens < (most := max(len(text.encode()) for text in endings)):  # a token a byte suffices
            raise ValueError(f"a legal answer may take {most} tokens, and max_tokens is {max_tokens}: raise it")
        return {"grammar": answers.gbnf()} if self._grammar == "gbnf" else {"structured_outputs": {"choice": endings}}

    def _fields(
        self, prompt: Prompt, decoding: Decoding, seed: int | None, told: Told, dialect: Dialect
    ) -> dict[str, Any]:
        """Return the request's body; ``told`` are the tool, or the fields that hold the response to legal answers."""
        tool, held = (told, {}) if isinstance(told, Tool) else (None, told or {})
        fields = ROUTES[dialect.route].fields(prompt, decoding, dialect.effort, tool)
        shaped = dialect.shape(fields, decoding.max_tokens, seed, dialect.begun(prompt))
        return {"model": self.name, **shaped, **held, **self._extra_body}

    async def _ask(
        self, prompt: Prompt, decoding: Decoding, seed: int | None, told: Told, discarded: list[Usage]
    ) -> Turn:
        """Return the response of one attempt, and of another for everything that a refusal teaches; a ProviderError
        without any. The tokens of answers that aren't taken are added to ``discarded``."""
        dialect = self._dialect
        fields_now = partial(self._fields, prompt, decoding, seed, told, dialect)
        while True:
            route, fields, begun = ROUTES[dialect.route], fields_now(), dialect.begun(prompt)
            status, headers, body = await self._transport.complete(route.path, fields)
            text = self._text(body)
            if not 200 <= status < 300:
                if fields_now() != fields:  # others have learnt something meanwhile
                    continue
                if (learnt := dialect.learn(status, text, fields)) is None:
                    discarded.append(usage_in(text))
                    raise self._status_error(status, headers, text)
                self._notice(learnt)
                continue
            try:
                completion = self._read(route, text, len(body), decoding, begun)
            except ProviderError as error:
                discarded.append(usage_in(text))
                raise ProviderError(f"{self._transport.url} answered with {error}", may_pass=error.may_pass) from None
            if (learnt := dialect.learn_of_stop(completion, prompt, fields)) is not None:
                self._notice(learnt)
                discarded.append(completion.usage)
                continue
            self._look_at(completion, begun)
            reasoning = completion.usage.reasoning_tokens or completion.reasoning
            if not eaten_up(completion.finish_reason, completion.response, reasoning):
                return completion
            if fields_now() == fields:  # else others have learnt of it meanwhile
                more, notice = dialect.learn_of_reasoning()
                self._notice(notice)
                if not more:
                    return completion
            discarded.append(completion.usage)

    def _read(self, route: Route, text: str, size: int, decoding: Decoding, begun: Begun) -> Turn:
        if size > MAX_ANSWER_BYTES:
            raise ProviderError(f"more than {MAX_ANSWER_BYTES} bytes", may_pass=False)
        completion, scrub = route.read(text, decoding, begun), self._redactor.scrub
        # scrubbed once more, as JSON can spell any letter as an escape
        plain: Any = {name: scrub(getattr(completion, name)) for name in ("response", "reasoning", "tool_calls", "cut")}
        plain["served_by"] = completion.served_by and scrub(completion.served_by)
        return replace(completion, **plain, left_out=tuple(n for n in self._dialect.left_out if n in OMITTABLE))

    def _look_at(self, completion: Turn, begun: Begun) -> None:
        """Warn if a server doesn't seem to hold to what it was asked."""
        if begun.prefix and completion.response.lstrip().startswith(begun.prefix):
            self._notice(
                f"a response begins with {begun.prefix!r} again: this server seems not to go on from the prompts' "
                "[prefix]; route = 'completions' in the agent's options does where the model needs no chat template"
            )
        budget = self._dialect.thinking_budget
        if budget is not None and completion.usage.reasoning_tokens > budget + BUDGET_MARGIN:
            self._notice(
                f"{completion.usage.reasoning_tokens:,} tokens of reasoning are more than thinking_budget = {budget}, "
                "which this server doesn't hold the model to: vLLM needs --reasoning-config"
            )

    async def unknown_name(self) -> str | None:
        """Return why the server has no model of this name; ``None`` if it has, or if that can't be found out."""
        listed: list[str] | None = None
        dialect = copy(self._dialect)  # what is learnt is learnt again in the run, which reports it
        try:
            if (models := getattr(self._transport, "models", None)) is not None:
                async with asyncio.timeout(NAME_SECONDS):
                    status, body = await models()
                listed = read_names(self._text(body)) if status == 200 else None
                if {self.name, f"{self.name}:latest"} & set(listed or ()):  # Ollama's default tag
                    return None
            async with asyncio.timeout(NAME_SECONDS):
                while True:
                    fields = self._fields(QUESTION, SMALL, None, None, dialect)
                    status, _, body = await self._transport.complete(ROUTES[dialect.route].path, fields)
                    text = self._text(body)
                    if 200 <= status < 300 or dialect.learn(status, text, fields) is None:
                        return why_unknown(self.name, self._transport.url, status, text, listed)
        except (TimeoutError, ProviderError):
            return None

    def _text(self, body: bytes) -> str:
        """Return an answer's text without secrets, before anything is parsed, quoted or cut."""
        return self._redactor.scrub(body.decode("utf-8-sig", "replace"))

    def _notice(self, text: str) -> None:
        if text not in self._noticed:
            self._noticed.add(text)
            NOTICES.warning("%s at %s: %s", self.name, self._transport.url, text)

    async def aclose(self) -> None:
        self._pacers.pop()
        await self._transport.aclose()

    def _status_error(self, status: int, headers: Mapping[str, str], text: str) -> ProviderError:
        """Return the error for a status other than 200, with advice if there is any."""
        said, parameter = refusal_of(text)
        fixes = FIXES | {re.escape(f"'{name}'"): f"leave {name!r} out of extra_body" for name in self._extra_body}
        for name, fix in fixes.items() if status in (400, 404, 422, 500) else ():
            if re.search(name, f"{said} '{parameter}'"):
                said += f" ({fix})"
        if any(name in said for name in CONTINUE):
            said += " (it can't go on from the prompts' [prefix]: take that out)"
        if "insufficient_quota" in text and "insufficient_quota" not in said:
            said += " (insufficient_quota)"
        if 300 <= status < 400:
            said = f"a redirect to {headers.get('location')}; give that server as the base URL"
        message = f"status {status} from {self._transport.url}: {said}".rstrip(": ")
        wait = pacing.named_wait(headers)
        if (status == 429 and "insufficient_quota" not in text) or (status in (503, 529) and wait is not None):
            return pacing.TooManyRequestsError(message, wait)
        overloaded = status in (502, 503, 504, 529)
        return ProviderError(message, may_pass=status in (408, 409) or status >= 500, overloaded=overloaded)
