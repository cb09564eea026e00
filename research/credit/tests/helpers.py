"""Policies whose probabilities are known, small games for them, and everything that may come of the two."""

from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import torch

from agents.models.base import Decoding
from agents.models.local.transformers import TransformersModel
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap, as_text
from agents.prompt_texts import PromptTexts
from agents.turn import TurnRequest
from research.credit.instrument.exact.answers import ask, behaviour_of
from research.credit.instrument.exact.solution import GameGraph, expand, solve
from tests.tiny_models import teach, tiny_llama, word_tokenizer
from textgames import Scenario
from textgames.registry import game_of

HORIZON = 3
LAKE = {"desc": ["SFF", "FHG"], "is_slippery": True, "grid": False}
SMALL = Scenario("small-lake", "TextFrozenLake-v0", LAKE, HORIZON, 0)
ACTIONS = ("left", "down", "right", "up")


@cache
def texts() -> PromptTexts:
    default = PromptTexts.default()
    return PromptTexts("", "$instructions", "$observation", {"direct": "Answer:"}, default.no_actions, default.no_limit)


@cache
def _trained():
    """Weights that mostly name an action, and their tokenizer: some steps of imitation of all actions alike."""
    tokenizer = word_tokenizer(("<action>", "</action>", *ACTIONS, *"0123,", "player"), gaps=True)
    model = tiny_llama(
        len(tokenizer), seed=1, hidden=12, layers=1, intermediate_size=16, num_attention_heads=2, num_key_value_heads=1,
        initializer_range=0.3,
    ).double()  # fmt: skip
    graph = lake()
    game, state = graph.game, graph.states[graph.starts[0]]
    request = TurnRequest(game.observe(state, "player_0"), game.instructions("player_0"), ACTIONS)
    prompt = tokenizer(as_text(PromptMap("direct", 0, texts())(request)))["input_ids"]
    ids = torch.tensor([prompt + tokenizer(f"<action>{name}</action>")["input_ids"] for name in ACTIONS])
    teach(model, ids, known=len(prompt), rate=0.03, steps=22)
    return model.config, model.state_dict(), tokenizer


def direct_policy(temperature: float = 1.25) -> LanguageAgentPolicy:
    """A policy of its own weights, the same ones every time."""
    from transformers import LlamaForCausalLM

    config, weights, tokenizer = _trained()
    model = LlamaForCausalLM(config).double().eval()
    model.load_state_dict(weights)
    local = TransformersModel(model, tokenizer, name="direct")
    return LanguageAgentPolicy(local, PromptMap("direct", 0, texts()), Decoding(temperature=temperature, max_tokens=8))


def lake() -> GameGraph:
    """A slippery lake of six cells: each action has up to three outcomes."""
    game = game_of("TextFrozenLake-v0", **LAKE)
    return expand(game, [game.initial_state(np.random.default_rng(0))], HORIZON)


def solved(policy, graph, penalty=0.0, invalid_action="default"):
    answers = ask(policy, graph)
    behaviour = behaviour_of(graph, answers, answers.responses)
    return answers, solve(graph, behaviour, format_penalty=penalty, invalid_action=invalid_action)


PENALTY = 0.7


class Habit:
    """A policy whose probabilities depend on the text that it reads and on time, and sum to 0.9."""

    name = "habit"

    def act(self, requests):
        raise AssertionError("its probabilities are known")

    def action_probabilities(self, request):
        read = len(request.observation) * 7 + 3 * request.steps_left
        weights = [1 + (read + sum(map(ord, name))) % 5 for name in request.legal_actions]
        return {name: 0.9 * w / sum(weights) for name, w in zip(request.legal_actions, weights, strict=True)}


def distribution(game, policy, state, steps_left, invalid_action="default", fixed=None):
    """``{returns of all players: probability}`` from the definitions, one history after the other.

    ``fixed`` is a player and what it does first: one of its actions, or ``None`` for an invalid response.
    """
    players = game.players
    if steps_left == 0:
        return {(0.0,) * len(players): 1.0}
    moving, told = game.to_move(state), {}
    for player in moving:
        legal = game.legal_actions(state, player)
        request = TurnRequest(game.observe(state, player), "", legal, steps_left=steps_left)
        told[player] = {(action, 0.0): p for action, p in policy.action_probabilities(request).items()}
        instead = {"default": [game.default_action(state, player)], "random": legal}.get(invalid_action, [None])
        told[player] |= {(action, PENALTY): 0.1 / len(instead) for action in instead}
    if fixed is not None:
        player, action = fixed
        told[player] = {
            (a, penalty): p
            for (a, penalty), p in told[player].items()
            if (penalty > 0 if action is None else (a, penalty) == (action, 0.0))
        }
        told[player] = {key: p / sum(told[player].values()) for key, p in told[player].items()}
    found = Counter()
    for chosen in product(*[told[player] for player in moving]):
        chance = float(np.prod([told[player][each] for player, each in zip(moving, chosen, strict=True)]))
        lost = np.zeros(len(players))
        for player, (_, penalty) in zip(moving, chosen, strict=True):
            lost[players.index(player)] -= penalty
        if any(action is None for action, _ in chosen):
            found[tuple(lost.tolist())] += chance
            continue
        joint = {player: action for player, (action, _) in zip(moving, chosen, strict=True)}
        for probability, after, rewards, over in game.outcomes(state, joint):
            ahead = {(0.0,) * len(players): 1.0}
            if not over:
                ahead = distribution(game, policy, after, steps_left - 1, invalid_action)
            paid = lost + np.array([rewards[each] for each in players])
            for returns, share in ahead.items():
                found[tuple(np.round(paid + returns, 9).tolist())] += chance * probability * share
    return found
