"""A run's reports: a live table in the terminal, ``metrics.jsonl``, trackers, sample episodes.

Trackers are those of accelerate (TensorBoard, Weights & Biases, ...), and each gets the same values under the same
names. A run's id in a tracker is kept in ``trackers.json`` in its folder, so that a resumed run continues in it.
"""

import json
import os
import secrets
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple, TextIO

import numpy as np
from pydantic_core import to_json
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from agents.common.console import PlainConsole
from agents.common.files import open_for_appending, replacing
from agents.common.intervals import Estimate
from agents.common.locking import FolderLock
from agents.common.progress import duration
from agents.common.reading import LineTooLongError, read_json, read_lines
from agents.common.redaction import public_url
from agents.episode import Episode
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.draws import Drawn
from agents.msgrpo.errors import ConfigError, check_installed, refused
from agents.msgrpo.run.evaluating import NAMES, EvaluationResult
from textgames.extras import install_command

# ---------------------------------------------------------------- trackers

KNOWN = "trackers.json"

EXTRAS = {"tensorboard": "train", "wandb": "wandb"}
"""The extras that trackers are in; the others have to be installed by their own names."""


class Trackers:
    """The open trackers of one run by name. One that fails is left out from then on, which ``say`` is told."""

    def __init__(self, opened: Mapping[str, Any], say: Callable[[str], None] = print) -> None:
        self._opened, self._say = dict(opened), say

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, tracker in list(self._opened.items()):
            try:
                tracker.log(dict(values), step=step)
            except Exception as error:  # noqa: BLE001 - another's client, disk or server
                del self._opened[name]
                self._say(f"the tracker {name} has failed and gets no more metrics ({type(error).__name__}: {error})")

    def close(self) -> None:
        for tracker in self._opened.values():
            tracker.finish()
        self._opened.clear()


def open_trackers(config: MSGRPOConfig, out: Path, first: int, say: Callable[[str], None], *, quiet: bool) -> Trackers:
    """Open the trackers of a config; ``first`` iterations were done before."""
    opened: dict[str, Any] = {}
    for name in dict.fromkeys(config.trackers):
        try:
            opened[name] = _start(name, _arguments(name, config, out, first, quiet))
            if name != "tensorboard" or first == 0:  # TensorBoard would show every resume as one more experiment
                opened[name].store_init_configuration({k: _shown(value) for k, value in vars(config).items()})
        except BaseException:
            Trackers(opened, say).close()
            raise
    return Trackers(opened, say)


def check_trackers(config: MSGRPOConfig) -> None:
    """Raise if a tracker's package isn't installed."""
    for name in config.trackers:
        if find_spec(name) is None and not (name == "tensorboard" and find_spec("tensorboardX")):
            raise _not_installed(name)


def _not_installed(name: str) -> ModuleNotFoundError:
    advice = install_command(EXTRAS[name]) if name in EXTRAS else f"pip install {name}"
    return ModuleNotFoundError(
        f"the tracker {name!r} needs the package {name}, which is not installed: {advice}", name=name
    )


def _start(name: str, arguments: dict[str, Any]) -> Any:
    check_installed("trackers need", "accelerate")
    from accelerate import PartialState
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS

    if name not in LOGGER_TYPE_TO_CLASS:
        raise ConfigError(
            f"trackers = {name!r}: this version of accelerate has {', '.join(map(str, LOGGER_TYPE_TO_CLASS))}"
        )
    PartialState()  # accelerate's trackers ask it which process they are in
    try:
        tracker = LOGGER_TYPE_TO_CLASS[name](**arguments)
        # before accelerate 1.9 a tracker was started by being made
        getattr(tracker, "start", lambda: None)()
    except ModuleNotFoundError as error:
        raise _not_installed(name) from error
    except Exception as error:
        offline = "; WANDB_MODE=offline keeps its files in the run's folder" if name == "wandb" else ""
        raise ConfigError(f"the tracker {name!r} can't be started: {error}{offline}") from error
    return tracker


def _arguments(name: str, config: MSGRPOConfig, out: Path, first: int, quiet: bool) -> dict[str, Any]:
    """Return the arguments that a tracker is opened with: its project, the run's name, and what continues a run."""
    title = config.tracker_run or out.resolve().name
    if name == "tensorboard":
        return {"run_name": "tensorboard", "logging_dir": str(out), "purge_step": first + 1}
    if name == "wandb":
        if quiet:  # its setting of this name is heard by a part of it only
            os.environ.setdefault("WANDB_SILENT", "true")
        known: dict[str, Any] = {}
        with suppress(FileNotFoundError, ValueError):
            known = read_json(out / KNOWN)
        if name not in known:
            known[name] = {"id": secrets.token_hex(4)}
            with replacing(out / KNOWN) as stream:
                stream.write(json.dumps(known, indent=1) + "\n")
        return {
            "run_name": config.tracker_project,  # accelerate's name for the project
            "name": title,
            "id": str(known[name]["id"]),
            "resume": "allow",
            "dir": str(out),
            # what the terminal shows is redrawn, which is nothing to keep
            "settings": {"console": "off"},
        }
    if name == "trackio":
        return {"run_name": config.tracker_project, "name": title, "resume": "allow"}
    if name == "aim":  # the other one that writes into a folder
        return {"run_name": title, "logging_dir": str(out)}
    return {"run_name": config.tracker_project}


def _shown(value: Any) -> Any:
    """Return a setting as trackers show it: a number, a truth or a text, without the secrets of a server's address."""
    if isinstance(value, str):
        return public_url(value) if "://" in value else value
    if isinstance(value, tuple | list):
        return ", ".join(str(_shown(one)) for one in value)
    return json.dumps(value) if isinstance(value, dict) else value


# ---------------------------------------------------------------- the terminal and metrics.jsonl

SHOWN = (
    ("return", "return", "{:.3f}"),
    ("paid by the reward rule", "reward", "{:.3f}"),
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
"""The metrics that the terminal shows: caption, metric, format."""

TREND = 10
"""Iterations whose mean stands beside the latest value, and as many before these."""


class Learnt(NamedTuple):
    """An update's part in one player's part of an episode: (T,) advantages, those of tokens averaged, and its draws."""

    advantages: Sequence[float]
    draws: int


def learnt_from(batch: Batch, credit: Credit, drawn: Drawn) -> dict[tuple[int, str], Learnt]:
    """Return ``{(seed, player): its part in the update}`` for all parts that credit was assigned to."""
    draws = np.bincount(drawn.indices, minlength=len(batch)).tolist()
    return {
        (each.task.seed, each.player): Learnt([float(np.mean(own)) for own in advantages], times)
        for each, advantages, times in zip(batch.trajectories, credit.advantages, draws, strict=True)
        if each.task is not None
    }


class RunLog:
    """Receives the metrics of every iteration; a context manager.

    ``out`` is the run's folder, ``None`` to write nothing. ``first`` iterations were done before a resume, which drops
    the later lines of ``metrics.jsonl``. The share of successes isn't shown for the ``games`` ``without_success``.
    """

    def __init__(
        self,
        config: MSGRPOConfig,
        out: Path | None,
        *,
        first: int = 0,
        quiet: bool = False,
        history: Sequence[dict[str, Any]] = (),
        evaluations: Sequence[tuple[int, Sequence[EvaluationResult]]] = (),
        games: Collection[str] = (),
        without_success: Collection[str] = (),
    ) -> None:
        self.config, self.out, self.first = config, out, first
        self.console = PlainConsole(stderr=True, quiet=quiet)
        self.history, self.evaluations = [*history], [*evaluations]
        self._without_success = without_success
        self._trains_for_success = not games or not set(games) <= set(without_success)
        self._live: Live | None = None
        self._file: TextIO | None = None
        self._trackers: Trackers | None = None
        self._opened = ExitStack()
        self._started = perf_counter()

    def __enter__(self) -> "RunLog":
        with ExitStack() as opened:
            if self.out is not None:
                self.out.mkdir(parents=True, exist_ok=True)
                # a second writer would cut off what this one has done
                opened.callback(FolderLock(self.out, ConfigError).release)
                # first, since a folder with metrics is a run, and one whose trackers can't be opened hasn't begun
                self._trackers = open_trackers(self.config, self.out, self.first, self.say, quiet=self.console.quiet)
                opened.callback(self._trackers.close)
                self._file = opened.enter_context(_open_metrics(self.out / "metrics.jsonl", self.first))
            if self.console.is_terminal:
                self._live = Live(self._table(), console=self.console, refresh_per_second=4)
                opened.callback(self._live.stop)
                self._live.start(refresh=True)  # a resumed run has much to show before its first iteration
            self._opened = opened.pop_all()
        self._started = perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError):  # a full disk has been reported when it was met
            self._opened.close()
        if isinstance(error, KeyboardInterrupt):
            self.say(". ".join(["interrupted", *getattr(error, "__notes__", ())]))
        self._live = self._file = self._trackers = None

    def iteration(self, metrics: dict[str, Any]) -> None:
        self.history.append(metrics)
        self._write(metrics)
        self._refresh()
        if self._live is None and not self.console.quiet:
            self.console.print(self._line(metrics), soft_wrap=True)

    def evaluation(self, iteration: int, results: Sequence[EvaluationResult]) -> None:
        self.evaluations.append((iteration, results))
        for result in results:
            self._write({"iteration": iteration, "evaluation": result._asdict()})
        self._refresh()
        for result in results:
            success = self._success(result, "success {:.1%}, ")
            self.say(f"evaluation after {iteration}: {result.scenario} return {_described(result, success)}")

    def samples(self, iteration: int, episodes: Sequence[Episode], learnt: Mapping[tuple[int, str], Learnt]) -> None:
        if self.out is None:
            return
        with os.fdopen(open_for_appending(self.out / "samples.txt"), "a", encoding="utf-8") as file:
            for episode in episodes:
                file.write(as_text(iteration, episode, learnt, success=episode.scenario not in self._without_success))

    def say(self, message: str) -> None:
        self.console.print(message, soft_wrap=True)  # commands are to be copied

    def _write(self, record: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(to_json(record, inf_nan_mode="null").decode() + "\n")  # JSON has no NaN and infinity
            self._file.flush()
        if self._trackers is not None:
            prefix, values = "train", record
            if "evaluation" in record:
                prefix, values = f"evaluation/{record['evaluation']['scenario']}", record["evaluation"]
            values = {**values, **{f"return_{player}": mean for player, mean in (values.get("seats") or {}).items()}}
            figures = {name: value for name, value in values.items() if isinstance(value, int | float)}
            figures.pop("iteration", None)
            self._trackers.log({f"{prefix}/{name}": value for name, value in figures.items()}, record["iteration"])

    def _refresh(self) -> None:
        if self._live is not None:
            self._live.update(self._table(), refresh=True)

    def _shows(self, name: str, metrics: Mapping[str, Any]) -> bool:
        """Return whether a metric is shown: the success of training isn't if none of its games knows any."""
        return name in metrics and (name != "success" or bool(metrics[name]) or self._trains_for_success)

    def _success(self, result: EvaluationResult, pattern: str) -> str:
        known = result.success or result.scenario not in self._without_success
        return pattern.format(result.success) if known else ""

    def _line(self, metrics: dict[str, Any]) -> str:
        parts = [f"iteration {metrics['iteration']}/{self.config.iterations}"]
        for name, pattern in (("return", "{:.3f}"), ("success", "{:.1%}"), ("invalid_rate", "{:.1%}")):
            if self._shows(name, metrics):
                parts.append(f"{name} {pattern.format(metrics[name])}")
        if len(self.history) > 1:
            parts[1] += f" (last {min(TREND, len(self.history))}: {self._mean('return', 0):.3f})"
        if metrics.get("skipped"):
            parts.append("no advantage anywhere, update skipped")
        else:
            parts.append(f"entropy {metrics['entropy']:.3f} grad {metrics['grad_norm']:.2f}")
        return ", ".join([*parts, f"{metrics['seconds']:.1f} s"])

    def _mean(self, name: str, back: int) -> float | None:
        """Return a metric's mean over ``TREND`` iterations, those so many back from the last; ``None`` without any."""
        end = len(self.history) - back
        values = [one[name] for one in self.history[max(0, end - TREND) : max(0, end)] if name in one]
        return float(np.mean(values)) if values else None

    def _table(self) -> Group:
        latest = self.history[-1] if self.history else {}
        done, time_left = latest.get("iteration", self.first), ""
        if done > self.first:
            pace = (perf_counter() - self._started) / (done - self.first)
            time_left = f", {duration(pace * (self.config.iterations - done))} left"
        table = Table()
        table.add_column("")
        for heading in ("now", f"last {TREND}", f"{TREND} before"):
            table.add_column(heading, justify="right")
        for caption, name, pattern in SHOWN:
            shown = {caption: name} if self._shows(name, latest) else {}
            if name == "return":
                seats = [metric.removeprefix("return_") for metric in latest if metric.startswith("return_player_")]
                shown |= {f"return of {seat}": f"return_{seat}" for seat in seats}
            for label, metric in shown.items():
                values = latest[metric], self._mean(metric, 0), self._mean(metric, TREND)
                table.add_row(label, *["" if value is None else pattern.format(value) for value in values])
        # a title of a table without rows would be as narrow as it is
        head = Text(f"MS-GRPO iteration {done} of {self.config.iterations}{time_left}", style="italic")
        return Group(head, *([table] if latest else []), *map(Text, self._evaluated()))

    def _evaluated(self) -> list[str]:
        lines = []
        for result in self.evaluations[-1][1] if self.evaluations else ():
            against = f" against {result.opponent}" if result.opponent else ""
            told = f"{result.mean_return:.3f}{self._success(result, ' ({:.1%} success)')}"
            for done, results in self.evaluations[-2:-1]:
                told += "".join(
                    f", {one.mean_return:.3f} after {done}"
                    for one in results
                    if (one.scenario, one.opponent) == (result.scenario, result.opponent)
                )
            if result.blind is not None:
                told += f", blind play {result.blind:.3f}"
            for name in ("regret", "exploitability"):
                if (value := getattr(result, name)) is not None:
                    told += f", {name} {value:.3f}"
            lines.append(f"evaluation after {self.evaluations[-1][0]}: {result.scenario}{against} {told}")
        return lines


def _described(result: EvaluationResult, success: str) -> str:
    told = f"{Estimate(result.mean_return, result.low, result.high):.3f}"
    if result.seats:
        by_seat = ", ".join(f"{player} {mean:.3f}" for player, mean in result.seats.items())
        told += f" against {result.opponent or 'itself'} ({by_seat})"
    ends = [] if result.blind is None else [f"blind play {result.blind:.3f}: {result.blind_policy}"]
    if result.reference is not None:
        ends.append(f"{NAMES[result.reference_kind]} {result.reference:.3f}")
    told += f" ({'; '.join(ends)})" if ends else ""
    told += (
        f", {success}invalid {result.invalid_rate:.1%}, {result.episodes} episodes, "
        f"{result.layouts_seen_in_training} of their layouts also met in training"
    )
    if result.blind is not None and (result.low is None or result.low <= result.blind):
        told += "; not surely better than blind play, which reads nothing"
    if result.reward is not None:
        told += f"; the reward rule pays {result.reward:.3f}"
    if result.regret is not None:
        told += (
            f"; exact regret per decision {result.regret:.3f} [{result.regret_low:.3f}, {result.regret_high:.3f}] at "
            f"{result.positions} positions of random play, where random play has {result.random_regret:.3f}"
        )
    if result.exploitability is not None:
        told += f"; exploitability {result.exploitability:.3f}"
    return told


def as_text(iteration: int, episode: Episode, learnt: Mapping[tuple[int, str], Learnt], *, success: bool = True) -> str:
    """Write an episode as a person reads it: what was said, paid and credited, and how it ended."""
    lines = [f"===== iteration {iteration}, {episode.scenario}, seed {episode.seed}, layout {episode.layout_seed}"]
    known = {player: learnt[episode.seed, player] for player in episode.returns if (episode.seed, player) in learnt}
    advantages = {player: iter(own.advantages) for player, own in known.items()}
    for step in episode.steps:
        outcome = step.action if step.valid else f"{step.action} (invalid: {step.unreadable})"
        lines += [f"--- {step.player}, step {step.index}", step.observation, f"> {step.turn.response}"]
        own = next(advantages.get(step.player, iter(())), None)
        lines.append(f"= {outcome}, reward {step.reward:+g}" + ("" if own is None else f", advantage {own:+.3f}"))
    end = "the game was over" if episode.terminated else "cut off by the step limit"
    lines.append(f"ended after {1 + max((step.index for step in episode.steps), default=-1)} rounds: {end}")
    lines.append(f"returns {episode.returns}" + (f", successes {episode.successes}" if success else ""))
    for player in episode.returns:
        part = learnt.get((episode.seed, player))
        fate = "left out before credit was assigned, so not drawn"
        if part is not None:
            mean = float(np.mean(part.advantages)) if len(part.advantages) else 0.0
            times = {0: "not drawn", 1: "drawn"}.get(part.draws, f"drawn {part.draws} times")
            fate = f"mean advantage {mean:+.3f}, {times} for the update"
        lines.append(f"{player}: {fate}")
    return "\n".join([*lines, "", ""])


def _open_metrics(path: Path, first: int) -> TextIO:
    """Open the file to append to it, without the lines of iterations that a resumed run does again."""
    kept = []
    if path.exists():
        with refused(f"{path} isn't what a run writes", LineTooLongError), path.open("rb") as stream:
            lines = list(read_lines(stream))
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
