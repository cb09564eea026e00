"""``python -m research.tiny --out DIR``: make a tiny language model from scratch."""

import argparse
import shlex
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.common.files import check_writable, refusal, replacing_folder
from agents.common.interrupt import kills_interrupt
from agents.common.progress import ProgressLines
from agents.tiny.data import scenarios_of
from agents.tiny.recipe import Recipe
from textgames.extras import install_command

if TYPE_CHECKING:
    from agents.tiny.imitation import Pretrained
    from research.tiny.evaluation import Figures


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 0 done, 2 what can't be used, 130 interrupted."""
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(given)
    try:
        with kills_interrupt():
            return _make(options, given)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from the last of what it keeps every few steps", file=sys.stderr)
        return 130
    except OSError as error:  # a full disk, a folder that may not be written, a file where a folder is wanted
        print(f"error: {refusal(error)}", file=sys.stderr)
        return 2


def _make(options: argparse.Namespace, given: list[str]) -> int:
    try:
        recipe = _recipe(options)
        scenarios = list(scenarios_of(recipe.games))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.out.exists() and not options.out.is_dir():
        print(f"error: {options.out} is not a folder", file=sys.stderr)
        return 2
    check_writable(options.out)
    if options.out.exists() and any(options.out.iterdir()) and not options.force:
        print(f"error: {options.out} is not empty; add --force to overwrite the model in it", file=sys.stderr)
        return 2
    try:
        from agents.tiny import imitation
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is not installed: {install_command('local')}", file=sys.stderr)
        return 2

    say = partial(print, file=sys.stderr)
    say(f"demonstrating {recipe.examples:,} decisions on {', '.join(scenarios)}")
    kept = options.out.with_name(options.out.name + ".partial")  # so that the same command goes on after a stop
    kept.parent.mkdir(parents=True, exist_ok=True)
    try:
        made = imitation.pretrain(recipe, on_progress=None if options.quiet else ProgressLines(say), checkpoint=kept)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    # the card goes where the model goes: it must not tell the folders of this machine
    shown = ["DIR" if Path(word) == options.out else word for word in given]
    command = shlex.join(["python", "-m", "research.tiny", *shown])
    ours = not options.out.exists() or not any(options.out.iterdir())
    _save(made, options.out, command=command, whole=ours)  # kept even if the evaluation is interrupted
    if options.episodes:
        from research.tiny.evaluation import table

        print(f"\nplaying {options.episodes} episodes each", file=sys.stderr)
        figures = _figures(made, scenarios, recipe, options.episodes)
        _save(made, options.out, table(figures), command=command, whole=ours)
        for one in figures:
            print(
                f"{one.scenario:22} {one.agent:18} success {one.success}  return {one.returned}  invalid {one.invalid}"
            )
    print(f"saved {options.out}; play it with: textbench run --agent hf:{options.out}", file=sys.stderr)
    return 0


def _save(made: "Pretrained", out: Path, results: str = "Not evaluated.", *, command: str, whole: bool) -> None:
    """Write the model, all or nothing where the folder is ours as a ``whole``; beside what else is in it otherwise."""
    from agents.tiny.saving import save

    if not whole:
        save(made, out, results=results, command=command)
        return
    with replacing_folder(out) as draft:
        save(made, draft, results=results, command=command)


def _figures(made: "Pretrained", scenarios: list[str], recipe: Recipe, episodes: int) -> "list[Figures]":
    import torch

    from agents import Decoding, LanguageAgentPolicy, PromptMap, load_agent
    from agents.models.local.transformers import TransformersModel
    from research.tiny.evaluation import evaluate

    torch.set_num_threads(recipe.threads)
    model = TransformersModel(made.model, made.tokenizer, name="tiny")
    policies = [
        LanguageAgentPolicy(
            model, PromptMap(mode=mode, texts=recipe.texts), Decoding(max_tokens=64), name=f"this model, {mode}"
        )
        for mode in recipe.modes
    ]
    beside = [load_agent(name) for name in ("random", "greedy", "planner")]
    return [evaluate(policy, name, episodes) for name in scenarios for policy in (*policies, *beside)]


def _recipe(options: argparse.Namespace) -> Recipe:
    recipe = Recipe.quick() if options.quick else Recipe()
    names = (
        "seed",
        "steps",
        "examples",
        "threads",
        "learning_rate",
        "batch_size",
        "games",
        "modes",
        "prompts",
        "foresight",
    )
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    changes: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
    return replace(recipe, **changes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m research.tiny", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the model")
    parser.add_argument("--quick", action="store_true", help="0.2M parameters, Frozen Lake only, about a minute")
    parser.add_argument("--seed", type=int, help="of data, weights and batches (default 0)")
    parser.add_argument("--games", nargs="+", metavar="GAME", help="frozen-lake, snake, or single scenarios")
    parser.add_argument("--modes", nargs="+", metavar="MODE", help="think, direct or both")
    parser.add_argument("--prompts", metavar="FILE", help="the prompts' wording, or the name of one that ships")
    parser.add_argument("--steps", type=int, help="optimiser steps")
    parser.add_argument("--examples", type=int, help="demonstrated decisions")
    parser.add_argument("--batch-size", type=int, help="examples per step")
    parser.add_argument("--learning-rate", type=float, help="the highest")
    parser.add_argument("--foresight", type=int, help="how many moves ahead the reasoning reports: 1 (default) to 6")
    parser.add_argument("--threads", type=int, help="of PyTorch (default 1)")
    parser.add_argument("--episodes", type=int, default=500, help="evaluation episodes (default 500; 0 for none)")
    parser.add_argument("--force", action="store_true", help="overwrite a model in DIR")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


if __name__ == "__main__":
    sys.exit(main())
