"""Models of any provider that LiteLLM knows: Anthropic, Gemini, Bedrock, Azure ... Needs ``textbench[litellm]``.

LiteLLM carries the requests and has the prices; its own retries, fallbacks and caches are off
(:mod:`agents.models.served`).
"""

import asyncio
import json
import logging
import os
import re
from collections.abc import Collection, Mapping
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Literal, get_args

from agents.common.redaction import Redactor, public_url, url_secrets
from agents.models.base import NotLoaded
from agents.models.provider import Provider
from agents.models.served.address import MissingAPIKeyError, check_timeout, check_url, read_headers, read_key
from agents.models.served.answers import NO_ANSWER, ProviderError
from agents.models.served.dialect import BUDGET_FIELDS, Dialect
from agents.models.served.model import ServedModel
from agents.models.served.routes import CONTINUE
from textgames.extras import install_command, missing_packages

FUNCTIONS = {"/chat/completions": "acompletion", "/completions": "atext_completion"}
LiteLLMRoute = Literal["chat", "completions"]
# LiteLLM's names for servers of the OpenAI protocol, which may need no key
OPEN_SERVERS = ("openai", "text-completion-openai", "custom_openai", "hosted_vllm")
# finish reasons of responses that aren't whole, which LiteLLM calls "stop"
INCOMPLETE = ("abort", "error", "cancelled", "insufficient_system_resource")


class LiteLLMModel(ServedModel):
    """An :class:`~agents.models.base.AsyncLanguageModel` over ``litellm.acompletion``.

    Args:
        model: as LiteLLM has it, ``PROVIDER/MODEL``: ``anthropic/claude-sonnet-4-5``, ``gemini/gemini-2.5-flash``,
            ``bedrock/...``, ``azure/DEPLOYMENT``; ``openai/NAME`` with ``base_url`` for any OpenAI-compatible server.
        base_url: the address, if it isn't the provider's own or LiteLLM's variables don't name it.
        key_variable: the environment variable with the key, if it isn't the one that LiteLLM reads for the provider
            (``ANTHROPIC_API_KEY``, ``GEMINI_API_KEY``, AWS's and Azure's variables ...).
        route: ``"chat"``, or ``"completions"`` for base models. If a model needs OpenAI's Responses interface,
            LiteLLM asks there by itself.
        timeout, max_retries, patience, omit, reasoning_effort, reasoning_tokens, thinking_budget, send_seed,
            extra_body, headers: as for :class:`~agents.models.openai.OpenAIModel`; LiteLLM translates effort, budget
            and limit for each provider. Fields of ``extra_body`` are further arguments of LiteLLM.

    Raises:
        ModuleNotFoundError: LiteLLM isn't installed.
        MissingAPIKeyError: a key for the provider is missing.
        ValueError: LiteLLM knows no such provider, or an option is wrong.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key_variable: str | None = None,
        timeout: float = 120.0,
        max_retries: int = 6,
        patience: float = 300.0,
        route: LiteLLMRoute = "chat",
        omit: Collection[str] = (),
        reasoning_effort: str | None = None,
        reasoning_tokens: int | None = None,
        thinking_budget: int | None = None,
        send_seed: bool = False,
        extra_body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        timeout = check_timeout(timeout)
        if base_url is not None:
            check_url(base_url)
        litellm = load_litellm(model)
        try:
            provider = str(litellm.get_llm_provider(model)[1])
        except Exception:  # noqa: BLE001 - LiteLLM's own kind of error, of many lines
            raise ValueError(
                f"LiteLLM knows no provider of {model!r}; write litellm:PROVIDER/MODEL, such as litellm:gemini/{model}"
            ) from None
        key = read_key(key_variable, "")
        if key is None and not base_url:
            missing = litellm.validate_environment(model).get("missing_keys") or []
            # other credentials, such as AWS's profiles, it finds in other places, too
            if keys := [name for name in missing if name.endswith("_API_KEY")]:
                raise MissingAPIKeyError(f"the model {model!r} needs a key: export {keys[0]}=...")
        elif key is None and provider in OPEN_SERVERS and not os.environ.get("OPENAI_API_KEY"):
            key = "none"  # servers of one's own need none, but LiteLLM wants something
        sent_headers = read_headers(headers)
        if route not in get_args(LiteLLMRoute):
            raise ValueError(f"route is chat or completions, got {route!r}")
        self._provider = provider
        self.base_url = None if base_url is None else public_url(base_url)
        arguments = {"api_base": base_url, "api_key": key, "extra_headers": sent_headers or None, "timeout": timeout}
        super().__init__(
            model,
            LiteLLMTransport(f"{self.base_url or provider} (LiteLLM)", arguments, provider in OPEN_SERVERS),
            Dialect(route, omit, "auto", reasoning_effort, reasoning_tokens, None, thinking_budget),
            Redactor.from_environment(secrets=[key or "", *url_secrets(base_url or ""), *sent_headers.values()]),
            max_retries=max_retries,
            patience=patience,
            send_seed=send_seed,
            extra_body=extra_body,
        )

    @property
    def settings(self) -> dict[str, Any]:
        about = {"kind": "litellm", "name": self.name, "litellm": version("litellm")}
        return {**about, **({"base_url": self.base_url} if self.base_url else {}), **super().settings}

    def check_prefix(self, prefix: str) -> None:
        """Raise a ValueError if the provider is known not to continue a response's prefix."""
        if self._provider in ("openai", "azure") and self.base_url is None:
            raise ValueError(
                f"{self.name} can't continue the response prefix {prefix!r}: OpenAI's interfaces begin every "
                "response anew; take the prompts' [prefix] out"
            )

    def __repr__(self) -> str:
        return f"LiteLLMModel({self.name!r})"


class LiteLLMTransport:
    """Carries requests by LiteLLM's functions; what they return or raise becomes an answer as servers give it."""

    def __init__(self, url: str, arguments: Mapping[str, Any], open_server: bool) -> None:
        self.url, self._open = url, open_server
        given = {name: value for name, value in arguments.items() if value is not None}
        self._arguments: dict[str, Any] = {**given, "num_retries": 0, "max_retries": 0}

    async def complete(self, path: str, fields: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        litellm, seconds = load_litellm(self.url), self._arguments["timeout"]
        if not self._open:  # providers that continue an assistant's message do so unasked
            fields = {name: value for name, value in fields.items() if name not in CONTINUE}
        budget = {name: fields[name] for name in BUDGET_FIELDS if name in fields}
        if budget:  # Anthropic's words, which LiteLLM translates; servers of open models get their own
            thinking = {"type": "enabled", "budget_tokens": budget[BUDGET_FIELDS[0]]}
            others = {name: value for name, value in fields.items() if name not in budget}
            own = {"extra_body": {**budget, **fields.get("extra_body", {})}}
            fields = others | (own if self._open else {"thinking": thinking})
        try:
            async with asyncio.timeout(seconds):
                answer = await getattr(litellm, FUNCTIONS[path])(**self._arguments, **fields)
        except (TimeoutError, litellm.Timeout):
            raise ProviderError(f"{NO_ANSWER} {self.url} within {seconds:g} s", overloaded=True) from None
        except Exception as error:
            status = getattr(error, "status_code", None)
            if not isinstance(status, int):  # an error of the program: a field that LiteLLM doesn't take
                raise
            if lacking := re.search(r"No module named '([\w.]+)'", str(error)):  # no attempt will find it
                text = f"LiteLLM lacks the package {lacking[1]} for this request: pip install {lacking[1]}"
                return 400, {}, json.dumps({"error": {"message": text}}).encode()
            return status, *_told_by(error)
        told = (getattr(answer, "_hidden_params", None) or {}).get("additional_headers") or {}
        headers = {str(name).removeprefix("llm_provider-").lower(): str(value) for name, value in told.items()}
        body = answer.model_dump(mode="json")
        if path == "/chat/completions":
            _undo(body)
        return 200, headers, json.dumps(body).encode("utf-8", "surrogatepass")

    async def aclose(self) -> None:
        """Close LiteLLM's connections, which the whole process shares; it opens them again."""
        if hasattr(litellm := load_litellm(self.url), "close_litellm_async_clients"):
            await litellm.close_litellm_async_clients()


def load_litellm(asked_for: str) -> Any:
    """Return the package, set up to fetch and print nothing; a ModuleNotFoundError if it isn't there."""
    if find_spec("litellm") is None:
        told = f"litellm:{asked_for} needs LiteLLM, which isn't installed: {install_command('litellm')}"
        raise ModuleNotFoundError(told, name="litellm")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else importing it fetches its price table
    litellm: Any = import_module("litellm")
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    return litellm


def _told_by(error: Exception) -> tuple[dict[str, str], bytes]:
    """Return headers and body of a provider's error, without LiteLLM's words before its message."""
    text = str(getattr(error, "message", None) or error)
    body = getattr(error, "body", None)
    said = {
        "message": text.partition("Exception - ")[2] or text.removeprefix("litellm."),
        "param": getattr(error, "param", None),
        "code": body.get("code") if isinstance(body, dict) else getattr(error, "code", None),
    }
    response = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}
    lower = {str(name).lower(): str(value) for name, value in dict(headers).items()}
    return lower, json.dumps({"error": said}, default=str).encode()


def _undo(body: dict[str, Any]) -> None:
    """Undo what LiteLLM makes of a chat completion: it calls unknown finish reasons ``"stop"``, and takes a leading
    ``<think>...</think>`` out of the content if the server gives no reasoning of its own."""
    for choice in body.get("choices") or ():
        finish = (choice.get("provider_specific_fields") or {}).get("native_finish_reason")
        if str(finish).casefold() in INCOMPLETE:
            choice["finish_reason"] = finish
        message = choice.get("message") or {}
        thought, content = message.get("reasoning_content"), message.get("content")
        details = (body.get("usage") or {}).get("completion_tokens_details") or {}
        if thought and content and not details.get("reasoning_tokens") and not message.get("thinking_blocks"):
            message["content"], message["reasoning_content"] = f"<think>{thought}</think>{content}", None


def list_price(model: str, *, base_url: str | None = None) -> dict[str, Any] | None:
    """Return the price of a model in LiteLLM's table, US dollars per million tokens; ``None`` if it isn't known, as at
    a server of one's own (``openai/NAME`` at another address), or for 0 in the table."""
    if find_spec("litellm") is None or (base_url is not None and model.startswith("openai/")):
        return None
    try:
        known = load_litellm(model).get_model_info(model)
    except Exception:  # noqa: BLE001 - LiteLLM raises whatever it likes for a model that isn't in the table
        return None
    prices = {
        "input": "input_cost_per_token",
        "output": "output_cost_per_token",
        "cached_input": "cache_read_input_token_cost",
    }
    found = {name: round(known[key] * 1e6, 9) for name, key in prices.items() if known.get(key) is not None}
    if not {"input", "output"} <= found.keys() or not (found["input"] or found["output"]):
        return None
    return {**found, "source": f"LiteLLM {version('litellm')}, {known['key']}"}


def check(model: str, **options: Any) -> LiteLLMModel | NotLoaded:
    """Return the model as it would be asked, which asks no server; a key isn't needed until then."""
    try:
        return LiteLLMModel(model, **options)
    except MissingAPIKeyError:
        return NotLoaded(model, takes_images=True)


PROVIDER = Provider(
    LiteLLMModel,
    description="a model of any provider, through LiteLLM",
    example="anthropic/claude-sonnet-4-5",
    takes="PROVIDER/MODEL",
    missing=lambda: missing_packages("litellm", extra="litellm"),
    check=check,
    price=list_price,
    paid=True,
)
