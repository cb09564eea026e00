"""What a server takes: known from its user, or learnt from its refusals.

A status 400 that names a parameter is learnt from once: the parameter is left out or goes by its other name from then
on, the request is sent again, and a notice says so. What the user has set by hand is never changed.
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

from agents.models.reasoning import NOT_BEGUN, Begun, asks_for_reasoning, check_thinking
from agents.models.served.answers import error_message
from agents.models.served.routes import ROUTES, RouteName
from agents.turn import Prompt, Turn, prefix_of
from textgames.texts.actions import OPEN_TAG, THINK, behind_thoughts

OMITTABLE = ("temperature", "top_p", "stop", "max_tokens", "seed")
"""What a user may have left out."""
LEARNABLE = ("temperature", "top_p", "stop", "seed", "store")
"""What is left out when a server refuses it. A limit isn't: without one a response may cost anything."""
REASONING_TOKENS = 25_000
"""The tokens that a reasoning model may use beside those of its response. OpenAI's advice is to reserve as many."""

BUDGET_FIELDS = ("thinking_token_budget", "thinking_budget_tokens")
"""What vLLM and llama.cpp call a budget of reasoning; each overlooks the other's name."""

LimitField = Literal["auto", "max_tokens", "max_completion_tokens"]
_REFUSAL = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed|deprecated|only the default"
)
_TOO_MANY_TOKENS = re.compile(r"context (length|window)|maximum context|too large|at most \d|exceeds")


class Dialect:
    """How one server wants to be asked.

    Args:
        route: where requests go; ``"auto"`` is chat until the server names another route.
        omit: what isn't sent, any of :data:`OMITTABLE`.
        limit_field: what the limit is called; ``"auto"`` finds out.
        effort: of the reasoning, as the server calls it; ``None`` doesn't ask for any.
        reasoning_tokens: what is added to the limit for reasoning; ``None`` adds the thinking budget, or else
            :data:`REASONING_TOKENS` if an effort is asked for, and where a response was eaten up by reasoning.
        template_arguments: of the chat template, which servers of open models take.
        thinking_budget: the most tokens of reasoning, for servers that hold them to it.

    Attributes:
        thinks: whether the model reasons before it responds; ``None`` until that is known. Servers don't tell the stop
            string in its reasoning from the one that ends the response, so none is sent to a model that does.
        stopped_thinking: whether a response was stopped in a ``<think>`` that the prompt asks for; then none is sent
            either.
        suspects: whether a response may have been stopped in reasoning that the chat template had opened, which its
            text alone can't tell; one without a stop string does, and is asked for once.
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
        self.effort, self.omit = effort, frozenset(omit)
        self.left_out: tuple[str, ...] = ()  # what the server refused, in the order of its refusals
        self._chooses_route, self._chooses_limit = route == "auto", limit_field == "auto"
        self._limit_field = None if limit_field == "auto" else limit_field
        self._chooses_allowance = reasoning_tokens is None
        usual = REASONING_TOKENS if effort not in (None, "none") else 0
        self.allowance = (thinking_budget or usual) if reasoning_tokens is None else reasoning_tokens
        self._of_template: dict[str, Any] = {"chat_template_kwargs": arguments} if arguments else {}
        if thinking_budget is not None:
            self._of_template |= dict.fromkeys(BUDGET_FIELDS, thinking_budget)
        self.thinking_budget = thinking_budget
        asked = asks_for_reasoning(arguments)
        self.thinks = True if asked is None and thinking_budget is not None else asked
        self.stopped_thinking = False
        self.suspects: bool | None = None  # None until there was a response to suspect

        chosen: dict[str, tuple[Any, Any]] = {"route": (route, "auto"), "reasoning_effort": (effort, None)}
        chosen |= {"reasoning_tokens": (reasoning_tokens, None), "thinking_budget": (thinking_budget, None)}
        chosen["chat_template_kwargs"] = (arguments, {})
        self.settings: dict[str, Any] = {"omit": sorted(self.omit)}
        """What the user chose, for manifests; without what is as usual."""
        self.settings |= {name: value for name, (value, usual) in chosen.items() if value != usual}

    def begun(self, prompt: Prompt) -> Begun:
        """Return what the response to a prompt begins with."""
        prefix = prefix_of(prompt)
        return Begun(prefix, "may" if self.thinks and not prefix and self.route != "completions" else "none")

    def shape(
        self, fields: dict[str, Any], max_tokens: int, seed: int | None, begun: Begun = NOT_BEGUN
    ) -> dict[str, Any]:
        """Return the fields as this server wants them, with the limit and the seed."""
        route, absent = ROUTES[self.route], self.omit.union(self.left_out)
        if begun.opening != "none" or self.stopped_thinking or self.suspects:
            absent |= {"stop"}
        if self.route == "chat":
            fields |= self._of_template
        shaped = {name: value for name, value in fields.items() if name not in absent}
        if "summary" in absent and "reasoning" in shaped:
            shaped["reasoning"] = {"effort": self.effort}
        if "max_tokens" not in absent:
            shaped[route.limit if self.route != "chat" else self._limit_field or route.limit] = (
                max_tokens + self.allowance
            )
        if seed is not None and route.seed and "seed" not in absent:
            shaped["seed"] = seed
        return shaped

    def learn(self, status: int, text: str, sent: Mapping[str, Any]) -> str | None:
        """Take notice of a refusal; what was learnt, as a sentence, or ``None`` if the refusal is final."""
        said, parameter = refusal_of(text)
        route = _other_route(status, said) if self._chooses_route else None
        if route is not None and route != self.route:
            self.route = route
            return f"it wants the route {ROUTES[route].path} (route = {route!r} in the agent's options says so at once)"
        if status != 400:
            return None
        if self._chooses_limit and "max_tokens" in sent and "max_completion_tokens" in said:
            self._limit_field = "max_completion_tokens"
            return "it wants max_completion_tokens in place of max_tokens"
        lower = said.casefold()
        if self.allowance and self._chooses_allowance and _TOO_MANY_TOKENS.search(lower):
            self.allowance //= 4
            return f"it doesn't take as many tokens: {self.allowance:,} are added for reasoning"
        if "reasoning" in sent and "summar" in lower and "summary" not in self.left_out:
            return self._leave_out("summary")
        if _REFUSAL.search(lower):
            for name in LEARNABLE:
                named = parameter == name or re.search(rf"['\"`]{name}['\"`]", said) is not None
                if named and name in sent and name not in self.left_out:
                    return self._leave_out(name)
        return None

    def _leave_out(self, name: str) -> str:
        self.left_out += (name,)
        how = "; responses end at the stop string all the same" if name == "stop" else ""
        return f"it doesn't take {name!r}, which is left out from here on{how}"

    def learn_of_stop(self, completion: Turn, prompt: Prompt, sent: Mapping[str, Any]) -> str | None:
        """Take notice of a response that was stopped in reasoning; what was learnt, or ``None``.

        A ``<think>`` that is open is the model's own if the prompt doesn't ask for one. Where it does, a response
        that ends in it without a stop string has ended by itself. Words before an action may be reasoning that the
        template has opened: without a stop string, they go on to its close.
        """
        if self.suspects and "stop" not in sent and completion.error is None:
            self.suspects = False
            self.thinks = True if self.thinks is None and completion.reasoning else self.thinks
            return None
        if "stop" not in sent or completion.finish_reason != "stop":
            return None
        inside = behind_thoughts(prefix_of(prompt) + completion.response) is None
        asked_for = any(THINK in message.content for message in prompt)
        told = bool(completion.reasoning) and not completion.response.strip()
        if self.thinks is None and (told or (inside and not asked_for)):
            self.thinks = True
        elif inside and completion.response.endswith(tuple(sent["stop"])):
            self.stopped_thinking = True
        elif self.thinks is None and self.suspects is not False and self._may_reason(completion, prompt, sent["stop"]):
            self.suspects = True
            return "it may stop in the model's reasoning: a response is asked for again without a stop string, to see"
        else:
            return None
        return "it stops in the model's reasoning: no stop string is sent from here on, and responses end at it here"

    def _may_reason(self, completion: Turn, prompt: Prompt, stops: Collection[str]) -> bool:
        """Return whether a stopped response has words before its action, and nothing that tells them from reasoning."""
        said = completion.response
        plain = not completion.reasoning and not prefix_of(prompt) and THINK not in said and self.route != "completions"
        return plain and said.endswith(tuple(stops)) and bool(said.partition(OPEN_TAG)[0].strip())

    def learn_of_reasoning(self) -> bool:
        """Take notice that reasoning ate up a response; whether there are more tokens for the next one."""
        if self.allowance or not self._chooses_allowance:
            return False
        self.allowance = REASONING_TOKENS
        return True


def refusal_of(text: str) -> tuple[str, str | None]:
    """Return what an answer to a bad request says, and the parameter that it names apart from the message."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    error = answer.get("error") if isinstance(answer, dict) else None
    parameter = error.get("param") if isinstance(error, dict) else None
    return error_message(answer) or text, parameter if isinstance(parameter, str) else None


def _other_route(status: int, said: str) -> RouteName | None:
    """Return the route that a refusal of the chat route names."""
    if status not in (400, 404):
        return None
    if "v1/responses" in said:
        return "responses"
    if "v1/completions" in said or "provide a chat template" in said:
        return "completions"
    return None
