"""A reproduction as ``textbench lab reproduce`` undertakes it, and what its command prints in the end."""

from research.jobs.command import Options, Undertaking, carry_out
from research.jobs.report import publish
from research.reproduction.jobs import ReproductionFolder, jobs_of, typical_seconds
from research.reproduction.plots import draw_plots
from research.reproduction.report import claims_of, report_data, report_markdown
from research.reproduction.reproduction import read_reproduction
from research.reproduction.settings import Experiment
from research.reproduction.shipping import ship
from research.reproduction.work import WORK, source_folder

_CALLED = {
    "pretrain": "bases to pretrain",
    "train": "training runs",
    "play": "agents to play the fresh episodes",
    "control": "controls",
}


def reproduce(experiment: Experiment, options: Options) -> int:
    """Do what the folder lacks, then write and print the report, or ship its models; raises as they do."""
    folder, jobs = ReproductionFolder(options.out), jobs_of(experiment)
    if options.ship is not None:
        folder.claim(experiment)
        for place in ship(experiment, folder, options.ship, options.notes):
            print(place)
        return 0
    if not options.report_only:  # what is missing is said now, not after the first jobs
        for base in experiment.bases.values():
            if base.source:
                source_folder(base.source)
    undertaking = Undertaking(
        experiment,
        folder,
        jobs,
        WORK,
        typical_seconds(experiment, jobs),
        lambda: _report(experiment, folder, options),
        ("torch", "transformers", "tokenizers"),
        called=lambda job: _CALLED[job.kind],
        threads=1,  # two processes on two cores are much faster than two threads
    )
    return carry_out(undertaking, options)


def _report(experiment: Experiment, folder: ReproductionFolder, options: Options) -> int:
    results = read_reproduction(experiment, folder)
    claims = [] if options.json else claims_of(results, experiment)
    for claim in claims:
        print(f"{claim.text}\n  {str(claim.verdict).upper()}")
        for finding in claim.findings:
            needed, told = f"needed: above {finding.threshold:g}", f"{finding.estimate:z.3f}"
            print(f"  {told:24} {needed}; {finding.verdict}: {finding.about} ({finding.samples})")
        print()
    return publish(
        results,
        folder.path,
        options,
        lambda found, place: draw_plots(found, experiment, place),
        lambda found, facts, **more: report_markdown(found, experiment, facts, **more),
        lambda found, facts, notes: report_data(found, experiment, facts, notes),
    )
