"""Task samplers that suit the policy: levels, layouts by a critic, hints for groups that fail, and masks that fade."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeTask, PlannerPlayer, TurnRequest, rollout
from agents.msgrpo import ConfigError, Hint, Iteration, configured
from agents.msgrpo.credit import Batch, Floats, Heads, Trajectory, task_of
from research.improve.programs.players import ALLOWED, opened
from research.improve.programs.sandbox import Call
from textgames import Scenario, known_scenario
from textgames.solving import blind_play


@configured
class LadderSampling:
    """Plays levels, harder ones as the policy gets better.

    It steps up as soon as it keeps, at its level, half of what best play gets above play that doesn't read
    (:mod:`textgames.ladders`), on average over the latest iterations there. Easier levels are still played, so that
    nothing is unlearnt, and so is the next one, whose difficulty shows before it counts.
    """

    start: int = Field(1, ge=1)
    """The level that the run begins at."""
    share: float = Field(0.5, gt=0, le=1)
    """The share of the groups that are of the policy's level, one at least. As many of the others are of the next level
    as of easier ones, which are drawn evenly."""
    window: int = Field(5, ge=1)
    """Iterations at a level whose mean tells whether it is kept."""
    enough: float = Field(0.5, gt=0, le=1)
    """The share of the headroom that has to be kept for the next level."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        self.level = self.start
        self.metrics: dict[str, float] = {}
        self._kept: list[float] = []  # in the iterations at this level
        self._levels: dict[str, tuple[Scenario, ...]] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"level": self.level, "kept": list(self._kept)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.level, self._kept = state["level"], list(state["kept"])

    def games(self, games: Sequence[Scenario | str]) -> list[Scenario]:
        return [level for game in games for level in self.levels(game if isinstance(game, str) else game.name)]

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        tasks = self.tasks(iteration, rng)
        trajectories = iteration.play(tasks)
        kept = float(np.mean([share for each in trajectories if (share := self.share_kept(each)) is not None]))
        self.metrics = {"ladder_level": float(self.level), "ladder_kept": kept}
        self._kept = [*self._kept, kept][-self.window :]
        last = max(map(len, self._levels.values()))
        if len(self._kept) == self.window and np.mean(self._kept) >= self.enough and self.level < last:
            self.level, self._kept = self.level + 1, []
        return trajectories

    def tasks(self, iteration: Iteration, rng: np.random.Generator) -> list[EpisodeTask]:
        """Return the iteration's ordinary tasks, each group at a level; layouts, seeds and their order stay."""
        size, longest, tasks = iteration.config.group_size, iteration.config.max_steps, iteration.tasks()
        groups = len(tasks) // size
        own = max(1, round(self.share * groups))
        first = int(rng.integers(2)) if (groups - own) % 2 else 0  # of an odd number either kind may have one more
        # beside the policy's own level, one half is of the next level, the other of easier ones, if there are any
        drawn = [self.level] * own + [
            self.level + 1 if harder or self.level == 1 else int(rng.integers(1, self.level))
            for harder in ((rng.permutation(groups - own) + first) % 2).tolist()
        ]
        if len({task.scenario for task in tasks}) > 1:  # dealt in turn: the first would always be at the policy's level
            drawn = rng.permutation(drawn).tolist()
        found = []
        for place, task in enumerate(tasks):
            base, levels = known_scenario(task.scenario), self.levels(task.scenario)
            scenario = levels[min(drawn[place // size], len(levels)) - 1]
            around = {name: value for name, value in task.kwargs.items() if base is None or name not in base.kwargs}
            horizon = min(longest or scenario.horizon, scenario.horizon)
            kwargs = {**around, **scenario.kwargs, "max_steps": horizon}
            found.append(replace(task, scenario=scenario.name, env_id=scenario.env_id, kwargs=kwargs))
        return found

    def share_kept(self, trajectory: Trajectory) -> float | None:
        """Return what a trajectory keeps of its level's headroom; ``None`` at another level than the policy's."""
        task = trajectory.task
        scenario = None if task is None else known_scenario(task.scenario)
        if task is None or scenario is None or scenario.level_number != self.level:
            return None
        penalties = task.kwargs.get("format_penalty", 0.0) * int((~trajectory.valid).sum())
        play, rung = blind_play(scenario), scenario.rung
        assert play is not None  # levels are for one player
        assert rung is not None
        assert rung.optimum is not None
        return float((trajectory.returned() + penalties - play.value) / (rung.optimum - play.value))

    def levels(self, name: str) -> tuple[Scenario, ...]:
        """Return the levels of a scenario.

        Raises:
            ConfigError: it has none, or not so many, or they weren't measured.
        """
        if name not in self._levels:
            scenario = known_scenario(name)
            found = () if scenario is None else scenario.levels
            if len(found) < self.start or any(one.rung is None or one.rung.optimum is None for one in found):
                raise ConfigError(
                    f"task_sampling = 'ladder' plays levels that were measured, from level {self.start} on, and "
                    f"{name!r} has {len(found)} of them: choose a scenario of docs/research/ladders.md, or "
                    "another sampler"
                )
            self._levels[name] = found
        return self._levels[name]


HEAD = "difficulty"


@configured
class PCL:
    """Plays the candidate layouts whose expected outcome is nearest to even.

    Those of ``candidates x groups`` layouts with the smallest ``|V - target|`` are played (arXiv 2510.01135), V being
    the critic's value of the initial prompt, which is regressed on the mean returns of the groups that were played. Our
    reading: returns are scaled to [0, 1] by the game's ``return_range``; format penalties below it count as 0. A game
    without bounds is refused.
    """

    candidates: int = Field(4, ge=1)
    """Candidate layouts for each group that is played."""
    target: float = Field(0.5, ge=0, le=1)
    """The value, on a scale from the game's lowest return (0) to its highest (1), that is sought."""

    needs: ClassVar[frozenset[str]] = frozenset({"values"})
    asks_alone: ClassVar[bool] = True
    heads: ClassVar[Heads] = {HEAD: "step"}

    def __post_init__(self) -> None:
        self._bounds = dict[str, tuple[float, float]]()  # of the scenarios met so far

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        return iteration.play(self.tasks(iteration))

    def tasks(self, iteration: Iteration) -> list[EpisodeTask]:
        """Return the iteration's tasks with the chosen layouts in place of their own; seeds and noise stay."""
        size, tasks = iteration.config.group_size, iteration.tasks()
        parts = [iteration.tasks(part)[::size] for part in range(self.candidates)]
        layouts = {(task.scenario, task.layout_seed): task for part in parts for task in part}
        found = list(layouts.values())
        nearest = np.argsort(np.abs(iteration.prompt_values(found) - self.target), kind="stable")
        chosen = [found[index] for index in nearest[: len(tasks) // size].tolist()]
        return [
            replace(layout, seed=task.seed, noise=task.noise)
            for layout, first in zip(chosen, range(0, len(tasks), size), strict=True)
            for task in tasks[first : first + size]
        ]

    def value_targets(self, batch: Batch) -> Mapping[str, Sequence[Floats]]:
        """Return the critic's targets: at every first step the mean scaled return of its group, else NaN."""
        means: dict[int, float] = {}
        for members in batch.groups.values():
            scaled = []
            for each in [batch.trajectories[index] for index in members]:
                low, high = self.bounds(task_of(each))
                scaled.append(np.clip((each.returned() - low) / (high - low), 0.0, 1.0))
            means |= dict.fromkeys(members, float(np.mean(scaled)))
        targets = []
        for index, each in enumerate(batch.trajectories):
            target = np.full(len(each), np.nan)
            target[0] = means[index]
            targets.append(target)
        return {HEAD: targets}

    def check(self, task: EpisodeTask) -> None:
        self.bounds(task)

    def bounds(self, task: EpisodeTask) -> tuple[float, float]:
        """Return the lowest and the highest return of a task's game.

        Raises:
            ConfigError: the game doesn't tell.
        """
        if task.scenario not in self._bounds:
            known = textgames.parallel_env(task.env_id, **task.kwargs).game.return_range
            if known is None:
                raise ConfigError(
                    f"task_sampling = 'pcl' scales returns by the bounds that a game knows, and {task.scenario} tells "
                    "none (return_range): choose another sampler or another game"
                )
            self._bounds[task.scenario] = known
        return self._bounds[task.scenario]


FRACTIONS = (0.25, 0.5, 0.75)


@configured
class GHPO:
    """Plays groups that fail again, with hints.

    If all of a group fail, it plays again with a part of the solution in its prompts (arXiv 2507.10628). Our reading
    for games: the solution is what the planner does from the group's initial state, which takes it L rounds. At
    fraction f the prompts of the first ``ceil(f L)`` rounds name the planner's action in the state that the player is
    in. The last rerun replaces the group, and is learnt from with the hinted prompts. Evaluation never sees a hint.
    """

    hint: str = "The best action here is {action}."
    """The line of a prompt above its observation; {action} stands for the planner's action."""
    most_reruns: int = Field(3, ge=0, le=len(FRACTIONS))
    """Reruns of a group that still fails: with 25%, 50% and 75% of the solution."""

    needs: ClassVar[frozenset[str]] = frozenset()
    asks_alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if "{action}" not in self.hint:
            raise ValueError(f"hint = {self.hint!r} can't be used: it must contain {{action}}")
        self._planner = PlannerPlayer()

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        groups = by_label(iteration.play(iteration.tasks()))
        for level, fraction in enumerate(FRACTIONS[: self.most_reruns], 1):
            failed = [members for members in groups.values() if not any(each.success for each in members)]
            if not failed:
                break
            tasks = [task_of(each) for members in failed for each in members]
            again = [replace(task, noise=(*task.noise, level)) for task in tasks]  # the transitions' chances stay
            groups |= by_label(iteration.play(again, self.hint_of(again, fraction)))
        return [each for members in groups.values() for each in members]

    def hint_of(self, tasks: Sequence[EpisodeTask], fraction: float) -> Hint:
        """Return the hints at a fraction of the solution, for episodes of these tasks."""
        firsts = {task.layout_seed: task for task in reversed(tasks)}
        solved = {episode.layout_seed: len(episode.steps) for episode in rollout(self._planner, firsts.values())}
        rounds = {task.seed: ceil(fraction * solved[task.layout_seed]) for task in tasks}

        def hint(request: TurnRequest) -> str:
            seed, played = request.seed[0], request.seed[-2]  # (the episode's, ..., the round, the player's number)
            told = self._planner.choose(request).action if played < rounds[seed] else ""
            return self.hint.format(action=told) if told else ""

        return hint

    def check(self, task: EpisodeTask) -> None:
        game, why = textgames.parallel_env(task.env_id, **task.kwargs).game, ""
        if len(game.players) > 1:
            why = "it has several players"
        elif not game.success_means:
            why = "it counts no episode as a success"
        else:
            try:
                self._planner.check_game(game)
            except ValueError as error:
                why = str(error)
        if why:
            raise ConfigError(f"task_sampling = 'ghpo' can't be used with {task.scenario}: {why}")


def by_label(trajectories: list[Trajectory]) -> dict[Hashable, list[Trajectory]]:
    """Return the trajectories of each group."""
    return {label: [trajectories[i] for i in members] for label, members in Batch(trajectories).groups.items()}


_MASKS = 0xCA3E1  # keeps what decides whether a decision is masked apart from its other randomness


@configured
class FadingMask:
    """Holds a falling share of decisions to what a program allows.

    With probability ``epsilon_k`` a decision of iteration k is held to the actions that ``allowed(observation,
    legal_actions)`` of a program returns, as ``masked(AGENT)`` has it in play (arXiv 2502.11896); epsilon falls evenly
    to 0. The mask is one of tokens: the policy samples among those that begin an allowed answer. Evaluations play
    without a mask.

    The sampler's log-probabilities are those under the mask. With ``among = "all"`` the learner's are without it, so
    that the ratio is the policy's own share in what the mask made it do, and allowed actions become likelier than
    others. If ``old_logprobs`` are recomputed, as ``auto`` does with several minibatches or passes, the ratio begins at
    1, and masked decisions weigh as much as the policy's own. With ``"allowed"`` both are among the same tokens, on
    policy, and a forced action teaches nothing.

    Our reading: the paper masks ranges of continuous actions, by programs that a language model writes; here the
    programs are yours, and an action is allowed or not. The log's ``return`` is that of play with the mask; ``masked``
    is the share of decisions that it held.
    """

    program: str = ""
    """A file with ``allowed(observation, legal_actions)``, which runs in a sandbox."""
    epsilon: float = Field(1.0, ge=0, le=1)
    """The share of decisions that are masked in the first iteration."""
    fade: float = Field(0.5, gt=0, le=1)
    """The share of the run's iterations after which nothing is masked."""

    among: Literal["all", "allowed"] = "all"
    """The tokens among which the update takes the probabilities of masked decisions."""

    needs: ClassVar[frozenset[str]] = frozenset()
    asks_alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.metrics: dict[str, float] = {}

    def epsilon_of(self, iteration: Iteration) -> float:
        """Return ``epsilon_k = epsilon max(0, 1 - k / (fade K))`` in iteration k of K."""
        return self.epsilon * max(0.0, 1 - iteration.number / (self.fade * int(iteration.config.iterations)))

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        if iteration.config.engine == "ray":
            raise ConfigError(
                "engine = 'ray' with task_sampling = 'camel', whose program runs here: accepted are others"
            )
        if iteration.config.legal_only and self.among == "all":
            raise ConfigError(
                "legal_only = true with [tasks.camel] among = 'all', which takes unmasked decisions for free: "
                "accepted is among = 'allowed', or legal_only = false"
            )
        epsilon, asked, held = self.epsilon_of(iteration), 0, 0

        def mask(request: TurnRequest) -> tuple[str, ...]:
            nonlocal asked, held
            drawn = np.random.default_rng([_MASKS, *request.seed]).random() < epsilon
            names = self.allowed(request) if drawn else ()
            asked, held = asked + 1, held + bool(names)
            return names

        played = iteration.play(iteration.tasks(), mask=mask if epsilon else None)
        self.metrics = {"epsilon": epsilon, "masked": held / max(1, asked)}
        return [replace(each, allowed=None) for each in played] if self.among == "all" else played

    def allowed(self, request: TurnRequest) -> tuple[str, ...]:
        """Return the legal actions that the program allows; a ConfigError if it fails."""
        call = Call("allowed", (request.observation, list(request.legal_actions)), request.seed)
        (answer,) = self._sandbox.calls([call])
        if answer.error or not isinstance(answer.value, list):
            wrong = answer.error or f"{ALLOWED} returned {answer.value!r:.80}"
            raise ConfigError(f"[tasks.camel] program = {self.program!r}: {wrong}; accepted is a list of names")
        names = {str(name).strip().casefold() for name in answer.value}
        return tuple(name for name in request.legal_actions if name.casefold() in names)

    def check(self, task: EpisodeTask) -> None:
        wanted = f"accepted is a file with {ALLOWED}: --set tasks.camel.program=FILE"
        if not self.program:
            raise ConfigError(f"task_sampling = 'camel' on {task.scenario} has no program; {wanted}")
        try:
            self._sandbox, _ = opened(self.program, (ALLOWED,), key="camel")
        except (OSError, ValueError) as error:
            raise ConfigError(f"[tasks.camel] program = {self.program!r}: {error}; {wanted}") from error
