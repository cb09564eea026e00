"""Results of Inspect as runs of ours: ``python -m textbench.integrations.inspect logs/x.eval --out runs/x``.

``log -> what its model said, by seed -> the same episodes played again -> run folder``. Nothing but the responses is
taken from the log: boards, actions and returns come of playing them, and must be those that the log has. Its tokens
come along; seconds are those of the import.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog, read_eval_log

from agents.policy import as_requests
from agents.turn import Turn, TurnRequest, prefix_of
from benchmark import Results, UsageError, evaluate
from benchmark.runs.folder import RunFolder, folder_name
from benchmark.runs.plan import find_scenarios, num_players, unknown_module
from benchmark.show.document_of import prompt_map_of
from textbench.integrations.inspect.solver import EPISODE, turn_of


class LoggedPlayer:
    """Answers as the model of a log did, episode by episode."""

    def __init__(self, log: EvalLog) -> None:
        self.name = folder_name(log.eval.model)
        decoding = log.plan.config.model_dump(exclude_none=True)
        told = {name: decoding[name] for name in ("temperature", "top_p", "max_tokens") if name in decoding}
        prompts = (log.eval.metadata or {}).get("prompts") or {}
        self.settings: dict[str, Any] = {
            **{"model": log.eval.model, "inspect_eval": log.eval.eval_id, "inspect_created": log.eval.created},
            **{**told, "mode": prompts.get("mode"), "prompt_map": prompts},
        }
        self._prompt_map = prompt_map_of({"settings": self.settings})
        self._said: dict[int, Iterator[Any]] = {}
        self._failed: dict[int, str] = {}
        for sample in log.samples or ():
            if sample.epoch == 1:
                seed = int(sample.id)
                self._said[seed] = (event for event in sample.events if event.event == "model" and not event.error)
                if EPISODE not in sample.store:
                    self._failed[seed] = sample.error.message if sample.error else "the sample wasn't finished"

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        """Return the next response of each request's episode; an error if the log has no more of it."""
        turns = []
        for request in as_requests(requests):
            seed, prefix = request.seed[0], prefix_of(self._prompt_map(request)) if self._prompt_map else ""
            said = next(self._said.get(seed, iter(())), None)
            if said is None or seed in self._failed:
                turns.append(Turn("", error=self._failed.get(seed, "the log has no response here")))
            else:
                turns.append(turn_of(said.output, said.config, prefix))
        return turns


def import_log(log: str | Path | EvalLog, out: str | Path | None = None, *, quiet: bool = False) -> Results:
    """Play the episodes of a log of one of our tasks, and return them as results in a run folder.

    Samples that failed are unscored; of several epochs the first counts.

    Args:
        log: the log, or its file.
        out: the run folder, as :func:`benchmark.evaluate` takes it.
        quiet: nothing on standard error.

    Raises:
        UsageError: it isn't such a log, it is of a game for several players or of one that isn't registered here, or
            its episodes aren't what the game makes of its responses.
    """
    log = log if isinstance(log, EvalLog) else read_eval_log(str(log))
    name, about = log.eval.dataset.name or "", log.eval.metadata or {}
    if not log.samples or not {"env_id", "protocol", "moves"} <= about.keys():
        raise UsageError("this isn't a log of a textbench task, with samples and with what the task notes of itself")
    if unknown_module(name):
        raise UsageError(f"the log is of the game {name!r}; if it is yours or you trust it, import its module first")
    (scenario,) = find_scenarios([name]).values()
    if num_players(scenario) > 1:
        raise UsageError(f"{name} is for several players, and a log has the responses of one of them alone")
    seeds = sorted({int(sample.id) for sample in log.samples})
    if seeds[0] < scenario.first_seed:
        raise UsageError(f"the log has the seed {seeds[0]}, those of {name} begin with {scenario.first_seed}")
    player = LoggedPlayer(log)
    results = evaluate(
        {player.name: player},
        scenarios=name,
        episodes=seeds[-1] - seeds[0] + 1,
        seed_offset=seeds[0] - scenario.first_seed,
        protocol=about["protocol"],
        moves=about["moves"],
        out=out,
        quiet=quiet,
    )
    (folder,) = results.folders
    played = {record.seed: record for record in RunFolder.open(folder).records()}
    for sample in log.samples:
        if sample.epoch == 1 and (told := sample.store.get(EPISODE)) is not None:
            record = played[int(sample.id)]
            if record.error is not None or record.returns != told["returns"]:
                raise UsageError(
                    f"seed {sample.id}: by the log the returns are {told['returns']}, its responses make "
                    f"{record.error or record.returns}: the log was changed, or made by another version"
                )
    return results
