"""One job, in whatever process: done if it has no result, timed, and its result written."""

import ctypes
import gc
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from pkgutil import resolve_name
from typing import Any, NamedTuple

from benchmark.runs import code_version, package_versions
from research.jobs.folder import AnyJob, Folder

Report = Callable[[float], None]
"""Called with the share of a job that is done, in [0, 1]; may raise ``KeyboardInterrupt`` to stop it."""

Work = Callable[[Any, Any, Any, Report], dict[str, Any]] | str
"""``job, experiment, folder, report -> result``: how the jobs of one kind are done. It is a function of a module, as a
worker finds it by its name, or ``module:function``, which only the worker imports."""


def do(work: Work, job: AnyJob, experiment: Any, folder: Folder, report: Report) -> None:
    """Do one job and write its result; nothing happens when it is there."""
    if folder.is_done(job.name):
        return
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # its bars would run through ours
    facts = facts_of()  # now: by the end, the checkout may be at another commit
    folder.begin(job, experiment)
    started, processor = time.perf_counter(), time.process_time()
    result = (resolve_name(work) if isinstance(work, str) else work)(job, experiment, folder, report)
    measured = {"seconds": time.perf_counter() - started, "processor_seconds": time.process_time() - processor}
    folder.write_result(job.name, {"facts": facts, **measured, **result})
    _give_back_memory()


def _give_back_memory() -> None:
    """Return what is free to the system, if the C library can be told to.

    After a job that trained all weights of SmolLM2 it kept 2.9 GB in pieces, so that the worker's next job didn't fit.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if platform.system() == "Linux" else None
    if trim is not None:
        trim(0)


def facts_of() -> dict[str, str]:
    """Return what stands beside reported figures: the version and commit, and the versions of packages, Python and
    system."""
    code, shown = code_version(), ("torch", "transformers", "numpy")
    versions = [f"{name} {number}" for name, number in package_versions().items() if name in shown]
    changed = ", with uncommitted changes" if code["dirty"] else ""
    return {
        "textbench": f"{code['version']}, commit {(code['commit'] or 'unknown')[:12]}{changed}",
        "versions": ", ".join(versions),
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
    }


class TokensTaken(NamedTuple):
    """How many tokens a model read and wrote in a run."""

    rollout: int  # prompts and responses of the episodes that it played to learn
    update: int  # of the rows of its updates, every pass over them counted

    @property
    def all(self) -> int:
        return self.rollout + self.update


def tokens_taken(history: Iterable[Mapping[str, Any]], update_passes: int) -> TokensTaken:
    """Return the tokens of the iterations of a run, by its metrics as in ``metrics.jsonl``.

    Evaluations aren't counted, nor are fresh rollouts that a method of credit plays on its own account (``vine``).
    """
    played = [metrics for metrics in history if "prompt_tokens" in metrics]
    rollout = sum(metrics["prompt_tokens"] + metrics["response_tokens"] for metrics in played)
    update = update_passes * sum(metrics["update_tokens"] for metrics in played)
    return TokensTaken(int(rollout), int(update))
