"""Models behind servers that reason, or continue a prefix: what is sent, and what is read as the response."""

import json
import logging

import pytest

from agents import Decoding, LanguageAgentPolicy, PromptMap, TurnRequest
from agents.models.openai import OpenAIModel
from agents.models.reasoning import Begun, split_reasoning
from agents.models.served.routes import read_chat
from agents.turn import Message
from tests.agents.models.asking import ask
from tests.agents.openai_server import OpenAIServer

PROMPT = (Message("user", "Where to?"),)
ASKS = (Message("user", "Write <think>what matters</think><plan>moves</plan><action>NAME</action>"),)
PREFIXED = (*PROMPT, Message("assistant", "<action>"))
THOUGHT = "<think>I could answer <action>left</action>, but no.</think>\n\n<action>up</action> or so"
THINKS = {"chat_template_kwargs": {"enable_thinking": True}}


@pytest.fixture
def played(caplog):
    """``played(says, prompt, times, **options)``: completions, requests and notices of a model that says one thing."""

    def play(says, prompt=PROMPT, times=1, server=(), **options):
        caplog.set_level(logging.WARNING, "agents.models.served")
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
    completions, requests, _ = played(
        "So <action>up</action> and more", times=3
    )  # words that may be reasoning, and aren't
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


@pytest.mark.parametrize(
    ("text", "opening", "expected"),
    [
        ("<think>a</think><action>b</action>", "none", ("", "<think>a</think><action>b</action>")),
        ("<think>a</think>\n\nb", "may", ("a", "b")),
        ("a</think>b", "open", ("a", "b")),
        ("<think>a</think><think>b", "may", ("a</think><think>b", "")),
        ("<think>a</think><think>b</think>c", "may", ("a</think><think>b", "c")),
    ],
)
def test_what_follows_the_last_closing_is_the_response(text, opening, expected):
    assert split_reasoning(text, opening) == expected
