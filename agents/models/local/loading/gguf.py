"""GGUF files as folders in Hugging Face format: dequantised once, kept in the user's cache folder.

``file -> sha256 -> folder``. A folder is written as a draft and renamed when it is whole, by one process at a time, so
a folder that is there is complete. The weights are kept in float32; the type in which they compute is chosen later.
"""

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from hashlib import file_digest
from pathlib import Path
from typing import Any

from agents.common.files import refusal, replacing_folder
from textgames.cache import cache_folder
from textgames.extras import install_command

MARK = "gguf.json"  # the file in a made folder that names its origin
VERSION = 2  # the conversion's: another one makes other folders
_SPECIAL_TOKENS = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}  # transformers' names, and GGUF's


class NotConvertedError(ValueError):
    """A GGUF file that can't be converted; the message has the reason in one sentence."""


def made_from_gguf(folder: str | Path) -> bool:
    """Report whether a folder holds weights that were dequantised here."""
    return (Path(folder) / MARK).is_file()


def folder_for(digest: str) -> Path:
    """Return where the weights of a file with this sha256 are kept, once they are."""
    return models_folder() / f"gguf-{digest[:16]}-{VERSION}"


def models_folder() -> Path:
    """Return the part of the user's cache folder that holds models."""
    return cache_folder() / "models"


def digest_of(file: Path) -> str:
    """Return the sha256 of a GGUF file; the errors are those of :func:`check_file`."""
    check_file(file)
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def check_file(file: Path) -> None:
    """Raise a FileNotFoundError or a NotConvertedError if this is no GGUF file."""
    if file.is_dir():
        raise NotConvertedError(f"{str(file)!r} is a folder: gguf:PATH names one file; a folder plays as hf:{file}")
    if not file.is_file():
        raise FileNotFoundError(f"no file {str(file)!r}: gguf:PATH names a file in GGUF format on this machine")
    with file.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise NotConvertedError(f"{str(file)!r} isn't in GGUF format: it doesn't begin with these letters")


def converted(file: Path, digest: str) -> Path:
    """Return the folder with the weights of a file, made first if it isn't there; a NotConvertedError if it can't be
    made."""
    folder = folder_for(digest)
    if made_from_gguf(folder):
        return folder
    check_reader()
    import transformers

    with keeping(folder):
        if not made_from_gguf(folder):  # else made by the process that was waited for
            with replacing_folder(folder) as draft:
                _convert(file, draft)
                about = {"file": file.name, "sha256": digest, "transformers": transformers.__version__}
                (draft / MARK).write_text(json.dumps(about) + "\n", encoding="utf-8")
    return folder


def check_reader() -> None:
    """Raise a ModuleNotFoundError with the command that installs the reader of GGUF files, if it isn't here."""
    try:
        import gguf  # noqa: F401 - transformers reads these files with it
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"GGUF files need {error.name}, which is not installed: {install_command('smollm2')}"
        ) from error


@contextmanager
def keeping(place: Path) -> Iterator[None]:
    """Be the only process that puts something in a place of the models' folder; NotConvertedError if that fails."""
    from filelock import FileLock  # comes with torch

    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(place.parent / f".{place.name}.lock"):
            yield
    except OSError as error:
        raise NotConvertedError(
            f"models are kept in the user's cache folder, and {place.name} can't be put there, {refusal(error)}: make "
            "room, or name another folder with the environment variable TEXTBENCH_CACHE_DIR"
        ) from error


def _convert(file: Path, folder: Path) -> None:
    import torch
    from gguf import GGUFReader
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if tells_progress():
        print(f"converting {file.name}, once", file=sys.stderr)
    try:
        with redirect_stderr(io.StringIO()):  # transformers' bars
            fields = GGUFReader(file).fields
            _check_architecture(file, fields["general.architecture"].contents())
            read: Any = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
            tokenizer: Any = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
            for name, of_file in _SPECIAL_TOKENS.items():  # transformers 5.17 reads others
                if (field := fields.get(f"tokenizer.ggml.{of_file}_token_id")) is not None:
                    setattr(tokenizer, f"{name}_token", tokenizer.convert_ids_to_tokens(int(field.contents())))
            # a model that was read from GGUF counts as quantised and refuses to be saved: another takes its weights
            vars(read.config).pop("quantization_config", None)  # transformers 5.10 and before don't set it
            with torch.device("meta"):
                model: Any = type(read)(read.config)
            model.load_state_dict(read.state_dict(), assign=True)
            model.tie_weights()
            model.generation_config = read.generation_config
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    except (NotConvertedError, OSError, MemoryError):
        raise
    except Exception as error:  # readers stumble over a broken file in any way there is
        said = (str(error).strip().splitlines() or [""])[0]
        raise NotConvertedError(
            f"{str(file)!r} can't be read ({type(error).__name__}: {said}): it is broken or cut short, and to be "
            "fetched again, or has something that the installed transformers doesn't know, and a llama.cpp server may"
        ) from error


def _check_architecture(file: Path, name: str) -> None:
    """Refuse an architecture that transformers doesn't read as a causal language model."""
    from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    known = sorted(
        each
        for each in {*GGUF_SUPPORTED_ARCHITECTURES} - {"general", "tokenizer"}
        if each not in CONFIG_MAPPING or CONFIG_MAPPING[each] in MODEL_FOR_CAUSAL_LM_MAPPING
    )
    plain = str.maketrans("", "", "-_")  # GGUF writes qwen2moe and gpt-oss where transformers has qwen2_moe and gpt_oss
    if name.translate(plain) not in [each.translate(plain) for each in known]:
        raise NotConvertedError(
            f"{str(file)!r} holds a model of the architecture {name!r}, which the installed transformers doesn't read "
            f"from GGUF as a causal language model; it reads {', '.join(known)}. A llama.cpp server may: play that as "
            "openai:MODEL with --base-url"
        )


def tells_progress() -> bool:
    """Report whether progress is shown: standard error is a terminal, and progress isn't switched off."""
    from transformers.utils.logging import is_progress_bar_enabled

    return sys.stderr.isatty() and is_progress_bar_enabled()
