"""The parameters that a server takes, given by its user or learnt from its refusals, and the models that it has.

A status 400 that names a parameter is learnt from once: the parameter is left out or goes by its other name from then
on, the request is sent again, and a notice reports it. Choices of the user are never changed.

A server's list of models (``GET /models``) answers whether it has one of a name. Many servers take names that they
don't list; then one small request is sent, and only a refusal in words about the model counts.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

from agents.models.base import Decoding
from agents.models.reasoning import NOT_BEGUN, Begun, check_thinking
from agents.models.served.answers import error_message, parsed
from agents.models.served.routes import ROUTES, RouteName
from agents.turn import Message, Prompt, Turn, prefix_of
from textgames.names import did_you_mean
from textgames.texts.actions import OPEN_TAG, THINK, behind_thoughts

OMITTABLE = ("temperature", "top_p", "stop", "max_tokens", "seed")
"""The parameters that a user may have left out."""
# left out once a server refuses them; not so the limit, without which a response may cost anything
LEARNABLE = ("temperature", "top_p", "stop", "seed", "store")
REASONING_TOKENS = 25_000
"""The tokens that a reasoning model may use beside those of its response. OpenAI's advice is to reserve as many."""
BUDGET_FIELDS = ("thinking_token_budget", "thinking_budget_tokens")  # vLLM's and llama.cpp's; each overlooks the other

FIXES = {
    **{f"'{name}'": f"omit=['{name}'] in the agent's options leaves it out" for name in OMITTABLE},
    "reasoning.effort": "leave out --reasoning-effort, or give a word that this server takes",
    "chat_template_kwargs": "leave out --chat-template-kwargs",
    **dict.fromkeys((*BUDGET_FIELDS, "'thinking'"), "leave out --thinking-budget"),
    r"\btools?\b": "leave --protocol tools out, or ask a server that takes them: vLLM's by "
    "--enable-auto-tool-choice and --tool-call-parser, llama.cpp's by --jinja",
    "(?i)image|multimodal": "ask a model that takes images, or leave --observe out",
}
"""``{pattern of a parameter in a refusal: the fix}``; names that are words of other sentences too are quoted."""

LimitField = Literal["auto", "max_tokens", "max_completion_tokens"]
_REFUSAL = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed|deprecated|only the default"
)
_TOO_MANY_TOKENS = re.compile(r"context (length|window)|maximum context|too large|at most \d|exceeds")


class Dialect:
    """The form of one server's requests; the arguments are explained in :class:`~agents.models.openai.OpenAIModel`.

    ``allowance`` tokens are added to the limit for reasoning; ``left_out`` is what the server refused. Servers don't
    tell a stop string in reasoning from the one that ends the response, so none is sent to a model that ``thinks``
    (``None`` until that is known), nor once a response ``stopped_thinking`` in a ``<think>`` that the prompt asks for.
    If a response may have stopped in reasoning that the chat template had opened (``suspects``), one without a stop
    string is asked for once.
    """

    def __init__(
        self,
        route: "RouteName | Literal['auto']" = "auto",
        omit: Collection[str] = (),
        limit_field: LimitField = "auto",
        effort: str | None = None,
        reasoning_tokens: int | None = None,
        template_arguments: Mapping[str, Any] | None = None,
        thinking_budget: int | None = None,
    ) -> None:
        arguments = check_thinking(template_arguments, thinking_budget)
        if route in ("completions", "responses") and (arguments or thinking_budget is not None):
            raise ValueError(f"chat_template_kwargs and thinking_budget are of the route chat, got route = {route!r}")
        if unknown := [name for name in omit if name not in OMITTABLE]:
            raise ValueError(f"omit takes {', '.join(OMITTABLE)}, got {', '.join(map(repr, unknown))}")
        if route not in ("auto", *ROUTES):
            raise ValueError(f"route is auto, {', '.join(ROUTES)}, got {route!r}")
        if limit_field not in get_args(LimitField):
            raise ValueError(f"max_tokens_field is {', '.join(get_args(LimitField))}, got {limit_field!r}")
        if reasoning_tokens is not None and not 0 <= reasoning_tokens <= 10**7:
            raise ValueError(f"reasoning_tokens is a whole number from 0 to 10,000,000, got {reasoning_tokens!r}")
        self.route: RouteName = "chat" if route == "auto" else route
        self.effort, self._omit, self.thinking_budget = effort, frozenset(omit), thinking_budget
        self.left_out: tuple[str, ...] = ()
        self._chooses_route, self._chooses_limit = route == "auto", limit_field == "auto"
        self._limit_field = None if limit_field == "auto" else limit_field
        self._chooses_allowance = reasoning_tokens is None
        usual = REASONING_TOKENS if effort not in (None, "none") else 0
        self.allowance = (thinking_budget or usual) if reasoning_tokens is None else reasoning_tokens
        self._of_template: dict[str, Any] = {"chat_template_kwargs": arguments} if arguments else {}
        if thinking_budget is not None:
            self._of_template |= dict.fromkeys(BUDGET_FIELDS, thinking_budget)
        switches = [arguments.get(name) for name in ("enable_thinking", "thinking")]
        asked = next((switch for switch in switches if isinstance(switch, bool)), None)
        self.thinks = True if asked is None and thinking_budget is not None else asked
        self.stopped_thinking = False
        self.suspects: bool | None = None
        chosen = {
            "omit": sorted(omit),
            "route": None if route == "auto" else route,
            "reasoning_effort": effort,
            "reasoning_tokens": reasoning_tokens,
            "thinking_budget": thinking_budget,
            "chat_template_kwargs": arguments or None,
        }
        self.settings = {name: value for name, value in chosen.items() if value is not None}

    def begun(self, prompt: Prompt) -> Begun:
        """Return what the response to a prompt begins with."""
        prefix = prefix_of(prompt)
        return Begun(prefix, "may" if self.thinks and not prefix and self.route != "completions" else "none")

    def shape(
        self, fields: dict[str, Any], max_tokens: int, seed: int | None, begun: Begun = NOT_BEGUN
    ) -> dict[str, Any]:
        """Return the fields as this server wants them, with the limit and the seed."""
        route, absent = ROUTES[self.route], self._omit.union(self.left_out)
        if begun.opening != "none" or self.stopped_thinking or self.suspects:
            absent |= {"stop"}
        if self.route == "chat":
            fields |= self._of_template
        shaped = {name: value for name, value in fields.items() if name not in absent}
        if "summary" in absent and "reasoning" in shaped:
            shaped["reasoning"] = {"effort": self.effort}
        if "max_tokens" not in absent:
            limit = self._limit_field if self.route == "chat" and self._limit_field else route.limit
            shaped[limit] = max_tokens + self.allowance
        if seed is not None and route.seed and "seed" not in absent:
            shaped["seed"] = seed
        return shaped

    def learn(self, status: int, text: str, sent: Mapping[str, Any]) -> str | None:
        """Return what a refusal has taught, as a sentence; ``None`` if it is final."""
        words, parameter = refusal_of(text)
        if self._chooses_route and status in (400, 404):
            route = self.route
            if "v1/responses" in words:
                route = "responses"
            elif "v1/completions" in words or "provide a chat template" in words:
                route = "completions"
            if route != self.route:
                self.route, path = route, ROUTES[route].path
                return f"it wants the route {path} (route = {route!r} in the agent's options says so at once)"
        if status != 400:
            return None
        if self._chooses_limit and "max_tokens" in sent and "max_completion_tokens" in words:
            self._limit_field = "max_completion_tokens"
            return "it wants max_completion_tokens in place of max_tokens"
        lower = words.casefold()
        if self.allowance and self._chooses_allowance and _TOO_MANY_TOKENS.search(lower):
            self.allowance //= 4
            return f"it doesn't take as many tokens: {self.allowance:,} are added for reasoning"
        refused = ["summary"] if "reasoning" in sent and "summar" in lower else []
        if _REFUSAL.search(lower):
            named = [name for name in LEARNABLE if parameter == name or re.search(rf"['\"`]{name}['\"`]", words)]
            refused += [name for name in named if name in sent]
        for name in refused:
            if name not in self.left_out:
                self.left_out += (name,)
                how = "; responses end at the stop string all the same" if name == "stop" else ""
                return f"it doesn't take {name!r}, which is left out from here on{how}"
        return None

    def learn_of_stop(self, completion: Turn, prompt: Prompt, sent: Mapping[str, Any]) -> str | None:
        """Return what a response has taught that was stopped in reasoning, or ``None``.

        An open ``<think>`` is the model's own if the prompt doesn't ask for one. Words before an action may be
        reasoning that the template has opened: without a stop string, they continue to its close.
        """
        said, reasoned = completion.response, bool(completion.reasoning)
        if self.suspects and "stop" not in sent and completion.error is None:
            self.suspects = False
            self.thinks = True if self.thinks is None and reasoned else self.thinks
            return None
        if "stop" not in sent or completion.finish_reason != "stop":
            return None
        prefix, stopped = prefix_of(prompt), said.endswith(tuple(sent["stop"]))
        inside = behind_thoughts(prefix + said) is None
        asked_for = any(THINK in message.content for message in prompt)
        words_first = bool(said.partition(OPEN_TAG)[0].strip())
        may_reason = words_first and not (reasoned or prefix or THINK in said or self.route == "completions")
        if self.thinks is None and ((reasoned and not said.strip()) or (inside and not asked_for)):
            self.thinks = True
        elif inside and stopped:
            self.stopped_thinking = True
        elif self.thinks is None and self.suspects is not False and may_reason and stopped:
            self.suspects = True
            return "it may stop in the model's reasoning: a response is asked for again without a stop string, to see"
        else:
            return None
        return "it stops in the model's reasoning: no stop string is sent from here on, and responses end at it here"

    def learn_of_reasoning(self) -> tuple[bool, str]:
        """Return whether there are more tokens for a response that reasoning ate up, and a notice."""
        ate = "reasoning ate up a whole response"
        if self.allowance or not self._chooses_allowance:
            enough = f"reasoning_tokens = {2 * max(self.allowance, 1024)} in the agent's options"
            return False, f"{ate}, which is empty now; allow more tokens: {enough}, or a lower reasoning_effort"
        self.allowance = REASONING_TOKENS
        how = "(reasoning_tokens = N in the agent's options says how many)"
        return True, f"{ate}: {REASONING_TOKENS:,} tokens more are allowed from here on {how}"


def refusal_of(text: str) -> tuple[str, str | None]:
    """Return the words of an answer to a bad request, and the parameter that it names apart from the message."""
    answer = parsed(text)
    error = answer.get("error") if isinstance(answer, dict) else None
    parameter = error.get("param") if isinstance(error, dict) else None
    return error_message(answer) or text, parameter if isinstance(parameter, str) else None


MOST_NAMES = 12  # of those that are listed in a message
MOST_LENGTH = 100  # of a name in it
QUESTION = (Message("user", "Say yes."),)
SMALL = Decoding(temperature=1.0, max_tokens=16, stop=())

_UNKNOWN = re.compile(
    r"not[ _](found|exist|available|supported|a valid|valid|recogni[sz]ed|have access)|n't (exist|have|found)|unknown"
    r"|invalid|no such|unsupported|does not exist|no endpoints",
    re.IGNORECASE,
)


def why_unknown(name: str, url: str, status: int, text: str, listed: list[str] | None) -> str | None:
    """Return why a server has no model of this name, as half a sentence, by its answer to the small request and the
    names in its list; ``None`` if it has, or if nothing tells."""
    words, parameter = refusal_of(text)
    about_the_name = (
        (parameter == "model" or "model_not_found" in text)
        or (listed is not None and status == 404)
        or ((re.search(r"\bmodels?\b", words, re.IGNORECASE) or name in words) and _UNKNOWN.search(words))
    ) and parameter in (None, "model")  # else "'seed' is not supported with this model"
    if status not in (400, 403, 404, 422) or not about_the_name:
        return None
    said = " ".join(words.split())[:200]
    names = [one for one in listed or [] if len(one) <= MOST_LENGTH and one.isprintable()]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    instead = did_you_mean(name, names) or (names and f"; it has {', '.join(names[:MOST_NAMES])}{more}") or ""
    return f"{url} has no model {name!r} (status {status}: {said}){instead}"


def read_names(text: str) -> list[str] | None:
    """Return the names in the answer of a models route; ``None`` if it is no list of models."""
    models = parsed(text)
    models = models.get("data") if isinstance(models, dict) else models
    names = [model.get("id") for model in models if isinstance(model, dict)] if isinstance(models, list) else []
    return [name for name in names if isinstance(name, str) and name] or None
