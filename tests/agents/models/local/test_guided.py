"""Drawing among the allowed: masks against the plain softmax, and untrained models that never answer wrongly."""

from typing import Any

import numpy as np
import pytest
import torch

from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.models.base import Decoding
from agents.models.local.decoding.sampler import choose, choose_allowed
from agents.models.local.transformers import TransformersModel
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap
from agents.turn import TokenSet, TurnRequest
from tests.agents.models.local.test_thinking import ALWAYS, HYBRID, tokenizer_with
from tests.agents.models.local.test_transformers import make_model, make_tokenizer
from textgames import SCENARIOS
from textgames.texts.actions import ActionNames, parse_action

GAMES = ("frozen-lake", "tic-tac-toe", "blackjack", "werewolf-5")


@pytest.fixture(scope="module")
def player():
    """Makes legal-only players with a random model, whose context is long enough for any prompt."""
    tokenizer = make_tokenizer()
    model = make_model("llama", tokenizer)
    model.config.max_position_embeddings = 8192
    local = TransformersModel(model, tokenizer, name="untrained")

    def make(mode: str, tokens: int, temperature: float = 1.0, **settings: Any) -> Any:
        decoding = Decoding(temperature, max_tokens=tokens, **settings)
        return LanguageAgentPolicy(local, PromptMap(mode), decoding, legal_only=True)

    return make


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("top_p", [1.0, 0.8])
def test_the_draw_is_that_of_the_softmax_over_what_is_allowed(temperature, top_p):
    torch.manual_seed(0)
    logits, uniform = torch.randn(5, 12) * 2, torch.rand(5, dtype=torch.float64)
    sets = [TokenSet((3,)), None, TokenSet((1, 4, 11)), TokenSet((0, 5), others=True), TokenSet((2, 7))]
    masked = logits.clone()
    for row, each in enumerate(sets):
        if each is not None:
            named = torch.zeros(12, dtype=torch.bool)
            named[list(each.ids)] = True
            masked[row, named if each.others else ~named] = float("-inf")
    decoding = Decoding(temperature, top_p)
    tokens, logprobs = choose_allowed(logits.clone(), decoding, uniform, sets)
    wanted, scores = choose(masked, decoding, uniform)
    assert tokens.tolist() == wanted.tolist()
    torch.testing.assert_close(logprobs, scores)
    assert logprobs[0] == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "tokens"), [("direct", 40), ("think", 70)])
def test_an_untrained_model_gives_no_invalid_answer_in_any_game(player, mode, tokens):
    for game in GAMES:
        (episode,) = rollout(player(mode, tokens), [EpisodeTask.of(game, 0)])
        assert episode.error is None
        turn: Any
        for step, turn in ((step, step.turn) for step in episode.steps if step.turn.allowed is not None):
            assert step.valid
            assert turn.finish_reason == "stop"
            assert len(turn.allowed) == len(turn.response_ids) <= tokens
            for token, allowed in zip(turn.response_ids, turn.allowed, strict=True):
                assert allowed is None or (token in allowed.ids) != allowed.others
        assert any(step.turn.allowed is None for step in episode.steps) == (game == "werewolf-5")  # its talk is free


def test_logprobs_are_those_of_the_models_own_forward_renormalised(player):
    policy = player("think", 60, temperature=0.8)
    (turn,) = policy.act([TurnRequest("somewhere", "rules", ("left", "right"), seed=(5,))])
    model = policy.model.model
    with torch.no_grad():
        logits = model(torch.tensor([turn.prompt_ids + turn.response_ids])).logits[0].double() / 0.8
    for t, (token, allowed) in enumerate(zip(turn.response_ids, turn.allowed, strict=True)):
        row = logits[len(turn.prompt_ids) - 1 + t]
        named = torch.zeros(len(row), dtype=torch.bool)
        named[list(allowed.ids)] = True
        row[named if allowed.others else ~named] = float("-inf")
        assert turn.logprobs[t] == pytest.approx(row.log_softmax(-1)[token].item(), abs=1e-5)


def test_no_room_is_said_and_decisions_that_list_no_actions_are_free(player):
    requests = [
        TurnRequest("x", "", names, seed=(0,)) for names in (("a very long name of an action indeed",), ("up",), ())
    ]
    refused, played, talk = player("direct", 20).act(requests)
    assert "a legal answer may need" in refused.error
    assert "there is room for 20: raise max_tokens" in refused.error
    assert played.response == "<action>up</action>"
    assert talk.allowed is None
    assert len(talk.response_ids) == 20 or talk.finish_reason == "stop"


def test_what_cannot_be_played_so_is_refused(player):
    with pytest.raises(ValueError, match="responses end at </action> and nowhere else"):
        player("direct", 20, stop=("\n",))
    policy = player("direct", 20)
    with pytest.raises(ValueError, match="doesn't list its legal actions"):
        policy.check_game(SCENARIOS["guess-number"].game())
    policy.check_game(SCENARIOS["frozen-lake"].game())
    assert policy.settings["legal_only"] is True
    assert "legal_only" not in LanguageAgentPolicy(policy.model, PromptMap("direct"), Decoding(max_tokens=8)).settings


def test_uniform_numbers_reach_the_last_token_and_never_beyond():
    logits, sets = torch.zeros(2, 9), [TokenSet((2, 5)), TokenSet((1, 4, 6))]
    tokens, _ = choose_allowed(
        logits, Decoding(1.0), torch.full((2,), np.nextafter(1.0, 0.0), dtype=torch.float64), sets
    )
    assert tokens.tolist() == [5, 6]


@pytest.mark.parametrize(("template", "arguments"), [(HYBRID, {}), (ALWAYS, {}), (HYBRID, {"enable_thinking": False})])
def test_models_that_reason_by_themselves_do_so_freely_and_then_answer_legally(template, arguments):
    tokenizer = tokenizer_with(template)
    model = make_model("qwen3", tokenizer)
    model.config.max_position_embeddings = 4096
    local = TransformersModel(model, tokenizer, chat_template_kwargs=arguments)
    policy = LanguageAgentPolicy(local, PromptMap("direct"), Decoding(1.0, max_tokens=80), legal_only=True)
    for turn in policy.act([TurnRequest("here", "rules", ("left", "up"), seed=(seed,)) for seed in range(12)]):
        assert turn.error is None
        assert parse_action(turn.response, ActionNames(("left", "up"))) in ("left", "up")
        assert turn.response.endswith("</action>")
        assert turn.reasoning or template is not ALWAYS  # which the template opens, so that it has to be closed
        assert not arguments or turn.response in ("<action>left</action>", "<action>up</action>")
    with pytest.raises(ValueError, match="can't be played legal-only: its thinking_budget closes"):
        LanguageAgentPolicy(TransformersModel(model, tokenizer, thinking_budget=9), legal_only=True)
