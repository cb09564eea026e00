"""What a run tells while it runs: a live table in the terminal, ``metrics.jsonl``, trackers, sample episodes."""

import json
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, TextIO

from rich.live import Live
from rich.table import Table

from agents.common.clock import duration
from agents.common.console import PlainConsole
from agents.common.files import open_for_appending, replacing
from agents.common.intervals import Estimate
from agents.common.locking import FolderLock
from agents.common.reading import LineTooLongError, read_lines
from agents.episode import Episode
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.run.evaluating.evaluation import EvaluationResult
from agents.msgrpo.run.evaluating.scale import NAMES
from agents.msgrpo.run.reporting.trackers import Trackers, open_trackers

SHOWN = (
    ("return", "return", "{:.3f}"),
    ("success", "success", "{:.1%}"),
    ("invalid responses", "invalid_rate", "{:.1%}"),
    ("cut-off responses", "truncated_response_rate", "{:.1%}"),
    ("groups without advantage", "zero_advantage_groups", "{:.0%}"),
    ("KL to reference", "kl", "{:.4f}"),
    ("entropy (nats/token)", "entropy", "{:.3f}"),
    ("clip fraction", "clip_fraction", "{:.2%}"),
    ("gradient norm", "grad_norm", "{:.3f}"),
    ("sampler-learner mismatch", "mismatch_mean", "{:.1e}"),
    ("updates behind", "lag", "{:.2f}"),
    ("importance weight", "importance_mean", "{:.4f}"),
    ("importance weights cut", "importance_clipped", "{:.2%}"),
    ("rollout tokens/s", "rollout_tokens_per_second", "{:,.0f}"),
    ("update tokens/s", "update_tokens_per_second", "{:,.0f}"),
)
"""What the terminal shows: caption, metric, format."""


class RunLog:
    """Receives the metrics of every iteration; a context manager.

    Args:
        out: the run's folder, or ``None`` to write nothing.
        first: iterations done before (after a resume); later lines of ``metrics.jsonl`` are dropped.
        quiet: nothing in the terminal.
    """

    def __init__(self, config: MSGRPOConfig, out: Path | None, *, first: int = 0, quiet: bool = False) -> None:
        self.config, self.out, self.first = config, out, first
        self.console = PlainConsole(stderr=True, quiet=quiet)
        self.evaluations: list[EvaluationResult] = []
        self._latest: dict[str, Any] = {}
        self._live: Live | None = None
        self._file: TextIO | None = None
        self._trackers: Trackers | None = None
        self._lock: FolderLock | None = None
        self._started = perf_counter()

    def __enter__(self) -> "RunLog":
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.out, ConfigError)  # a second writer would cut off what this one has done
            try:
                # first, since a folder with metrics is a run, and one whose trackers can't be opened hasn't begun
                self._trackers = open_trackers(self.config, self.out, self.first, self.say, quiet=self.console.quiet)
                self._file = _open_metrics(self.out / "metrics.jsonl", self.first)
            except BaseException:
                self._lock.release()
                raise
        if self.console.is_terminal:
            self._live = Live(self._table(), console=self.console, refresh_per_second=4)
            self._live.start()
        self._started = perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for stop in (
            self._live and self._live.stop,
            self._file and self._file.close,
            self._trackers and self._trackers.close,
            self._lock and self._lock.release,
        ):
            if stop:
                with suppress(OSError):  # a full disk has been told of where it was met
                    stop()
        if isinstance(error, KeyboardInterrupt):
            self.say(". ".join(["interrupted", *getattr(error, "__notes__", ())]))
        self._live = self._file = self._trackers = self._lock = None

    def iteration(self, metrics: dict[str, Any]) -> None:
        """Record one iteration; ``metrics["iteration"]`` counts from 1."""
        self._latest = metrics
        self._write(metrics)
        if self._live is not None:
            self._live.update(self._table())
        elif not self.console.quiet:
            self.console.print(self._line(metrics), soft_wrap=True)

    def evaluation(self, iteration: int, results: Sequence[EvaluationResult]) -> None:
        self.evaluations = list(results)
        for result in results:
            self._write({"iteration": iteration, "evaluation": result._asdict()})
        for result in results:
            self.console.print(
                f"evaluation after {iteration}: {result.scenario} return "
                f"{Estimate(result.mean_return, result.low, result.high):.3f}{_seats(result)}{_scale(result)}, "
                f"success {result.success:.1%}, invalid {result.invalid_rate:.1%}, {result.episodes} episodes, "
                f"{result.layouts_seen_in_training} of their layouts also met in training{_reads(result)}"
                f"{_yardsticks(result)}",
                soft_wrap=True,
            )

    def samples(self, iteration: int, episodes: Sequence[Episode]) -> None:
        if self.out is None:
            return
        with os.fdopen(open_for_appending(self.out / "samples.txt"), "a", encoding="utf-8") as file:
            for episode in episodes:
                file.write(as_text(iteration, episode))

    def say(self, message: str) -> None:
        self.console.print(message, soft_wrap=True)  # commands are to be copied

    def _write(self, record: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(_finite(record), allow_nan=False) + "\n")
            self._file.flush()
        if self._trackers is not None:
            prefix, values = "train", record
            if "evaluation" in record:
                prefix, values = f"evaluation/{record['evaluation']['scenario']}", record["evaluation"]
            values = {**values, **{f"return_{player}": mean for player, mean in (values.get("seats") or {}).items()}}
            figures = {name: value for name, value in values.items() if isinstance(value, int | float)}
            figures.pop("iteration", None)
            self._trackers.log({f"{prefix}/{name}": value for name, value in figures.items()}, record["iteration"])

    def _line(self, metrics: dict[str, Any]) -> str:
        """What is printed per iteration where there is no terminal to keep a table in."""
        parts = [f"iteration {metrics['iteration']}/{self.config.iterations}"]
        for name, pattern in (("return", "{:.3f}"), ("success", "{:.1%}"), ("invalid_rate", "{:.1%}")):
            parts.append(f"{name} {pattern.format(metrics[name])}")
        if metrics.get("skipped"):
            parts.append("no advantage anywhere, update skipped")
        else:
            parts.append(f"entropy {metrics['entropy']:.3f} grad {metrics['grad_norm']:.2f}")
        return ", ".join([*parts, f"{metrics['seconds']:.1f} s"])

    def _table(self) -> Table:
        done, time_left = self._latest.get("iteration", self.first), ""
        if done > self.first:
            pace = (perf_counter() - self._started) / (done - self.first)
            time_left = f", {duration(pace * (self.config.iterations - done))} left"
        table = Table(title=f"MS-GRPO iteration {done} of {self.config.iterations}{time_left}", title_justify="left")
        table.add_column("")
        table.add_column("", justify="right")
        for caption, name, pattern in SHOWN:
            if name in self._latest:
                table.add_row(caption, pattern.format(self._latest[name]))
            if name == "return":
                for seat, mean in _seat_returns(self._latest).items():
                    table.add_row(f"return of {seat}", pattern.format(mean))
        for result in self.evaluations:
            against = f" against {result.opponent}" if result.opponent else ""
            told = f"{result.mean_return:.3f} ({result.success:.1%} success)"
            if result.blind is not None:
                told += f", blind play {result.blind:.3f}"
            for name in ("regret", "exploitability"):
                if (value := getattr(result, name)) is not None:
                    told += f", {name} {value:.3f}"
            table.add_row(f"evaluation: {result.scenario}{against}", told)
        return table


def _seat_returns(metrics: Mapping[str, Any]) -> dict[str, float]:
    """``{player: mean return}`` in the metrics of an iteration; empty in a game for one."""
    return {name.removeprefix("return_"): value for name, value in metrics.items() if name.startswith("return_player_")}


def _seats(result: EvaluationResult) -> str:
    """The returns by seat, and who had the other seats."""
    told = ", ".join(f"{player} {mean:.3f}" for player, mean in (result.seats or {}).items())
    against = f"against {result.opponent}" if result.opponent else "against itself"
    return f" {against} ({told})" if told else ""


def _scale(result: EvaluationResult) -> str:
    """What the return lies between."""
    ends = []
    if result.blind is not None:
        ends.append(f"blind play {result.blind:.3f}: {result.blind_policy}")
    if result.reference is not None:
        ends.append(f"{NAMES[result.reference_kind]} {result.reference:.3f}")
    return f" ({'; '.join(ends)})" if ends else ""


def _reads(result: EvaluationResult) -> str:
    """A warning where the return doesn't show that the model reads what it is told."""
    if result.blind is None or (result.low is not None and result.low > result.blind):
        return ""
    return "; not surely better than blind play, which reads nothing"


def _yardsticks(result: EvaluationResult) -> str:
    told = ""
    if result.regret is not None:
        told = (
            f"; exact regret per decision {result.regret:.3f} [{result.regret_low:.3f}, {result.regret_high:.3f}] at "
            f"{result.positions} positions of random play, where random play has {result.random_regret:.3f}"
        )
    if result.exploitability is not None:
        told += f"; exploitability {result.exploitability:.3f}"
    return told


def as_text(iteration: int, episode: Episode) -> str:
    """An episode as a person reads it."""
    lines = [f"===== iteration {iteration}, {episode.scenario}, seed {episode.seed}, layout {episode.layout_seed}"]
    for step in episode.steps:
        outcome = step.action if step.valid else f"{step.action} (invalid: {step.unreadable})"
        lines += [f"--- {step.player}, step {step.index}", step.observation, f"> {step.turn.response}"]
        lines.append(f"= {outcome}, reward {step.reward:+g}")
    return "\n".join([*lines, f"returns {episode.returns}, successes {episode.successes}", "", ""])


def _finite(value: Any) -> Any:
    """JSON has neither NaN nor infinity: the interval of a single episode becomes null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _open_metrics(path: Path, first: int) -> TextIO:
    """Open the file to append to it, without the lines of iterations that a resumed run does again."""
    kept = []
    if path.exists():
        try:
            with path.open("rb") as stream:
                lines = list(read_lines(stream))
        except LineTooLongError as error:
            raise ConfigError(f"{path} isn't what a run writes: {error}") from None
        for number, line in enumerate(lines, 1):
            try:
                text = line.decode("utf-8").rstrip("\r\n")
                before = json.loads(text)["iteration"] <= first
            except (ValueError, TypeError, KeyError, RecursionError):
                if number < len(lines):  # the last one was cut off when the machine went down
                    warnings.warn(f"{path}: line {number} is damaged and left out", stacklevel=2)
                continue
            if before:
                kept.append(text)
    with replacing(path) as stream:
        stream.write("".join(line + "\n" for line in kept))
    return os.fdopen(open_for_appending(path), "a", encoding="utf-8")
