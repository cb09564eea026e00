"""The response cache: what is kept, for which model, and what happens to a bad file."""

import asyncio
import json
import multiprocessing
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from agents import Decoding, ResponseCache, ScriptedModel, Turn, Usage
from agents.common.reading import opened
from agents.models.answers import LegalAnswers
from agents.models.cache import ResponseCacheError, cached
from agents.models.embedded import FOLDER
from agents.models.local.loading.adapters import weights_fingerprint, weights_identity
from agents.models.local.transformers import TransformersModel
from agents.turn import Message

PROMPT = (Message("user", "hi"),)
OTHER = (Message("user", "other"),)
GREEDY, SAMPLED = Decoding(temperature=0), Decoding(temperature=0.5)


def ask(model, decoding, prompt=PROMPT, seed=(1,)):
    return model.generate([prompt], decoding, [seed])[0]


def counting_model(name="m"):
    return ScriptedModel((f"answer {n}" for n in range(9)), name=name)


@pytest.fixture
def cache(tmp_path):
    return ResponseCache(tmp_path / "sub" / "cache.sqlite")


def test_deterministic_decoding_is_asked_once(cache):
    model = cached(counting_model(), cache)
    first, second = ask(model, GREEDY), ask(model, GREEDY, seed=(2,))
    assert (first.response, second.response) == ("answer 0", "answer 0")
    assert (first.usage.cached, second.usage.cached) == (False, True)
    assert second.usage[:2] == first.usage[:2]
    assert ask(model, Decoding(temperature=0, max_tokens=9)).response == "answer 1"
    assert ask(cached(counting_model("other model"), cache), GREEDY).response == "answer 0"
    for used_before in (False, True):  # equal prompts of a batch are generated once, and their order is kept
        turns = model.generate([OTHER, PROMPT, OTHER], GREEDY, [(0,), (1,), (2,)])
        assert [turn.response for turn in turns] == ["answer 2", "answer 0", "answer 2"]
        assert [turn.usage.cached for turn in turns] == [used_before, True, True]
    legal = (None, LegalAnswers(("up",)), LegalAnswers(("down",)))
    keys = {cache.key(model, PROMPT, GREEDY, (), answers) for answers in legal}
    assert len(keys) == 3, "what was legal keeps answers apart"
    assert len(cache) == 4


def test_sampled_decoding_is_drawn_anew_unless_asked_otherwise(cache, tmp_path):
    model = cached(counting_model(), cache)
    assert [ask(model, SAMPLED).response for _ in range(2)] == ["answer 0", "answer 1"]
    model = cached(counting_model(), ResponseCache(tmp_path / "b", sampled=True))
    texts = [ask(model, SAMPLED, seed=seed).response for seed in ((1,), (2,), (1,))]
    assert texts == ["answer 0", "answer 1", "answer 0"]


def test_everything_of_a_completion_survives_and_errors_are_not_kept(cache):
    whole = Turn("é\n", (), (1,), (2, 3), (-0.25, -1.5), "length", Usage(1, 2), 0.5)
    failed = Turn("", finish_reason="error", error="status 500")
    model = cached(ScriptedModel([failed, whole]), cache)
    assert ask(model, GREEDY).error == "status 500"
    ask(model, GREEDY)
    cache.close()
    kept = ask(cached(ScriptedModel([]), ResponseCache(cache.path)), GREEDY)  # the same name, no responses left
    assert kept == Turn("é\n", (), (1,), (2, 3), (-0.25, -1.5), "length", Usage(1, 2, True), 0.0)
    for unwritable in (Turn("x", usage=Usage(10**12, 1)), Turn("x", usage=Usage(-1, 1)), Turn("x \ud800")):
        cache.put("k", unwritable)
        assert cache.get("k") is None
    cache.put("m", Turn("text", served_by="model \udc80"))
    assert cache.get("m").served_by == "model \ufffd"


class Server:
    """Answers some time after it was asked; the first ``failing`` answers are errors."""

    name = "m"

    def __init__(self, failing=0, url="http://a/v1"):
        self.failing, self.calls, self.settings = failing, 0, {"base_url": url}

    async def generate_async(self, prompt, decoding, seed):
        self.calls += 1
        failed = self.calls <= self.failing
        await asyncio.sleep(0.01)
        return Turn("", error="status 500") if failed else Turn("up", usage=Usage(9, 1), discarded=Usage(9, 1))


def asked_at_once(model, cache, decoding=GREEDY):
    async def play():
        players = [cached(model, cache) for _ in range(5)]
        return await asyncio.gather(*[one.generate_async(PROMPT, decoding, (n,)) for n, one in enumerate(players)])

    return asyncio.run(play())


def test_a_served_model_is_asked_once_and_what_is_being_asked_is_not_asked_again(cache):
    model, elsewhere = Server(), Server(url="http://b/v1")
    turns = asked_at_once(model, cache)
    assert model.calls == 1
    assert [turn.paid for turn in turns] == [Usage(18, 2)] + [Usage()] * 4
    assert {turn.response for turn in turns} == {"up"}
    asked_at_once(model, cache, SAMPLED)
    assert model.calls == 1 + 5  # a sample for each
    asked_at_once(elsewhere, cache)
    asked_at_once(model, cache)
    assert (model.calls, elsewhere.calls) == (6, 1)


def test_who_waits_for_an_answer_that_fails_or_is_cancelled_asks_itself(cache, tmp_path):
    model = Server(failing=1)
    assert [turn.error for turn in asked_at_once(model, cache)] == ["status 500"] + [None] * 4

    async def leave(first):
        asking = cached(Server(), own := ResponseCache(tmp_path / f"d{first}"))
        tasks = [asyncio.create_task(asking.generate_async(PROMPT, GREEDY, ())) for _ in range(3)]
        await asyncio.sleep(0.001)
        tasks[0 if first else 1].cancel()
        turns = await asyncio.gather(*tasks, return_exceptions=True)
        assert own.asking.get(dict) == {}
        return sum(isinstance(turn, Turn) and turn.response == "up" for turn in turns), asking.model.calls

    assert asyncio.run(leave(first=False)) == (2, 1)
    assert asyncio.run(leave(first=True)) == (2, 3)


def _fill(folder, barrier, worker):
    for n in range(60):
        barrier.wait()
        ResponseCache(folder / str(n)).close()
    cache = ResponseCache(folder / "0")
    for n in range(20):
        cache.put(f"{worker} {n}", Turn("x"))


@pytest.mark.slow
def test_processes_share_a_cache_and_may_begin_it_at_the_same_moment(tmp_path):
    """Of such openings 6% failed: as "locked", or as another program's file when its mark wasn't there yet."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3, timeout=30)
    workers = [context.Process(target=_fill, args=(tmp_path, barrier, n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 3
    assert len(ResponseCache(tmp_path / "0")) == 3 * 20


def test_a_corrupt_or_foreign_file_is_refused_with_advice(tmp_path):
    (tmp_path / "text").write_text("this is no database, but it is longer than a header" * 100)
    with closing(sqlite3.connect(tmp_path / "foreign")) as foreign:
        foreign.execute("CREATE TABLE stamps (country TEXT)")
    wrong = {"text": r"not a database\. Name another file", "foreign": "another program", ".": "it isn't a file"}
    for name, said in wrong.items():
        with pytest.raises(ResponseCacheError, match=said):
            ResponseCache(tmp_path / name)


def changed(**changes):
    return lambda row: json.dumps({**json.loads(opened(row.encode(), b"}")), **changes})


@pytest.mark.parametrize(
    "spoil",
    [
        *(lambda row: "[]", lambda row: row.replace("first", "farst"), changed(text="\ud800")),
        *(changed(usage=[10**12, 1]), changed(finish_reason="magic"), changed(invented=1)),
    ],
)
def test_a_bad_row_is_asked_for_again(cache, spoil):
    cache.put("k", Turn("first", usage=Usage(7, 2)))
    assert cache.get("k").response == "first"
    row = cache._run("SELECT completion FROM responses")[0][0]
    assert spoil(row) != row
    cache._run("UPDATE responses SET completion = ?", (spoil(row),))
    assert cache.get("k") is None
    cache.put("k", Turn("second"))
    assert cache.get("k").response == "second", "a new answer takes its place"


def test_rows_of_earlier_versions_are_served(cache):
    old = {"text": "hello", "prompt_ids": None, "token_ids": [1, 2], "logprobs": [-0.5, 0], "finish_reason": "stop"}
    old |= {"usage": [3, 2, False], "seconds": 0.0, "error": None}
    cache._run("INSERT INTO responses VALUES ('k', ?)", (json.dumps(old),))
    assert cache.get("k") == Turn("hello", response_ids=(1, 2), logprobs=(-0.5, 0.0), usage=Usage(3, 2, cached=True))


def test_no_secret_gets_into_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "planted-0123456789")
    cache = ResponseCache(tmp_path / "c")
    ask(cached(ScriptedModel(['the key is "planted-0123456789"']), cache), GREEDY)
    cache.close()
    assert all(b"planted" not in file.read_bytes() for file in tmp_path.iterdir())
    assert ask(cached(ScriptedModel([]), cache), GREEDY).response == 'the key is "[redacted]"'


def test_a_fingerprint_is_of_the_weights_alone_and_of_all_of_a_large_file(tmp_path):
    (tmp_path / "README.md").write_text("a card")
    assert weights_fingerprint(tmp_path) is None
    assert weights_identity("Qwen/Qwen2.5-0.5B-Instruct", commit="abc") == {"revision": "abc"}
    assert weights_identity("Qwen/Qwen2.5-0.5B-Instruct") == {}
    size, row = 80 * 2**20, 200_000
    file = tmp_path / "model.safetensors"
    found = []
    for start in (0, size // 2, size - row):
        with file.open("wb") as stream:
            stream.truncate(size)
            stream.seek(start)
            stream.write(b"1" * row)
        found.append(weights_fingerprint(tmp_path))
    file.rename(tmp_path / "other.safetensors")
    assert len({*found, weights_fingerprint(tmp_path)}) == 4
    (tmp_path / "README.md").unlink()
    (tmp_path / "other.safetensors").rename(file)
    assert weights_identity(tmp_path, commit="abc") == {"weights": found[-1]}


def change(what: str, folder: Path) -> None:
    if what == "weights":
        weights = load_file(folder / "model.safetensors")
        save_file(weights | {"model.norm.weight": weights["model.norm.weight"] * 1.5}, folder / "model.safetensors")
    elif what == "template":
        template = "{% for message in messages %}{{ message.content }}!{% endfor %}"
        (folder / "chat_template.jinja").write_text(template)
    elif what == "words":
        read = json.loads((folder / "tokenizer.json").read_text())
        vocabulary = read["model"]["vocab"]
        first, second = sorted(vocabulary, key=vocabulary.__getitem__)[-2:]
        vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
        (folder / "tokenizer.json").write_text(json.dumps(read))
    else:
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [0, 5]}))


@pytest.mark.parametrize("what", ["weights", "template", "words", "end"])
def test_a_cache_does_not_answer_for_another_model_of_the_same_folder(what, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(FOLDER / "tiny", folder)
    cache = ResponseCache(tmp_path / "cache.sqlite")

    def answer() -> object:
        model = cached(TransformersModel.from_pretrained(folder), cache)
        return ask(model, Decoding(temperature=0, max_tokens=3)).usage.cached

    assert [answer(), answer()] == [False, True]
    change(what, folder)
    assert [answer(), answer()] == [False, True]
