"""Models behind OpenAI-compatible servers: OpenAI itself, vLLM, llama.cpp, Ollama, SGLang, gateways.

The ``openai`` package sends the requests (:mod:`agents.models.http`). Which answers count as a response of the model,
and which as a failure of the provider, is in :mod:`agents.models.chat_answers`; how many requests are in flight, in
:mod:`agents.models.pacing`.
"""

import asyncio
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from agents.models import pacing
from agents.models.base import Completion, Decoding, seed_number
from agents.models.chat_answers import MAX_ANSWER_BYTES, ProviderError, error_message, read_completion
from agents.models.provider import Provider
from agents.redaction import Redactor, public_url, url_secrets
from agents.turn import Prompt

DEFAULT_BASE_URL = "https://api.openai.com/v1"
OMITTABLE = ("temperature", "top_p", "stop", "max_tokens")
MESSAGE_LENGTH = 400


class MissingAPIKeyError(ValueError):
    """There is no key for a server that needs one. Said when the model is built, before any request."""


class OpenAIModel:
    """An :class:`~agents.models.base.AsyncLanguageModel` over the chat-completions protocol.

    Args:
        model: the model's name at the server.
        base_url: ``http://HOST:PORT/v1``; ``OPENAI_BASE_URL`` or OpenAI's own when not given. User information in it is
            sent as basic authorisation, its query with every request.
        api_key: ``OPENAI_API_KEY`` when not given. Only OpenAI's own server needs one.
        timeout: the seconds that one attempt may take from its first byte sent to the last one received.
        max_retries: further attempts after a failure that may pass.
        patience: the seconds that are waited in all while the server refuses every request as one too many (status 429,
            or 503 with ``Retry-After``). Such a refusal isn't an attempt.
        omit: parameters that are not sent, for servers that refuse them: any of temperature, top_p, stop, max_tokens.
            An omitted stop string still ends the response, here instead of at the server.
        max_tokens_field: what the server calls the limit. ``"auto"`` sends ``max_tokens``, and
            ``max_completion_tokens`` once the server has said that it wants that.
        send_seed: send a seed made from the decision's seed, for servers that sample reproducibly.
        extra_body: further fields of every request.
        headers: further headers of every request; their values are treated as secrets.

    Raises:
        MissingAPIKeyError: no key for OpenAI's own server.
        ValueError: a malformed URL or proxy, or an unknown parameter in ``omit``.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 120.0,
        max_retries: int = 6,
        patience: float = 300.0,
        omit: Collection[str] = (),
        max_tokens_field: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto",
        send_seed: bool = False,
        extra_body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        from agents.models.http import Server  # lists of agents read this module, and shan't wait for openai

        if not model:
            raise ValueError("a model needs a name, as in openai:gpt-4o-mini")
        if not timeout > 0 or max_retries < 0:
            raise ValueError(f"timeout is above 0 and max_retries at least 0, got {timeout!r} and {max_retries!r}")
        if unknown := [name for name in omit if name not in OMITTABLE]:
            raise ValueError(f"omit takes {', '.join(OMITTABLE)}, got {', '.join(map(repr, unknown))}")
        self.name = model
        address = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).strip()
        check_url(address)
        key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ValueError(
                "the API key has characters that no key has (spaces, line breaks, non-ASCII); set it again"
            )
        if not key and address.rstrip("/") == DEFAULT_BASE_URL:
            raise MissingAPIKeyError(
                f"the model {model!r} at {DEFAULT_BASE_URL} needs a key: export OPENAI_API_KEY=..., or name another "
                "server with --base-url (base_url=, OPENAI_BASE_URL); local servers need none"
            )
        self._max_retries = int(max_retries)
        self._omit, self._send_seed = frozenset(omit), send_seed
        self._choose_limit = max_tokens_field == "auto"
        self._limit_field = "max_tokens" if self._choose_limit else max_tokens_field
        self._extra_body = dict(extra_body or {})
        self._server = Server(address, key, headers or {}, timeout=float(timeout), patience=float(patience))
        self.base_url = self._server.url
        """The server's URL, without anything secret."""
        secrets = [*url_secrets(address), *url_secrets(proxy_for(address)), *(headers or {}).values()]
        self._redactor = Redactor([key, *secrets])

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the responses, as plain data without secrets."""
        return {
            "kind": "openai",
            "name": self.name,
            "base_url": self.base_url,
            "omit": sorted(self._omit),
            "send_seed": self._send_seed,
            "extra_body": self._extra_body,
        }

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={self.base_url!r})"

    # ---------------------------------------------------------------- requests

    async def generate_async(self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...]) -> Completion:
        """The completion of one prompt; a provider's failure comes back in its ``error``."""
        started = perf_counter()
        fields = self._fields(prompt, decoding, seed)
        failures = 0
        while True:
            try:
                completion = await self._server.send(lambda: self._ask(fields, decoding))
                break
            except ProviderError as error:
                failure = error
            failures += 1
            if not failure.may_pass or failures > self._max_retries:
                completion = Completion("", finish_reason="error", error=self._message(failure, failures))
                break
            await asyncio.sleep(pacing.back_off(failures - 1, pacing.FIRST_BACK_OFF))
        return replace(completion, seconds=perf_counter() - started)

    def _fields(self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...]) -> dict[str, Any]:
        """The request's body."""
        fields: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": message.role, "content": message.content} for message in prompt],
            "temperature": decoding.temperature,
            "max_tokens": decoding.max_tokens,
        }
        if decoding.top_p != 1:
            fields["top_p"] = decoding.top_p
        if decoding.stop:
            fields["stop"] = list(decoding.stop)
        for name in self._omit:
            fields.pop(name, None)
        if "max_tokens" in fields:
            fields[self._limit_field] = fields.pop("max_tokens")
        if self._send_seed:
            fields["seed"] = seed_number(seed)
        return fields | self._extra_body

    async def _ask(self, fields: dict[str, Any], decoding: Decoding) -> Completion:
        """One attempt.

        Raises:
            ProviderError: there is no response.
        """
        status, headers, body = await self._server.complete(fields)
        # The first thing that happens to an answer: what is parsed, quoted or cut below holds no secret any more.
        text = self._redactor.scrub(body.decode("utf-8-sig", "replace"))
        if 200 <= status < 300:
            try:
                if len(body) > MAX_ANSWER_BYTES:
                    raise ProviderError(f"more than {MAX_ANSWER_BYTES} bytes", may_pass=False)
                completion = read_completion(text, decoding)
            except ProviderError as error:
                raise ProviderError(f"{self.base_url} answered with {error}", may_pass=error.may_pass) from None
            # once more, as JSON can spell any letter as an escape
            served_by = completion.served_by and self._redactor.scrub(completion.served_by)
            return replace(completion, text=self._redactor.scrub(completion.text), served_by=served_by)
        if status == 400 and self._choose_limit and "max_tokens" in fields and "max_completion_tokens" in text:
            # newer models of OpenAI's have another name for the same limit, and say so
            self._limit_field = "max_completion_tokens"
            fields["max_completion_tokens"] = fields.pop("max_tokens")
            return await self._ask(fields, decoding)
        raise self._status_error(status, headers, text)

    async def aclose(self) -> None:
        """Close the connections of the running event loop; they are opened again when they are needed."""
        await self._server.aclose()

    # ---------------------------------------------------------------- failures

    def _status_error(self, status: int, headers: Mapping[str, str], text: str) -> ProviderError:
        """What a status other than 200 means, with advice where there is any."""
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        said = error_message(answer) or text
        for name in OMITTABLE:
            if status == 400 and f"'{name}'" in said:
                said += f" (omit=[{name!r}] in the agent's options leaves it out)"
        if 300 <= status < 400:
            said = f"a redirect to {headers.get('location')}; give that server as the base URL"
        message = f"status {status} from {self.base_url}: {said}".rstrip(": ")
        wait = pacing.named_wait(headers)
        if (status == 429 and "insufficient_quota" not in text) or (status == 503 and wait is not None):
            return pacing.TooManyRequestsError(message, wait)
        return ProviderError(message, may_pass=status in (408, 409) or status >= 500)

    def _message(self, failure: ProviderError, attempts: int) -> str:
        text = self._redactor.scrub_message(" ".join(str(failure).split()))
        text = text if len(text) <= MESSAGE_LENGTH else text[:MESSAGE_LENGTH] + "..."
        return text if attempts == 1 else f"{text} (the last of {attempts} attempts)"


def check_url(url: str) -> None:
    """Refuse what isn't an http(s) URL.

    Raises:
        ValueError: says what is wrong, without repeating the secret parts.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"the base URL isn't a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        shown = url.rpartition("@")[2].partition("?")[0]
        raise ValueError(
            f"the base URL has the form http://HOST:PORT/v1 or https://HOST/v1, got {shown!r}"
            + (f"; write http://{shown}" if not parts.scheme or "://" not in url else "")
        )


def proxy_for(url: str) -> str:
    """The proxy that the environment names for a URL, ``""`` for none. The transport finds it by itself."""
    parts, proxies = urlsplit(url), getproxies()
    name = parts.scheme if parts.scheme in proxies else "all"
    proxy = proxies.get(name, "")
    if proxy_bypass(parts.hostname or ""):
        return ""
    if "://" in proxy and not proxy.startswith(("http://", "https://")):
        shown = f"{name.upper()}_PROXY has the form http://HOST:PORT, got {public_url(proxy)!r}"
        raise ValueError(f"{shown}; set another one")
    return proxy


def _missing() -> str | None:
    """Whether there is neither a key nor a server of the user's own."""
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return None
    return "a key (export OPENAI_API_KEY=...) or a server of your own (--base-url http://127.0.0.1:8000/v1)"


PROVIDER = Provider(
    OpenAIModel,
    description="a model behind an OpenAI-compatible server",
    example="gpt-4o-mini",
    missing=_missing,
)
