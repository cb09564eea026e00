"""One decision of a policy, as data: what it was asked (`TurnRequest`) and what it answered (`Turn`).

``state -> observation -> [TurnRequest -> Turn] -> action``: these two types are all that a policy and the loop that
plays it know of each other.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeGuard, runtime_checkable

if TYPE_CHECKING:
    import numpy as np

    from textgames.tsmg import TSMG

Role = Literal["system", "user", "assistant"]


class Message(NamedTuple):
    """One message of a chat: who speaks, and what."""

    role: Role
    content: str
    image: bytes = b""  #: a PNG file that is shown before the content; empty for none

    def as_chat(self) -> dict[str, Any]:
        """Return the message in OpenAI's chat format, with an image as a part whose address holds its bytes."""
        if not self.image:
            return {"role": self.role, "content": self.content}
        address = f"data:image/png;base64,{b64encode(self.image).decode()}"
        shown = {"type": "image_url", "image_url": {"url": address}}
        return {"role": self.role, "content": [shown, {"type": "text", "text": self.content}]}


Prompt = tuple[Message, ...]
"""What a language model is sent. Models without a chat template get the contents joined by blank lines.

If the last message is the assistant's, it is the prefix of the response, which models continue.
"""


def prefix_of(prompt: Prompt) -> str:
    """Return the beginning of the response that a prompt ends with; empty for most prompts."""
    return prompt[-1].content if prompt and prompt[-1].role == "assistant" else ""


def without_prefix(prompt: Prompt) -> Prompt:
    """Return the prompt up to where the response begins."""
    return prompt[:-1] if prompt and prompt[-1].role == "assistant" else prompt


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that couldn't be read, if the player may answer again."""

    turn: "Turn"  #: the answer
    unreadable: str  #: why it couldn't be read, a value of ``textgames.UnreadableReason``


@dataclass(slots=True, unsafe_hash=True)  # not frozen: see Step
class TurnRequest:
    """Everything that a player may know when it has to choose."""

    observation: str  #: the text observation ``phi(s)``
    instructions: str = ""  #: the game's rules and actions, constant over an episode
    legal_actions: tuple[str, ...] = ()  #: the names that count as an action now; empty if they can't be listed
    history: tuple[tuple[str, str], ...] = ()  #: ``(observation, response)`` of the turns so far; empty if off
    player: str = "player_0"  #: who is asked, as in ``game.players``
    steps_left: int | None = None  #: rounds until truncation, this one included; ``None`` if there is no limit
    game: "TSMG[Any] | None" = None  #: the rules, for players that search; language models never see them
    seed: tuple[int, ...] = ()  #: entropy for this decision: equal seeds, equal responses, in any batch
    action_help: str = ""  #: the game's words on what may be written; empty if ``legal_actions`` says it all
    sample_action: "Callable[[np.random.Generator], str] | None" = None  #: draws a random action if none are listed
    history_steps_left: tuple[int | None, ...] = ()  #: ``steps_left`` at each turn in ``history``, if known
    refused: tuple[Refused, ...] = ()  #: earlier answers to this decision that couldn't be read, oldest first
    moves_listed: bool = True  #: whether the prompt may list the legal actions; ``legal_actions`` has them in any case
    picture: bytes = b""  #: what the player sees, as a PNG file; empty unless the protocol shows pictures
    reads_text: bool = True  #: whether the prompt shows the observation's text, beside a picture if there is one


def own_action_help(game: "TSMG[Any]", state: Any, player: str, legal_actions: tuple[str, ...]) -> str:
    """Return a game's words on what may be written, if they say more than the list of legal actions; else empty."""
    told = game.action_help(state, player)
    return "" if told == ", ".join(legal_actions) else told


def request_in(
    game: "TSMG[Any]", state: Any, player: str, steps_left: int | None = None, seed: tuple[int, ...] = ()
) -> TurnRequest:
    """Make the request of ``player`` in a state of the game, with nothing before it."""
    legal = game.legal_actions(state, player)
    return TurnRequest(
        observation=game.observe(state, player),
        instructions=game.instructions(player),
        legal_actions=legal,
        player=player,
        steps_left=steps_left,
        game=game,
        seed=seed,
        action_help=own_action_help(game, state, player, legal),
        sample_action=None if legal else partial(game.sample_action, state, player),
    )


MOST_TOKENS = 10**9
"""The most tokens that a decision, or an episode, is believed to have; a higher count is a server's fault."""


class Usage(NamedTuple):
    """Tokens of one decision, as the model or the provider counted them; 0 for players without a model."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached: bool = False
    """The response came from the response cache: nothing was generated or paid for, but what a turn calls discarded."""
    reasoning_tokens: int = 0
    """Those of the completion tokens that a server counted as reasoning, which the response doesn't show."""
    cached_prompt_tokens: int = 0
    """Those of the prompt tokens that the provider had in its own cache, and sells for less."""


NO_USAGE = Usage()


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Add up the tokens of several answers; cached if all are that have any: a scripted player's have none."""
    counted = [usage for usage in usages if usage[:2] != (0, 0)]
    return Usage(
        prompt_tokens=sum(one.prompt_tokens for one in counted),
        completion_tokens=sum(one.completion_tokens for one in counted),
        cached=bool(counted) and all(one.cached for one in counted),
        reasoning_tokens=sum(one.reasoning_tokens for one in counted),
        cached_prompt_tokens=sum(one.cached_prompt_tokens for one in counted),
    )


class WeightsSpan(NamedTuple):
    """The weights (their number of updates) that made the tokens ``start`` to ``stop`` (exclusive) of a response."""

    version: int
    start: int
    stop: int


class TokenSet(NamedTuple):
    """The tokens that might stand at one place of a response, if not all might."""

    ids: tuple[int, ...]  #: in ascending order
    others: bool = False  #: whether ``ids`` are those that might not, which says nearly all tokens in few numbers


Allowed = tuple[TokenSet | None, ...]
"""What might stand at every token of a response; ``None`` if any token might. Probabilities are renormalised."""


FinishReason = Literal["stop", "length", "refusal", "content_filter", "error"]


def eaten_up(finish_reason: str | None, response: str, reasoning: object) -> bool:
    """Return whether a response is empty because reasoning (its text, or its number of tokens) took all tokens."""
    return finish_reason == "length" and not response.strip() and bool(reasoning)


@dataclass(slots=True, unsafe_hash=True)  # not frozen: see Step
class Turn:
    """One answer: of a policy, or of a model to one prompt, before the policy has put the prompt in."""

    response: str  #: the whole text that goes to the game; a model's answer lacks the prompt's prefix
    prompt: Prompt = ()  #: what the model was sent; empty for players without a model, and from the model itself
    prompt_ids: tuple[int, ...] | None = None  #: without padding; ``None`` if the model doesn't give them
    response_ids: tuple[int, ...] | None = None  #: sampled ones, the end-of-sequence token included; ``None`` likewise
    logprobs: tuple[float, ...] | None = None  #: of ``response_ids``, as sampled (temperature, top-p); natural
    finish_reason: FinishReason = "stop"  #: ``"length"``: cut off at the token limit
    usage: Usage = NO_USAGE  #: tokens as counted
    seconds: float = 0.0  #: wall-clock time of this decision; for a batch, that of the batch
    error: str | None = None  #: why there is no response (a provider's error). The episode is then unscored.
    served_by: str | None = None  #: a server's name for the model, with its fingerprint
    weights: tuple[WeightsSpan, ...] = ()  #: the weights that made the sampled tokens, in order, in training
    reasoning: str = ""  #: the text of the model's reasoning, if a server gives it apart from the response
    left_out: tuple[str, ...] = ()  #: parameters of the decoding that weren't sent, since the server refuses them
    allowed: Allowed | None = None  #: tokens that might stand at each of ``response_ids``, if constrained
    discarded: Usage = NO_USAGE  #: answers that a server gave before, or in place of, the response
    uncounted: bool = False  #: whether a server answered without saying how many tokens that took
    tool_calls: str = ""  #: calls of tools that a server's model made, as JSON; one is offered with the protocol tools
    cut: str = ""  #: what a server's model wrote behind its response, or beside its call, which no game reads

    @property
    def paid(self) -> Usage:
        """All tokens that were paid for: nothing of the response cache, but what was discarded."""
        return self.discarded if self.usage.cached else total_usage((self.usage, self.discarded))


@runtime_checkable
class Policy(Protocol):
    """A player: chooses for a whole batch of requests, or bare observations, at once.

    It may have a method ``check_game(game)`` that raises ``ValueError`` if it can't play; commands call it first.
    """

    name: str

    def act(self, requests: Sequence["TurnRequest | str"]) -> list[Turn]:
        """Answer every request with a :class:`Turn`, in order."""


def check_game(policy: Policy, game: "TSMG[Any]") -> None:
    """Raise the ``ValueError`` of a policy that can't play a game; most can play any."""
    check: Callable[[TSMG[Any]], None] = getattr(policy, "check_game", lambda game: None)
    check(game)


@runtime_checkable
class AsyncPolicy(Policy, Protocol):
    """A player, usually a model behind a server, that can be asked for one request at a time, many at once.

    A policy that has both methods, but gains from whole batches, has an attribute ``served = False``.
    """

    async def act_async(self, request: "TurnRequest | str") -> Turn:
        """Answer one request. Provider errors are returned in :attr:`Turn.error`, never raised."""


def is_served(policy: Policy) -> TypeGuard[AsyncPolicy]:
    """Return whether the loop asks this policy request by request, each episode at its own pace."""
    return isinstance(policy, AsyncPolicy) and bool(getattr(policy, "served", True))
