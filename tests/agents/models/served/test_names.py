"""A model's name is asked about before a run: wrong ones are said, and no server is made worse by the question."""

import pytest

from agents import LanguageAgentPolicy
from agents.models.openai import OpenAIModel
from agents.models.served import names
from tests.agents.openai_server import OpenAIServer
from tests.agents.raw_server import RawServer, answer


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


def test_without_the_name_in_a_list_the_answer_to_one_small_request_tells():
    for models in (["gpt-4o-mini"], None):
        with OpenAIServer(models=models) as server:
            assert unknown(server) is None
            assert [request["max_tokens"] for request in server.requests] == [16]
    with OpenAIServer(models=None, strict_names=True) as server:
        assert "has no model 'gpt-4o-mni' (status 404: " in unknown(server)


@pytest.mark.parametrize("route", ["responses", "completions"])
def test_a_server_with_another_route_is_asked_there_and_nothing_is_learnt(route):
    with OpenAIServer(models=None, only_route=route) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        assert LanguageAgentPolicy(model).unknown_model() is None
        assert server.served["ok"] == 1
    assert model._dialect.route == "chat"  # the run learns it again, and reports it


@pytest.mark.parametrize(
    "fault", ["400", "401", "429", "500", "503", "html", "malformed", "drop", "redirect", "no-quota"]
)
def test_other_failures_are_left_to_the_run(fault):
    with OpenAIServer(models=["another"], faults={fault: 1.0}) as server:
        assert unknown(server) is None
        assert sum(server.served.values()) == 1


@pytest.mark.parametrize(
    ("status", "said", "wrong"),
    [
        ("400 X", b'{"error": {"message": "Model Not Exist", "code": "invalid_request_error"}}', True),  # DeepSeek
        ("400 X", b'{"message": "Invalid model: gpt-4o-mni", "code": "1500"}', True),  # Mistral
        ("400 X", b'{"error": {"message": "gpt-4o-mni is not a valid model ID", "code": 400}}', True),  # OpenRouter
        ("404 X", b'{"error": {"message": "model \'gpt-4o-mni\' not found, try pulling it first"}}', True),  # Ollama
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


def test_a_server_that_is_down_or_silent_is_left_to_the_run(monkeypatch):
    with OpenAIServer() as server:
        pass
    assert unknown(server) is None
    monkeypatch.setattr(names, "SECONDS", 0.3)
    with OpenAIServer(models=None, faults={"hang": 1.0}) as server:
        assert unknown(server) is None
