"""What a policy may answer wherever it can be asked, with probabilities: known, computed or estimated.

``graph, policy -> questions -> answers -> behaviour``. Decisions in which the policy reads the same prompt are one
question. Its answers are responses, each with the action that the game reads in it and a weight; the weights sum to the
probability of everything that isn't certain to be invalid.

**Estimated probabilities.** ``n`` responses ``y_1 .. y_n`` are drawn, and a model tells the probability ``p(y)`` of
each. With ``S`` the set of the others than ``y_i``, ``sum over y in S of p(y) 1[y names a] + 1[y_i not in S and y_i
names a]`` is an unbiased estimate of ``pi(a)``. Its mean over ``i`` gives a response that came more than once the
weight ``p(y)``, and one that came once ``p(y) + (1 - p(y)) / n`` (Good's and Turing's idea). For a model of few
thoughts the error is many times smaller than that of counting. A model that tells no probabilities has its responses
counted.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, NamedTuple

import numpy as np

from agents import Policy, Turn, TurnRequest, own_action_help
from agents.analysis import (
    Source,
    answer_after,
    exact_probabilities,
    has_local_model,
    plays_legal_only,
    sample_responses,
)
from agents.msgrpo import TokenRow
from research.credit.instrument.exact.solution import Behaviour, GameGraph, NumberedDecision
from textgames.solving import Indices

DEFAULT_SAMPLES = 64
"""Responses to each question whose answers have to be sampled."""

INVALID = -1
"""The place of an invalid response, if others have the place of their action."""

_SEED = 1729  # what the seeds of the questions begin with, so that they meet no episode's
_AT_ONCE = 2048  # responses that are asked for in one call, so that progress can be told

Progress = Callable[[str, int, int], None]
"""``(what is being done, how much is done, of how much)``."""


class Response(NamedTuple):
    """One response that a policy may give to a question."""

    # its token ids, as they were sampled or as the tokenizer writes them; empty if they aren't known
    tokens: tuple[int, ...]
    place: int  # of the action that it names, among the legal ones; :data:`INVALID` for an invalid response
    weight: float  # its probability, or its share of an estimate


@dataclass(frozen=True)
class Question:
    """What a policy is asked in one or more decisions."""

    request: TurnRequest  # as the loop of an episode would ask it
    decision: NumberedDecision  # one of the decisions that it belongs to


@dataclass(frozen=True)
class Answers:
    """All the answers of a policy in a graph."""

    questions: list[Question]  # the different ones
    # (horizon, decisions) the number of the question of a decision after so many steps; -1 if the decision can't be
    # reached then
    question_of: Indices
    # the token ids of every question's prompt; empty if there is no model in this process
    prompts: list[tuple[int, ...]]
    responses: list[list[Response]]  # of every question
    # the same from each half of the sampled responses; empty if nothing was sampled
    halves: tuple[list[list[Response]], ...]
    source: Source  # where the probabilities come from
    samples: int | None  # responses drawn for each question; ``None`` if the probabilities are exact


def ask(
    policy: Policy, graph: GameGraph, *, samples: int = DEFAULT_SAMPLES, seed: int = 0, progress: Progress | None = None
) -> Answers:
    """Ask a policy wherever it may have to decide; it must not read history, as it is asked out of any episode.

    Raises:
        ValueError: the policy reads history, or samples is less than 2, so that no error can be told.
        RuntimeError: a provider's error.
    """
    if getattr(policy, "history_turns", 0) != 0:
        raise ValueError("true advantages are of policies that read no history: set the policy's history to 0")
    if samples < 2:
        raise ValueError(f"samples must be at least 2, so that their error can be told, got {samples}")
    questions, question_of = _questions(policy, graph, seed)
    requests = [question.request for question in questions]
    direct, exact = answers_directly(policy), None
    # asked about one request first, as most policies know the probabilities of all or of none
    if not direct and exact_probabilities(policy, requests[:1]) is not None:
        exact = exact_probabilities(policy, requests)
    if direct or (exact is not None and exact.source == "scored"):
        return Answers(questions, question_of, *_scored(policy, requests), (), "scored", None)
    if exact is not None:
        responses = [
            [Response((), place, told.get(name, 0.0)) for place, name in enumerate(request.legal_actions)]
            for request, told in zip(requests, exact.probabilities, strict=True)
        ]
        return Answers(questions, question_of, [()] * len(requests), responses, (), exact.source, None)
    at_once, turns = max(1, _AT_ONCE // samples), list[list[Turn]]()
    for start in range(0, len(requests), at_once):
        turns += sample_responses(policy, requests[start : start + at_once], samples)
        if progress is not None:
            progress("responses sampled", len(turns) * samples, len(requests) * samples)
    reads = [_reads(graph, question) for question in questions]
    parts = (turns, [own[: samples // 2] for own in turns], [own[samples // 2 :] for own in turns])
    responses, *halves = [[weighed(own, read) for own, read in zip(part, reads, strict=True)] for part in parts]
    prompts = [own[0].prompt_ids or () for own in turns]
    return Answers(questions, question_of, prompts, responses, tuple(halves), "sampled", samples)


def answers_directly(policy: Policy) -> bool:
    """Return whether probabilities can be computed: a local model that is told to answer with the action alone."""
    decoding, prompt_map = getattr(policy, "decoding", None), getattr(policy, "prompt_map", None)
    if not has_local_model(policy) or plays_legal_only(policy) or decoding is None or prompt_map is None:
        return False
    return prompt_map.mode == "direct" and not decoding.deterministic and decoding.top_p == 1


def behaviour_of(graph: GameGraph, answers: Answers, responses: Sequence[Sequence[Response]]) -> Behaviour:
    """Return the probabilities of all choices, from every question's responses; what is missing to 1 is invalid."""
    shares: list[list[float]] = []
    for question, own in zip(answers.questions, responses, strict=True):
        row = [0.0] * len(question.decision.actions)
        for response in own:
            if response.place != INVALID:
                row[response.place] += response.weight
        total = sum(row)
        # rounding, and what is missing by no more than rounding is no invalid response
        shares.append([share / total for share in row] if total > 1 - 1e-9 else row)
    choices = np.zeros((graph.horizon, len(graph.choice_decision)))
    invalid = np.zeros((graph.horizon, len(graph.decisions)))
    for step, number in np.argwhere(answers.question_of >= 0).tolist():
        first, row = graph.decisions[number].first, shares[answers.question_of[step, number]]
        choices[step, first : first + len(row)] = row
        invalid[step, number] = max(0.0, 1.0 - sum(row))
    return Behaviour(choices, invalid)


def weighed(turns: Sequence[Turn], read: Callable[[str], int]) -> list[Response]:
    """Return the different responses among independent draws, with weights that sum to 1; ``read`` tells their
    places."""
    identities = [turn.response if turn.response_ids is None else turn.response_ids for turn in turns]
    different: dict[Any, Turn] = dict(zip(identities, turns, strict=True))
    count = Counter[Any](identities)
    weights = [
        weight(None if turn.logprobs is None else exp(sum(turn.logprobs)), count[identity], len(turns))
        for identity, turn in different.items()
    ]
    total = sum(weights)
    return [
        Response(turn.response_ids or (), read(turn.response), own / total)
        for turn, own in zip(different.values(), weights, strict=True)
    ]


def weight(probability: float | None, count: int, drawn: int) -> float:
    """Return what a response that came ``count`` times among ``drawn`` weighs, by its probability if that is known."""
    if probability is None:
        return count / drawn
    return probability + (1 - probability) / drawn if count == 1 else probability


def _reads(graph: GameGraph, question: Question) -> Callable[[str], int]:
    decision = question.decision
    state, player = graph.states[decision.state], graph.players[decision.player]

    def read(response: str) -> int:
        action = graph.game.interpret(response, state, player)
        return INVALID if action is None else decision.actions.index(action)

    return read


def _questions(policy: Policy, graph: GameGraph, seed: int) -> tuple[list[Question], Indices]:
    """Return the different questions, and which of them each decision is after so many steps."""
    game, prompt_map = graph.game, getattr(policy, "prompt_map", None)
    instructions = {player: game.instructions(player) for player in game.players}
    observations: dict[int, tuple[str, str]] = {}
    by_state: dict[int, list[int]] = {}
    for number, decision in enumerate(graph.decisions):
        by_state.setdefault(decision.state, []).append(number)
        state, player = graph.states[decision.state], graph.players[decision.player]
        help_ = own_action_help(game, state, player, game.legal_actions(state, player))
        observations[number] = (game.observe(state, player), help_)
    found: dict[Any, int] = {}
    questions: list[Question] = []
    question_of = np.full((graph.horizon, len(graph.decisions)), -1, dtype=np.intp)
    for step, layer in enumerate(graph.layers):
        for number in [number for state in layer.tolist() for number in by_state[state]]:
            decision = graph.decisions[number]
            player = graph.players[decision.player]
            request = TurnRequest(
                observation=observations[number][0],
                instructions=instructions[player],
                legal_actions=decision.actions,
                player=player,
                steps_left=graph.horizon - step,
                game=game,
                seed=(_SEED, seed, len(questions)),
                action_help=observations[number][1],
            )
            # a model sees nothing but its prompt, which mostly doesn't tell the time; other players may see everything
            seen = request.steps_left if prompt_map is None else prompt_map(request)
            key = (player, decision.actions, decision.default, observations[number], seen)
            if key not in found:
                found[key] = len(questions)
                questions.append(Question(request, decision))
            question_of[step, number] = found[key]
    return questions, question_of


def _scored(policy: Any, requests: Sequence[TurnRequest]) -> tuple[list[tuple[int, ...]], list[list[Response]]]:
    """Return the responses ``<action>NAME</action>`` with their exact probabilities, scored together in token trees."""
    from research.credit.instrument.scores import ScoreModel

    model = policy.model
    prompts = [tuple(ids) for ids in model.encode([policy.prompt_map(request) for request in requests])]
    texts: dict[str, tuple[int, ...]] = {}
    rows = []
    for prompt, request in zip(prompts, requests, strict=True):
        for name in request.legal_actions:
            if name not in texts:
                text = answer_after(policy.prompt_map.prefix, name)
                texts[name] = tuple(model.tokenizer(text, add_special_tokens=False)["input_ids"])
            rows.append(TokenRow(prompt, texts[name]))
    chances = iter([exp(float(logprobs.sum())) for logprobs, _ in ScoreModel(policy).logprobs_and_entropies(rows)])
    return prompts, [
        [Response(texts[name], place, next(chances)) for place, name in enumerate(request.legal_actions)]
        for request in requests
    ]
