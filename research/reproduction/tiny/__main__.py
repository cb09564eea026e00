"""``python -m research.reproduction.tiny --out DIR``: make a tiny language model from scratch."""

import shlex
import sys
from functools import partial
from pathlib import Path

from agents.common import (
    REQUIRED,
    ProgressLines,
    check_writable,
    kills_interrupt,
    option,
    plain_streams,
    read_setting,
    read_words,
    refusal,
    replacing_folder,
    settings,
    switch,
)
from agents.tiny import Recipe, scenarios_of
from research.jobs.bases import changed, save_with_card
from textgames import install_command

PROG = "python -m research.reproduction.tiny"


@settings
class Make:
    """Make a tiny language model from scratch."""

    out: str = option(REQUIRED, "DIR", "folder for the model")
    quick: bool = switch("0.2M parameters, Frozen Lake only, about a minute")
    set: tuple[str, ...] = option((), "NAME=VALUE", named="--set")
    """a setting of agents.tiny.Recipe, such as steps=400; repeatable"""
    force: bool = switch("overwrite a model in DIR")
    quiet: bool = switch("no progress")


@plain_streams()
def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 0 done, 2 what can't be used, 130 interrupted."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        with kills_interrupt():
            _make(read_words(Make, given, PROG), given)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command resumes from the last of what it keeps every few steps", file=sys.stderr)
        return 130
    except OSError as error:  # a full disk, a folder that may not be written, a file where a folder is wanted
        wrong = refusal(error)
    except ModuleNotFoundError as error:
        wrong = f"{error.name} is not installed: {install_command('local')}"
    except (ValueError, TypeError) as error:
        wrong = str(error)
    else:
        return 0
    print(f"error: {wrong}", file=sys.stderr)
    return 2


def _make(asked: Make, given: list[str]) -> None:
    """Pretrain a model and write it with its card; a ValueError for what can't be used."""
    changes = dict(read_setting(text, "NAME=VALUE, as in --set steps=400") for text in asked.set)
    recipe, out = changed(Recipe.quick() if asked.quick else Recipe(), changes), Path(asked.out)
    scenarios = list(scenarios_of(recipe.games))
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is not a folder")
    check_writable(out)
    filled = out.exists() and any(out.iterdir())
    if filled and not asked.force:
        raise ValueError(f"{out} is not empty; add --force to overwrite the model in it")
    from agents.tiny import pretrain

    say = partial(print, file=sys.stderr)
    say(f"demonstrating {recipe.examples:,} decisions on {', '.join(scenarios)}")
    kept = out.with_name(out.name + ".partial")  # so that the same command resumes after a stop
    kept.parent.mkdir(parents=True, exist_ok=True)
    made = pretrain(recipe, on_progress=None if asked.quiet else ProgressLines(say), checkpoint=kept)
    # the card goes where the model goes: it must not tell the folders of this machine
    command = f"{PROG} {shlex.join('DIR' if Path(word) == out else word for word in given)}"
    if filled:  # beside what else is in it
        save_with_card(made, out, command=command)
    else:
        with replacing_folder(out) as draft:
            save_with_card(made, draft, command=command)
    say(f"saved {out}; play it with: textbench run --agent hf:{out} --scenario {scenarios[0]}")


if __name__ == "__main__":
    sys.exit(main())
