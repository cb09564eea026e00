"""Models behind OpenAI-compatible servers: OpenAI itself, vLLM, llama.cpp, Ollama, SGLang, gateways."""

import os
from collections.abc import Collection, Mapping
from typing import Any, Literal

from agents.common.redaction import Redactor, url_secrets
from agents.models.provider import Provider
from agents.models.served.address import MissingAPIKeyError, check_timeout, check_url, proxy_for, read_headers, read_key
from agents.models.served.dialect import Dialect, LimitField
from agents.models.served.model import ServedModel

DEFAULT_BASE_URL = "https://api.openai.com/v1"


class OpenAIModel(ServedModel):
    """An :class:`~agents.models.base.AsyncLanguageModel` over the protocol of OpenAI's servers.

    Args:
        model: the model's name at the server.
        base_url: ``http://HOST:PORT/v1``; ``OPENAI_BASE_URL`` or OpenAI's own when not given. User information in it is
            sent as basic authorisation, its query with every request.
        api_key: the key; what ``key_variable`` holds when not given. Only OpenAI's own server needs one.
        key_variable: the environment variable that holds the key; ``OPENAI_API_KEY`` when not given.
        timeout: the seconds that one attempt may take from its first byte sent to the last one received.
        max_retries: further attempts after a failure that may pass.
        patience: the seconds that are waited in all while the server refuses every request as one too many (status 429,
            or 503 with ``Retry-After``). Such a refusal isn't an attempt.
        route: ``"chat"``, ``"responses"`` (OpenAI's newer interface, which some models need) or ``"completions"`` (base
            models). ``"auto"`` is chat, and another one once the server has named it.
        omit: parameters that are not sent, for servers that refuse them: any of temperature, top_p, stop, max_tokens,
            seed. An omitted stop string still ends the response, here instead of at the server. All but max_tokens are
            left out by themselves once the server has refused them, with a notice.
        max_tokens_field: the server's name of the limit. ``"auto"`` sends ``max_tokens``, and
            ``max_completion_tokens`` once the server has asked for that.
        reasoning_effort: how much a reasoning model is to reason, in the server's words: ``"low"``, ``"medium"`` ...
        reasoning_tokens: added to the limit of a response for the reasoning before it. When not given, 25,000
            if an effort is asked for, or once reasoning has eaten up a response; else nothing.
        chat_template_kwargs: arguments of the model's chat template, for servers of open models:
            ``{"enable_thinking": False}``. A model that is told to think is sent no stop string, which servers look for
            in reasoning, too: its responses end here.
        thinking_budget: the most tokens of reasoning, after which the server closes it and the model responds; vLLM
            (started with ``--reasoning-config``) and llama.cpp do that. The limit of a response is beside it.
        send_seed: send a seed made from the decision's seed, for servers that sample reproducibly.
        extra_body: further fields of every request; they replace those of the same name.
        grammar: how the server can be told what a response may be, for ``legal_only``: ``"gbnf"`` (llama.cpp) or
            ``"structured_outputs"`` (vLLM).
        headers: further headers of every request; their values are treated as secrets. ``$NAME`` in one stands for the
            environment variable of that name.

    Raises:
        MissingAPIKeyError: no key for OpenAI's own server, or nothing in ``key_variable``.
        ValueError: an option is wrong, or a variable that it names isn't set.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        key_variable: str | None = None,
        timeout: float = 120.0,
        max_retries: int = 6,
        patience: float = 300.0,
        route: Literal["auto", "chat", "responses", "completions"] = "auto",
        omit: Collection[str] = (),
        max_tokens_field: LimitField = "auto",
        reasoning_effort: str | None = None,
        reasoning_tokens: int | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        thinking_budget: int | None = None,
        send_seed: bool = False,
        extra_body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        grammar: str = "",
    ) -> None:
        from agents.models.served.http import Server  # lists of agents read this module, and shan't wait for openai

        if not model:
            raise ValueError("a model needs a name, as in openai:gpt-4o-mini")
        timeout = check_timeout(timeout)
        address = _address(base_url)
        check_url(address)
        key = api_key or read_key(key_variable, "OPENAI_API_KEY") or ""
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ValueError(
                "the API key has characters that no key has (spaces, line breaks, non-ASCII); set it again"
            )
        if address.rstrip("/") == DEFAULT_BASE_URL:
            if not key:
                raise MissingAPIKeyError(
                    f"the model {model!r} at {DEFAULT_BASE_URL} needs a key: export OPENAI_API_KEY=..., or name "
                    "another server with --base-url (base_url=, OPENAI_BASE_URL); local servers need none"
                )
            if chat_template_kwargs or thinking_budget is not None:
                raise ValueError(
                    f"{DEFAULT_BASE_URL} takes neither chat_template_kwargs nor thinking_budget: its models reason as "
                    "reasoning_effort says; servers of open models take both (--base-url)"
                )
        sent_headers = read_headers(headers)
        server = Server(address, key, sent_headers, timeout=timeout)
        super().__init__(
            model,
            server,
            Dialect(
                route, omit, max_tokens_field, reasoning_effort, reasoning_tokens, chat_template_kwargs, thinking_budget
            ),
            Redactor([key, *url_secrets(address), *url_secrets(proxy_for(address)), *sent_headers.values()]),
            max_retries=max_retries,
            patience=patience,
            send_seed=send_seed,
            extra_body=extra_body,
            grammar=grammar,
        )
        self.base_url = server.url
        """The server's URL, without anything secret."""

    @property
    def settings(self) -> dict[str, Any]:
        return {"kind": "openai", "name": self.name, "base_url": self.base_url, **super().settings}

    def check_prefix(self, prefix: str) -> None:
        """Raise a ValueError if the server is known not to continue a response's prefix."""
        if self.base_url.rstrip("/") == DEFAULT_BASE_URL or self._dialect.settings.get("route") == "responses":
            raise ValueError(
                f"{self.name} at {self.base_url} can't continue the response prefix {prefix!r}: OpenAI's interfaces "
                "begin every response anew; take the prompts' [prefix] out, or ask a server that does (vLLM, "
                "llama.cpp, SGLang, Ollama)"
            )

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={self.base_url!r})"


def _address(base_url: str | None) -> str:
    return (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).strip()


def _missing() -> str | None:
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return None
    return "a key (export OPENAI_API_KEY=...) or a server of your own (--base-url http://127.0.0.1:8000/v1)"


def list_price(model: str, *, base_url: str | None = None) -> Mapping[str, Any] | None:
    """Return OpenAI's own price of a model, if LiteLLM is installed, whose table has it; other servers' isn't known."""
    from agents.models import litellm

    return litellm.list_price(f"openai/{model}") if _address(base_url).rstrip("/") == DEFAULT_BASE_URL else None


def check(model: str, **options: Any) -> OpenAIModel:
    """Return the model as it would be asked, which asks no server; a key isn't needed until then."""
    return OpenAIModel(model, **{"api_key": "none", **options})


PROVIDER = Provider(
    OpenAIModel,
    description="a model behind an OpenAI-compatible server",
    example="gpt-4o-mini",
    missing=_missing,
    check=check,
    price=list_price,
    paid=True,
)
