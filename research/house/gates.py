"""Hold a step of a redesign to what was there before it: ``record`` before the step, ``check`` after it.

    python -m research.house.gates record gates.json
    python -m research.house.gates check gates.json

Recorded are the golden transcripts of all games (their SHA-256), every figure of the published board, and the metrics
of three short trainings to the last bit. What was measured, such as seconds, doesn't count. Trainings are bit-equal on
one machine alone, so both commands belong to one machine. Beside these, a step is held by the tests, by
``textbench validate leaderboards/*`` and by the ratios of ``research/perf/environments.py``.
"""

import argparse
import contextlib
import hashlib
import io
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TRAININGS: Mapping[str, Mapping[str, Any]] = {
    "msgrpo": {"scenario": "frozen-lake", "credit": "msgrpo", "episode_sampling": "aaw"},
    "gigpo": {"scenario": "snake", "credit": "gigpo", "episode_sampling": "uniform"},
    "ppo_turn": {"scenario": "frozen-lake-slippery", "credit": "ppo_turn"},
}
SHORT = {
    "groups": 2,
    "group_size": 4,
    "iterations": 3,
    "max_response_tokens": 24,
    "seed": 5,
    "min_valid_share": 0.0,
    "eval_every": 0,
}
MEASURED = ("seconds", "per_second", "memory", "time")
"""Parts of the names of metrics that say how fast or how large something was."""
OF_THE_BOARD = ("scores", "overall", "overall_pairs", "comparisons", "suites", "ratings", "meetings", "reliability")
"""The figures of a board's document; the rest says of what and when it was made."""


def transcripts() -> dict[str, str]:
    """Return ``{file: SHA-256}`` of the golden transcripts."""
    files = sorted(ROOT.glob("tests/textgames/**/*.txt"))
    return {str(file.relative_to(ROOT)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def board() -> dict[str, Any]:
    """Return the figures of the published entries' board."""
    from benchmark.cli import main

    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
        main(["leaderboard", str(ROOT / "leaderboards"), "--json"])
    document = json.loads(told.getvalue())
    return {name: document[name] for name in OF_THE_BOARD if name in document}


def trainings() -> dict[str, list[dict[str, str]]]:
    """Return the metrics of every iteration of :data:`TRAININGS`, floats in hexadecimal digits."""
    from agents import load_agent
    from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer

    found = {}
    for name, settings in TRAININGS.items():
        own: dict[str, Any] = {**SHORT, **settings}
        scenario = own.pop("scenario")
        tiny: Any = getattr(load_agent("tiny"), "model")  # noqa: B009 - a policy need not have one
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            history = MSGRPOTrainer(tiny.model, tiny.tokenizer, scenario, MSGRPOConfig(**own)).train()
        found[name] = [
            {key: exact(value) for key, value in one.items() if not any(part in key for part in MEASURED)}
            for one in history
        ]
    return found


def exact(value: Any) -> str:
    """Write a number so that it has all of its bits."""
    return float(value).hex() if isinstance(value, float) else repr(value)


GATES = {"transcripts": transcripts, "board": board, "trainings": trainings}


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Yield every place in which two documents differ, with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            yield from differences(before.get(name), after.get(name), f"{place}.{name}" if place else name)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{place}[{number}]")
    elif before != after:
        yield f"{place}: {before!r} before, {after!r} now"


def main() -> int:
    """Record the gates in a file, or compare with one; the exit code is 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "check"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--gate", action="append", choices=[*GATES], help="only this gate; repeatable")
    args = parser.parse_args()
    names = args.gate or list(GATES)
    if args.what == "check" and not args.file.is_file():
        parser.error(f"there is no {args.file}: record it before the step, on this machine")
    now = {name: GATES[name]() for name in names}
    if args.what == "record":
        args.file.write_text(json.dumps(now, indent=1), encoding="utf-8")
        return 0
    before = json.loads(args.file.read_text(encoding="utf-8"))
    failed = False
    for name in names:
        found = list(differences(before.get(name), json.loads(json.dumps(now[name]))))
        failed |= bool(found)
        print(f"{name}: {'equal' if not found else f'{len(found)} differences'}")
        for line in found[:10]:
            print(f"  {line}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
