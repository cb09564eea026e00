"""A policy's distribution over actions: ``request -> {action: probability}``; the rest to 1 is an invalid response."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any, Literal, NamedTuple

import numpy as np

from agents.turn import Policy, Prompt, Turn, TurnRequest, is_served, prefix_of
from textgames.texts.actions import CLOSE_TAG, OPEN_TAG, ActionNames, parse_action

Source = Literal["known", "scored", "sampled"]
"""The source of probabilities: a policy that knows its own, a local model's exact ones, or responses drawn anew."""

NOT_SUMMED = "an answer has thousands of tokenisations, whose probabilities aren't summed up exactly"
"""Why nothing exact is computed of a policy that plays legal-only."""

_ROWS = 64  # that a model scores together

DEFAULT_SAMPLES = 32
"""Responses for each request if its distribution has to be sampled."""


class Distributions(NamedTuple):
    """The distributions of a policy at several requests, in their order."""

    probabilities: list[dict[str, float]]  #: of every legal action
    source: Source  #: see :data:`Source`
    samples: int | None  #: responses for each request; ``None`` if the probabilities are exact


def action_probabilities(
    policy: Policy, requests: Sequence[TurnRequest], samples: int = DEFAULT_SAMPLES
) -> Distributions:
    """Return the distributions of a policy, exact if that can be; a provider's error is raised as a RuntimeError.

    They are exact for a policy that knows them (it has a method ``action_probabilities(request)``), for a local model
    that answers with nothing but the action, and for a local model at temperature 0, by one response.
    """
    exact = exact_probabilities(policy, requests)
    if exact is not None:
        return exact
    return Distributions(sample_actions(policy, requests, samples), "sampled", samples)


def exact_probabilities(policy: Policy, requests: Sequence[TurnRequest]) -> Distributions | None:
    """Return the exact distributions of a policy; ``None`` if they have to be sampled."""
    if (tell := getattr(policy, "action_probabilities", None)) is not None:
        known = [tell(request) for request in requests]
        if None not in known:
            return Distributions(known, "known", None)
    decoding = getattr(policy, "decoding", None)
    if decoding is None or not has_local_model(policy):
        return None
    if decoding.deterministic:
        return Distributions(sample_actions(policy, requests, 1), "known", None)
    if decoding.top_p != 1 or plays_legal_only(policy):
        return None
    turns = answered(policy.act(requests))
    if not all(turn.response.startswith(OPEN_TAG) for turn in turns):
        return None
    asked = [(turn.prompt, request.legal_actions) for turn, request in zip(turns, requests, strict=True)]
    # equal prompts are scored once: most don't tell the time
    scored = {(prompt, actions): score_actions(policy, prompt, "", actions) for prompt, actions in dict.fromkeys(asked)}
    found = [each for each in map(scored.__getitem__, asked) if each is not None]
    return Distributions(found, "scored", None) if len(found) == len(asked) else None


def has_local_model(policy: Policy) -> bool:
    """Return whether the policy's model is in this process, so that its probabilities can be computed."""
    model: Any = getattr(policy, "model", None)
    return hasattr(model, "tokenizer") and hasattr(model, "encode")


def plays_legal_only(policy: Policy) -> bool:
    """Return whether a policy's answers are held to legal ones."""
    return bool(getattr(policy, "legal_only", False))


def answered(turns: list[Turn]) -> list[Turn]:
    """Return the turns themselves; a provider's error among them is raised as a RuntimeError."""
    failed = next((turn.error for turn in turns if turn.error is not None), None)
    if failed is not None:
        raise RuntimeError(f"sampling responses failed: {failed}")
    return turns


def score_actions(policy: Policy, prompt: Prompt, given: str, actions: Sequence[str]) -> dict[str, float] | None:
    """Compute the exact probability of the continuations ``<action>NAME</action>``, at the policy's temperature.

    ``given`` is the response so far: nothing, or its text up to and with the opening tag. With a tokenizer that joins
    its end and the name into one token the score begins where the continuations first differ. At temperature 0 it is
    the model's own distribution. ``None`` without a local model, and for a policy that plays legal-only.
    """
    if not has_local_model(policy) or plays_legal_only(policy) or not prompt:
        return None
    prefix = prefix_of(prompt)
    given = given.removeprefix(prefix)
    model: Any = policy.model  # type: ignore[attr-defined]
    temperature = getattr(getattr(policy, "decoding", None), "temperature", 1.0) or 1.0
    (prompt_ids,) = model.encode([prompt])
    texts = [given + action + CLOSE_TAG if given else answer_after(prefix, action) for action in actions]
    encoded = [model.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    shared = takewhile(lambda column: len(set(column)) == 1, zip(*encoded, strict=False))  # as far as the shortest goes
    start = len(prompt_ids) + (len(list(shared)) if given else 0)
    rows = [[*prompt_ids, *ids] for ids in encoded]
    sums = _continuation_logprobs(model.model, rows, [start] * len(rows), temperature)
    return {action: float(np.exp(total)) for action, total in zip(actions, sums, strict=True)}


def response_logprobs(policy: Policy, prompts: Sequence[Prompt], responses: Sequence[Sequence[int]]) -> list[float]:
    """Return the log-probabilities of responses, by their tokens, after these prompts, by the policy's local model."""
    model: Any = policy.model  # type: ignore[attr-defined]
    temperature = getattr(getattr(policy, "decoding", None), "temperature", 1.0) or 1.0
    pairs = [(tuple(ids), tuple(own)) for ids, own in zip(model.encode(prompts), responses, strict=True)]
    different = sorted(set(pairs), key=lambda pair: len(pair[0]) + len(pair[1]))
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
    for first in range(0, len(different), _ROWS):
        part = different[first : first + _ROWS]
        rows, starts = [[*ids, *own] for ids, own in part], [len(ids) for ids, _ in part]
        found |= zip(part, _continuation_logprobs(model.model, rows, starts, temperature), strict=True)
    return [found[pair] for pair in pairs]


def answer_after(prefix: str, action: str) -> str:
    """Continue a response's prefix by nothing but ``<action>NAME</action>``."""
    if OPEN_TAG in prefix:
        return action + CLOSE_TAG
    begun = next(length for length in range(len(OPEN_TAG), -1, -1) if prefix.endswith(OPEN_TAG[:length]))
    return OPEN_TAG[begun:] + action + CLOSE_TAG


def _continuation_logprobs(
    model: Any, rows: Sequence[Sequence[int]], starts: Sequence[int], temperature: float
) -> list[float]:
    """Return the log-probability of each row of token ids from its start."""
    import torch

    longest, start = max(map(len, rows)), min(starts)
    device = next(model.parameters()).device
    ids = torch.zeros(len(rows), longest, dtype=torch.long, device=device)
    mask = torch.zeros_like(ids)
    for index, row in enumerate(rows):  # padding on the right: causal attention never looks there
        ids[index, : len(row)] = torch.tensor(row, device=device)
        mask[index, : len(row)] = 1
    counted = mask * (torch.arange(longest, device=device) >= torch.tensor(starts, device=device)[:, None])
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, start - 1 : -1]
            logits = logits if logits.dtype == torch.float64 else logits.float()
    finally:
        model.train(training)
    logprobs = (logits / temperature).log_softmax(-1).gather(-1, ids[:, start:, None])[..., 0]
    sums: list[float] = (logprobs * counted[:, start:]).sum(dim=1).tolist()
    return sums


def sample_actions(policy: Policy, requests: Sequence[TurnRequest], samples: int) -> list[dict[str, float]]:
    """Return the shares of the legal actions among ``samples`` responses; of those written, if none are listed."""
    sampled = sample_responses(policy, requests, samples)
    shares = []
    for request, turns in zip(requests, sampled, strict=True):
        if request.legal_actions:
            reads = partial(parse_action, names=ActionNames(request.legal_actions))
        else:
            game = request.game
            assert game is not None
            anywhere = game.initial_state(np.random.default_rng(0))  # what isn't listed is read alike in every state
            reads = partial(game.read, state=anywhere, player=request.player)
        read = Counter(reads(turn.response) for turn in turns)
        actions = request.legal_actions or [action for action in read if isinstance(action, str)]
        shares.append({action: read[action] / samples for action in actions})
    return shares


def sample_responses(policy: Policy, requests: Sequence[TurnRequest], samples: int) -> list[list[Turn]]:
    """Draw ``samples`` responses anew for every request; a provider's error is raised as a RuntimeError."""
    asked = [replace(one, seed=(*one.seed, index)) for one in requests for index in range(samples)]
    alone = 1 if is_served(policy) else 0  # a server that isn't there fails once, and not thousands of times
    turns = [turn for part in (asked[:alone], asked[alone:]) if part for turn in answered(policy.act(part))]
    return [turns[row * samples : (row + 1) * samples] for row in range(len(requests))]
