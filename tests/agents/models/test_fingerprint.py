"""The fingerprint of a folder's weights: equal for equal files, another after any training, quick for large ones."""

import shutil
from pathlib import Path

import pytest

from agents.models.fingerprint import weights_fingerprint, weights_identity


def test_it_is_of_the_weights_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("a card")
    assert weights_fingerprint(tmp_path) is None
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    first = weights_fingerprint(tmp_path)
    assert first is not None
    assert len(first) == 16
    (tmp_path / "README.md").write_text("another card")
    assert weights_fingerprint(str(tmp_path)) == first
    (tmp_path / "model.safetensors").write_bytes(b"weightz")
    assert weights_fingerprint(tmp_path) != first
    (tmp_path / "model.safetensors").rename(tmp_path / "other.safetensors")
    assert weights_fingerprint(tmp_path) != first


@pytest.mark.slow
def test_large_files_are_sampled_over_their_whole_length(tmp_path: Path) -> None:
    size = 80 * 2**20
    file = tmp_path / "model.safetensors"
    file.write_bytes(bytes(size))
    first = weights_fingerprint(tmp_path)
    for place in (0, size // 2, size - 1):  # the first block, the last one, and one stretch as long as a row of weights
        content = bytearray(size)
        start = min(place, size - 200_000)
        content[start : start + 200_000] = b"1" * 200_000
        file.write_bytes(content)
        assert weights_fingerprint(tmp_path) != first, place


def test_a_folder_says_its_digest_and_the_hub_its_commit(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert weights_identity(tmp_path, commit="abc") == {"weights": weights_fingerprint(tmp_path)}
    assert weights_identity("Qwen/Qwen2.5-0.5B-Instruct", commit="abc") == {"revision": "abc"}
    assert weights_identity("Qwen/Qwen2.5-0.5B-Instruct") == {}


def test_a_cache_does_not_answer_for_a_model_that_was_trained_on(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
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
    trained = TransformersModel.from_pretrained(folder).model
    with torch.no_grad():
        next(trained.parameters()).mul_(1.5)
    trained.save_pretrained(folder)
    assert answer() is False
