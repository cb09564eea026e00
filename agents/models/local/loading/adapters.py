"""Models and peft adapters on disk: their places, the base below an adapter, and putting one on."""

import json
import warnings
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.common.reading import read_json
from agents.common.tensors import check_torch
from agents.models.local.loading.bounds import check_patterns
from textgames.extras import install_command

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
