"""Which model answered: a local folder may hold another tomorrow, for which a cache mustn't answer."""

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from agents.models.local.loading.adapters import base_of, settings_digest
from agents.models.provider import model_folder

_SUFFIXES = (".safetensors", ".bin", ".pt", ".gguf")
_WHOLE = 64 * 2**20
_BLOCKS, _BLOCK = 1024, 64 * 2**10


def weights_fingerprint(folder: str | Path) -> str | None:
    """Return a short digest of the weight files in a folder; ``None`` if there are none (such as a name on the hub).

    Large files count by their size and 1,024 blocks of 64 KiB spread evenly over them: training changes every block.
    """
    folder = Path(folder).expanduser()
    files = sorted(file for file in folder.glob("*") if file.suffix in _SUFFIXES and file.is_file())
    if not files:
        return None
    digest = sha256()
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as stream:
            if size <= _WHOLE:
                digest.update(stream.read())
                continue
            for index in range(_BLOCKS):
                stream.seek(index * (size - _BLOCK) // (_BLOCKS - 1))
                digest.update(stream.read(_BLOCK))
    return digest.hexdigest()[:16]


def weights_identity(path_or_repo: str | Path, *, commit: str | None = None) -> dict[str, str]:
    """Return the weights' part of settings: ``{"weights": digest}`` of a folder, ``{"revision": commit}`` of the hub.

    An adapter's folder has both that of its base and its own :func:`adapter_identity`: neither alone answers.
    """
    if (base := base_of(path_or_repo)) is not None:
        return weights_identity(model_folder(base), commit=commit) | adapter_identity(path_or_repo)
    fingerprint = weights_fingerprint(path_or_repo)
    if fingerprint is not None:
        return {"weights": fingerprint}
    return {"revision": commit} if commit else {}


def adapter_identity(path_or_repo: str | Path) -> dict[str, str]:
    """Return an adapter's part of settings: digests of its weights and of its settings, such as its scale."""
    found = {"adapter_weights": weights_fingerprint(path_or_repo), "adapter_settings": settings_digest(path_or_repo)}
    return {name: digest for name, digest in found.items() if digest is not None}


def tokenizer_identity(tokenizer: Any, eos_ids: Iterable[int]) -> dict[str, str]:
    """Return the tokenizer's part of settings, a digest of how texts become tokens and tokens become texts.

    Padding and truncation are left out, as every call sets them. vLLM may have tokenizers of other libraries.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    vocabulary = getattr(tokenizer, "get_vocab", dict)
    state = {"vocabulary": vocabulary()} if backend is None else json.loads(backend.to_str())
    parts = [
        {name: value for name, value in state.items() if name not in ("padding", "truncation")},
        type(tokenizer).__name__,
        {name: str(token) for name, token in getattr(tokenizer, "special_tokens_map", {}).items()},
        str(getattr(tokenizer, "chat_template", None) or ""),
        sorted(eos_ids),
    ]
    return {"tokenizer": sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]}
