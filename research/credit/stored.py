"""A stored report as findings, so that its figures follow the estimators of today: no job is done again.

``python -m research.credit.stored research/credit/data/report.json.gz`` computes a report's tables anew. What lies
within a measurement, such as its intervals over batches, stays as it is.
"""

import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmark import UsageError
from research.credit.findings import Cell, Findings, Run, value_of
from research.credit.questions.answers import findings_of as asked_in
from research.credit.questions.report import report_data as answers_data
from research.credit.report import report_data
from research.credit.settings import Study
from research.jobs.report import store_report, stored_report


def findings_of(report: Mapping[str, Any]) -> Findings:
    """Return the findings that a report was made of, the bases' losses and the times of single jobs aside.

    Raises:
        UsageError: its runs lack figures that reports didn't keep when it was written.
    """
    from research.credit.instrument.results import LEAST_CEILING

    def cells(rows: Any) -> dict[Cell, dict[str, Any]]:
        return {(row["game"], row.get("run", 0), row["stage"]): dict(row) for row in rows}

    measured = cells(report["measured"])
    for document in measured.values():
        ceiling = value_of(document, "oracle", "gradient_cosine")
        document["weak"] = ceiling is not None and ceiling < LEAST_CEILING
    study = Study.model_validate(_given(report["settings"]))
    runs: dict[tuple[str, str], list[Run]] = {}
    for row in report["runs"]:
        if "ends" not in row and (lost := study.ends_of(row["game"])):  # Holm's p would shrink without them
            raise UsageError(
                f"this report can't be computed anew: its runs lack their figures {', '.join(lost)}, which reports "
                "didn't keep when it was written; reproduce it with the command of its page"
            )
        points = {name: np.array(row[name], dtype=np.float64) for name in ("tokens", "returns")}
        named = {field.name: row[field.name] for field in fields(Run) if field.name in row}
        runs.setdefault((row["game"], row["arm"]), []).append(Run(**{**named, **points}))
    return Findings(
        study=study,
        stages={(row["game"], row["run"]): row["returns"] for row in report["stages"]},
        bases={},
        measured=measured,
        drawn=cells(report["draws"]),
        thinking={row["scenario"]: row for row in report["thinking"]},
        tuned={
            (row["game"], row["arm"]): {float(rate): mean for rate, mean in row["means"].items()}
            for row in report["tuning"]
        },
        runs=runs,
        missing=report["missing"],
        seconds={"all": report["seconds"]},
        code=report["code"],
    )


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without those that are ``None``, among which are some that no longer exist."""
    return {
        name: _given(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if value is not None
    }


def recomputed(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report with all figures that are made of measurements and runs computed anew."""
    if report["settings"]["kind"] == "questions":
        return answers_data(asked_in(report), report["facts"], report["notes"])
    return report_data(findings_of(report), report["facts"], report["notes"])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        file = Path(name)
        try:
            again = recomputed(stored_report(file))
        except UsageError as error:
            sys.exit(f"{file}: {error}")
        store_report(file, again)
