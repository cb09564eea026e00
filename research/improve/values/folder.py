"""The folder of a step value: weights, and one document that a schema checks. It may be anybody's."""

from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save

from agents.common import check_folder, problem_of, read_bytes, replacing
from research.improve.values.network import About, StepValue

ABOUT, WEIGHTS = "value.json", "value.safetensors"


def write_value(value: StepValue, folder: Path) -> None:
    """Write the folder of a value."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / WEIGHTS, "wb") as stream:
        stream.write(_weights(value))
    with replacing(folder / ABOUT) as stream:
        stream.write(value.about.model_dump_json(indent=1) + "\n")


def read_value(folder: str | Path) -> StepValue:
    """Read a folder, which may be anybody's: data is parsed, nothing in it runs, and no link leads out of it.

    A ValueError says what is wrong with it.
    """
    advice = "name the folder `value` that textbench improve value leaves"
    try:
        check_folder(Path(folder))
        value = StepValue(About.model_validate_json(read_bytes(Path(folder) / ABOUT)))
        weights = load(read_bytes(Path(folder) / WEIGHTS))
        value.load_state_dict(weights)
    except OSError as error:
        raise ValueError(f"{folder} holds no step value ({error.strerror}: {error.filename}): {advice}") from None
    except ValidationError as error:
        raise ValueError(f"{Path(folder) / ABOUT}: {problem_of(error)}: {advice}") from None
    except (SafetensorError, RuntimeError) as error:
        why = " ".join(str(error).split())[:200]
        raise ValueError(f"{Path(folder) / WEIGHTS} has no weights of this network ({why}): {advice}") from None
    if not all(bool(each.isfinite().all()) for each in weights.values()):
        raise ValueError(f"{Path(folder) / WEIGHTS} has a weight that is no number: {advice}")
    return value.eval()


def digest_of(value: StepValue) -> str:
    """Return what tells one value from another in manifests."""
    return sha256(_weights(value)).hexdigest()[:16]


def _weights(value: StepValue) -> bytes:
    return save({name: each.contiguous() for name, each in value.state_dict().items()})
