"""The command ``textbench check-credit``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from agents.common import option, part, place, settings
from benchmark.cli import Output

if TYPE_CHECKING:
    from research.credit.checker.checks import Finding


@settings
class Settings:
    """Check the credit that any trainer assigned to turns: its formula, and the faults that are known of trainers.

    FILE has a row for each span of tokens, as JSON Lines or Parquet. Labels, starts, masks, ends of responses, rewards,
    weights of the loss and log-probabilities are compared with each other, and the advantages with all methods of
    credit that are registered.

    Exit code 0 if no check failed, else 1.

    examples:
      textbench check-credit rows.jsonl
      textbench check-credit rows.jsonl --method dr_grpo --normalizer token --eos 151645
      textbench check-credit rows.parquet --json
    """

    file: str = place("FILE", "the rows")
    method: str = option("", "NAME", "the method of credit that the trainer says it has (default: it is found)")
    normalizer: str = option(
        "", "NAME", "what the loss is divided by: token, response, step, episode, episode_mean", named="--normalizer"
    )
    eos: tuple[Annotated[int, Ge(0)], ...] = option((), "ID", "a token that ends a response; repeatable", named="--eos")
    most_kl: float = option(0.01, "X", "nats a token that the sampler may differ from the learner", ge=0)
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
    if settings.output.json:
        settings.output.document(_document(dump, findings))
        return int(failed)
    counts = ", ".join(f"{value:,} {name}" for name, value in _document(dump, []).items() if name != "findings")
    print(f"{settings.file}: {counts}")
    for finding in findings:
        print(f"{finding.result:12} {finding.check:13} {finding.said}".rstrip())
    return int(failed)


def _document(dump: Any, findings: "list[Finding]") -> dict[str, Any]:
    updates = {row.update for row in dump.rows}
    return {
        "updates": len(updates),
        "episodes": len(dump.episodes),
        "turns": len(dump.responses),
        "findings": [finding._asdict() for finding in findings],
    }
