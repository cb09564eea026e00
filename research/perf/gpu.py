"""Everything that a GPU has to show for training, by one command: memory, speed, exactness. Prints a report.

    python research/perf/gpu.py --out runs/gpu             # on a GPU: the recipes' real shapes, a quarter of an hour
    python research/perf/gpu.py --small                    # tiny shapes, a minute or two; always so without a GPU
    python research/perf/gpu.py --check --recipe 3b paper  # without a GPU: packages, and the peaks that are computed
    python research/perf/gpu.py --only recipes --recipe 3b-frozen 3b-lora paper --out runs/gpu   # two iterations each

Models have random weights of the recipes' shapes, so nothing is downloaded. docs/research/gpu.md explains the figures.

* attention: FlexAttention on token trees beside a dense mask.
* sampling: device synchronisations per token; steps recorded and launched; memory of an adapter.
* recipes: the last of some iterations of each file of configs/ that our own engine samples: seconds, peak memory beside
  the computed one, the update's share of the rate of products, the sampler's log-probabilities beside the learner's.
* vllm: vLLM beside our own generation, if it is installed.

A part that fails is reported and the others follow; the exit code is then 1. What Ctrl-C interrupts is reported, too.
"""

import argparse
import json
import os
import re
import sys
import time
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]  # the packages of this checkout, and the scripts beside this one

from gpu_checks import attention, machine, models, recipes, sampling  # noqa: E402
from recipe_cost import CHIPS, ON_A_GPU, SHAPES, host_memory, peaks  # noqa: E402

from agents.common import kills_interrupt  # noqa: E402
from agents.msgrpo import MSGRPOConfig  # noqa: E402
from research.jobs.recipes import flat  # noqa: E402
from research.jobs.report import table  # noqa: E402

RECIPES = [path for path in sorted((ROOT / "configs").glob("*.toml")) if MSGRPOConfig.from_toml(path).engine == "live"]
PARTS = ("attention", "sampling", "recipes", "vllm")
_LARGE, _MIDDLE = "Qwen/Qwen2.5-3B-Instruct", "Qwen/Qwen2.5-0.5B-Instruct"


def checks(options: argparse.Namespace, device: torch.device, rates: dict[str, float]) -> dict[str, Callable[[], Any]]:
    """Return what is to be run, by the name that the report has for it."""
    small = options.small
    large, middle = (models.SMALL, models.SMALL) if small else (SHAPES[_LARGE], SHAPES[_MIDDLE])
    half = torch.float32 if small else torch.bfloat16
    # vLLM's kernels want heads of 32 numbers at least
    wide = models.SMALL_FOR_VLLM if small else middle
    length, tokens = (1000, 96) if small else (4096, 256)
    runs: dict[str, Callable[[], Any]] = {
        "attention": lambda: attention.compare(large, 2, length, half, device),
        "sampling: waits": lambda: sampling.waits(middle, half, device, tokens),
        "sampling: recorded": lambda: sampling.recorded(middle, half, device, tokens),
        "sampling: adapter": lambda: sampling.adapter_memory(middle, 16, half, device),
    }
    for path in chosen(options.recipe):
        runs[f"recipes: {path.stem}"] = lambda path=path: recipes.run(
            path, device, rates, small=small, iterations=options.iterations
        )
    runs["vllm"] = lambda: sampling.beside_vllm(wide, half, device, tokens)
    return {name: run for name, run in runs.items() if name.split(":")[0] in (options.only or PARTS)}


def chosen(texts: Sequence[str]) -> list[Path]:
    return [path for path in RECIPES if any(text in path.stem for text in texts)]


def check(texts: Sequence[str], card: float) -> int:
    """Print what is missing here, and whether the chosen recipes fit a card and this computer; return an exit code.

    To be run before a machine is waited for, and first of all on it: it takes seconds and no GPU.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["local"], "peft", "accelerate"]
    names = [re.split(r"[^\w-]", each)[0] for each in wanted]
    missing = [name for name in names if find_spec(name.replace("-", "_")) is None]
    print(f"packages that are missing: {', '.join(missing) or 'none'}")
    large, host = False, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in chosen(texts):
        config = replace(recipes.settings_of(path, torch.device("cpu"), small=False), dtype=ON_A_GPU)
        shape = models.shape_of(config, small=False)
        most, copy = peaks(shape, config, recipes.load_of(config, 600)), host_memory(shape, config)
        large |= max(most.values()) > card or copy > host
        print(
            f"{path.stem}: rollout {most['rollout'] / 2**30:.2f} GiB, update {most['update'] / 2**30:.2f} of "
            f"{card / 2**30:.1f}; host {copy / 2**30:.2f} of {host / 2**30:.1f}"
        )
    return int(bool(missing) or large)


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the figures as plain data, once after each part."""
    device = torch.device(options.device)
    started = time.perf_counter()
    result: dict[str, Any] = {"small": options.small, "machine": machine.describe(device)}
    result["machine"] |= machine.rates(device)
    result["failed"], result["notes"] = {}, []
    for name, run in checks(options, device, result["machine"]).items():
        print(f"{time.perf_counter() - started:5.0f} s  {name}", file=sys.stderr, flush=True)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UserWarning)
            try:
                result[name] = run()
            except Exception as error:  # noqa: BLE001 - one part that fails must not cost the others
                traceback.print_exc()
                result["failed"][name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300]}"
        texts = dict.fromkeys(str(one.message) for one in said if issubclass(one.category, UserWarning))
        result["notes"] += [f"{name}: {text}" for text in texts]
        if device.type == "cuda":
            torch.cuda.empty_cache()
        result["seconds"] = time.perf_counter() - started
        yield result


def markdown(result: Mapping[str, Any]) -> str:
    """Return the whole report: a table with a column for each recipe, and the figures of every other part."""
    about = result["machine"]
    size = "tiny shapes in place of the recipes' own" if result["small"] else "the recipes' own shapes"
    clock = "wall-clock" if about["device"].startswith("cuda") else "processor"
    lines = [f"# {about['name']}: {size}", "", *(f"{key}: {told(value)}  " for key, value in about.items()), ""]
    lines.append(f"All of it took {result['seconds']:.0f} s. Times below are {clock} seconds, sizes are bytes.")
    parts = {name: dict(flat(one)) for name, one in result.items() if isinstance(one, Mapping)}
    recipes = {name.removeprefix("recipes: "): one for name, one in parts.items() if name.startswith("recipes: ")}
    if recipes:
        names = dict.fromkeys(name for one in recipes.values() for name in one)
        rows = [[name, *(told(one.get(name)) for one in recipes.values())] for name in names]
        lines += ["", "## Recipes: one iteration, random weights", "", table(["", *recipes], rows)]
    for name, one in parts.items():
        if one and name != "machine" and name.removeprefix("recipes: ") not in recipes:
            lines += ["", f"## {name}", "", *(f"- {key}: {told(value)}" for key, value in one.items())]
    lines += ["", "## Notes", "", *(f"- {note}" for note in result["notes"])] if result["notes"] else []
    return "\n".join(lines)


def told(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="tiny shapes; always so without a GPU")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="these parts")
    parser.add_argument("--recipe", nargs="+", default=[""], metavar="TEXT", help="files whose names have one of these")
    parser.add_argument("--check", choices=CHIPS, nargs="?", const="h100", help="only check, for a card such as this")
    parser.add_argument("--iterations", type=int, help="of a recipe; the last is reported (2 on a GPU, else 1)")
    parser.add_argument("--threads", type=int, default=1, help="of a CPU")
    parser.add_argument("--out", metavar="DIR", help="also write gpu.md and gpu.json there")
    options = parser.parse_args()
    on_gpu = torch.device(options.device).type == "cuda"
    options.small = options.small or not on_gpu
    options.iterations = options.iterations or (2 if on_gpu else 1)
    torch.set_num_threads(options.threads)
    if not chosen(options.recipe):
        names = ", ".join(path.stem for path in RECIPES)
        parser.error(f"no recipe has {' or '.join(map(repr, options.recipe))} in its name: {names}")
    if options.check:
        return check(options.recipe, CHIPS[options.check][2])
    folder = Path(options.out) if options.out else None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    text, failed = "", False
    try:
        with kills_interrupt():
            for result in measure(options):
                text, failed = markdown(result), bool(result["failed"])
                if folder is not None:
                    (folder / "gpu.md").write_text(text + "\n", encoding="utf-8")
                    (folder / "gpu.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    except KeyboardInterrupt:
        print(f"{text}\n\nStopped: what follows is missing.")
        return 130
    print(text)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
