"""How a trained model wants to be asked: a file beside its weights, which the trainer writes and ``hf:`` reads."""

import json
from pathlib import Path

CARD_NAME = "textbench.json"


def write_card(folder: Path, *, mode: str) -> None:
    """Write ``textbench.json`` into a model's folder.

    Args:
        folder: where the weights are.
        mode: the response mode that the model was trained in, as ``PromptMap`` takes it: ``"think"`` or ``"direct"``.
    """
    (folder / CARD_NAME).write_text(json.dumps({"mode": mode}, indent=1) + "\n", encoding="utf-8")


def trained_mode(path_or_repo: str) -> str | None:
    """The response mode in the card of a model's folder; ``None`` for a model without one, or from a hub.

    Raises:
        ValueError: the card isn't one.
    """
    file = Path(path_or_repo).expanduser() / CARD_NAME
    try:
        mode = json.loads(file.read_text(encoding="utf-8"))["mode"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} should hold {{'mode': 'think'}} or another response mode: {error!r}") from None
    return str(mode)
