"""The fingerprint of a folder's weights: equal for equal files, another after any training, quick for large ones."""

import json
import shutil
from pathlib import Path

import pytest

from agents.models.fingerprint import tokenizer_identity, weights_fingerprint, weights_identity


def test_it_is_of_the_weights_alone(tmp_path):
    (tmp_path / "README.md").write_text("a card")
    assert weights_fingerprint(tmp_path) is None
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    first = weights_fingerprint(tmp_path)
    assert first is not None
    assert len(first) == 16
    (tmp_path / "README.md").write_text("another card")
    assert weights_fingerprint(str(tmp_path)) == first
    assert weights_identity(tmp_path, commit="abc") == {"weights": first}
    assert weights_identity("Qwen/Qwen2.5-0.5B-Instruct", commit="abc") == {"revision": "abc"}
    assert weights_identity("Qwen/Qwen2.5-0.5B-Instruct") == {}
    (tmp_path / "model.safetensors").write_bytes(b"weightz")
    assert weights_fingerprint(tmp_path) != first
    (tmp_path / "model.safetensors").rename(tmp_path / "other.safetensors")
    assert weights_fingerprint(tmp_path) != first


@pytest.mark.slow
def test_large_files_are_sampled_over_their_whole_length(tmp_path):
    size, row = 80 * 2**20, 200_000
    file = tmp_path / "model.safetensors"
    file.write_bytes(bytes(size))
    first = weights_fingerprint(tmp_path)
    for start in (0, size // 2, size - row):
        file.write_bytes(bytes(start) + b"1" * row + bytes(size - start - row))
        assert weights_fingerprint(tmp_path) != first, start


def train_on(folder: Path) -> None:
    import torch

    from agents.models.local.transformers import TransformersModel

    trained = TransformersModel.from_pretrained(folder).model
    with torch.no_grad():
        next(trained.parameters()).mul_(1.5)
    trained.save_pretrained(folder)


def change_template(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{% for message in messages %}{{ message.content }}!{% endfor %}")


def swap_two_words(folder: Path) -> None:
    read = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = read["model"]["vocab"]
    first, second = sorted(vocabulary, key=vocabulary.__getitem__)[-2:]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (folder / "tokenizer.json").write_text(json.dumps(read))


def end_elsewhere(folder: Path) -> None:
    file = folder / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"eos_token_id": [0, 5]}))


@pytest.mark.parametrize("change", [train_on, change_template, swap_two_words, end_elsewhere])
def test_a_cache_does_not_answer_for_another_model_of_the_same_folder(change, tmp_path):
    pytest.importorskip("torch")
    from agents.models.base import Decoding
    from agents.models.cache import ResponseCache, cached
    from agents.models.embedded import FOLDER
    from agents.models.local.transformers import TransformersModel
    from agents.turn import Message

    folder = tmp_path / "model"
    shutil.copytree(FOLDER / "tiny", folder)
    cache = ResponseCache(tmp_path / "cache.sqlite")

    def answer() -> object:
        model = cached(TransformersModel.from_pretrained(folder), cache)
        prompt = (Message("user", "Up or down?"),)
        return model.generate([prompt], Decoding(temperature=0, max_tokens=3), [(0,)])[0].usage.cached

    assert [answer(), answer()] == [False, True]
    change(folder)
    assert [answer(), answer()] == [False, True]


def test_a_tokenizers_identity_is_of_what_it_does_and_not_of_what_a_call_leaves_in_it():
    transformers = pytest.importorskip("transformers")
    from agents.models.embedded import FOLDER

    tokenizer, other = (transformers.AutoTokenizer.from_pretrained(FOLDER / "tiny") for _ in range(2))
    tokenizer(["left or right", "up"], padding="longest", truncation=True, max_length=2)
    in_python = [transformers.ByT5Tokenizer(extra_ids=extra) for extra in (5, 5, 6)]
    first, equal, ends, python, same, another = (
        tokenizer_identity(one, frozenset({end}))
        for one, end in ((tokenizer, 1), (other, 1), (other, 2), *((one, 1) for one in in_python))
    )
    assert first == equal != ends
    assert python == same != another
