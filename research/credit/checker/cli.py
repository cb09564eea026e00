"""The command ``textbench check-credit``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from annotated_types import Ge

from agents.common import Estimate, option, part, place, settings
from benchmark.cli import Output
from benchmark.play import OF_ONE_AGENT, RunOptions

if TYPE_CHECKING:
    from research.credit.checker.rows import Dump
    from research.credit.checker.truth import Likeness, Part


class Truth(TypedDict):
    """The comparison with the true advantages."""

    likeness: list["Likeness"]
    methods: dict[str, float]  # the correlation if each had credited the same episodes
    gradient: dict[str, Estimate]  # cosines with the exact gradient, of the file's and of the true advantages'
    gradient_parts: list["Part"]  # by turn and by length of episode
    no_gradient: str | None  # why there are none


@settings
class Settings:
    """Check the credit that any trainer assigned to turns: its formula, and the faults that are known of trainers.

    FILE has a row for each span of tokens, as JSON Lines or Parquet. Labels, starts, masks, ends of responses, rewards,
    weights of the loss and log-probabilities are compared with each other, and the advantages with all methods of
    credit that are registered; with ``--game`` and ``--agent``, the policy that played, with the true advantages, too.

    Exit code 0 if no check failed, else 1.

    examples:
      textbench check-credit rows.jsonl
      textbench check-credit rows.jsonl --method dr_grpo --normalizer token --eos 151645
      textbench check-credit rows.parquet --json
      textbench check-credit rows.jsonl --game frozen-lake --agent hf:./the-policy-that-played
    """

    file: str = place("FILE", "the rows")
    method: str = option("", "NAME", "the method of credit that the trainer says it has (default: it is found)")
    normalizer: str = option(
        "", "NAME", "what the loss is divided by: token, response, step, episode, episode_mean", named="--normalizer"
    )
    eos: tuple[Annotated[int, Ge(0)], ...] = option((), "ID", "a token that ends a response; repeatable", named="--eos")
    most_kl: float = option(0.01, "X", "nats a token that log-probabilities may differ by", ge=0)
    game: str | None = option(None, "SCENARIO", "the game that was played, whose truth is known", needs=("--agent",))
    agent: str | None = option(None, "SPEC", "the policy that played it", needs=("--game",))
    max_steps: int | None = option(
        None, "N", "rounds after which it was cut off (default: the scenario's)", ge=1, needs=("--game",)
    )
    options: RunOptions = part(RunOptions, OF_ONE_AGENT)
    output: Output = part(Output, ["json"])


def run(settings: Settings) -> int:
    """Check a file, print the findings and return 1 if any check failed."""
    from agents.msgrpo import ConfigError
    from benchmark import UsageError, unknown_name
    from research.credit.checker.checks import NORMALIZERS, Stated, check
    from research.credit.checker.rows import read

    if settings.normalizer and settings.normalizer not in NORMALIZERS:
        raise unknown_name("normaliser", settings.normalizer, NORMALIZERS)
    stated = Stated(settings.method, settings.normalizer, settings.eos, settings.most_kl)
    dump = read(Path(settings.file))
    try:
        findings = check(dump, stated)
    except ConfigError as error:
        raise UsageError(str(error)) from None
    failed = any(finding.result == "failed" for finding in findings)
    updates = {row.update for row in dump.rows}
    counts = {"updates": len(updates), "episodes": len(dump.episodes), "turns": len(dump.responses)}
    truth = _truth(settings, dump) if settings.game else None
    if settings.output.json:
        told = [finding._asdict() for finding in findings]
        settings.output.document({**counts, "findings": told, **({"truth": _plain(truth)} if truth else {})})
        return int(failed)
    print(f"{settings.file}: " + ", ".join(f"{value:,} {name}" for name, value in counts.items()))
    for finding in findings:
        print(f"{finding.result:12} {finding.check:13} {finding.said}".rstrip())
    if truth:
        _print_truth(truth, settings)
    return int(failed)


def _truth(settings: Settings, dump: "Dump") -> Truth:
    """Return the likeness to the true advantages, and what it were with other methods."""
    from benchmark import UsageError
    from benchmark.play import load_one
    from benchmark.runs import find_scenario
    from research.credit.checker.truth import (
        correlations_of_methods,
        gradients,
        likenesses,
        true_advantages,
        truth_of,
        why_not,
    )

    scenario = find_scenario(str(settings.game), "check")
    policy, _ = load_one(str(settings.agent), settings.options, scenario)
    try:
        truth = truth_of(dump, policy, scenario, settings.max_steps)
        true, reason = true_advantages(dump, truth), why_not(dump, policy)
        found = gradients(dump, truth, policy, true) if reason is None else None
        return {
            "likeness": likenesses(dump, true),
            "methods": correlations_of_methods(dump, true),
            "gradient": found.cosines if found else {},
            "gradient_parts": found.parts if found else [],
            "no_gradient": reason,
        }
    except ValueError as error:
        raise UsageError(f"{settings.game}: {error}") from None


def _plain(truth: Truth) -> dict[str, Any]:
    """Return the truth as JSON has it."""
    likeness, parts = (
        [{name: _json(each) for name, each in one._asdict().items()} for one in rows]
        for rows in (truth["likeness"], truth["gradient_parts"])
    )
    gradient = {name: each.to_json() for name, each in truth["gradient"].items()}
    return {**truth, "likeness": likeness, "gradient": gradient, "gradient_parts": parts}


def _json(value: Any) -> Any:
    return value.to_json() if isinstance(value, Estimate) else value


def _print_truth(truth: Truth, settings: Settings) -> None:
    title = f"\nBeside the true advantages of {settings.agent} in {settings.game}, 95% intervals over groups"
    _print_rows(title, ("<", "turns", "correlation", "right sign", "offset"), truth["likeness"])
    whole, *slices = truth["likeness"]
    told = ", ".join(f"{name} {value:.2f}" for name, value in truth["methods"].items())
    print(f"The noise of these advantages is {1 - whole.correlation.value**2:.0%} of their variance.")
    print(f"Credited more or less than is due{_apart(slices, 'offset')}")
    print(f"Correlations of other methods on the same episodes: {told}")
    cosines = ", ".join(f"{name} {each:.2f}" for name, each in truth["gradient"].items())
    print(f"Cosine with the exact gradient: {cosines or 'not computed, since ' + str(truth['no_gradient'])}")
    if parts := truth["gradient_parts"]:
        title = "\nThe gradient along the exact one; bias and variance beside the true advantages' on the same episodes"
        _print_rows(title, ("<", "turns", "share", "bias", "variance"), parts)
        print(f"A larger or smaller share than is due{_apart(parts, 'bias')}")


def _print_rows(title: str, columns: Sequence[str], rows: Sequence[Any]) -> None:
    from benchmark.show import print_tables, text_table

    lines = [[f"{each:.2f}" if isinstance(each, Estimate) else str(each) for each in one] for one in rows]
    print_tables([text_table(title, columns, lines)])


def _apart(rows: Sequence[Any], name: str) -> str:
    """Name the rows whose interval doesn't hold 0, and say how many are by chance."""
    off = [one.turns for one in rows if (getattr(one, name).low or 0) > 0 or (getattr(one, name).high or 0) < 0]
    by_chance = f"{len(rows) / 20:.1f} of {len(rows)} parts are by chance"
    return f", with an interval without 0: {', '.join(off) or 'none'} ({by_chance})."
