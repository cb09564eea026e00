"""What servers refuse and what they want instead: learnt once from a real local server, said, and remembered."""

import asyncio
import logging

import pytest

from agents import Decoding
from agents.models.openai import MissingAPIKeyError, OpenAIModel
from agents.models.served.answers import ProviderError
from agents.models.served.dialect import REASONING_TOKENS, Dialect
from agents.models.served.routes import read_completions as read_text
from agents.models.served.routes import read_responses as read_response
from agents.turn import Message
from tests.agents.openai_server import OpenAIServer

PROMPT = (Message("system", "Play."), Message("user", "Where to?"))
REFUSED_BY_OPENAI = {"temperature": "default", "stop": "", "max_tokens": "max_completion_tokens", "seed": ""}
"""What OpenAI's reasoning models refuse, in the words that they use."""


def up(request):
    return "<think>up it is</think><action>up</action> and more"


def ask(server, number=1, decoding=None, **options):
    """The completions of so many prompts at once, and the model."""

    async def play():
        model = OpenAIModel("local", base_url=server.base_url, **options)
        first = await model.generate_async(PROMPT, decoding or Decoding(), (1,))
        prompts = [(Message("user", f"prompt {n}"),) for n in range(number - 1)]
        rest = await asyncio.gather(*(model.generate_async(p, decoding or Decoding(), (1,)) for p in prompts))
        await model.aclose()
        return [first, *rest]

    return asyncio.run(play())


def test_a_reasoning_model_is_asked_as_it_wants_after_one_refusal_of_each_parameter(caplog):
    with OpenAIServer(respond=up, refused=REFUSED_BY_OPENAI, reasoning=600) as server:
        server.keep_requests = True
        completions = ask(server, 5, reasoning_effort="low", send_seed=True, max_retries=0)
    assert {c.response for c in completions} == {"<think>up it is</think><action>up</action>"}
    assert [c.error for c in completions if c.error] == []
    assert len(server.requests) == 4 + 5  # a refusal each, and the answers
    last = server.requests[-1]
    assert {name: last[name] for name in last if name not in ("model", "messages")} == {
        "reasoning_effort": "low",
        "max_completion_tokens": 256 + REASONING_TOKENS,
    }
    assert completions[0].left_out == ("temperature", "stop", "seed")
    assert completions[0].usage.reasoning_tokens == 600
    assert completions[0].usage.completion_tokens == 605
    assert completions[0].reasoning.startswith("hm hm")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 4
    assert f"local at {server.base_url}: it doesn't take 'temperature', which is left out from here on" in said


def test_many_first_requests_at_once_all_learn():
    async def play(server):
        model = OpenAIModel("local", base_url=server.base_url, max_retries=0)
        prompts = [(Message("user", f"prompt {n}"),) for n in range(20)]
        completions = await asyncio.gather(*(model.generate_async(p, Decoding(), ()) for p in prompts))
        await model.aclose()
        return completions

    with OpenAIServer(respond=up, refused=REFUSED_BY_OPENAI, latency=0.01) as server:
        completions = asyncio.run(play(server))
    assert {c.error for c in completions} == {None}


def test_what_is_set_by_hand_is_not_learnt():
    with OpenAIServer(respond=up, refused=REFUSED_BY_OPENAI) as server:
        server.keep_requests = True
        by_hand = {"omit": ["temperature", "stop"], "max_tokens_field": "max_completion_tokens"}
        (completion,) = ask(server, reasoning_effort="high", reasoning_tokens=3000, **by_hand)
        assert completion.response.endswith("<action>up</action>")
        (request,) = server.requests
        (refused,) = ask(server, omit=["temperature", "stop"], max_tokens_field="max_tokens")
    assert request["max_completion_tokens"] == 3256
    assert "Use 'max_completion_tokens' instead" in refused.error


def test_another_400_is_final():
    with OpenAIServer(faults={"400": 1.0}) as server:
        (completion,) = ask(server)
        assert completion.error.startswith(f"status 400 from {server.base_url}: injected 400")
        assert server.served["400"] == 1


def test_a_budget_that_reasoning_eats_up_is_raised_once_and_said(caplog):
    with OpenAIServer(respond=up, reasoning=300) as server:
        server.keep_requests = True
        completions = ask(server, 3)
    assert [c.response for c in completions] == ["<think>up it is</think><action>up</action>"] * 3
    assert [r["max_tokens"] for r in server.requests] == [256, *[256 + REASONING_TOKENS] * 3]
    assert "reasoning ate up a whole response: 25,000 tokens more are allowed" in caplog.text


def test_a_budget_set_by_hand_stays_and_its_end_is_said(caplog):
    with OpenAIServer(respond=up, reasoning=300) as server:
        (completion,) = ask(server, reasoning_tokens=40)
    assert (completion.response, completion.finish_reason, completion.error) == ("", "length", None)
    assert completion.usage[:2] == (3, 296)
    assert completion.usage.reasoning_tokens == 296
    assert "allow more tokens: reasoning_tokens = 2048" in caplog.text


def test_a_server_with_a_short_context_gets_a_smaller_budget():
    dialect = Dialect(effort="low")
    text = "This model's maximum context length is 4096 tokens. However, you requested 25256 tokens"
    assert "6,250 are added" in dialect.learn(400, text, dialect.shape({}, 256, None))
    for _ in range(10):
        dialect.learn(400, text, dialect.shape({}, 256, None))
    assert dialect.allowance == 0
    assert dialect.learn(400, text, dialect.shape({}, 256, None)) is None


@pytest.mark.parametrize("name", ["responses", "completions"])
def test_a_model_with_another_route_is_asked_there(name, caplog):
    with OpenAIServer(respond=up, only_route=name, reasoning=7 if name == "responses" else 0) as server:
        server.keep_requests = True
        first, second = ask(server, 2, Decoding(top_p=0.9), send_seed=True)
        (by_hand,) = ask(server, route=name)
    assert first.response == second.response == by_hand.response == "<think>up it is</think><action>up</action>"
    assert ["messages" in r for r in server.requests] == [True, False, False, False]
    request = server.requests[1]
    if name == "responses":
        assert request["input"][1] == {"role": "user", "content": "Where to?"}
        assert (request["max_output_tokens"], request["store"]) == (256, False)
        assert not {"stop", "seed", "max_tokens"} & request.keys()
        assert first.reasoning == "hm hm hm hm hm hm hm"
        assert first.usage.reasoning_tokens == 7
    else:
        assert request["prompt"] == "Play.\n\nWhere to?"
        assert (request["max_tokens"], request["stop"], "seed" in request) == (256, ["</action>"], True)
    assert f"it wants the route /{name}" in caplog.text


def test_a_response_that_ends_at_the_limit_on_the_newer_route():
    with OpenAIServer(respond=lambda request: "word " * 50) as server:
        (completion,) = ask(server, decoding=Decoding(max_tokens=5), route="responses")
    assert (completion.finish_reason, completion.response) == ("length", "word word word word word")


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (read_text, '{"choices": [{"text": 3, "finish_reason": "stop"}]}'),
        (read_text, '{"choices": [{"text": "up"}]}'),
        (read_response, '{"status": "completed"}'),
        (read_response, '{"status": "failed", "output": []}'),
        (read_response, '{"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []}'),
        (read_response, '{"status": "failed", "error": {"message": "down"}, "output": []}'),
        (read_response, '{"output": 3, "status": "completed"}'),
    ],
)
def test_what_is_no_response_on_the_other_routes(read, body):
    with pytest.raises(ProviderError):
        read(body, Decoding())


def test_odd_items_of_a_response_are_passed_over():
    body = '{"status": "completed", "output": [3, {"type": "message", "content": 4}, {"type": "reasoning"}]}'
    assert read_response(body, Decoding()).response == ""


def test_the_summary_of_reasoning_is_left_out_where_it_is_not_allowed():
    dialect = Dialect("responses", effort="low")
    fields = {"reasoning": {"effort": "low", "summary": "auto"}}
    refusal = "Your organization must be verified to generate reasoning summaries."
    assert "'summary'" in dialect.learn(400, refusal, dialect.shape(fields, 256, None))
    assert dialect.shape(fields, 256, None)["reasoning"] == {"effort": "low"}


def test_tokens_that_are_counted_beside_the_completion_are_added():
    from agents.models.served.answers import read_usage

    beside = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 18}
    usage = read_usage(beside | {"completion_tokens_details": {"reasoning_tokens": 10}})
    assert (usage.completion_tokens, usage.reasoning_tokens) == (13, 10)
    odd = read_usage({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}, "completion_tokens": True})
    assert odd == (5, 0, False, 0, 5)


def test_tokens_that_the_provider_had_in_its_cache():
    with OpenAIServer(respond=up, prompt_cache=0.7) as server:
        (completion,) = ask(server)
    assert (completion.usage.prompt_tokens, completion.usage.cached_prompt_tokens) == (3, 2)


def test_the_key_of_a_variable_of_ones_own(monkeypatch):
    monkeypatch.setenv("MY_OTHER_KEY", "planted-key-12345")
    monkeypatch.setenv("MY_TOKEN", "planted-token-12345")
    with OpenAIServer(respond=up) as server:
        ask(server, key_variable="MY_OTHER_KEY", headers={"X-Auth": "Bearer ${MY_TOKEN}", "X-Title": "play"})
        assert server.headers["authorization"] == "Bearer planted-key-12345"
        assert (server.headers["x-auth"], server.headers["x-title"]) == ("Bearer planted-token-12345", "play")
        with pytest.raises(MissingAPIKeyError, match="export NOT_SET_HERE="):
            OpenAIModel("m", base_url=server.base_url, key_variable="NOT_SET_HERE")
        with pytest.raises(ValueError, match=r"\$NOT_SET_HERE names an environment variable that isn't set"):
            OpenAIModel("m", base_url=server.base_url, headers={"X": "$NOT_SET_HERE"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"route": "chats"}, "route is auto, chat, responses, completions, got 'chats'"),
        ({"max_tokens_field": "limit"}, "max_tokens_field is auto, max_tokens, max_completion_tokens, got 'limit'"),
        ({"reasoning_tokens": -1}, "reasoning_tokens is a whole number from 0"),
    ],
)
def test_bad_options(options, said):
    with pytest.raises(ValueError, match=said):
        OpenAIModel("m", base_url="http://127.0.0.1:1/v1", **options)


def test_settings_say_what_was_chosen_and_nothing_else():
    plain = OpenAIModel("m", base_url="http://127.0.0.1:1/v1").settings
    assert plain.keys() == {"kind", "name", "base_url", "omit", "send_seed", "extra_body"}
    chosen = OpenAIModel("m", base_url="http://127.0.0.1:1/v1", route="responses", reasoning_effort="low").settings
    assert (chosen["route"], chosen["reasoning_effort"]) == ("responses", "low")


@pytest.fixture(autouse=True)
def _notices(caplog):
    caplog.set_level(logging.WARNING, "agents.models.served")


def test_absurd_counts_and_half_characters_of_a_server_get_no_further():
    from agents.models.served.answers import read_usage, served_by
    from agents.turn import MOST_TOKENS

    assert read_usage({"prompt_tokens": MOST_TOKENS, "completion_tokens": 1})[:2] == (MOST_TOKENS, 1)
    assert read_usage({"prompt_tokens": MOST_TOKENS + 1, "completion_tokens": 10**30})[:2] == (0, 0)
    assert served_by({"model": "m\udc80", "system_fingerprint": "\ud800"}) == "m\ufffd \ufffd"
