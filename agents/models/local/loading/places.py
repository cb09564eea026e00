"""Where a model in Hugging Face format lies, and what can be wrong with it before anything is loaded."""

from pathlib import Path

from agents.models.local.loading.adapters import base_of


def find_place(source: str) -> Path:
    """Return the folder of a model, or of an adapter; it isn't there if the source is a name on the hub.

    Raises:
        FileNotFoundError: a folder was meant, and there is none.
        ValueError: what is there is no model in Hugging Face format.
    """
    folder = Path(source).expanduser()
    if not folder.is_dir() and _looks_like_a_path(source):
        raise FileNotFoundError(f"no folder {source!r}: a local model is a folder with config.json and weights")
    if folder.is_dir() and base_of(folder) is None and not (folder / "config.json").is_file():
        raise ValueError(f"{source} has no config.json: it is not a model in Hugging Face format")
    return folder


def _looks_like_a_path(source: str) -> bool:
    """Return whether a person who wrote this meant a folder: hub names have at most one slash and don't begin with a
    dot."""
    return source.startswith((".", "/", "~")) or source.count("/") > 1 or "\\" in source or source.endswith("/")
