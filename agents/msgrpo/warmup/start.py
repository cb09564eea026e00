"""A warm start from beginning to end: settings -> decisions -> model -> a folder that plays and trains."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agents.common.files import check_folder, refusal, replacing
from agents.common.interrupt import kills_interrupt
from agents.common.locking import FolderLock, strangers
from agents.common.progress import ProgressLines
from agents.common.reading import read_json
from agents.models.local.loading.card import card_of
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.run.saving import save_model
from agents.msgrpo.trajectories import prompts_of
from agents.msgrpo.warmup.demonstrations import demonstrate
from agents.msgrpo.warmup.imitation import TaughtDecision, imitate
from agents.prompt import PromptMap

ABOUT, CHECKPOINT = "warmup.json", "warmup.checkpoint"
"""The files beside the model: how it was made, and, until it is, the state of its making."""

DECISIONS_PER_STEP = 16
_HELD_OUT = 0.1  # of the decisions, and at least so many:
_HELD_OUT_LEAST = 50


class Teaching(NamedTuple):
    """The object of an imitation: so many ``decisions`` by ``teachers`` in equal shares; a tenth more are held out."""

    teachers: tuple[str, ...] = ("planner",)
    decisions: int = 2000
    explore: float = 0.5


def warmup_config(model: str, scenarios: Sequence[str], decisions: int, **settings: Any) -> MSGRPOConfig:
    """Return the trainer's settings as an imitation uses them."""
    rank = settings.setdefault("lora_rank", 16)
    defaults: dict[str, Any] = {
        "model": model,
        "scenarios": tuple(scenarios),
        "dtype": "auto",
        "lora_alpha": max(1, 2 * rank),
        "learning_rate": 1e-3 if rank else 1e-4,
        "schedule": "linear",
        # an answer without reasoning is short, and a base that knows no end is cut off in its evaluation
        "max_response_tokens": 32 if settings.get("response_mode") == "direct" else 256,
        "minibatches": max(1, round(decisions / DECISIONS_PER_STEP)),
    }
    given = defaults | settings
    steps = given.get("update_passes", 1) * given["minibatches"]
    return MSGRPOConfig(**({"warmup": max(1, steps // 20)} | given))


Demonstrations = tuple[Sequence[TaughtDecision], Sequence[TaughtDecision]]
"""The decisions to learn from, and those held out."""


def warm_start(config: MSGRPOConfig, teaching: Teaching, say: Callable[[str], None]) -> dict[str, Any]:
    """Make the folder ``config.out`` from a teacher's decisions on training seeds; as :func:`taught` otherwise."""

    def demonstrations(prompt_map: PromptMap) -> Demonstrations:
        counts = teaching.decisions, max(_HELD_OUT_LEAST, round(_HELD_OUT * teaching.decisions))
        decisions, kept_out = (
            demonstrate(
                config.scenarios, teaching.teachers, count, prompt_map,
                explore=teaching.explore, seed=config.seed, part=part,
            )
            for part, count in enumerate(counts)
        )  # fmt: skip
        say(f"{len(decisions):,} decisions of {' and '.join(teaching.teachers)}, and {len(kept_out)} held out")
        return decisions, kept_out

    return taught(config, teaching._asdict(), demonstrations, say)


def taught(
    config: MSGRPOConfig,
    source: Mapping[str, Any],
    demonstrations: Callable[[PromptMap], Demonstrations],
    say: Callable[[str], None],
    *,
    mixed: bool = False,
) -> dict[str, Any]:
    """Make the folder ``config.out``, which plays as ``hf:DIR`` and is trained as ``model = "DIR"``.

    The same call continues after a stop, and does nothing if everything is done. ``source`` says where the decisions
    are from, as plain data; ``demonstrations`` makes them, for the prompts of the model. Return the settings, losses
    and times, as ``warmup.json`` in the folder has them.
    """
    from transformers.utils.logging import disable_progress_bar

    from agents.msgrpo.__main__ import load

    out = Path(config.out)
    # settings that aren't the trainer's defaults; the place of the folder doesn't count
    settings = {k: own for k, (own, _) in config.differences(MSGRPOConfig()).items() if k not in ("out", "threads")}
    asked = {"settings": json.loads(json.dumps(settings)), **json.loads(json.dumps(source))}
    try:
        check_folder(out)  # also if the folder is finished, whose evaluation is played next
    except OSError as error:
        raise ConfigError(refusal(error)) from None
    if (made := _made(out, asked)) is not None:
        say(f"{out} holds this warm start already")
        return made
    out.mkdir(parents=True, exist_ok=True)
    with FolderLock(out, ConfigError):  # a second process would write over the first one's checkpoint
        if (made := _made(out, asked)) is not None:
            return made
        model, tokenizer = load(config)
        disable_progress_bar()  # type: ignore[no-untyped-call]  # its bars would run through what is told here
        prompt_map = prompts_taught(config, model)
        decisions, kept_out = demonstrations(prompt_map)
        with kills_interrupt():
            result = imitate(
                model, tokenizer, decisions, config,
                held_out=kept_out, mixed=mixed, on_progress=ProgressLines(say), checkpoint=out / CHECKPOINT,
            )  # fmt: skip
        save_model(result.model, tokenizer, prompt_map, out, result.model.state_dict())
        figures = {name: getattr(result, name) for name in result._fields if name not in ("model", "losses")}
        about = {"warmup": asked, **figures, "losses": [round(one, 5) for one in result.losses]}
        with replacing(out / ABOUT) as stream:
            stream.write(json.dumps(about, indent=1) + "\n")
        (out / CHECKPOINT).unlink()
        return about


def prompts_taught(config: MSGRPOConfig, model: Any) -> PromptMap:
    """Return the prompts that a loaded model is taught: its own, if it knows the mode and no others are asked for."""
    card = card_of(model)
    asked_before = card is not None and config.response_mode in card.modes and not config.prompt_file
    return prompts_of(config, card if asked_before else None)  # it learns here what else it is asked


def add_scores(out: Path, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> None:
    """Keep the model's scores before and after, a row a scenario, with how it was made."""
    about = read_json(out / ABOUT)
    about["evaluation"] = {"before": before, "after": after}
    with replacing(out / ABOUT) as stream:
        stream.write(json.dumps(about, indent=1) + "\n")


def _made(out: Path, asked: dict[str, Any]) -> dict[str, Any] | None:
    try:
        made: dict[str, Any] = read_json(out / ABOUT)
        same = made["warmup"] == asked
    except FileNotFoundError:  # nothing is written among files of others, but among those of a stopped warm start
        others = [] if not out.exists() or (out / CHECKPOINT).exists() else strangers(out, CHECKPOINT)
        if others:
            raise ConfigError(
                f"out = {str(out)!r} isn't empty (it holds {others[0]!r}) and is no warm start: choose another folder"
            ) from None
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{out / ABOUT} doesn't say how its model was made: {error!r}") from error
    if same:
        return made
    raise ConfigError(f"out = {str(out)!r} holds a warm start with other settings: choose another folder")
