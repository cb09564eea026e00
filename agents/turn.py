"""One decision of a policy, as data: what it was asked (`TurnRequest`) and what it answered (`Turn`).

``state -> observation -> [TurnRequest -> Turn] -> action``: these two types are all that a policy and the loop that
plays it know of each other.
"""

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


Prompt = tuple[Message, ...]
"""What a language model is sent. Models without a chat template get the contents joined by blank lines.

If the last message is the assistant's, it is the prefix of the response, which models continue.
"""


def prefix_of(prompt: Prompt) -> str:
    """Return what the response to a prompt begins with already; empty for most prompts."""
    return prompt[-1].content if prompt and prompt[-1].role == "assistant" else ""


def without_prefix(prompt: Prompt) -> Prompt:
    """Return the prompt up to where the response begins."""
    return prompt[:-1] if prompt and prompt[-1].role == "assistant" else prompt


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that couldn't be read, if the player may answer again.

    Attributes:
        turn: the answer.
        unreadable: why it couldn't be read, a value of ``textgames.UnreadableReason``.
    """

    turn: "Turn"
    unreadable: str


@dataclass(slots=True, unsafe_hash=True)  # not frozen: see Step
class TurnRequest:
    """Everything that a player may know when it has to choose.

    Attributes:
        observation: the text observation ``phi(s)``.
        instructions: the game's rules and actions, constant over an episode.
        legal_actions: the names that count as an action now; empty if they can't be listed.
        history: the ``(observation, response)`` pairs of this episode so far, oldest first; empty when history is off.
        player: who is asked, as in ``game.players``.
        steps_left: rounds until truncation, this one included; ``None`` if there is no limit.
        history_steps_left: ``steps_left`` at each of the turns in ``history``; empty if it isn't known.
        game: the rules, for players that search on their own copy. Language models never see it.
        seed: entropy for this one decision. Equal seeds and equal requests give equal responses, in any batch.
        action_help: the game's words on what may be written as an action; empty if ``legal_actions`` says it all.
        sample_action: draws a random legal action from a generator, if they can't be listed; for random play.
        refused: earlier answers to this decision that couldn't be read, oldest first.
        moves_listed: whether the prompt may list the legal actions; ``legal_actions`` has them in any case.
    """

    observation: str
    instructions: str = ""
    legal_actions: tuple[str, ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    player: str = "player_0"
    steps_left: int | None = None
    game: "TSMG[Any] | None" = None
    seed: tuple[int, ...] = ()
    action_help: str = ""
    sample_action: "Callable[[np.random.Generator], str] | None" = None
    history_steps_left: tuple[int | None, ...] = ()
    refused: tuple[Refused, ...] = ()
    moves_listed: bool = True


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
    """Which weights made the tokens ``start`` to ``stop`` (exclusive) of a response.

    ``version`` counts the updates that the weights have had, from 0, in a model that is being trained.
    """

    version: int
    start: int
    stop: int


class TokenSet(NamedTuple):
    """The tokens that might stand at one place of a response, if not all might.

    Attributes:
        ids: in ascending order.
        others: whether ``ids`` are those that might not, which says nearly all tokens in few numbers.
    """

    ids: tuple[int, ...]
    others: bool = False


Allowed = tuple[TokenSet | None, ...]
"""What might stand at every token of a response; ``None`` if any token might. Probabilities are renormalised."""


FinishReason = Literal["stop", "length", "refusal", "content_filter", "error"]


def eaten_up(finish_reason: str | None, response: str, reasoning: object) -> bool:
    """Return whether a response is empty because reasoning (its text, or its number of tokens) took all of its
    tokens."""
    return finish_reason == "length" and not response.strip() and bool(reasoning)


@dataclass(slots=True, unsafe_hash=True)  # not frozen: see Step
class Turn:
    """One answer: of a policy, or of a model to one prompt, before the policy has put the prompt in.

    Attributes:
        response: the text that goes to the game: without special tokens, with the stop string that ended it. A model
            leaves out the prefix that the prompt ends with; the policy's has it.
        prompt: what the model was sent; empty for players without a model, and from the model itself.
        prompt_ids: token ids of the prompt, without padding; ``None`` if the model doesn't give them.
        response_ids: token ids that were sampled, the end-of-sequence token included; ``None`` likewise.
        logprobs: natural log-probability of every sampled token under the distribution that it was sampled from
            (temperature and top-p applied), as long as ``response_ids``; ``None`` likewise.
        finish_reason: ``"length"`` if the token limit cut the response off, ``"refusal"`` if the server says that the
            model declined to answer.
        usage: tokens as counted.
        seconds: wall-clock time of this decision; for a batch, that of the batch.
        error: why there is no response (a provider's error). The episode is then unscored.
        served_by: what a server calls the model that answered, with its fingerprint; ``None`` for other players.
        weights: which weights made which of the sampled tokens, in order and without gaps, if the model is being
            trained.
        reasoning: the text of the model's reasoning, if a server gives it apart from the response.
        left_out: parameters of the decoding that weren't sent, since the server refuses them.
        allowed: the tokens that might stand at each of ``response_ids``, if answers were constrained; else ``None``.
        discarded: tokens of answers that a server gave before, or in place of, the response and that weren't taken.
        uncounted: whether a server answered without saying how many tokens that took.
        tool_calls: the calls of tools that a server's model made, as JSON; no tool is offered, and none is called.
        cut: what a server's model wrote behind the end of its response, which no game reads.
    """

    response: str
    prompt: Prompt = ()
    prompt_ids: tuple[int, ...] | None = None
    response_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    finish_reason: FinishReason = "stop"
    usage: Usage = NO_USAGE
    seconds: float = 0.0
    error: str | None = None
    served_by: str | None = None
    weights: tuple[WeightsSpan, ...] = ()
    reasoning: str = ""
    left_out: tuple[str, ...] = ()
    allowed: Allowed | None = None
    discarded: Usage = NO_USAGE
    uncounted: bool = False
    tool_calls: str = ""
    cut: str = ""

    @property
    def paid(self) -> Usage:
        """All tokens that were paid for: nothing of the response cache, but what was discarded."""
        return self.discarded if self.usage.cached else total_usage((self.usage, self.discarded))


@runtime_checkable
class Policy(Protocol):
    """A player: chooses for a whole batch of requests at once.

    A request may also be a bare observation string. A policy that can't play every game may have a method
    ``check_game(game)`` that raises ``ValueError`` with the reason; commands call it before the first episode.
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
    """A player that can be asked for one request at a time, many at once: the usual form if its model is a server.

    A policy that has both methods, but gains from whole batches, has an attribute ``served = False``.
    """

    async def act_async(self, request: "TurnRequest | str") -> Turn:
        """Answer one request. Provider errors are returned in :attr:`Turn.error`, never raised."""


def is_served(policy: Policy) -> TypeGuard[AsyncPolicy]:
    """Return whether the loop asks this policy request by request, each episode at its own pace."""
    return isinstance(policy, AsyncPolicy) and bool(getattr(policy, "served", True))
