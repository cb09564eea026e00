"""A model behind a server, whatever carries the requests: asking, asking again, and keeping secrets out of answers."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from agents.common.redaction import Redactor
from agents.models.answers import NEVER_CLOSED, LegalAnswers
from agents.models.base import Decoding, seed_number
from agents.models.reasoning import Begun
from agents.models.served import names, pacing
from agents.models.served.answers import MAX_ANSWER_BYTES, ProviderError, usage_in
from agents.models.served.chat import CONTINUE
from agents.models.served.dialect import OMITTABLE, REASONING_TOKENS, Dialect, refusal_of
from agents.models.served.loops import PerLoop
from agents.models.served.routes import ROUTES
from agents.turn import Prompt, Turn, Usage, eaten_up, total_usage

MESSAGE_LENGTH = 400
BUDGET_MARGIN = 16  # tokens that a server may take to close the reasoning

GRAMMARS = ("gbnf", "structured_outputs")
"""How servers are told what a response may be: llama.cpp's field ``grammar``, and vLLM's."""

NOTICES = logging.getLogger("agents.models.served")
"""What people should know of a server while it is asked: parameters that it refuses, budgets that reasoning ate up."""


class Transport(Protocol):
    """What carries requests to a server.

    Attributes:
        url: what messages call the server; nothing in it is secret.
    """

    url: str

    async def complete(self, path: str, fields: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        """Return the status, the headers (names in small letters) and the body of the answer to one request.

        Raises:
            ProviderError: there is no whole answer in time.
        """

    async def aclose(self) -> None:
        """Close the connections of the running event loop; they are opened again when they are needed."""


@dataclass(frozen=True)
class Asking:
    """How a server is asked, apart from what it is asked.

    Attributes:
        max_retries: further attempts after a failure that may pass.
        patience: seconds that are waited in all while the server refuses every request as one too many.
        send_seed: send a seed made from the decision's seed.
        extra_body: further fields of every request.
        grammar: how the server is told what a response may be: ``"gbnf"`` (llama.cpp's ``grammar``),
            ``"structured_outputs"`` (vLLM's field); empty: it can't be told.
    """

    max_retries: int = 6
    patience: float = 300.0
    send_seed: bool = False
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    grammar: str = ""

    def __post_init__(self) -> None:
        if self.grammar not in ("", *GRAMMARS):
            raise ValueError(f"grammar is {' or '.join(GRAMMARS)}, got {self.grammar!r}")
        if self.max_retries < 0 or not self.patience >= 0:
            raise ValueError(
                f"max_retries at least 0, and patience too; got {self.max_retries!r} and {self.patience!r}"
            )


class ServedModel:
    """An :class:`~agents.models.base.AsyncLanguageModel` over any transport.

    Args:
        name: the model's name at the server.
        transport: carries the requests.
        asking, dialect: how the server is asked, and what it is known to take.
        redactor: knows the secrets that are sent.
    """

    def __init__(self, name: str, transport: Transport, asking: Asking, dialect: Dialect, redactor: Redactor) -> None:
        self.name = name
        self._transport, self._asking, self._dialect, self._redactor = transport, asking, dialect, redactor
        self._pacers: PerLoop[pacing.Pacer] = PerLoop()  # requests of one loop wait for each other
        self._noticed: set[str] = set()

    @property
    def settings(self) -> dict[str, Any]:
        """How the model is asked, as far as it decides the responses; what is as usual is mostly left out."""
        return {
            **self._dialect.settings,
            "send_seed": self._asking.send_seed,
            "extra_body": dict(self._asking.extra_body),
            **({"grammar": self._asking.grammar} if self._asking.grammar else {}),
        }

    def why_unconstrained(self, reasons: bool) -> str | None:
        """Return why responses can't be held to legal answers; ``None`` if the server can be told them."""
        if self._asking.grammar:
            return NEVER_CLOSED if reasons else None
        return (
            "OpenAI's API takes no grammar (its JSON schemas are another form); a llama.cpp server does, with the "
            'option grammar="gbnf", and vLLM\'s with grammar="structured_outputs"'
        )

    async def generate_async(
        self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...], answers: LegalAnswers | None = None
    ) -> Turn:
        """Return the completion of one prompt; a provider's failure comes back in its ``error``."""
        started = perf_counter()
        number = seed_number(seed) if self._asking.send_seed else None
        try:
            told = self._constraint(answers, decoding.max_tokens)
        except ValueError as error:
            return Turn("", finish_reason="error", error=str(error))
        failures, discarded = 0, list[Usage]()
        while True:
            try:
                completion = await self._pacers.get(self._new_pacer).send(
                    lambda: self._ask(prompt, decoding, number, told, discarded)
                )
                break
            except ProviderError as error:
                failure = error
            failures += 1
            if not failure.may_pass or failures > self._asking.max_retries:
                completion = Turn("", finish_reason="error", error=self._message(failure, failures))
                break
            await asyncio.sleep(pacing.back_off(failures - 1, pacing.FIRST_BACK_OFF))
        return replace(completion, seconds=perf_counter() - started, discarded=total_usage(discarded))

    def _constraint(self, answers: LegalAnswers | None, max_tokens: int) -> dict[str, Any]:
        """Return the fields that hold a response to legal answers; a ValueError if one may not fit."""
        if answers is None:
            return {}
        if max_tokens < (most := answers.most_tokens):
            raise ValueError(f"a legal answer may take {most} tokens, and max_tokens is {max_tokens}: raise it")
        if self._asking.grammar == "gbnf":
            return {"grammar": answers.gbnf()}
        return {"structured_outputs": {"choice": answers.endings()}}

    def _fields(self, prompt: Prompt, decoding: Decoding, seed: int | None, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request's body; ``told`` are the fields that hold the response to legal answers."""
        dialect = self._dialect
        fields = ROUTES[dialect.route].fields(prompt, decoding, dialect.effort)
        shaped = dialect.shape(fields, decoding.max_tokens, seed, dialect.begun(prompt))
        return {"model": self.name, **shaped, **told, **self._asking.extra_body}

    async def _ask(
        self,
        prompt: Prompt,
        decoding: Decoding,
        seed: int | None,
        told: Mapping[str, Any],
        discarded: list[Usage],
    ) -> Turn:
        """Return one attempt, and another one for everything that the server's refusal teaches.

        The tokens of answers that aren't taken are added to ``discarded``.

        Raises:
            ProviderError: there is no response.
        """
        while True:
            route, fields = ROUTES[self._dialect.route], self._fields(prompt, decoding, seed, told)
            begun = self._dialect.begun(prompt)
            status, headers, body = await self._transport.complete(route.path, fields)
            # The first thing that happens to an answer: what is parsed, quoted or cut below holds no secret any more.
            text = self._redactor.scrub(body.decode("utf-8-sig", "replace"))
            if 200 <= status < 300:
                try:
                    completion = self._read(partial(route.read, text, decoding, begun), len(body))
                except ProviderError:
                    discarded.append(usage_in(text))
                    raise
                if (learnt := self._dialect.learn_of_stop(completion, prompt, fields)) is not None:
                    self._notice(learnt)
                    discarded.append(completion.usage)
                    continue
                self._look_at(completion, begun)
                reasoning = completion.usage.reasoning_tokens or completion.reasoning
                if not eaten_up(completion.finish_reason, completion.response, reasoning):
                    return completion
                if self._fields(prompt, decoding, seed, told) == fields and not self._more_tokens():
                    return completion
                discarded.append(completion.usage)
            elif self._fields(prompt, decoding, seed, told) == fields:  # else others have learnt something meanwhile
                learnt = self._dialect.learn(status, text, fields)
                if learnt is None:
                    discarded.append(usage_in(text))
                    raise self._status_error(status, headers, text)
                self._notice(learnt)

    def _read(self, read: Callable[[], Turn], size: int) -> Turn:
        try:
            if size > MAX_ANSWER_BYTES:
                raise ProviderError(f"more than {MAX_ANSWER_BYTES} bytes", may_pass=False)
            completion = read()
        except ProviderError as error:
            raise ProviderError(f"{self._transport.url} answered with {error}", may_pass=error.may_pass) from None
        # once more, as JSON can spell any letter as an escape
        scrub = self._redactor.scrub
        return replace(
            completion,
            response=scrub(completion.response),
            served_by=completion.served_by and scrub(completion.served_by),
            reasoning=scrub(completion.reasoning),
            tool_calls=scrub(completion.tool_calls),
            cut=scrub(completion.cut),
            left_out=tuple(name for name in self._dialect.left_out if name in OMITTABLE),
        )

    def _look_at(self, completion: Turn, begun: Begun) -> None:
        """Say it if a server doesn't seem to hold to what it was asked."""
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

    def _more_tokens(self) -> bool:
        """Take notice that reasoning left no token for a response; whether there are more to ask again with."""
        more = self._dialect.learn_of_reasoning()
        if more:
            self._notice(
                f"reasoning ate up a whole response: {REASONING_TOKENS:,} tokens more are allowed from here on "
                "(reasoning_tokens = N in the agent's options says how many)"
            )
        else:
            enough = 2 * max(self._dialect.allowance, 1024)
            self._notice(
                "reasoning ate up a whole response, which is empty now; allow more tokens: "
                f"reasoning_tokens = {enough} in the agent's options, or a lower reasoning_effort"
            )
        return more

    async def unknown_name(self) -> str | None:
        """Return why the server has no model of this name, asked before a run; ``None`` if it has, or if nobody
        knows.

        See :mod:`agents.models.served.names`.
        """
        asking = self._asking.extra_body
        return await names.unknown_name(self.name, self._transport, self._dialect, self._redactor, asking)

    def _notice(self, said: str) -> None:
        if said not in self._noticed:
            self._noticed.add(said)
            NOTICES.warning("%s at %s: %s", self.name, self._transport.url, said)

    def _new_pacer(self) -> pacing.Pacer:
        return pacing.Pacer(self._asking.patience)

    async def aclose(self) -> None:
        """Close the connections of the running event loop; they are opened again when they are needed."""
        self._pacers.pop()
        await self._transport.aclose()

    # ---------------------------------------------------------------- failures

    def _status_error(self, status: int, headers: Mapping[str, str], text: str) -> ProviderError:
        """Return what a status other than 200 means, with advice if there is any."""
        said, parameter = refusal_of(text)
        for name in OMITTABLE:
            if status == 400 and (f"'{name}'" in said or parameter == name):
                said += f" (omit=[{name!r}] in the agent's options leaves it out)"
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

    def _message(self, failure: ProviderError, attempts: int) -> str:
        text = self._redactor.scrub_message(" ".join(str(failure).split()))
        text = text if len(text) <= MESSAGE_LENGTH else text[:MESSAGE_LENGTH] + "..."
        return text if attempts == 1 else f"{text} (the last of {attempts} attempts)"
