"""Loading a causal language model and its tokenizer from disk or from the Hugging Face hub, with errors for people."""

from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from agents.models.local.loading.adapters import (
    base_of,
    check_shards,
    check_sizes,
    find_place,
    not_safetensors,
    of_a_base,
    put_on,
)
from agents.models.local.loading.card import LOADED_FROM
from agents.models.local.loading.gguf import made_from_gguf
from agents.models.provider import model_folder, providers
from textgames.names import did_you_mean

_FOR_BFLOAT16 = ("avx512_bf16", "amx_bf16", "avx10_2", "bf16", "sve_bf16")  # the last two: ARM's


def load_model(
    source: str,
    *,
    dtype: str,
    device: str,
    revision: str | None = None,
    adapter: str | None = None,
    trust_remote_code: bool = False,
) -> tuple[Any, Any]:
    """Return the model, in evaluation mode on its device, and its tokenizer, as ``TransformersModel.from_pretrained``
    explains."""
    providers()["hf"].check_packages(source)
    import transformers

    named, source = source.removeprefix("hf:"), model_folder(source)
    folder = find_place(source)
    source = str(folder) if folder.is_dir() else source
    target = pick_device(device)
    base = source
    if (below := base_of(folder)) is not None:
        adapter = adapter or source
        try:
            base = model_folder(named := below)
            find_place(base)
        except (OSError, ValueError) as error:
            raise of_a_base(source, error) from None
    number_type = pick_dtype(dtype, target, dequantised=made_from_gguf(base))
    options: dict[str, Any] = {"revision": revision, "trust_remote_code": trust_remote_code}
    offline = not Path(base).is_dir() and not _hub_answers()
    if offline:  # models that were downloaded before still load
        options["local_files_only"] = True
    check_sizes(Path(base))
    check_shards(Path(base))
    bars = transformers.utils.logging.is_progress_bar_enabled()
    if folder.is_dir():  # bars for what takes a moment only stand in the way
        transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        config = transformers.AutoConfig.from_pretrained(base, **options)
        config._attn_implementation = None  # a folder's own may be code on a hub, which transformers would run
        tokenizer = _load_tokenizer(source, base, options)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            base, config=config, dtype=number_type, use_safetensors=True, **options
        )
    except ValueError as error:
        if "for this kind of AutoModel" not in str(error):
            raise
        raise ValueError(f"{source} is not a causal language model: its type is {config.model_type!r}") from error
    except OSError as error:
        if offline:
            of = "" if below is None else f", which the adapter {source!r} stands on,"
            of = did_you_mean(base, [name for provider in providers().values() for name in provider.models]) + of
            raise ValueError(
                f"{base!r}{of} isn't among the models downloaded before, and the Hugging Face hub can't be reached "
                "from here: connect and try again, or name a folder that has the model, as in hf:./FOLDER"
            ) from None
        if "safetensors" in str(error):
            raise not_safetensors(base) from None
        raise ValueError(f"can't load a model from {source!r}: {str(error).strip().splitlines()[0]}") from error
    except SafetensorError as error:
        raise damaged(base, error) from error
    except ImportError:
        raise
    except Exception as error:  # transformers stumbles over a broken configuration in any way there is
        told = " ".join(str(error).split())
        raise ValueError(f"can't load a model from {source!r}: {type(error).__name__}: {told[:300]}") from error
    finally:
        if bars:
            transformers.utils.logging.enable_progress_bar()  # type: ignore[no-untyped-call]
    model.name_or_path = lasting = _from_anywhere(named, base)  # the base's name in adapters that are saved later
    if adapter is not None:
        try:
            model = put_on(model, adapter)
        except SafetensorError as error:
            raise damaged(adapter, error) from error
        if below is not None:
            model.peft_config["default"].base_model_name_or_path = lasting
    setattr(model, LOADED_FROM, source if adapter is None else adapter)
    return model.to(target).eval(), tokenizer  # type: ignore[arg-type]


def _from_anywhere(named: str, base: str) -> str:
    """Return a model's name as it holds in any working directory: the whole path of a file or folder that it names."""
    kind = "gguf:" if named.startswith("gguf:") else ""
    path = Path(named.removeprefix(kind).removeprefix("hf:")).expanduser()
    here = path.is_file() if kind else path.is_dir() and path == Path(base).expanduser()
    return f"{kind}{path.absolute()}" if here else named


def damaged(folder: str, error: SafetensorError) -> ValueError:
    """Return the error for weights that were cut off, as by a full disk or a copy that was interrupted."""
    return ValueError(f"the weights in {folder!r} are damaged ({error}): copy or save them again")


def _hub_answers() -> bool:
    # a download would try for half a minute before it gave up
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=5)
    except Exception:  # noqa: BLE001 - of the transport, which is another one in every version of huggingface_hub
        return False
    return True


def _load_tokenizer(source: str, base: str, options: dict[str, Any]) -> Any:
    """Return the tokenizer beside the weights (an adapter may bring its own), else the base model's."""
    from transformers import AutoTokenizer

    error: Exception | None = None
    for place in dict.fromkeys((source, base)):
        folder = Path(place)
        names = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")
        if folder.is_dir() and not any((folder / name).is_file() for name in names):
            continue
        try:
            return AutoTokenizer.from_pretrained(place, **options)
        except (OSError, ValueError, KeyError, TypeError) as failed:
            error = failed
    raise ValueError(
        f"{source} has no tokenizer that transformers can load; "
        f"save it there with tokenizer.save_pretrained({source!r})"
    ) from error


def pick_device(device: str) -> torch.device:
    """Return the torch device for a name; ``"auto"`` is a GPU if there is one. A ValueError names the accepted ones."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        target = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device is auto, cpu, cuda, cuda:N or mps, got {device!r}") from error
    if target.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {device!r}: this PyTorch sees no CUDA device; use device='cpu'")
    return target


def fast_dtype(device: torch.device) -> torch.dtype:
    """Return bfloat16 if a device multiplies it by instructions of its own, else float32."""
    return torch.bfloat16 if device.type != "cpu" or multiplies_bfloat16() else torch.float32


def pick_dtype(dtype: str, device: torch.device, *, dequantised: bool = False) -> Any:
    """Return the torch dtype for a name, or ``"auto"`` if the weights' own is to be kept; a ValueError for no float.
    Weights that were ``dequantised`` lose nothing that counts in bfloat16, which is then taken if it isn't slower."""
    if dtype == "auto" and dequantised:
        return fast_dtype(device)
    if dtype == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    picked = getattr(torch, dtype, None)
    if not isinstance(picked, torch.dtype) or not picked.is_floating_point:
        raise ValueError(f"dtype is auto, float32, bfloat16 or float16, got {dtype!r}")
    return picked


@cache
def multiplies_bfloat16() -> bool:
    """Report whether the processor multiplies matrices of bfloat16 by instructions of its own, faster than float32."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in _FOR_BFLOAT16)
