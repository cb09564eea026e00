"""The command ``textbench credit``."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from agents.common import option, part, place, settings, switch
from benchmark.cli import Output
from benchmark.play import OF_ONE_AGENT, RunOptions

if TYPE_CHECKING:
    from research.credit.instrument.instrument import Instrument

SMALL_MODEL = 5_000_000  # parameters


@settings
class Settings:
    """Measure methods of credit assignment against the true advantage of the policy that played.

    In a small game whose chances are known, the true advantage of every action follows from the policy's
    probabilities by dynamic programming. A method is given batches of episodes as in training; the table says how
    much the advantages that it assigns are like the true ones, and how good the policy gradient is that they make
    (for models of this process).

    The names oracle (the true advantage) and noise (random numbers) are always among the methods.

    examples:
      textbench credit tiny --game frozen-lake
      textbench credit tiny --game frozen-lake-slippery --method all --json
      textbench credit tiny --game frozen-lake --method msgrpo --method gigpo --picture credit.svg
      textbench credit tiny --game frozen-lake --method msgrpo --draws aaw --draws uniform --m 8 --m 32
      textbench credit random --game kuhn-poker          fidelity alone: there is no model to take a gradient of
      textbench credit hf:./checkpoint --game sokoban --max-steps 8 --batches 4
    """

    agent: str = place("AGENT", "the policy that plays, such as tiny or hf:PATH")
    game: str = option("frozen-lake", "SCENARIO", "default frozen-lake")
    methods: tuple[str, ...] = option((), "NAME", "a method, or all (default: a handful)")
    groups: int = option(8, "N", "starts, each a group of episodes", ge=1)
    group_size: int = option(16, "N", "episodes of a group", ge=2)
    batches: int = option(8, "N", "batches from the same starts", ge=1)
    max_steps: int | None = option(None, "N", "rounds of an episode (default: the scenario's)", ge=1)
    temperature: float = option(1.25, "T", "of the policy, as in training", ge=0, le=100)
    samples: int = option(64, "N", "responses to each prompt, where needed", ge=2)
    format_penalty: float = option(1.0, "X", "what an invalid response costs, as in training", ge=0)
    draws: tuple[str, ...] = option((), "RULE", "a draw rule to look at: aaw, uniform, off, ...", named="--draws")
    m: tuple[Annotated[int, Ge(1)], ...] = option((), "M", "episodes that a rule draws (default: half of a batch)")
    max_states: int = option(20_000, "N", "the most states of the game", ge=1)
    options: RunOptions = part(RunOptions, [name for name in OF_ONE_AGENT if name != "temperature"])
    seed: int = option(0, "N", "of starts, episodes and sampling", ge=0)
    no_gradient: bool = switch("fidelity alone, which is faster")
    checklist: bool = switch("what papers should report, filled in")
    picture: str | None = option(None, "FILE", "draw where on the board methods are wrong, as an SVG")
    output: Output = part(Output, ["json", "quiet"])

    @staticmethod
    def unknown(word: str) -> str:
        """Return advice on a flag that had another name."""
        return "; it is called --max-steps" if word.startswith("--horizon") else ""


def run(settings: Settings) -> int:
    """Measure the methods' credit, and print or draw what was found."""
    import json

    from agents.msgrpo import DRAWS, ConfigError, RolloutError
    from agents.msgrpo.credit import METHODS
    from benchmark import BenchmarkError, UsageError, storing
    from textgames import install_command

    try:
        from research.credit.instrument.instrument import ORACLE, default_methods, methods_of
        from research.credit.instrument.pictures import board_picture
        from research.credit.instrument.tables import as_text, checklist, print_report
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "transformers"):
            raise
        raise UsageError(f"credit needs {error.name}, which is not installed: {install_command('local')}") from None

    names = tuple(settings.methods) or default_methods()
    if "all" in names:
        names = METHODS.names
    if settings.draws and settings.no_gradient:
        raise UsageError("--draws looks at the gradients of what a rule draws: leave out --no-gradient")
    batch = settings.groups * settings.group_size
    if settings.m and max(settings.m) > batch:
        raise UsageError(
            f"--m {max(settings.m)}: a batch has {settings.groups} groups of {settings.group_size}, {batch} episodes"
        )
    if settings.m and not settings.draws:
        raise UsageError("--m says how many episodes a draw rule draws: name one with --draws, such as --draws aaw")
    try:
        for rule in settings.draws:
            DRAWS.check(rule)
        instrument = _instrument(settings, names)
        report = instrument.measure(methods_of(names, instrument.setting), draws=settings.draws, sizes=settings.m)
    except (ConfigError, ValueError) as error:
        raise UsageError(f"{settings.game}: {error}" if not isinstance(error, ConfigError) else str(error)) from None
    except (RolloutError, RuntimeError) as error:
        raise BenchmarkError(str(error)) from None
    if settings.picture is not None:
        picture = board_picture(instrument, [name for name in instrument.credited if name != ORACLE])
        with storing(settings.picture):
            Path(settings.picture).write_text(picture, encoding="utf-8")
    items = checklist(report) if settings.checklist else []
    if settings.output.json:
        added = {"checklist": [item._asdict() for item in items]} if items else {}
        print(json.dumps(report.to_json() | added, indent=1))
        return 0
    print_report(report)
    if items:
        print("\n" + as_text(items))
    return 0


def _instrument(settings: Settings, names: tuple[str, ...]) -> "Instrument":
    """Return all that the measurement needs; what is wrong is reported before anything is played."""
    from agents.analysis import has_local_model
    from benchmark import UsageError
    from benchmark.play import load_one
    from benchmark.runs import check_file_place, find_scenario
    from research.credit.instrument.batches import Setting
    from research.credit.instrument.instrument import Instrument, methods_of
    from research.credit.instrument.pictures import check_drawable
    from research.credit.instrument.scores import why_no_gradient

    scenario = find_scenario(settings.game, "measure")
    shared = {name: getattr(settings, name) for name in ("groups", "group_size", "max_steps", "format_penalty", "seed")}
    setting = Setting(scenario, **shared)
    methods_of(names, setting)
    if settings.picture is not None:
        check_drawable(setting.game())
        check_file_place(settings.picture)
    policy, _ = load_one(settings.agent, replace(settings.options, temperature=settings.temperature), scenario)
    local: Any = policy
    if has_local_model(policy) and sum(p.numel() for p in local.model.model.parameters()) < SMALL_MODEL:
        import torch

        torch.set_num_threads(1)  # waiting for others costs a small model more than they save
    if settings.draws and (why := why_no_gradient(policy)) is not None:
        raise UsageError(f"--draws looks at the gradients of what a rule draws, and there are none: {why}")
    return Instrument(
        policy,
        setting,
        batches=settings.batches,
        samples=settings.samples,
        max_states=settings.max_states,
        gradient=not settings.no_gradient,
        progress=_progress(settings.output.quiet),
    )


def _progress(quiet: bool) -> Callable[[str, int, int], None] | None:
    """Show progress on stderr: a line that is rewritten in a terminal, in a log a line now and then."""
    import sys
    import time

    if quiet:
        return None
    live, last = sys.stderr.isatty(), [0.0]

    def tell(what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if live or now - last[0] > 10:
            last[0] = now
            start, end = ("\r", "" if done < total else "\n") if live else ("", "\n")
            print(f"{start}{what}: {done:,} of {total:,}", end=end, file=sys.stderr, flush=True)

    return tell
