"""Models behind servers that reason, or go on from a prefix: what is sent, and what is read as the response."""

import asyncio
import json
import logging

import pytest

from agents import Decoding, LanguageAgentPolicy, PromptMap, TurnRequest
from agents.models.openai import DEFAULT_BASE_URL, OpenAIModel
from agents.models.reasoning import Begun, split_reasoning
from agents.models.served.routes import read_chat as read
from agents.turn import Message, eaten_up
from tests.agents.openai_server import OpenAIServer

PROMPT = (Message("user", "Where to?"),)
ASKS = (Message("user", "Write <think>what matters</think><plan>moves</plan><action>NAME</action>"),)
PREFIXED = (*PROMPT, Message("assistant", "<action>"))
THOUGHT = "<think>I could answer <action>left</action>, but no.</think>\n\n<action>up</action> or so"
NOTICES = "agents.models.served"


def ask(server, prompt=PROMPT, times=1, decoding=None, **options):
    async def play():
        model = OpenAIModel("local", base_url=server.base_url, **options)
        try:
            return [await model.generate_async(prompt, decoding or Decoding(), (1,)) for _ in range(times)]
        finally:
            await model.aclose()

    return asyncio.run(play())


@pytest.mark.parametrize("parses", [False, True])
@pytest.mark.parametrize("options", [{"chat_template_kwargs": {"enable_thinking": True}}, {"thinking_budget": 500}])
def test_a_model_that_thinks_is_sent_no_stop_string_and_ends_at_it_here(parses, options):
    with OpenAIServer(respond=lambda request: THOUGHT, parses_reasoning=parses) as server:
        server.keep_requests = True
        (completion,) = ask(server, **options)
    assert completion.response.strip() == "<action>up</action>"
    assert completion.reasoning == "I could answer <action>left</action>, but no."
    assert completion.left_out == ()
    (request,) = server.requests
    assert "stop" not in request
    if "thinking_budget" in options:
        assert (request["thinking_token_budget"], request["thinking_budget_tokens"]) == (500, 500)
        assert request["max_tokens"] == 256 + 500
    else:
        assert request["chat_template_kwargs"] == {"enable_thinking": True}
        assert request["max_tokens"] == 256


@pytest.mark.parametrize("parses", [False, True])
def test_a_stop_in_reasoning_is_noticed_and_the_response_asked_for_again(parses, caplog):
    with OpenAIServer(respond=lambda request: THOUGHT, parses_reasoning=parses) as server:
        server.keep_requests = True
        with caplog.at_level(logging.WARNING, logger=NOTICES):
            completions = ask(server, times=3)
    assert {each.response.strip() for each in completions} == {"<action>up</action>"}
    assert ["stop" in request for request in server.requests] == [True, False, False, False]
    assert [record.getMessage().count("stops in the model's reasoning") for record in caplog.records] == [1]


def test_a_think_that_the_prompt_asks_for_is_the_response():
    form = "<think>hm</think><plan>up</plan><action>up</action>"
    with OpenAIServer(respond=lambda request: form) as server:
        server.keep_requests = True
        for options in ({}, {"chat_template_kwargs": {"enable_thinking": False}}):
            (completion,) = ask(server, ASKS, **options)
            assert (completion.response, completion.reasoning) == (form, "")
    assert all(request["stop"] == ["</action>"] for request in server.requests)


@pytest.mark.parametrize("prompt", [ASKS, (*ASKS, Message("assistant", "<think>"))])
def test_a_stop_in_a_think_that_the_prompt_asks_for_is_noticed_too(prompt, caplog):
    """Its response stays whole. A prefix that opens it counts, too."""
    form = "<think>I could answer <action>left</action></think><plan>up</plan><action>up</action>"
    form = form.removeprefix(prompt[-1].content if len(prompt) > 1 else "")
    with OpenAIServer(respond=lambda request: form + " or so") as server:
        server.keep_requests = True
        with caplog.at_level(logging.WARNING, logger=NOTICES):
            completions = ask(server, prompt, times=3)
    assert {(each.response, each.reasoning, each.finish_reason) for each in completions} == {(form, "", "stop")}
    assert ["stop" in request for request in server.requests] == [True, False, False, False]
    assert [record.getMessage().count("stops in the model's reasoning") for record in caplog.records] == [1]


def test_a_think_that_is_never_closed_is_asked_for_once():
    """It ended by itself: without a stop string it would have ended in the same way."""
    with OpenAIServer(respond=lambda request: "<think>hm") as server:
        server.keep_requests = True
        (completion,) = ask(server, ASKS)
    assert (completion.response, len(server.requests)) == ("<think>hm", 1)


OPENED = "Maybe <action>up</action>? Or <action>down</action>? No.</think>\n<action>left</action>"
"""What a model writes whose chat template has opened its reasoning."""


@pytest.mark.parametrize("options", [{"omit": ["stop"]}, {"chat_template_kwargs": {"enable_thinking": True}}])
@pytest.mark.parametrize("rest", ["", " or so"])
def test_reasoning_that_the_template_opened_is_none_of_the_response(options, rest):
    said = "First.</think>" + OPENED + rest
    for prompt in (PROMPT, ASKS):
        with OpenAIServer(respond=lambda request: said) as server:
            (completion,) = ask(server, prompt, **options)
        assert (completion.response.strip(), completion.finish_reason) == ("<action>left</action>", "stop")
        assert completion.reasoning == said.rpartition("</think>")[0]


@pytest.mark.parametrize("prompt", [PROMPT, ASKS])
def test_a_stop_in_reasoning_that_the_template_opened_is_found_by_asking_once_without(prompt, caplog):
    with OpenAIServer(respond=lambda request: OPENED) as server:
        server.keep_requests = True
        with caplog.at_level(logging.WARNING, logger=NOTICES):
            completions = ask(server, prompt, times=3)
    assert {each.response.strip() for each in completions} == {"<action>left</action>"}
    assert ["stop" in request for request in server.requests] == [True, False, False, False]
    assert [record.getMessage().count("may stop in the model's reasoning") for record in caplog.records] == [1]


def test_words_before_an_action_are_asked_for_again_once():
    """They may be reasoning, and aren't: stop strings are sent again."""
    with OpenAIServer(respond=lambda request: "So <action>up</action> and more") as server:
        server.keep_requests = True
        completions = ask(server, times=3)
    assert {each.response for each in completions} == {"So <action>up</action>"}
    assert ["stop" in request for request in server.requests] == [True, False, True, True]


def test_a_response_that_runs_on_behind_its_action_is_whole():
    """A model that is sent no stop string may write until its limit: what it said before that isn't cut off."""
    with OpenAIServer(respond=lambda request: "<think>a</think><action>up</action>" + " and" * 50) as server:
        (completion,) = ask(server, decoding=Decoding(max_tokens=12), chat_template_kwargs={"enable_thinking": True})
    assert (completion.response, completion.finish_reason) == ("<action>up</action>", "stop")


def test_a_thinking_model_in_the_mode_think_reasons_and_then_answers_in_form():
    both = "<think>left or up</think>\n<think>hm</think><plan>up</plan><action>up</action>"
    with OpenAIServer(respond=lambda request: both) as server:
        (completion,) = ask(server, ASKS, chat_template_kwargs={"enable_thinking": True})
    assert completion.response == "<plan>up</plan><action>up</action>"
    assert completion.reasoning == "left or up</think>\n<think>hm"


def test_reasoning_that_is_cut_off_leaves_no_response():
    with OpenAIServer(respond=lambda request: "<think>" + "left " * 50) as server:
        (completion,) = ask(server, decoding=Decoding(max_tokens=10), thinking_budget=10)
    assert (completion.response, completion.finish_reason) == ("", "length")
    assert completion.reasoning.startswith("left left")


def test_a_budget_that_is_not_held_is_said(caplog):
    with (
        OpenAIServer(respond=lambda request: "<action>up</action>", reasoning=200) as server,
        caplog.at_level(logging.WARNING, logger=NOTICES),
    ):
        ask(server, times=2, thinking_budget=100)
    (record,) = caplog.records
    assert "200 tokens of reasoning are more than thinking_budget = 100" in record.getMessage()


# ---------------------------------------------------------------- prefixes


def test_a_server_is_told_to_go_on_and_the_tag_that_the_prefix_opened_is_closed():
    """Servers cut the stop string out: "up" is what follows <action>, and its closing tag is put back."""
    with OpenAIServer(respond=lambda request: "up</action>") as server:
        server.keep_requests = True
        (completion,) = ask(server, PREFIXED)
    (request,) = server.requests
    assert request["messages"][-1] == {"role": "assistant", "content": "<action>"}
    assert (request["continue_final_message"], request["add_generation_prompt"]) == (True, False)
    assert completion.response == "up</action>"


def test_the_completions_route_gets_the_text_up_to_where_it_goes_on():
    with OpenAIServer(respond=lambda request: "up</action>") as server:
        server.keep_requests = True
        (completion,) = ask(server, PREFIXED, route="completions")
    assert server.requests[0]["prompt"] == "Where to?<action>"
    assert completion.response == "up</action>"


def test_a_prefix_is_not_reasoning_and_the_stop_string_is_sent_behind_it():
    with OpenAIServer(respond=lambda request: "up</action>") as server:
        server.keep_requests = True
        (completion,) = ask(server, PREFIXED, chat_template_kwargs={"enable_thinking": True})
    assert server.requests[0]["stop"] == ["</action>"]
    assert completion.response == "up</action>"


def test_a_server_that_begins_anew_is_named(caplog):
    with (
        OpenAIServer(respond=lambda request: "<action>up</action>") as server,
        caplog.at_level(logging.WARNING, logger=NOTICES),
    ):
        ask(server, PREFIXED, times=2)
    (record,) = caplog.records
    assert "a response begins with '<action>' again" in record.getMessage()


@pytest.mark.parametrize(("whole", "rest"), [("<action>up", "up</action>"), ("<action><action>up", "<action>up")])
def test_llama_cpp_gives_the_whole_message_and_others_what_follows_the_prefix(whole, rest):
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": whole}}
    answer = {"object": "chat.completion", "choices": [choice], "timings": {"prompt_n": 52}}
    begun = Begun("<action>")
    assert read(json.dumps(answer), Decoding(), begun).response == rest
    del answer["timings"]
    assert read(json.dumps(answer), Decoding(), begun).response == whole


def test_openai_is_known_to_begin_anew(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    prompts = PromptMap.from_file("prefixed", "direct")
    for options in ({}, {"base_url": "http://127.0.0.1:1/v1", "route": "responses"}):
        model = OpenAIModel("gpt-4o-mini", api_key="k", **options)
        with pytest.raises(ValueError, match=r"can't go on from the response prefix '<action>'"):
            LanguageAgentPolicy(model, prompts)
        LanguageAgentPolicy(model, PromptMap("direct"))


def test_a_server_that_turns_out_to_have_the_responses_route_alone_answers_with_an_error():
    with OpenAIServer(respond=lambda request: "up", only_route="responses") as server:
        policy = LanguageAgentPolicy(
            OpenAIModel("local", base_url=server.base_url), PromptMap.from_file("prefixed", "direct")
        )
        (turn,) = policy.act([TurnRequest("Where to?")])
    assert turn.error == "the route /responses can't go on from the response prefix '<action>'"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"chat_template_kwargs": "no"}, "chat_template_kwargs is a table"),
        ({"thinking_budget": 0}, "thinking_budget is a whole number"),
        ({"thinking_budget": True}, "thinking_budget is a whole number"),
        ({"thinking_budget": 5, "route": "completions"}, "of the route chat"),
        ({"thinking_budget": 5, "base_url": DEFAULT_BASE_URL}, "takes neither"),
    ],
)
def test_options_that_are_wrong_are_named(options, said):
    with pytest.raises(ValueError, match=said):
        OpenAIModel("local", **{"base_url": "http://127.0.0.1:1/v1", "api_key": "k", **options})


# ---------------------------------------------------------------- what is reasoning


@pytest.mark.parametrize(
    ("text", "opening", "expected"),
    [
        ("<think>a</think><action>b</action>", "none", ("", "<think>a</think><action>b</action>")),
        ("<think>a</think>\n\nb", "may", ("a", "b")),
        ("  <think>\na\n", "may", ("a", "")),
        ("b", "may", ("", "b")),
        ("a</think>b", "may", ("a", "b")),
        ("a", "open", ("a", "")),
        ("a</think>b", "open", ("a", "b")),
        ("<think>a</think><think>b", "may", ("a</think><think>b", "")),
        ("<think>a</think><think>b</think>c", "may", ("a</think><think>b", "c")),
        ("", "may", ("", "")),
    ],
)
def test_what_follows_the_last_closing_is_the_response(text, opening, expected):
    assert split_reasoning(text, opening) == expected


@pytest.mark.parametrize(
    ("finish_reason", "response", "reasoning", "eaten"),
    [
        ("length", "", "so I go", True),
        ("length", " \n", 30, True),
        ("length", "left", 30, False),  # it is the response that was too long
        ("length", "", 0, False),
        ("stop", "", 30, False),
        (None, "", 30, False),
    ],
)
def test_reasoning_has_eaten_up_what_has_no_more_than_white_space(finish_reason, response, reasoning, eaten):
    assert eaten_up(finish_reason, response, reasoning) is eaten
