"""``python -m agents.msgrpo --config NAME [--set key=value ...] [--resume DIR]``.

Exit codes: 0 done, 1 stopped by divergence, by a failing engine or game or as nothing was learnt any more, 2 a setting,
model, folder or disk that can't be used, 130 interrupted (by Ctrl-C, SIGTERM or SIGHUP). However a run ends early, its
last valid state is written, and the command that resumes it is printed.
"""

import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from agents.common.files import refusal, replacing_folder
from agents.common.progress import ProgressLines
from agents.common.settings import option, read_words, settings, switch
from agents.common.terminal import plain_streams
from agents.common.toml import to_toml
from agents.models.provider import find_model
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import (
    ConfigError,
    DeadRunError,
    RolloutError,
    TrainingDivergedError,
    UnusableModelError,
    refused,
)
from textgames.extras import Packages, missing_packages
from textgames.tsmg import GameError


@settings
class Train:
    """Fine-tune a language model on a text game with MS-GRPO."""

    config: str | None = option(None, "FILE")
    """settings in TOML: a file, or one of the recipes that ship by its name, such as tiny-frozen-lake"""
    sets: tuple[str, ...] = option((), "KEY=VALUE", "override a setting; preset=NAME sets those of a method")
    resume: str | None = option(None, "DIR", "a run's folder or a checkpoint to resume")
    allow: tuple[str, ...] = option((), "NAME", named="--allow")
    """with --resume: code or a server that the folder names, module:Name or an address"""
    print_config: bool = switch("print the settings with their documentation")
    quiet: bool = switch("nothing on the terminal but errors")

    @staticmethod
    def unknown(word: str) -> str:
        """Return the advice on a word that no option takes: often a recipe's name, or a setting as an option."""
        if not word.startswith("-"):
            return f": a file or a recipe is named by --config {word}"
        name = word.lstrip("-").partition("=")[0].replace("-", "_")
        return f"; it is a setting: --set {name}=VALUE" if name in {one.name for one in fields(MSGRPOConfig)} else ""


@plain_streams()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    try:
        options = read_words(Train, arguments, "python -m agents.msgrpo")
        config = _config(options)
        if not options.print_config:
            return _train(config, options)
        print(config.to_toml(documented=True), end="")
        return 0
    except SystemExit as stop:  # --help, or words that don't fit, which has been told
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return 130
    except (ConfigError, ModuleNotFoundError) as error:
        return _failed(error, str(error), 2)
    except BrokenPipeError:  # --print-config | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains once more when it flushes at exit
        return 0
    except OSError as error:  # a full disk, a folder that may not be written, a file where a folder is wanted
        return _failed(error, refusal(error), 2)


def _failed(error: Exception, sentence: str, code: int) -> int:
    """Print what was wrong and, as the error's notes have it, how to continue."""
    print(f"error: {'. '.join([sentence, *getattr(error, '__notes__', ())])}", file=sys.stderr)
    return code


def _config(options: Train) -> MSGRPOConfig:
    if options.resume:
        check_packages()
        from agents.msgrpo.run.saving import CONFIG, check_claims, find_checkpoint, run_folder, said_by

        checkpoint = find_checkpoint(options.resume)
        saved = MSGRPOConfig.from_toml(checkpoint / CONFIG)
        named = MSGRPOConfig.from_toml(options.config) if options.config else None
        config = named or saved
        run = run_folder(checkpoint)
        config = config.with_overrides([f"out={to_toml(str(run or ''))}", *options.sets])
        if not config.out:
            raise ConfigError(
                f"{checkpoint} was copied out of its run: name the folder of the resumed run, --set out=FOLDER"
            )
        for name, (was, now) in saved.differences(config).items():
            if name != "out":
                print(f"resuming with {name} = {now!r}, was {was!r}", file=sys.stderr)
        check_claims(options.resume, run or checkpoint, saved, config, named, [*options.allow, *said_by(options.sets)])
        return config
    if options.allow:
        raise ConfigError("--allow goes with --resume: everything on this command line is allowed anyway")
    if options.config:
        return MSGRPOConfig.from_toml(options.config, options.sets)
    if options.sets or options.print_config:
        config = MSGRPOConfig().with_overrides(options.sets)
        if config.model == "tiny-legal" and not any(each.startswith("response_mode") for each in options.sets):
            config = config.with_overrides(["response_mode=direct"])  # the one that this model is made for
        return config
    raise ConfigError(
        "nothing to train: give --config FILE or the name of a recipe, --resume DIR, or at least --set "
        "model=MODEL --set scenarios=SCENARIO"
    )


def check_packages(model: str = "", *, adapter: bool = False) -> None:
    """Raise a ModuleNotFoundError for the packages that training lacks, with the command that installs them.

    ``model`` is as a config names it; ``adapter``: one is trained.
    """
    try:
        found = find_model(model)
    except ValueError:  # of a spec without a model's name, which loading it says
        found = None
    needs = found[0].missing if found is not None else None
    names, extra = (needs.names, needs.extra) if isinstance(needs, Packages) else (("torch", "transformers"), "local")
    names = tuple(dict.fromkeys((*names, *(("peft",) if adapter else ()))))
    extra = "train" if extra == "local" else extra  # that of models has no peft
    if (missing := missing_packages(*names, extra=extra)) is not None:
        raise ModuleNotFoundError(f"training needs {missing}")


def _train(config: MSGRPOConfig, options: Train) -> int:
    check_packages(config.model, adapter=config.lora_rank > 0)
    from agents.claims import approve
    from agents.models.local.loading.load import pick_device
    from agents.msgrpo.configuration.methods import Methods
    from agents.msgrpo.engines import ENGINES
    from agents.msgrpo.inside import check_around
    from agents.msgrpo.opponents import load_fixed
    from agents.msgrpo.run.health import check_out
    from agents.msgrpo.run.reporting import check_trackers
    from agents.msgrpo.run.saving import asked_for, claims_of
    from agents.msgrpo.trainer import MSGRPOTrainer
    from agents.msgrpo.trajectories import LEARNER, game_task, games_of, prompts_of
    from agents.wrappers import with_innermost

    if config.out and not options.resume:
        # this command has named them, so a resume needn't again
        approve(Path(config.out), claims_of(config), asked_for(config))
    # what can be wrong without a model is said before one is loaded or made, which may take minutes
    check_trackers(config)
    methods, games = Methods.of(config), games_of("", config)
    methods.check([game_task(game, 0) for game in games])
    players = load_fixed(config, games)
    check_around(config)
    prompts_of(config)
    ENGINES.make(config.engine, config.engine_options).check(config.engine_urls)
    with refused():
        pick_device(_device(config))
    if int(os.environ.get("RANK", "0")) == 0:
        if config.out:
            check_out(Path(config.out), resumed=bool(options.resume))
        else:
            print("out is empty, so nothing of this training is kept: --set out=FOLDER keeps it", file=sys.stderr)
    from transformers.utils import logging

    if options.quiet:
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model, tokenizer = load(config)
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # its bars would run through what is told here
        trainer = MSGRPOTrainer(model, tokenizer, config=config, players=players, quiet=options.quiet)
        with closing(trainer):
            if options.resume:
                trainer.resume(options.resume)
            trainer.train()
    except UnusableModelError as error:
        return _failed(error, str(error), 2)
    except (TrainingDivergedError, DeadRunError, RolloutError, GameError) as error:
        return _failed(error, str(error), 1)
    if trainer.out is not None and trainer.processes.rank == 0:
        best = f"hf:{trainer.out / 'best'}"
        agent = with_innermost(config.around, lambda one: best if one == LEARNER else one) if config.around else best
        print(f"textbench run --agent {shlex.quote(agent)} --scenario {shlex.join(config.scenarios)}")
    return 0


def load(config: MSGRPOConfig) -> tuple[Any, Any]:
    """Return the model and tokenizer that a config names."""
    from agents.models.local.loading.load import load_model

    if not config.model:
        raise ConfigError(
            "model is empty; accepted: a folder in Hugging Face format, a name on the hub, tiny (the base model that "
            "ships with the package), smollm2 (a pretrained one of 135 million parameters), gguf:PATH, tiny-quick (a "
            "small one, made from scratch first) or tiny-legal (likewise, from random legal moves of the scenarios)"
        )
    with refused(f"model = {config.model!r} can't be used", OSError, ValueError):
        model, tokenizer = load_model(_source(config), dtype=config.param_dtype, device=_device(config))
    if config.tokenizer:
        from transformers import AutoTokenizer

        with refused(f"tokenizer = {config.tokenizer!r} can't be used", OSError, ValueError):
            tokenizer = AutoTokenizer.from_pretrained(config.tokenizer, trust_remote_code=False)
    # FlexAttention is put on it by the trainer, if it works, for trees alone
    attention = "sdpa" if config.attention in ("auto", "flex_attention") else config.attention
    if model.config._attn_implementation != attention:
        model.set_attn_implementation(attention)
    return model, tokenizer


def _device(config: MSGRPOConfig) -> str:
    import torch

    # several processes on GPUs have a device each
    if config.device == "auto" and "LOCAL_RANK" in os.environ and torch.cuda.is_available():
        return f"cuda:{os.environ['LOCAL_RANK']}"
    return config.device


def _source(config: MSGRPOConfig) -> str:
    """Return ``config.model``, or the folder of a model that is made from scratch, which is made there first."""
    if config.model not in ("tiny-quick", "tiny-legal"):
        return config.model
    from agents.tiny import Recipe, pretrain, save

    folder = Path(config.out or tempfile.mkdtemp()) / "base"
    if not (folder / "config.json").is_file():
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise ConfigError(
                f"model = {config.model!r} is made by one process; run once with iterations=1, or make {folder}"
            )
        # made for the run's response mode and prompts; the same for every seed, like any model one starts from
        prompts = config.prompt_file or "default"
        if config.model == "tiny-quick":
            recipe = Recipe.quick(modes=(config.response_mode,), prompts=prompts)
        elif config.response_mode == "direct" and config.scenarios:
            recipe = Recipe.legal_play(config.scenarios, prompts=prompts)
        else:
            raise ConfigError(
                "model = 'tiny-legal' imitates random legal moves of the scenarios, without reasoning: it needs "
                f"scenarios and response_mode = 'direct', got {list(config.scenarios)} and {config.response_mode!r}"
            )
        say = partial(print, file=sys.stderr)
        say(f"making the base model in {folder}")
        try:
            made = pretrain(recipe, on_progress=ProgressLines(say))
            with replacing_folder(folder) as draft:
                save(made, draft)
        except ValueError as error:
            raise ConfigError(f"model = {config.model!r} can't be made: {error}") from error
        except KeyboardInterrupt:
            say("interrupted before the base model was done, so nothing is kept: the same command begins it anew")
            raise
    return str(folder)


if __name__ == "__main__":
    code = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to stop, and finalizers would print a traceback
    sys.exit(code)
