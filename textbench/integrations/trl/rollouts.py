"""Every step a sample of its own: episodes without growing histories for ``GRPOTrainer(rollout_func=...)``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.episode import Episode, EpisodeTask
from agents.load import load_agent
from agents.loop.live import environment_of
from agents.loop.rollout import rollout
from agents.loop.session import Opponents
from agents.models.base import CLOSE_TAG, Decoding
from agents.models.local.transformers import TransformersModel
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap
from agents.turn import Policy
from textbench.integrations.starts import SEEDS, TRAINED_WITH, Start, figures, list_starts, rows_of
from textgames.extras import install_command

if TYPE_CHECKING:
    from trl import GRPOTrainer

SELF_PLAY = "self"
"""The value of ``opponents`` with which the model that is trained plays the other seats, too."""

_DEFAULTS: Mapping[str, Any] = {"use_vllm": False, "min_p": None, "repetition_penalty": 1.0}
_REWARD = "return_of_episode"


def start_dataset(scenario: str, starts: int = 64, **options: Any) -> Any:
    """Make a ``datasets.Dataset`` of the starts of :func:`textbench.integrations.starts.list_starts`, with its options.

    TRL repeats every row ``num_generations`` times, so a group's members share their start, and gives the columns
    ``scenario``, ``layout_seed`` and ``seat`` to an environment's ``reset``. A ``rollout_func`` is given the prompts
    alone, so their messages, which are empty as the game writes them, have the columns too, under ``start``.
    """
    try:
        from datasets import Dataset
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.name} is not installed: {install_command('trl')}") from error
    found = list_starts(scenario, starts, **options)
    rows = rows_of(found)
    for start, row in zip(found, rows, strict=True):
        row["prompt"][0]["start"] = start._asdict()
    return Dataset.from_list(rows)


def start_of(prompt: Sequence[Mapping[str, Any]] | str) -> Start:
    """Return the start that a prompt of :func:`start_dataset` stands for."""
    if not isinstance(prompt, str) and isinstance(start := prompt[-1].get("start"), Mapping):
        return Start(**start)
    raise ValueError(f"{prompt!r} doesn't say which start it stands for: make train_dataset by start_dataset")


class StepRollouts:
    """Plays the episodes of a batch, and makes samples of their steps.

    ::

        trainer = GRPOTrainer(
            "MODEL",
            reward_funcs=episode_return,
            rollout_func=StepRollouts(format_penalty=1.0),
            train_dataset=start_dataset("frozen-lake"),
            args=GRPOConfig(num_generations=8, scale_rewards="group"),
        )

    TRL wants one sample for every row of the batch. So every episode gives ``steps_per_episode`` of them, drawn from
    its steps without replacement (an episode that has fewer gives some twice), and a group is ``num_generations /
    steps_per_episode`` episodes. The mean that TRL subtracts is then that of the episodes' returns, whatever their
    lengths; the deviation that it divides by is that of the samples. MS-GRPO (arXiv 2508.10839) learns from every step;
    here all episodes weigh the same, and not in proportion to their lengths.

    The model is sampled in this process, with the trainer's temperature, top-p and ``max_completion_length``.

    Args:
        mode: the response mode: ``"think"``, ``"direct"``, or one of the prompt map's texts.
        steps_per_episode: how many samples an episode gives.
        opponents: who plays the other seats of a game of several players: an agent, ``{player: agent}``, or
            ``"self"``, the model itself. With ``"self"`` a group still learns as one seat, that of its row.
        prompt_map: makes the prompts, in place of ``mode``.
        stop: strings that end a response.
        seed: of transitions, of sampling and of which steps are drawn.
        **settings: of the environment, in place of the scenario's: ``format_penalty=1.0``, ``size=6``.

    Raises:
        ValueError: a number of steps below 1, an unknown mode or agent.
    """

    def __init__(
        self,
        *,
        mode: str = "think",
        steps_per_episode: int = 1,
        opponents: Opponents = "random",
        prompt_map: PromptMap | None = None,
        stop: tuple[str, ...] = (CLOSE_TAG,),
        seed: int = 0,
        **settings: Any,
    ) -> None:
        if steps_per_episode < 1:
            raise ValueError(f"steps_per_episode is a whole number of at least 1, got {steps_per_episode!r}")
        self.prompt_map = PromptMap(mode) if prompt_map is None else prompt_map
        self.steps_per_episode, self.stop, self.seed, self.settings = steps_per_episode, stop, seed, settings
        self._opponents = {
            seat: load_agent(agent) if isinstance(agent, str) and agent != SELF_PLAY else agent
            for seat, agent in (opponents if isinstance(opponents, Mapping) else {"": opponents}).items()
        }
        self._calls = 0
        self._policy: tuple[Any, LanguageAgentPolicy] | None = None
        self.episodes: list[Episode] = []
        """Those of the last batch, in the order of its rows."""

    def __call__(self, prompts: Sequence[Any], trainer: "GRPOTrainer") -> dict[str, list[Any]]:
        """Play the episodes of a batch, and return its samples with what :func:`episode_return` has to know of them.

        Raises:
            ValueError: a batch that can't be cut into episodes, or a setting of the trainer that isn't followed here.
            RuntimeError: an episode that couldn't be played, as when a prompt is too long for the model.
        """
        count, of_rows = self.steps_per_episode, [start_of(prompt) for prompt in prompts]
        blocks = [of_rows[at : at + count] for at in range(0, len(of_rows), count)]
        if any(len(block) != count or len(set(block)) > 1 for block in blocks):
            raise ValueError(
                f"an episode gives steps_per_episode={count} samples, so num_generations, and the samples of a batch "
                f"on each process ({len(of_rows)} here), must be multiples of {count}"
            )
        starts = [block[0] for block in blocks]
        rng = np.random.default_rng(
            (self.seed, trainer.state.global_step, trainer.accelerator.process_index, self._calls)
        )
        self._calls += 1
        self.episodes = self._play(starts, rng, self._policy_of(trainer))
        rows: dict[str, list[Any]] = {name: [] for name in _FIELDS}
        for start, episode in zip(starts, self.episodes, strict=True):
            for row in self._samples(episode, start.seat, rng, trainer.processing_class.eos_token_id):
                for name in _FIELDS:
                    rows[name].append(row[name])
        return rows

    def _play(self, starts: Sequence[Start], rng: np.random.Generator, model: Policy) -> list[Episode]:
        """Return an episode for every start, each with transitions of its own."""
        seeds = rng.choice(SEEDS, size=len(starts), replace=False).tolist()
        groups: dict[tuple[str, str], list[EpisodeTask]] = {}
        for start, seed in zip(starts, seeds, strict=True):
            settings = TRAINED_WITH | self.settings
            task = EpisodeTask.of(start.scenario, seed, layout_seed=start.layout_seed, **settings)
            groups.setdefault((start.seat, task.scenario), []).append(task)
        played: dict[int, Episode] = {}
        for (seat, scenario), tasks in groups.items():
            policies = self._policies(environment_of(tasks[0]).game.players, seat, model)
            for episode in rollout(policies, tasks, max_concurrency=len(tasks)):
                if episode.error is not None:
                    raise RuntimeError(f"an episode of {scenario} can't be played: {episode.error}")
                played[episode.seed] = episode
        return [played[seed] for seed in seeds]

    def _policies(self, players: Sequence[str], seat: str, model: Policy) -> dict[str, Policy]:
        policies = {seat: model}
        for player in players:
            if player != seat:
                agent = self._opponents.get(player, self._opponents.get(""))
                if agent is None:
                    raise ValueError(
                        f"opponents has no agent for {player}, where {seat} is trained: it has "
                        f"{', '.join(self._opponents)}; choose the seats, start_dataset(..., seats=['{player}'])"
                    )
                policies[player] = model if isinstance(agent, str) else agent
        return policies

    def _samples(self, episode: Episode, seat: str, rng: np.random.Generator, eos_id: int) -> Iterator[dict[str, Any]]:
        """Yield the rows of an episode, of steps that are drawn from those of the seat."""
        steps, told = episode.steps_of(seat), figures(episode, seat)
        of_episode = {_REWARD: episode.returns[seat], "episode_length": told.pop("steps"), **told}
        for index in range(self.steps_per_episode):
            if index % max(1, len(steps)) == 0:
                order = rng.permutation(len(steps))
            # a player that was out before it was asked has a return, which counts in its group, and nothing to learn
            # from: a token that the mask leaves out
            values: tuple[Any, ...] = [eos_id], [eos_id], [0.0], [0]
            if steps:
                turn = steps[order[index % len(steps)]].turn
                assert turn.prompt_ids is not None
                assert turn.response_ids
                assert turn.logprobs is not None
                values = [*turn.prompt_ids], [*turn.response_ids], [*turn.logprobs], [1] * len(turn.response_ids)
            yield of_episode | dict(zip(_TOKENS, values, strict=True))

    def _policy_of(self, trainer: "GRPOTrainer") -> LanguageAgentPolicy:
        if self._policy is None or self._policy[0] is not trainer:
            for name, followed in _DEFAULTS.items():
                if getattr(trainer, name) != followed:
                    raise ValueError(f"StepRollouts samples with {name}={followed}, got {getattr(trainer, name)!r}")
            if trainer.top_k:
                raise ValueError(f"StepRollouts samples with top_k=0, from the whole vocabulary, got {trainer.top_k!r}")
            if trainer.mask_truncated_completions and self.stop:
                raise ValueError(
                    "mask_truncated_completions would leave out every response that ends at a stop string, "
                    f"without an end-of-sequence token: set it to False, or give stop=(); stop is {self.stop!r}"
                )
            model = TransformersModel(trainer.accelerator.unwrap_model(trainer.model), trainer.processing_class)
            decoding = Decoding(trainer.temperature, trainer.top_p, trainer.max_completion_length, self.stop)
            self._policy = trainer, LanguageAgentPolicy(model, self.prompt_map, decoding)
        return self._policy[1]


_TOKENS = ("prompt_ids", "completion_ids", "logprobs", "env_mask")
_FIELDS = (*_TOKENS, _REWARD, "success", "episode_length", "invalid_rate")


def episode_return(*, return_of_episode: Sequence[float], log_metric: Any = None, **columns: Any) -> list[float]:
    """Return the return of each sample's episode, format penalties included: TRL's reward for :class:`StepRollouts`.

    It also logs ``success``, ``episode_length`` and ``invalid_rate``, as means over the samples.
    """
    if log_metric is not None:
        for name in ("success", "episode_length", "invalid_rate"):
            log_metric(name, float(np.mean(columns[name])))
    return list(return_of_episode)
