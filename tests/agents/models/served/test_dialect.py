"""What servers refuse and want instead, learnt once; their models' names; models that reason, or continue a prefix."""

import json
import logging

import pytest

from agents import Decoding, LanguageAgentPolicy, PromptMap, TurnRequest
from agents.models.openai import OpenAIModel
from agents.models.reasoning import Begun
from agents.models.served.answers import ProviderError, read_usage
from agents.models.served.dialect import REASONING_TOKENS, Dialect
from agents.models.served.routes import read_chat, read_completions, read_responses
from agents.turn import MOST_TOKENS, Message
from tests.agents.models.asking import ANSWER, ask, several, up
from tests.agents.openai_server import OpenAIServer
from tests.agents.raw_server import RawServer, answer

REFUSED_BY_OPENAI = {"temperature": "default", "stop": "", "max_tokens": "max_completion_tokens", "seed": ""}
"""What OpenAI's reasoning models refuse, in the words that they use."""


@pytest.fixture(autouse=True)
def _notices(caplog):
    caplog.set_level(logging.WARNING, "agents.models.served")


def test_a_reasoning_model_is_asked_as_it_wants_after_one_refusal_of_each_parameter(caplog):
    with OpenAIServer(respond=up, refused=REFUSED_BY_OPENAI, reasoning=600) as server:
        completions = ask(server, several(5), reasoning_effort="low", send_seed=True, max_retries=0)
        said = [record.getMessage() for record in caplog.records]
        assert len(server.requests) == 4 + 5  # a refusal each, and the answers
        last = server.requests[-1]
        completions += ask(server, several(20), at_once=True, max_retries=0)  # many first requests, which all learn
    assert {(one.response, one.error) for one in completions} == {(ANSWER, None)}
    told = {name: last[name] for name in last if name not in ("model", "messages")}
    assert told == {"reasoning_effort": "low", "max_completion_tokens": 256 + REASONING_TOKENS}
    first = completions[0]
    assert first.left_out == ("temperature", "stop", "seed")
    assert (first.usage.reasoning_tokens, first.usage.completion_tokens) == (600, 605)
    assert first.reasoning.startswith("hm hm")
    assert len(said) == 4
    assert f"local at {server.base_url}: it doesn't take 'temperature', which is left out from here on" in said


def test_what_is_set_by_hand_is_not_learnt():
    with OpenAIServer(respond=up, refused=REFUSED_BY_OPENAI) as server:
        by_hand = {"omit": ["temperature", "stop"], "max_tokens_field": "max_completion_tokens"}
        (completion,) = ask(server, reasoning_effort="high", reasoning_tokens=3000, **by_hand)
        (request,) = server.requests
        (refused,) = ask(server, **by_hand | {"max_tokens_field": "max_tokens"})
    assert completion.response == ANSWER
    assert request["max_completion_tokens"] == 3256
    assert "Use 'max_completion_tokens' instead" in refused.error
    assert "omit=['max_tokens'] in the agent's options" in refused.error


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
        first, second = ask(server, several(2), decoding=Decoding(top_p=0.9), send_seed=True)
        (by_hand,) = ask(server, route=name)
        (short,) = ask(server, route=name, decoding=Decoding(max_tokens=9 if name == "responses" else 2))
    assert first.response == second.response == by_hand.response == ANSWER
    assert (short.response, short.finish_reason) == ("<think>up it", "length")
    assert ["messages" in r for r in server.requests] == [True, False, False, False, False]
    request = server.requests[1]
    if name == "responses":
        assert request["input"][1] == {"role": "user", "content": "Where to?"}
        assert (request["max_output_tokens"], request["store"]) == (256, False)
        assert not {"stop", "seed", "max_tokens"} & request.keys()
        assert (first.reasoning, first.usage.reasoning_tokens) == ("hm hm hm hm hm hm hm", 7)
    else:
        assert request["prompt"] == "Play.\n\nWhere to?"
        assert (request["max_tokens"], request["stop"], "seed" in request) == (256, ["</action>"], True)
    assert f"it wants the route /{name}" in caplog.text


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (read_completions, '{"choices": [{"text": 3, "finish_reason": "stop"}]}'),
        (read_completions, '{"choices": [{"text": "up"}]}'),
        (read_responses, '{"status": "completed"}'),
        (read_responses, '{"status": "failed", "output": []}'),
        (read_responses, '{"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []}'),
    ],
)
def test_what_is_no_response_on_the_other_routes(read, body):
    with pytest.raises(ProviderError):
        read(body, Decoding())
    odd = '{"status": "completed", "output": [3, {"type": "message", "content": 4}, {"type": "reasoning"}]}'
    assert read_responses(odd, Decoding()).response == ""


def test_the_summary_of_reasoning_is_left_out_where_it_is_not_allowed():
    dialect = Dialect("responses", effort="low")
    fields = {"reasoning": {"effort": "low", "summary": "auto"}}
    refusal = "Your organization must be verified to generate reasoning summaries."
    assert "'summary'" in dialect.learn(400, refusal, dialect.shape(fields, 256, None))
    assert dialect.shape(fields, 256, None)["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        # reasoning that is counted beside the completion
        ({"total_tokens": 18, "completion_tokens_details": {"reasoning_tokens": 10}}, (5, 13, False, 10, 0)),
        ({"prompt_tokens_details": {"cached_tokens": 9}, "completion_tokens": True}, (5, 0, False, 0, 5)),
        ({"prompt_tokens": MOST_TOKENS, "completion_tokens": 1.5}, (MOST_TOKENS, 0, False, 0, 0)),
        ({"prompt_tokens": MOST_TOKENS + 1, "completion_tokens": -1}, (0, 0, False, 0, 0)),
    ],
)
def test_tokens_as_servers_count_them(usage, read):
    assert read_usage({"prompt_tokens": 5, "completion_tokens": 3} | usage) == read


def unknown(server, name="gpt-4o-mni", **options):
    return LanguageAgentPolicy(OpenAIModel(name, base_url=server.base_url, **options)).unknown_model()


def test_the_nearest_name_is_said_or_all_if_none_is_near():
    with OpenAIServer(models=["gpt-4o-mini", "o3"], strict_names=True) as server:
        said = unknown(server)
        assert unknown(server, "gpt-4o-mini") is None
        assert dict(server.served) == {"404": 1}  # a listed model isn't asked for anything
    assert said.replace(server.base_url, "URL") == (
        "URL has no model 'gpt-4o-mni' (status 404: The model `gpt-4o-mni` does not exist.) "
        "(did you mean 'gpt-4o-mini'?)"
    )
    listed = [f"model-{n:02}" for n in range(20)]
    with OpenAIServer(models=listed, strict_names=True) as server:
        assert unknown(server, "zzz").endswith(f"; it has {', '.join(listed[:12])} and 8 more")
    with OpenAIServer(models=None, strict_names=True) as server:
        assert "has no model 'gpt-4o-mni' (status 404: " in unknown(server)
    with OpenAIServer(models=["gpt-4o-mini"]) as server:  # which answers to names that it doesn't list
        assert unknown(server) is None
        assert [request["max_tokens"] for request in server.requests] == [16]


def test_a_server_with_another_route_is_asked_there_and_nothing_is_learnt():
    with OpenAIServer(models=None, only_route="responses") as server:
        model = OpenAIModel("m", base_url=server.base_url)
        assert LanguageAgentPolicy(model).unknown_model() is None
        assert server.served["ok"] == 1
    assert model._dialect.route == "chat"  # the run learns it again, and reports it


@pytest.mark.parametrize("fault", ["400", "401", "429", "html", "drop", "hang"])
def test_other_failures_are_left_to_the_run(fault, monkeypatch):
    monkeypatch.setattr("agents.models.served.model.NAME_SECONDS", 0.3 if fault == "hang" else 10)
    with OpenAIServer(models=["another"], faults={fault: 1.0}) as server:
        assert unknown(server) is None
        assert sum(server.served.values()) == 1
    assert unknown(server) is None


@pytest.mark.parametrize(
    ("status", "said", "wrong"),
    [
        ("400 X", b'{"error": {"message": "Model Not Exist", "code": "invalid_request_error"}}', True),  # DeepSeek
        ("400 X", b'{"message": "Invalid model: gpt-4o-mni", "code": "1500"}', True),  # Mistral
        ("403 X", b'{"error": {"message": "no access", "code": "model_not_found"}}', True),  # OpenAI
        ("404 X", b'{"error": {"message": "no such model gpt-4o-mni for sk-planted-0123456789"}}', True),
        ("400 X", b'{"error": {"message": "temperature is not supported"}}', False),
        ("404 X", b'{"detail": "Not Found"}', False),  # there is no such route
        ("500 X", b'{"error": {"message": "the model is not available"}}', False),
    ],
)
def test_refusals_in_the_words_of_servers_without_the_key(status, said, wrong):
    with RawServer(answer(said, status=status)) as server:
        found = unknown(server, api_key="sk-planted-0123456789")
    assert (found is not None) is wrong
    assert "planted" not in (found or "")


PROMPT = (Message("user", "Where to?"),)
ASKS = (Message("user", "Write <think>what matters</think><plan>moves</plan><action>NAME</action>"),)
PREFIXED = (*PROMPT, Message("assistant", "<action>"))
THOUGHT = "<think>I could answer <action>left</action>, but no.</think>\n\n<action>up</action> or so"
THINKS = {"chat_template_kwargs": {"enable_thinking": True}}


@pytest.fixture
def played(caplog):
    """``played(says, prompt, times, **options)``: completions, requests and notices of a model that says one thing."""

    def play(says, prompt=PROMPT, times=1, server=(), **options):
        with OpenAIServer(respond=lambda request: says, **dict(server)) as running:
            completions = ask(running, [prompt] * times, **options)
        return completions, running.requests, [record.getMessage() for record in caplog.records]

    return play


@pytest.mark.parametrize(("parses", "options"), [(False, THINKS), (True, {"thinking_budget": 500})])
def test_a_model_that_thinks_is_sent_no_stop_string_and_ends_at_it_here(parses, options, played):
    (completion,), (request,), _ = played(THOUGHT, server={"parses_reasoning": parses}, **options)
    assert completion.response.strip() == "<action>up</action>"
    assert completion.reasoning == "I could answer <action>left</action>, but no."
    assert completion.left_out == ()
    assert "stop" not in request
    if "thinking_budget" in options:
        assert (request["thinking_token_budget"], request["thinking_budget_tokens"]) == (500, 500)
    else:
        assert request["chat_template_kwargs"] == {"enable_thinking": True}
    assert request["max_tokens"] == 256 + options.get("thinking_budget", 0)


FORM = "<think>I could answer <action>left</action></think><plan>up</plan><action>up</action>"
OPENED = "Maybe <action>up</action>? Or <action>down</action>? No.</think>\n<action>left</action>"
"""What a model writes whose chat template has opened its reasoning."""


STOPS, MAY_STOP = "it stops in the model's reasoning", "it may stop in the model's reasoning"


@pytest.mark.parametrize(
    ("says", "prompt", "server", "response", "reasons", "notice"),
    [
        (THOUGHT, PROMPT, {}, "<action>up</action>", True, STOPS),
        (THOUGHT, PROMPT, {"parses_reasoning": True}, "<action>up</action>", True, STOPS),
        # a think that the prompt asks for, or a prefix opens, is the response
        (FORM + " or so", ASKS, {}, FORM, False, STOPS),
        (FORM[7:] + " or so", (*ASKS, Message("assistant", "<think>")), {}, FORM[7:], False, STOPS),
        (OPENED, PROMPT, {}, "<action>left</action>", True, MAY_STOP),
        (OPENED, ASKS, {}, "<action>left</action>", True, MAY_STOP),
    ],
)
def test_a_stop_in_reasoning_is_noticed_and_the_response_asked_for_again(
    says, prompt, server, response, reasons, notice, played
):
    completions, requests, notices = played(says, prompt, times=3, server=server)
    assert {(one.response.strip(), bool(one.reasoning)) for one in completions} == {(response, reasons)}
    assert {one.finish_reason for one in completions} == {"stop"}
    assert ["stop" in request for request in requests] == [True, False, False, False]
    assert [notice in said for said in notices] == [True]


def test_a_think_that_the_prompt_asks_for_is_the_response(played):
    form = "<think>hm</think><plan>up</plan><action>up</action>"
    for options in ({}, {"chat_template_kwargs": {"enable_thinking": False}}):
        (completion,), (request,), _ = played(form, ASKS, **options)
        assert (completion.response, completion.reasoning) == (form, "")
        assert request["stop"] == ["</action>"]
    # words that may be reasoning, and aren't
    completions, requests, _ = played("So <action>up</action> and more", times=3)
    assert {one.response for one in completions} == {"So <action>up</action>"}
    assert ["stop" in request for request in requests] == [True, False, True, True]
    (completion,), requests, _ = played("<think>hm", ASKS)  # without a stop string it would have ended in the same way
    assert (completion.response, len(requests)) == ("<think>hm", 1)


@pytest.mark.parametrize("options", [{"omit": ["stop"]}, THINKS])
@pytest.mark.parametrize(("rest", "prompt"), [("", PROMPT), (" or so", ASKS)])
def test_reasoning_that_the_template_opened_is_none_of_the_response(options, rest, prompt, played):
    said = "First.</think>" + OPENED + rest
    (completion,), _, _ = played(said, prompt, **options)
    assert (completion.response.strip(), completion.finish_reason) == ("<action>left</action>", "stop")
    assert completion.reasoning == said.rpartition("</think>")[0]


def test_where_reasoning_ends_in_a_response_that_ends_at_its_limit_or_in_the_mode_think(played):
    # without a stop string a model may write until its limit: its response isn't cut off
    long = "<think>a</think><action>up</action>" + " and" * 50
    (completion,), _, _ = played(long, decoding=Decoding(max_tokens=12), **THINKS)
    assert (completion.response, completion.reasoning, completion.finish_reason) == ("<action>up</action>", "a", "stop")
    both = "<think>left or up</think>\n<think>hm</think><plan>up</plan><action>up</action>"
    (completion,), _, _ = played(both, ASKS, **THINKS)
    assert completion.response == "<plan>up</plan><action>up</action>"
    assert completion.reasoning == "left or up</think>\n<think>hm"
    (completion,), _, _ = played("<think>" + "left " * 50, decoding=Decoding(max_tokens=10), thinking_budget=10)
    assert (completion.response, completion.finish_reason) == ("", "length")
    assert completion.reasoning


def test_a_server_that_does_not_hold_to_what_it_is_asked_is_named(played):
    _, _, (budget,) = played("<action>up</action>", times=2, server={"reasoning": 200}, thinking_budget=100)
    assert "200 tokens of reasoning are more than thinking_budget = 100" in budget
    _, _, (_, prefix) = played("<action>up</action>", PREFIXED, times=2)
    assert "a response begins with '<action>' again" in prefix


@pytest.mark.parametrize("options", [{}, THINKS, {"route": "completions"}])
def test_a_server_is_told_to_continue_and_the_tag_that_the_prefix_opened_is_closed(options, played):
    """Servers cut the stop string out: "up" is what follows <action>. A prefix isn't reasoning, whoever thinks."""
    (completion,), (request,), _ = played("up</action>", PREFIXED, **options)
    assert (completion.response, request["stop"]) == ("up</action>", ["</action>"])
    if "route" in options:
        assert request["prompt"] == "Where to?<action>"
    else:
        assert request["messages"][-1] == {"role": "assistant", "content": "<action>"}
        assert (request["continue_final_message"], request["add_generation_prompt"]) == (True, False)


def test_llama_cpp_gives_the_whole_message_and_others_what_follows_the_prefix():
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "<action><action>up"}}
    answer = {"choices": [choice], "timings": {"prompt_n": 52}}
    assert read_chat(json.dumps(answer), Decoding(), Begun("<action>")).response == "<action>up"
    del answer["timings"]
    assert read_chat(json.dumps(answer), Decoding(), Begun("<action>")).response == "<action><action>up"


def test_the_route_responses_is_known_to_begin_anew_before_a_run_or_found_to(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    prompts = PromptMap.from_file("prefixed", "direct")
    for options in ({}, {"base_url": "http://127.0.0.1:1/v1", "route": "responses"}):
        model = OpenAIModel("gpt-4o-mini", api_key="k", **options)
        with pytest.raises(ValueError, match=r"can't continue the response prefix '<action>'"):
            LanguageAgentPolicy(model, prompts)
        LanguageAgentPolicy(model, PromptMap("direct"))
    with OpenAIServer(respond=lambda request: "up", only_route="responses") as server:
        model = OpenAIModel("local", base_url=server.base_url)
        (turn,) = LanguageAgentPolicy(model, prompts).act([TurnRequest("Where to?")])
    assert turn.error == "the route /responses can't continue the response prefix '<action>'"
