"""Playing for the update: the engine that the settings name, the episodes that it plays, and one iteration's share.

With ``staleness = 0`` an iteration plays when the engine has the newest weights. With k, the batch of iteration i is
played by the weights of iteration i - k (by the first ones before that), in a thread, while the learner learns.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agents.episode import Episode, EpisodeStart, EpisodeTask, Step
from agents.loop.live import Policies, all_policies
from agents.models.base import Decoding
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.credit.batch import Floats, Start, TokenRow, Trajectory
from agents.msgrpo.credit.fresh import refuse_history
from agents.msgrpo.critic import Beside
from agents.msgrpo.engines import ENGINES
from agents.msgrpo.engines.engine import Engine, EngineParts, completed_engine
from agents.msgrpo.engines.live import CopyEngine, LiveEngine, merged_weights
from agents.msgrpo.errors import ConfigError, RolloutError, refused
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.segments import Segmenter
from agents.msgrpo.tasks import Hint, Mask
from agents.msgrpo.trajectories import Game, learners, training_tasks, trajectories_of, tsmg_of
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap
from agents.turn import Prompt, TurnRequest

# ---------------------------------------------------------------- the engine


def make_engine(
    config: MSGRPOConfig,
    methods: Methods,
    model: nn.Module,
    tokenizer: Any,
    processes: Processes,
    autocast: torch.dtype | None,
    given: Engine | None = None,
) -> Engine:
    """Return the engine ``given``, or else the one that the config names."""
    if given is not None and config.engine != "live":
        raise ConfigError(f"engine = {config.engine!r} and an engine object: accepted is one of them")
    late = f"staleness = {config.staleness} with"
    if config.staleness and ("rollouts" in methods.needs or methods.reward.asks_alone):
        raise ConfigError(
            f"{late} credit = {config.credit!r} and reward = {config.reward!r}, of which one asks the newest weights "
            "while older ones are playing ahead; accepted: staleness = 0, or methods without fresh rollouts"
        )
    if config.staleness > 1 and processes.count > 1:
        raise ConfigError(
            f"{late} {processes.count} learning processes, which can't agree on when older weights have arrived; "
            "accepted: staleness 0 or 1, or one process"
        )
    if config.staleness and isinstance(given, LiveEngine) and not isinstance(given, CopyEngine):
        raise ConfigError(
            f"{late} an engine that samples from the weights that are trained; accepted: an engine with weights of its "
            "own (engine = 'live' makes a copy)"
        )
    if given is not None:
        return completed_engine(given)
    moving = processes.sharded or autocast is not None or config.staleness > 0
    dtype = autocast or next(model.parameters()).dtype
    parts = EngineParts(model, tokenizer, config, dtype, moving, processes.rank, processes.count)
    return completed_engine(ENGINES.make(config.engine, config.engine_options).build(parts))


def policy_of(
    config: MSGRPOConfig, games: Sequence[Game], engine: Engine, prompt_map: PromptMap, decoding: Decoding
) -> LanguageAgentPolicy:
    """Return the model as it plays these games."""
    with refused(f"legal_only = {str(config.legal_only).lower()}"):
        policy = LanguageAgentPolicy(engine, prompt_map, decoding, legal_only=config.legal_only)
        for game in games:
            policy.check_game(tsmg_of(game))
    return policy


# ---------------------------------------------------------------- episodes


class EpisodeSource:
    """Plays episodes with an engine, and sends it the learner's weights, which have had ``version`` updates.

    ``tasks_of(iteration)`` is for playing ahead; ``check`` is called after every change of the engine's weights, in all
    processes; ``play`` takes the place of the engine's own ``rollout``; ``seated(policies, tasks)`` returns the players
    of tasks. ``lag`` is how many updates behind the weights were, on average over the tokens of the latest batch.
    """

    def __init__(
        self,
        config: MSGRPOConfig,
        engine: Engine,
        model: nn.Module,
        processes: Processes,
        tasks_of: Callable[[int], list[EpisodeTask]],
        seated: Callable[[Policies, Sequence[EpisodeTask]], Policies],
        check: Callable[[], None] | None = None,
        play: Callable[..., Iterator[Episode]] | None = None,
    ) -> None:
        self.config, self.engine, self.model, self.processes = config, engine, model, processes
        self.version, self.lag = 0, 0.0
        self._tasks_of, self._seated, self._check = tasks_of, seated, check
        self._play = engine.rollout if play is None else play
        self._sent = -1
        self._ahead: dict[int, Future[list[Episode]]] = {}  # iteration -> this process's share of its episodes
        self._thread: ThreadPoolExecutor | None = None
        self._stop = threading.Event()

    def renew(self, version: int) -> None:
        """Note that the learner's weights have changed. The engine gets them now, or when it has played what it plays.

        If it can't take them, it is tried again before anything is played, when the iteration is whole and can be kept.
        """
        self.version, self._sent = version, -1
        if not self.config.staleness:
            with suppress(RolloutError):
                self._send()

    def play(self, policies: Policies, tasks: Sequence[EpisodeTask]) -> list[Episode]:
        """Play episodes by the newest weights, after those ahead, in the tasks' order; every process plays its part."""
        self.settle()
        episodes = self._together(self._mine(self._seated(policies, tasks), tasks), tasks)
        for episode in episodes:
            if episode.error is not None:
                raise RolloutError(f"{episode.scenario}, seed {episode.seed}, failed: {episode.error}")
        return episodes

    def play_to_learn(self, policy: LanguageAgentPolicy, tasks: Sequence[EpisodeTask], iteration: int) -> list[Episode]:
        """Play the episodes that an iteration learns from; with staleness, those of the next ones are begun as well."""
        if not self.config.staleness:
            episodes = self.play(policy, tasks)
        else:
            if iteration not in self._ahead:
                self._order(policy, iteration)
            mine = self._ahead.pop(iteration).result()
            last = min(iteration + self.config.staleness, self.config.iterations - 1)
            for coming in range(iteration + 1, last + 1):
                if coming not in self._ahead:
                    self._order(policy, coming)
            episodes = self._together(mine, tasks)
        self.lag = updates_behind(episodes, self.version, self.config.staleness, self.engine.name)
        return episodes

    def drop(self) -> None:
        """Stop what is being played ahead and forget it."""
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
        tasks, version = self._tasks_of(iteration), self.version
        policies = self._seated(policy, tasks)  # the checkpoints of now

        def stop_if_dropped(task: EpisodeTask, step: Step) -> None:
            if self._stop.is_set():
                raise RolloutError("the episodes that were played ahead were dropped")

        def work() -> list[Episode]:
            if copied:
                self.engine.update_weights(iter(copied), version)
            copied.clear()
            return self._mine(policies, tasks, stop_if_dropped)

        self._ahead[iteration] = self._thread.submit(work)

    def settle(self) -> None:
        """Let everything that was ordered be played, and give the engine the newest weights if it lacks them."""
        for ordered in self._ahead.values():
            ordered.exception()  # if there is one, it is raised when the batch is wanted
        if self._sent != self.version:
            self._send()

    def _mine(self, policies: Policies, tasks: Sequence[EpisodeTask], on_step: Any = None) -> list[Episode]:
        mine = tasks[self.processes.rank :: self.processes.count]
        self.engine.forget()
        for policy in all_policies(policies):
            if isinstance(policy, LanguageAgentPolicy) and isinstance(policy.model, TransformersModel):
                policy.model.forget()
        at_once = self.config.rollout_batch or max(1, len(mine))
        return list(self._play(policies, mine, max_concurrency=at_once, on_step=on_step))

    def _together(self, mine: list[Episode], tasks: Sequence[EpisodeTask]) -> list[Episode]:
        by_seed = {episode.seed: episode for part in self.processes.gather(mine) for episode in part}
        return [by_seed[task.seed] for task in tasks]

    def _send(self) -> None:
        with self.processes.whole_weights():
            self.engine.update_weights(merged_weights(self.model), self.version)
        if self.engine.shared:
            self.processes.wait()  # no process asks before the first one has brought the weights
        if self._check is not None:
            self._check()
        self._sent = self.version


def updates_behind(episodes: Sequence[Episode], version: int, allowed: int, engine: str) -> float:
    """Return how many updates behind ``version`` the weights were that made the episodes' tokens, on average."""
    behind, tokens = 0, 0
    for episode in episodes:
        own = learners(episode)
        for step in episode.steps:
            turn = step.turn
            if step.player not in own or turn.error is not None or not turn.response_ids:
                continue  # an opponent's, or one that is refused when it is learnt from
            count, ends = len(turn.response_ids), [0, *(span.stop for span in turn.weights)]
            if [span.start for span in turn.weights] != ends[:-1] or ends[-1] != count:
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


def layout_of(episode: Episode) -> str:
    """Return the digest of what the players of an episode saw first."""
    first = {step.player: step.observation for step in episode.steps if step.index == episode.steps[0].index}
    return layout_digest("\n".join(first.values()))  # a player inside another may have several steps in a round


def layout_digest(observation: str) -> str:
    """Return a short digest of a layout, by what is seen of it."""
    return blake2b(observation.encode(), digest_size=8).hexdigest()


# ---------------------------------------------------------------- an iteration's rollouts

Play = Callable[[LanguageAgentPolicy, Sequence[EpisodeTask]], list[Episode]]
"""``policy, tasks -> complete episodes in the tasks' order``, shared by all processes."""

_FRESH = 0x5EED  # keeps the noise of fresh rollouts apart from that of the episodes themselves


@dataclass(frozen=True)
class HintedPromptMap(PromptMap):
    """A prompt map that puts ``hint(request)``, if there is one, before the observation of each decision."""

    hint: Callable[[TurnRequest], str] = lambda request: ""

    def __call__(self, request: TurnRequest) -> Prompt:
        told = self.hint(request)
        return super().__call__(replace(request, observation=f"{told}\n\n{request.observation}") if told else request)


class Rollouts:
    """Everything that one iteration plays; see :class:`agents.msgrpo.tasks.Iteration`.

    ``tokens`` counts the response tokens of fresh rollouts; ``played`` has all other trajectories that were played.
    """

    def __init__(
        self,
        config: MSGRPOConfig,
        games: Sequence[Game],
        number: int,
        policy: LanguageAgentPolicy,
        play: Play,
        prompt_values: Callable[[Sequence[EpisodeTask]], Floats] | None = None,
    ) -> None:
        self.config, self.number, self.policy = config, number, policy
        self.tokens = 0
        self.played: list[Trajectory] = []
        self._games, self._play, self._prompt_values = games, play, prompt_values
        # every fresh episode of an iteration has a seed of its own, whatever method asks for it
        self._next_seed = int(np.random.SeedSequence((config.seed, number, _FRESH)).generate_state(1)[0])

    @property
    def rollouts(self) -> "Rollouts":
        return self

    def tasks(self, part: int = 0) -> list[EpisodeTask]:
        return training_tasks(self.config, self._games, self.number, part)

    def play(
        self, tasks: Sequence[EpisodeTask], hint: Hint | None = None, mask: Mask | None = None
    ) -> list[Trajectory]:
        policy = self.policy
        if hint is not None or mask is not None:
            prompts, free = policy.prompt_map, policy.legal_only
            if hint is not None:
                prompts = HintedPromptMap(prompts.mode, prompts.history_turns, prompts.texts, hint)
            legal = free if mask is None else lambda each: mask(each) or (each.legal_actions if free else ())
            with refused(f"task_sampling = {self.config.task_sampling!r} masks actions"):
                policy = LanguageAgentPolicy(policy.model, prompts, policy.decoding, policy.name, legal_only=legal)
        trajectories = trajectories_of(self._play(policy, tasks), tasks)
        if hint is not None:
            trajectories = [replace(each, hinted=True) for each in trajectories]
        self.played += trajectories
        return trajectories

    def prompt_values(self, tasks: Sequence[EpisodeTask]) -> Floats:
        if self._prompt_values is None:
            raise RuntimeError('there is no critic: a method that asks for values declares it: needs = {"values"}')
        return self._prompt_values(tasks)

    def returns_from(self, starts: Sequence[Start], count: int) -> Floats:
        refuse_history(self.policy)
        if self.config.reward != "game":
            raise ConfigError(
                f"reward = {self.config.reward!r} with credit by fresh episodes, which the game alone pays: accepted "
                "is reward = 'game', or another method of credit"
            )
        tasks = []
        for start in starts:
            task, begin = start.task, EpisodeStart(start.state, start.elapsed_steps)
            tasks += [
                EpisodeTask(task.scenario, task.env_id, seed, None, task.kwargs, (_FRESH,), begin, team=task.team)
                for seed in range(self._next_seed, self._next_seed + count)
            ]
            self._next_seed += count
        episodes = self._play(self.policy, tasks)
        if failed := next((episode.error for episode in episodes if episode.error is not None), None):
            raise RolloutError(f"a fresh rollout failed: {failed}")
        for episode in episodes:
            own = learners(episode)
            self.tokens += sum(len(step.turn.response_ids or ()) for step in episode.steps if step.player in own)
        players = [start.player for start in starts for _ in range(count)]
        returns = [episode.returns[player] for episode, player in zip(episodes, players, strict=True)]
        return np.array(returns, dtype=np.float64).reshape(len(starts), count)


def completed(
    trajectories: Sequence[Trajectory],
    needs: Collection[str],
    scores_of: Callable[[Sequence[TokenRow]], Sequence[Sequence[Tensor]]],
    critic: Beside | None = None,
    segmenter: Segmenter | None = None,
) -> list[Trajectory]:
    """Return the trajectories with what ``needs`` names, and with values and segments.

    ``scores_of`` computes log-probabilities and entropies of every response token; the sampler's are kept.
    """
    if segmenter is not None:
        trajectories = [replace(each, segments=tuple(map(segmenter, each.response_ids))) for each in trajectories]
    if critic is not None:
        trajectories = critic.complete(trajectories)
    missing = "old_logprobs" in needs and any(each.old_logprobs is None for each in trajectories)
    if not missing and "entropies" not in needs:
        return list(trajectories)
    rows = [row for each in trajectories for row in each.rows]
    scores = iter(scores_of(rows))
    result = []
    for each in trajectories:
        told = list(islice(scores, len(each)))
        old = each.old_logprobs or tuple(logprobs.numpy() for logprobs, _ in told)
        entropies = np.array([float(entropies.mean()) for _, entropies in told])
        result.append(replace(each, old_logprobs=old, entropies=entropies))
    return result
