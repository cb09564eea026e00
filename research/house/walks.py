"""Count what one value passes on its way through the code: ``python -m research.house.walks [--json] [WALK ...]``.

Five walks stand for what a reader has to follow. Each is walked once to warm up, so that imports and caches don't
count, and then once under :func:`sys.setprofile`, which sees every call in every thread of the process.

``step``       a response through ``env.step`` of Gymnasium's environment
``episode``    an episode through ``textbench run`` to its table
``reward``     a reward through one iteration of the trainer to the gradient
``setting``    ``clip_low`` from a TOML file to the surrogate: functions in which any variable holds its value
``interval``   an interval from a run's folder to the terminal

A walk's figures are the files, functions and classes of our packages that it enters.
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = tuple(f"{ROOT / name}/" for name in ("textgames", "agents", "benchmark", "textbench"))
CLIP_LOW = 0.1234567
"""A value that nothing else has, so that it can be recognised."""


class Passed(NamedTuple):
    """What a walk has entered."""

    files: int
    functions: int
    classes: int
    names: tuple[str, ...]  # ``file:function``, in the order in which they were first entered

    @classmethod
    def of(cls, codes: dict[CodeType, None]) -> "Passed":
        """Count the functions behind some code objects; what Python makes of a comprehension isn't one."""
        named = [code for code in codes if not code.co_name.startswith("<")]
        files = {code.co_filename for code in named}
        classes = {
            (code.co_filename, code.co_qualname.rpartition(".")[0])
            for code in named
            if "." in code.co_qualname and not code.co_qualname.rpartition(".")[0].endswith("<locals>")
        }
        names = [f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_qualname}" for code in named]
        return cls(len(files), len(set(names)), len(classes), tuple(dict.fromkeys(names)))


@contextlib.contextmanager
def watching(counts: Callable[[FrameType], bool] = lambda frame: True) -> Iterator[dict[CodeType, None]]:
    """Collect the code of every function of ours that is entered, or left, in a frame that counts."""
    found: dict[CodeType, None] = {}

    def see(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        ours = event in ("call", "return") and code not in found and code.co_filename.startswith(PACKAGES)
        if ours and counts(frame):
            found[code] = None

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def walk_step() -> Passed:
    """Walk a response through ``env.step``."""
    import gymnasium as gym

    import textgames  # noqa: F401 - registers the games

    env = gym.make("TextFrozenLake-v0", is_slippery=False)
    env.reset(seed=7)
    env.step("<action>down</action>")
    with watching() as found:
        env.step("<think>The way is free.</think><action>right</action>")
    return Passed.of(found)


def walk_episode() -> Passed:
    """Walk an episode through ``textbench run`` to its table."""
    from benchmark.cli import main

    def run(name: str) -> None:
        with _silence():
            arguments = ("run", "--agent", "random", "--scenario", "frozen-lake", "--episodes", "1", "--out", name)
            if main([*arguments]):
                raise SystemExit("the run of this walk failed")

    with tempfile.TemporaryDirectory() as folder:
        run(f"{folder}/warm")
        with watching() as found:
            run(f"{folder}/walked")
    return Passed.of(found)


def walk_reward() -> Passed:
    """Walk a reward through one iteration of the trainer, the second one."""
    from agents import load_agent
    from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer

    tiny: Any = getattr(load_agent("tiny"), "model")  # noqa: B009 - a policy need not have one
    trainer = MSGRPOTrainer(tiny.model, tiny.tokenizer, "frozen-lake", MSGRPOConfig(**TRAINING))
    trainer.iterate()
    with watching() as found:
        trainer.iterate()
    return Passed.of(found)


def walk_setting() -> Passed:
    """Walk ``clip_low`` from a TOML file to the surrogate."""
    from agents.msgrpo import main

    looks: Counter[CodeType] = Counter()

    def counts(frame: FrameType) -> bool:
        looks[frame.f_code] += 1
        return looks[frame.f_code] <= MOST_LOOKS and any(_holds(value) for value in frame.f_locals.values())

    with tempfile.TemporaryDirectory() as folder:
        own = {"model": "tiny", "scenarios": ["frozen-lake"], "out": f"{folder}/out", "clip_low": CLIP_LOW}
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in {**TRAINING, **own}.items()]
        file = Path(folder) / "training.toml"
        file.write_text("".join(lines))
        with _silence(), watching(counts) as found:
            main(["--config", str(file), "--quiet"])
    return Passed.of(found)


MOST_LOOKS = 200
"""So often a function's variables are looked at; one that holds the setting does so from its first call on."""


def _holds(value: Any, inside: bool = True) -> bool:
    """Return whether a value is the setting, or holds it one step inside: as a mapping, a list or a data class does."""
    if isinstance(value, float) or not inside:
        return isinstance(value, float) and value == CLIP_LOW
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, list | tuple):
        parts = list(value)
    else:
        parts = [getattr(value, name, None) for name in getattr(type(value), "__dataclass_fields__", ())]
    return any(_holds(part, inside=False) for part in parts)


def walk_interval() -> Passed:
    """Walk an interval from a run's folder to the terminal."""
    from benchmark import read_results
    from benchmark.cli import main

    with tempfile.TemporaryDirectory() as folder, _silence():
        main(["run", "--agent", "random", "--scenario", "frozen-lake", "--episodes", "5", "--out", f"{folder}/run"])
        read_results(Path(folder) / "run", quiet=True).leaderboard().print(stats=False)
        with watching() as found:
            read_results(Path(folder) / "run", quiet=True).leaderboard().print(stats=False)
    return Passed.of(found)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


TRAINING: dict[str, Any] = {"groups": 2, "group_size": 4, "iterations": 2, "max_response_tokens": 24, "seed": 1}
"""A training of seconds."""

WALKS: dict[str, Callable[[], Passed]] = {
    "step": walk_step,
    "episode": walk_episode,
    "reward": walk_reward,
    "setting": walk_setting,
    "interval": walk_interval,
}


def main() -> None:
    """Walk, and print a line for each walk."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walks", nargs="*", metavar="WALK", help=f"of {', '.join(WALKS)}; all of them by default")
    parser.add_argument("--json", action="store_true", help="print the names of what is passed, too")
    args = parser.parse_args()
    if unknown := [name for name in args.walks if name not in WALKS]:
        parser.error(f"there is no walk {unknown[0]!r}; there are {', '.join(WALKS)}")
    passed = {name: WALKS[name]() for name in args.walks or WALKS}
    if args.json:
        print(json.dumps({name: one._asdict() for name, one in passed.items()}, indent=1))
        return
    print(f"{'walk':10}{'files':>8}{'functions':>12}{'classes':>10}")
    for name, one in passed.items():
        print(f"{name:10}{one.files:8}{one.functions:12}{one.classes:10}")


if __name__ == "__main__":
    main()
