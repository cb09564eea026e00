"""A model that imitates a player, and its scores before and after."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.load import check_spec
from benchmark.cli.output import report
from benchmark.cli.settings import Output, Warmup
from benchmark.errors import BenchmarkError, UsageError
from benchmark.play.agents.choice import plan_run
from benchmark.play.options import RunOptions
from benchmark.play.session import open_session
from benchmark.runs.plan import find_scenarios
from benchmark.score.document import ScoreView
from benchmark.show.table import estimate_figure

if TYPE_CHECKING:
    from agents.msgrpo.configuration.config import MSGRPOConfig

KEPT = (
    *("scenario", "episodes", "protocol", "mean_return", "normalized", "normalized_by", "above_blind"),
    *("success_rate", "invalid_rate", "blind", "reference"),
)
"""What is kept of a score, as ``run --json`` has it."""

Rows = list[dict[str, Any]]


def play_both(
    values: Mapping[str, Any], names: tuple[str, str], output: Output, keep: Callable[[Rows, Rows], None]
) -> int:
    """Play the scenarios' own episodes, which nothing is trained on, and print the leaderboard; return the exit code.

    ``values`` are options of a run. ``names`` are those of the player as it was and as it is; ``keep`` is given the two
    lists of scores, a row a scenario.
    """

    def compared(scores: Sequence[ScoreView]) -> None:
        before, after = ([{**score} for score in scores if score["agent"] == name] for name in names)
        keep(*([{key: score[key] for key in KEPT} for score in own] for own in (before, after)))
        for old in before:
            new = next(score for score in after if score["scenario"] == old["scenario"])
            told = [
                f"{called} {_shown(old[key], form)} before, {_shown(new[key], form)} after"
                for called, key, form in (("score", "normalized", ".2f"), ("success", "success_rate", ".0%"))
                if key != "success_rate" or old[key] or new[key]  # else the game knows none
            ]
            output.say(f"{old['scenario']}, {old['episodes']} episodes each: {'; '.join(told)}")

    ending = open_session(plan_run(RunOptions.of(values), output.say)).play(quiet=output.quiet)
    return report(ending, output, keep=compared)


def _shown(score: Any, form: str) -> str:
    figure = estimate_figure(score, form)
    return f"{figure.text or 'unknown'} {figure.interval}".strip()


def run_warmup(settings: Warmup) -> int:
    """Train the model on the teacher's moves, and score it as it was before and as it is after."""
    from agents.msgrpo.__main__ import check_packages

    try:
        check_packages(settings.model, adapter=not settings.full)
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from error
    from agents.msgrpo.errors import ConfigError, DivergenceError, UnusableModelError
    from agents.msgrpo.warmup.start import Teaching, warm_start

    output = settings.output
    try:
        config = config_of(settings)
        made = warm_start(config, Teaching(settings.teachers, settings.examples, settings.explore), output.say)
    except (ConfigError, UnusableModelError, ModuleNotFoundError) as error:
        raise UsageError(str(error)) from error
    except DivergenceError as error:
        raise BenchmarkError(str(error)) from error
    except KeyboardInterrupt:
        output.say("the same command resumes it")
        raise
    losses = f"{made['held_out_before']:.3f} -> {made['held_out']:.3f}"
    output.say(f"{config.out}: loss on held-out decisions {losses} nats a token, in {made['seconds']:.0f} s")
    output.say(f"to train it further: model = {config.out!r}; to play it: textbench run --agent hf:{config.out}")
    return _evaluated(settings, config) if settings.eval_episodes else 0


def config_of(settings: Warmup) -> "MSGRPOConfig":
    """Return the trainer's settings, as the options say and then ``--set``."""
    from agents.msgrpo.warmup.start import warmup_config

    scenarios = tuple(find_scenarios(settings.scenarios))
    own: dict[str, Any] = {
        "lora_rank": 0 if settings.full else settings.rank or 16,
        "response_mode": settings.mode,
        "prompt_file": settings.prompts or "",
        "legal_only": settings.legal_only,
        "seed": settings.seed,
        "out": settings.out or str(Path("runs") / f"warmup-{'-'.join(scenarios)}"),
    }
    model = settings.model.removeprefix("hf:")
    return warmup_config(model, scenarios, settings.examples, **own).with_overrides(settings.sets)


def _evaluated(settings: Warmup, config: "MSGRPOConfig") -> int:
    """Play the scenarios' own episodes, which nothing is trained on, with the model as it was and as it is."""
    from agents.msgrpo.warmup.start import add_scores

    made_first = config.model in ("tiny-quick", "tiny-legal")
    base = str(Path(config.out) / "base") if made_first else config.model
    try:
        check_spec(base)
    except ValueError:
        base = f"hf:{base}"
    values: dict[str, Any] = {
        "agents": (f"base={base}", f"warm=hf:{config.out}"),
        "scenarios": config.scenarios,
        "episodes": settings.eval_episodes,
        "mode": config.response_mode,
        "max_tokens": config.max_response_tokens,
        "out": str(Path(config.out) / "evaluation"),
        **({"legal_only": True} if config.legal_only else {}),
        **({"prompts": config.prompt_file} if config.prompt_file else {}),
    }
    return play_both(values, ("base", "warm"), settings.output, lambda *scores: add_scores(Path(config.out), *scores))
