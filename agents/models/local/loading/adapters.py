"""A model's or peft adapter's folder: its place, its base, the bounds of what it may ask for, and its fingerprint.

A stranger's folder could fill the memory, or run without end. A folder may hold another model tomorrow, for which a
cache mustn't answer.
"""

import json
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.common.files import reason_of
from agents.common.reading import read_json
from agents.common.tensors import check_torch
from agents.models.provider import model_folder
from textgames.extras import install_command

MOST_LAYERS = 1_000  # the largest published models have some 130
MOST_POSITIONS = 100_000_000  # the longest published contexts have ten million tokens
_MOST = {
    **dict.fromkeys(
        ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_encoder_layers", "num_decoder_layers"),
        MOST_LAYERS,
    ),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), MOST_POSITIONS),
}

PATTERN_SECONDS = 10.0  # to compare an adapter's patterns with all names; published ones take milliseconds

# As peft compares them: nothing can stop a regular expression of Python's but the end of its process.
_COMPARE = """
import json, re, sys
patterns, names = json.load(sys.stdin)
for pattern in patterns:
    for form in (pattern, rf"(?:.*?\\.)?({pattern})$", rf".*\\.{pattern}\\.(\\d+)\\."):
        for name in names:
            try:
                re.fullmatch(form, name), re.match(form, name)
            except (re.error, RecursionError, OverflowError):
                break
"""


def check_sizes(folder: Path) -> None:
    """Raise a ValueError for a configuration that asks for more than a model has, or than its files hold."""
    file = folder / "config.json"
    if not file.exists():
        return  # from a hub, or missing, which loading reports
    try:
        config = read_json(file)
        why = why_out_of_bounds(config)
        # Weights that aren't in the files would be drawn at random. A layer has more than twice hidden_size squared
        # weights, and the tightest files have two weights a byte.
        there = sum(part.stat().st_size for end in ("safetensors", "bin", "gguf") for part in folder.glob(f"*.{end}"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{file} can't be read: {reason_of(error)}") from None
    found = dict(_numbers(config))
    hidden, layers, words = (found.get(name, 0) for name in ("hidden_size", "num_hidden_layers", "vocab_size"))
    if why is None and max(hidden * hidden * layers, hidden * words / 2) > there + 2**20:
        why = (
            f"hidden_size {hidden:,}, num_hidden_layers {layers:,} and vocab_size {words:,} need more weights than "
            f"there are in the {there:,} bytes of its files"
        )
    if why is not None:
        raise ValueError(f"{file}: {why}")


def why_out_of_bounds(config: Any) -> str | None:
    """Return what is wrong with the numbers of a configuration, or ``None``."""
    for name, value in _numbers(config):
        if name in _MOST and not 1 <= value <= _MOST[name]:
            return f"{name} is {value:,}; accepted is a whole number from 1 to {_MOST[name]:,}"
        if name == "rope_theta" and not value > 0:
            return f"{name} is {value}; accepted is a number above 0"
    return None


def _numbers(config: Any) -> Iterator[tuple[str, float]]:
    for name, value in config.items() if isinstance(config, Mapping) else ():
        if isinstance(value, int | float):
            yield name, value
        yield from _numbers(value)


def check_patterns(settings: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise a ValueError for an adapter whose patterns take too long to be compared with the names of a model's
    parts."""
    # a list has names; a text is a regular expression, and so are the keys of rank_pattern
    found = [settings.get(name) for name in ("target_modules", "exclude_modules", "layers_pattern")]
    found += [key for name in ("rank_pattern", "alpha_pattern") for key in settings.get(name) or ()]
    found += [one for one in found if isinstance(one, list) for one in one]
    patterns = [one for one in found if isinstance(one, str) and not one.replace(".", "").isidentifier()]
    if not patterns:
        return
    try:
        subprocess.run(
            [sys.executable, "-I", "-c", _COMPARE],
            input=json.dumps([patterns, list(names)]).encode(),
            stderr=subprocess.DEVNULL,
            timeout=PATTERN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"its patterns take more than {PATTERN_SECONDS:g} seconds to be compared with the names of the model's "
            f"layers: {patterns[0][:80]!r}; name the layers in a list, target_modules of adapter_config.json"
        ) from None


SETTINGS, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_BASE = "base_model_name_or_path"


def find_place(source: str) -> Path:
    """Return the folder of a model, or of an adapter; it isn't there if the source is a name on the hub. A
    FileNotFoundError if a folder was meant, and there is none; a ValueError if it holds no model."""
    folder = Path(source).expanduser()
    if folder.is_dir():
        if base_of(folder) is None and not (folder / "config.json").is_file():
            raise ValueError(f"{source} has no config.json: it is not a model in Hugging Face format")
    # hub names have at most one slash and don't begin with a dot
    elif source.startswith((".", "/", "~")) or source.count("/") > 1 or "\\" in source or source.endswith("/"):
        raise FileNotFoundError(f"no folder {source!r}: a local model is a folder with config.json and weights")
    return folder


def base_of(path: str | Path) -> str | None:
    """Return the base model that an adapter's folder names: a path, a hub's name, or a spec such as ``smollm2``.
    ``None`` if no adapter is there; a ValueError if its settings can't be read, or name no base."""
    settings = _settings(Path(path).expanduser())
    if settings is None:
        return None
    base = settings.get(_BASE)
    if not isinstance(base, str) or not base:
        raise ValueError(
            f"{Path(path) / SETTINGS} names no base model: {_BASE} is {base!r}; accepted is a path or name"
        )
    return base


def of_a_base(adapter: str, error: Exception) -> ValueError:
    """Return the error for an adapter whose base can't be had."""
    return ValueError(
        f"the adapter {adapter!r} stands on a model that can't be had here: {error}; if that model is elsewhere, "
        f"put its place into {_BASE} in {Path(adapter) / SETTINGS}"
    )


def settings_digest(path: str | Path) -> str | None:
    """Return a digest of the settings that decide what an adapter's weights do, such as its scale, if there are any."""
    settings = _settings(Path(path).expanduser())
    if settings is None:
        return None
    # the base may have another place on another machine
    deciding = {name: value for name, value in settings.items() if name not in (_BASE, "revision", "inference_mode")}
    return sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:16]


def put_on(model: Any, adapter: str) -> Any:
    """Return the model with an adapter from a folder or a hub on it, frozen, in float32. A ModuleNotFoundError if peft
    isn't installed or PyTorch is too old for weights from a hub; a ValueError if there is no adapter of this model, or
    its weights are pickled and may hold code."""
    check_peft(adapter)
    folder = Path(adapter).expanduser()
    if not folder.is_dir():
        check_torch(adapter)
    elif not (folder / WEIGHTS).is_file():
        raise not_safetensors(adapter)
    import peft
    from safetensors import SafetensorError

    try:
        check_patterns(_settings(folder) or {}, (name for name, _ in model.named_modules()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by names that are being retired
            settings = peft.PeftConfig.from_pretrained(adapter)
            if getattr(settings, "megatron_config", None):  # with which peft imports the module of megatron_core
                raise ValueError("it has a megatron_config, and no module is imported since an adapter names it")
            return peft.PeftModel.from_pretrained(model, adapter, config=settings)
    except SafetensorError:
        raise
    except Exception as error:  # peft stumbles over broken settings in any way there is
        told = " ".join(str(error).split())
        raise ValueError(f"the adapter {adapter!r} doesn't fit {model.name_or_path!r}: {told[:300]}") from error


def check_shards(folder: Path) -> None:
    """Refuse an index of weights that leads out of its folder, or to files that transformers would read with pickle."""
    file = folder / "model.safetensors.index.json"
    if not file.is_file():
        return
    try:
        names = {*read_json(file)["weight_map"].values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} can't be read as an index of weights: {error}") from None
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise ValueError(f"{file} names {name!r} as a file of weights; accepted are safetensors in its folder")


def not_safetensors(source: str | Path) -> ValueError:
    """Return the error for a model or an adapter whose weights aren't safetensors."""
    return ValueError(
        f"{str(source)!r} has no weights as safetensors, and other formats can hold code: if you trust it, load it "
        "with transformers or peft where it was made, and save it anew with save_pretrained(FOLDER)"
    )


def check_peft(adapter: str) -> None:
    """Raise a ModuleNotFoundError with the command if peft isn't installed."""
    if find_spec("peft") is None:
        raise ModuleNotFoundError(
            f"{adapter} is an adapter and needs peft, which is not installed: {install_command('train')}"
        )


def save_pretrained(model: Any, folder: str | Path, **options: Any) -> None:
    """Save a model, or an adapter alone."""
    # peft would ask the hub whether the base's vocabulary has grown, which it never has here
    own = {"save_embedding_layers": False} if hasattr(model, "peft_config") else {}
    model.save_pretrained(folder, **own, **options)


def _settings(folder: Path) -> dict[str, Any] | None:
    file = folder / SETTINGS
    if not file.is_file():
        return None
    try:
        settings = read_json(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"{file} can't be read as an adapter's settings: {error}") from None
    if not isinstance(settings, dict):
        raise ValueError(f"{file} should hold an adapter's settings, a JSON object, got {type(settings).__name__}")
    return settings


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
