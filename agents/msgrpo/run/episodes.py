"""Where the trainer's episodes come from: an engine plays them, and its weights follow the learner's.

With ``staleness = 0`` an iteration plays when the engine has the newest weights. With k, the batch of iteration i is
played by the weights of iteration i - k (by the first ones before that), in a thread, while the learner learns. Which
weights play a batch depends on its number alone and never on how fast anything was, so equal seeds give equal runs.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from torch import Tensor, nn

from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import Policies
from agents.loop.rollout import rollout
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.engines.engine import Engine
from agents.msgrpo.engines.live import LiveEngine, merged_weights
from agents.msgrpo.errors import RolloutError
from agents.msgrpo.learner.distributed import Processes
from agents.policy import LanguageAgentPolicy
from agents.turn import WeightsSpan


class EpisodeSource:
    """Plays episodes with an engine, and sends it the learner's weights.

    Args:
        config: the run's settings.
        engine: plays.
        model: the learner's, whose weights the engine gets.
        processes: that share the episodes.
        tasks_of: ``iteration -> its tasks``, for playing ahead.
        check: called after every change of the engine's weights, in all processes; raises if they aren't the learner's.
        play: plays episodes in place of the engine's own ``rollout``, or of the loop.

    Attributes:
        version: how many updates the learner's weights have had.
        lag: how many updates behind the weights were, on average over the tokens of the latest batch.
    """

    def __init__(
        self,
        config: MSGRPOConfig,
        engine: Engine,
        model: nn.Module,
        processes: Processes,
        tasks_of: Callable[[int], list[EpisodeTask]],
        check: Callable[[], None] | None = None,
        play: Callable[..., Iterator[Episode]] | None = None,
    ) -> None:
        self.config, self.engine, self.model, self.processes = config, engine, model, processes
        self.version, self.lag = 0, 0.0
        self._tasks_of, self._check = tasks_of, check
        self._play = getattr(engine, "rollout", rollout) if play is None else play
        self._sent = -1
        self._ahead: dict[int, Future[list[Episode]]] = {}  # iteration -> this process's share of its episodes
        self._thread: ThreadPoolExecutor | None = None
        self._stop = threading.Event()

    def renew(self, version: int) -> None:
        """The learner's weights have changed. The engine gets them now, or as soon as it has played what it plays.

        Where it can't take them now, it is tried again before anything is played, and then it is an error: by that time
        the iteration is whole, and can be kept.
        """
        self.version, self._sent = version, -1
        if not self.config.staleness:
            with suppress(RolloutError):
                self._send()

    def play(self, policies: Policies, tasks: Sequence[EpisodeTask]) -> list[Episode]:
        """Episodes by the newest weights, in the tasks' order; every process plays its part. Waits for those ahead.

        Raises:
            RolloutError: an episode that a provider's error cut short; a mean without it would be of other tasks.
        """
        self.settle()
        episodes = self._together(self._mine(policies, tasks), tasks)
        for episode in episodes:
            if episode.error is not None:
                raise RolloutError(f"{episode.scenario}, seed {episode.seed}, failed: {episode.error}")
        return episodes

    def play_to_learn(self, policy: LanguageAgentPolicy, tasks: Sequence[EpisodeTask], iteration: int) -> list[Episode]:
        """The episodes that an iteration learns from; with staleness, those of the next ones are begun as well.

        Raises:
            RolloutError: tokens of weights that are older than ``staleness`` allows, or that say nothing of it.
        """
        if not self.config.staleness:
            episodes = self.play(policy, tasks)
        else:
            if iteration not in self._ahead:
                self._order(policy, iteration)
            mine = self._ahead[iteration].result()
            del self._ahead[iteration]
            last = min(iteration + self.config.staleness, self.config.iterations - 1)
            for coming in range(iteration + 1, last + 1):
                if coming not in self._ahead:
                    self._order(policy, coming)
            episodes = self._together(mine, tasks)
        self.lag = updates_behind(episodes, self.version, self.config.staleness, self.engine.name)
        return episodes

    def drop(self) -> None:
        """Stop what is being played ahead and forget it. It is played again, by the weights of then, when needed."""
        if self._thread is not None:
            self._stop.set()
            self._thread.shutdown(wait=True, cancel_futures=True)
            self._stop.clear()
        self._thread = None
        self._ahead.clear()

    def _order(self, policy: LanguageAgentPolicy, iteration: int) -> None:
        """Have the thread play an iteration by the weights of now, after what it was told before."""
        copied: list[tuple[str, Tensor]] = []
        if self._sent != self.version:
            if all(each.done() for each in self._ahead.values()):
                self._send()
            else:  # the learner will have changed its weights before the engine is free to take them
                with self.processes.whole_weights():
                    copied = [(name, tensor.clone()) for name, tensor in merged_weights(self.model)]
        self._sent = self.version
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="rollouts")
        tasks = self._tasks_of(iteration)
        self._ahead[iteration] = self._thread.submit(self._work, copied, self.version, policy, tasks)

    def _work(
        self,
        weights: list[tuple[str, Tensor]],
        version: int,
        policy: LanguageAgentPolicy,
        tasks: Sequence[EpisodeTask],
    ) -> list[Episode]:
        if weights:
            self.engine.update_weights(iter(weights), version)
        weights.clear()
        return self._mine(policy, tasks, self._stop_if_dropped)

    def _stop_if_dropped(self, task: EpisodeTask, step: Step) -> None:
        if self._stop.is_set():
            raise RolloutError("the episodes that were played ahead were dropped")

    def settle(self) -> None:
        """Let everything that was ordered be played, and give the engine the newest weights if it lacks them.

        Raises:
            RolloutError: the engine doesn't take them, or has others afterwards.
        """
        for ordered in self._ahead.values():
            ordered.exception()  # where there is one, it is raised when the batch is wanted
        if self._sent != self.version:
            self._send()

    def _mine(self, policies: Policies, tasks: Sequence[EpisodeTask], on_step: Any = None) -> list[Episode]:
        """This process's part of the episodes."""
        mine = tasks[self.processes.rank :: self.processes.count]
        if isinstance(self.engine, LiveEngine):
            self.engine.forget()
        at_once = self.config.rollout_batch or max(1, len(mine))
        return list(self._play(policies, mine, max_concurrency=at_once, on_step=on_step))

    def _together(self, mine: list[Episode], tasks: Sequence[EpisodeTask]) -> list[Episode]:
        by_seed = {episode.seed: episode for part in self.processes.gather(mine) for episode in part}
        return [by_seed[task.seed] for task in tasks]

    def _send(self) -> None:
        """Give the engine the learner's weights, while nothing is being played."""
        with self.processes.whole_weights():
            self.engine.update_weights(merged_weights(self.model), self.version)
        if getattr(self.engine, "shared", False):
            self.processes.wait()  # nobody asks before the first process has brought the weights
        if self._check is not None:
            self._check()
        self._sent = self.version


def updates_behind(episodes: Sequence[Episode], version: int, allowed: int, engine: str) -> float:
    """How many updates behind ``version`` the weights were that made the episodes' tokens, on average.

    Raises:
        RolloutError: a token of other weights than allowed, or of which the engine doesn't tell the weights.
    """
    behind, tokens = 0, 0
    for episode in episodes:
        for step in episode.steps:
            turn = step.turn
            if turn.error is not None or not turn.response_ids:
                continue  # told of where it is learnt from
            count = len(turn.response_ids)
            if not spans(turn.weights, count):
                raise RolloutError(
                    f"the engine {engine!r} doesn't say which weights made its tokens (seed {episode.seed}, step "
                    f"{step.index}: {count} tokens, {list(turn.weights)}): Turn.weights has to cover them all; "
                    "agents.msgrpo.engines.engine.made_by writes it"
                )
            for span in turn.weights:
                if not version - allowed <= span.version <= version:
                    oldest = f"{max(0, version - allowed)} to {version}" if allowed else f"{version} alone"
                    raise RolloutError(
                        f"the engine {engine!r} sampled with weights {span.version} (seed {episode.seed}, step "
                        f"{step.index}), but the learner has had {version} updates and staleness = {allowed} allows "
                        f"{oldest}: an update didn't reach the engine, or something else changed its weights"
                    )
                behind += (version - span.version) * (span.stop - span.start)
            tokens += count
    return behind / max(1, tokens)


def spans(turn_weights: Sequence[WeightsSpan], tokens: int) -> bool:
    """Whether spans cover so many tokens in order and without gaps."""
    ends = [0, *(span.stop for span in turn_weights)]
    return [span.start for span in turn_weights] == ends[:-1] and ends[-1] == tokens


def layout_of(episode: Episode) -> str:
    """A short digest of what the players of an episode saw first: equal layouts have equal ones."""
    first = "\n".join(step.observation for step in episode.steps if step.index == episode.steps[0].index)
    return layout_digest(first)


def layout_digest(observation: str) -> str:
    """A short digest of a layout, by what is seen of it."""
    return blake2b(observation.encode(), digest_size=8).hexdigest()
