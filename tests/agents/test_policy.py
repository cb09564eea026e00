"""Language-agent policies over scripted models: what goes in, what comes out, and which errors are whose."""

import asyncio
import pickle

import pytest

from agents import Decoding, LanguageAgentPolicy, Message, PromptMap, ScriptedModel, Turn, TurnRequest, Usage
from agents.models.scripted import ScriptExhaustedError
from agents.turn import AsyncPolicy, is_served
from tests.agents.helpers import Server


def answer(seed):
    return Turn("", finish_reason="error", error="status 500") if seed == (3,) else Turn(f"to {seed}")


def out_of_order(seed):
    return 0.001 * (5 - seed[0]) if seed else 0


def server():
    return Server(answer, out_of_order)


def test_a_turn_holds_the_prompt_and_everything_that_the_model_told():
    completion = Turn("<action>up</action>", (), (1, 2), (3,), (-0.5,), "length", Usage(2, 1), 0.25)
    seen = []

    def script(prompt, decoding, seed):
        seen.append((prompt, decoding, seed))
        return completion

    decoding = Decoding(temperature=0.0, max_tokens=7)
    policy = LanguageAgentPolicy(ScriptedModel(script), PromptMap("direct"), decoding, name="me")
    request = TurnRequest("obs", "rules", ("up",), seed=(4, 2))
    (turn,) = policy.act([request])
    prompt = PromptMap("direct")(request)
    assert turn == Turn("<action>up</action>", prompt, (1, 2), (3,), (-0.5,), "length", Usage(2, 1), 0.25)
    assert seen == [(prompt, decoding, (4, 2))]
    assert policy.name == "me"


def test_bare_observations_are_requests():
    policy = LanguageAgentPolicy(ScriptedModel(["a", "b"], name="short"))
    assert [turn.response for turn in policy.act(["one", TurnRequest("two")])] == ["a", "b"]
    assert policy.act([]) == []
    with pytest.raises(TypeError, match="write act"):
        policy.act("one")
    with pytest.raises(TypeError, match="got int"):
        policy.act([1])
    with pytest.raises(ScriptExhaustedError, match="'short' has given all of its 2 responses"):
        policy.act(["obs"])


def test_provider_errors_are_returned_and_programming_errors_raised():
    failing = Turn("", finish_reason="error", error="status 503")
    (turn,) = LanguageAgentPolicy(ScriptedModel([failing])).act(["obs"])
    assert (turn.error, turn.response, turn.finish_reason) == ("status 503", "", "error")
    with pytest.raises(ZeroDivisionError):
        LanguageAgentPolicy(ScriptedModel(lambda *_: 1 / 0)).act(["obs"])
    with pytest.raises(TypeError, match=r"generate\(\) or generate_async\(\), got int"):
        LanguageAgentPolicy(3)
    forgetful = ScriptedModel([])
    forgetful.generate = lambda prompts, decoding, seeds: [failing]
    with pytest.raises(RuntimeError, match="1 completions for 2 prompts"):
        LanguageAgentPolicy(forgetful).act(["a", "b"])


def test_who_is_asked_request_by_request():
    served, local = LanguageAgentPolicy(server()), LanguageAgentPolicy(ScriptedModel(["x", "y"]))
    assert isinstance(pickle.loads(pickle.dumps(served)), AsyncPolicy)
    assert asyncio.run(local.act_async("obs")).response == "x"
    plain = type("Plain", (), {"name": "plain", "act": list})
    own = type("Own", (plain,), {"act_async": list})
    batched = type("Batched", (own,), {"served": False})
    players = (plain(), own(), batched(), served, local)
    assert [is_served(player) for player in players] == [False, True, False, True, False]


def test_act_with_a_server_keeps_the_order_and_its_limit():
    model = server()
    policy = LanguageAgentPolicy(model, max_concurrency=2)
    turns = policy.act([TurnRequest("obs", seed=(seed,)) for seed in range(5)])
    assert [turn.response for turn in turns] == ["to (0,)", "to (1,)", "to (2,)", "", "to (4,)"]
    assert [turn.error for turn in turns] == [None, None, None, "status 500", None]
    assert (model.peak, model.closed) == (2, 1)
    with pytest.raises(ValueError, match="max_concurrency must be a whole number of at least 1, got 0"):
        LanguageAgentPolicy(model, max_concurrency=0)


def test_act_with_a_server_inside_a_running_loop():
    async def notebook_cell():
        policy = LanguageAgentPolicy(server())
        with pytest.raises(ZeroDivisionError):
            LanguageAgentPolicy(Server(lambda seed: 1 / 0)).act(["obs"])
        return policy.act(["obs"])[0].response, (await policy.act_async("obs")).response

    assert asyncio.run(notebook_cell()) == ("to ()", "to ()")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"temperature": float("nan")}, "temperature is a number of at least 0, got nan"),
        ({"top_p": 0}, "top_p is above 0 and at most 1, got 0"),
        ({"max_tokens": 2.5}, "max_tokens is a whole number of at least 1, got 2.5"),
        ({"stop": "</action>"}, r"got the string '</action>'; write \('</action>',\)"),
    ],
)
def test_bad_decoding_names_the_field_and_the_value(settings, said):
    with pytest.raises(ValueError, match=said):
        Decoding(**settings)


@pytest.mark.parametrize("model", [Server(lambda seed: "up</action>"), ScriptedModel(["up</action>"])])
def test_a_response_begins_with_the_prefix_that_the_model_went_on_from(model):
    prefixed = PromptMap.from_file("prefixed", "direct")
    (turn,) = LanguageAgentPolicy(model, prefixed).act([TurnRequest("you are here", legal_actions=("up",))])
    assert turn.response == "<action>up</action>"
    assert turn.prompt[-1] == Message("assistant", "<action>")
    (turn,) = LanguageAgentPolicy(server(), prefixed).act([TurnRequest("x", seed=(3,))])
    assert (turn.response, turn.error) == ("", "status 500")
