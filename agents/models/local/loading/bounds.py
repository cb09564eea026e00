"""Bounds of what a model's folder may ask for: a stranger's could fill the memory, or run without end."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.common.files import reason_of
from agents.common.reading import read_json

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
