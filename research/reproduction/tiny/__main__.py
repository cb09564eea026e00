"""``python -m research.reproduction.tiny --out DIR``: make a tiny language model from scratch."""

import argparse
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agents.common import (
    ProgressLines,
    check_writable,
    kills_interrupt,
    plain_streams,
    read_setting,
    refusal,
    replacing_folder,
)
from agents.tiny import Recipe, scenarios_of
from research.jobs.bases import changed
from textgames import install_command

if TYPE_CHECKING:
    from agents.tiny import Pretrained


@plain_streams()
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
        changes = dict(read_setting(text, "NAME=VALUE, as in --set steps=400") for text in options.set)
        recipe = changed(Recipe.quick() if options.quick else Recipe(), changes)
        scenarios = list(scenarios_of(recipe.games))
    except (ValueError, TypeError) as error:
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
        from agents.tiny import pretrain
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is not installed: {install_command('local')}", file=sys.stderr)
        return 2

    say = partial(print, file=sys.stderr)
    say(f"demonstrating {recipe.examples:,} decisions on {', '.join(scenarios)}")
    kept = options.out.with_name(options.out.name + ".partial")  # so that the same command resumes after a stop
    kept.parent.mkdir(parents=True, exist_ok=True)
    try:
        made = pretrain(recipe, on_progress=None if options.quiet else ProgressLines(say), checkpoint=kept)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    _save(made, options.out, given)
    say(f"saved {options.out}; play it with: textbench run --agent hf:{options.out} --scenario {scenarios[0]}")
    return 0


def _save(made: "Pretrained", out: Path, given: list[str]) -> None:
    """Write the model, all or nothing if the folder is ours as a whole; beside what else is in it otherwise."""
    from research.jobs.cards import save_with_card

    # the card goes where the model goes: it must not tell the folders of this machine
    shown = ["DIR" if Path(word) == out else word for word in given]
    command = shlex.join(["python", "-m", "research.reproduction.tiny", *shown])
    if out.exists() and any(out.iterdir()):
        save_with_card(made, out, command=command)
        return
    with replacing_folder(out) as draft:
        save_with_card(made, draft, command=command)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m research.reproduction.tiny", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the model")
    parser.add_argument("--quick", action="store_true", help="0.2M parameters, Frozen Lake only, about a minute")
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a setting of agents.tiny.Recipe, such as steps=400",
    )
    parser.add_argument("--force", action="store_true", help="overwrite a model in DIR")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


if __name__ == "__main__":
    sys.exit(main())
