"""Task samplers that play from other states than the start: exact, as rules are pure, for the cost of their tokens."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from math import ceil
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeStart, EpisodeTask
from agents.msgrpo import ConfigError, Iteration, configured
from agents.msgrpo.credit import Trajectory, refuse_history, rounds_before, task_of
from textgames import rounds_of_play

_BRANCHES = 0xB2A7C4  # keeps the noise of branches apart from that of the episodes
_LONGEST_WALK = 100  # rounds of a walk in a game without a limit of steps
_FURTHER_WALKS = 50  # walks that are tried when those asked for lead nowhere


def refuse_several(task: EpisodeTask, name: str, done: str) -> None:
    """Raise a ConfigError if a task's game has several players who play to learn."""
    if len(textgames.parallel_env(task.env_id, **task.kwargs).possible_agents) > 1:
        raise ConfigError(
            f"task_sampling = {name!r} can't be used on {task.scenario}, which has several players: an episode is "
            f"{done} one player's steps; accepted: games of one player, of others against opponents"
        )


@configured
class ExploringStarts:
    """A share of the groups begins in a random state that can be reached, and not at the start.

    A state that random legal play reaches from the group's start (Sutton and Barto, "Reinforcement Learning", section
    5.3). All episodes of the group begin there, so its returns are compared like any other group's.
    """

    share: float = Field(0.5, ge=0, le=1)
    """The share of an iteration's groups that begin in such a state."""
    walks: int = Field(1, ge=1)
    """Random walks that look for states. The start is drawn evenly from the different states that they visit before
    the game is over: with one walk it is a random place of it, with many walks states that are rarely reached by
    chance are drawn as often as others."""
    walk_length: int = Field(0, ge=0)
    """Most rounds of a walk; 0: as many as an episode may have."""
    count_steps: bool = False
    """Count the rounds that were walked as played, towards the limit of steps."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        return iteration.play(self.tasks(iteration, rng))

    def tasks(self, iteration: Iteration, rng: np.random.Generator) -> list[EpisodeTask]:
        """Return the iteration's ordinary tasks, some groups of which begin elsewhere; seeds and their order stay."""
        tasks, size = iteration.tasks(), iteration.config.group_size
        groups = len(tasks) // size
        chosen = rng.choice(groups, size=round(self.share * groups), replace=False)
        for group in sorted(chosen.tolist()):
            members = range(group * size, (group + 1) * size)
            start = self.start(tasks[members[0]], rng)
            for index in members:
                tasks[index] = replace(tasks[index], start=start)
        return tasks

    def start(self, task: EpisodeTask, rng: np.random.Generator) -> EpisodeStart | None:
        """Return a random start for the group of a task; ``None`` if every walk leads to the game's end alone."""
        env = textgames.parallel_env(task.env_id, **task.kwargs)
        limit = env.rules.max_steps
        longest = self.walk_length or limit or _LONGEST_WALK
        if limit is not None:
            longest = min(longest, limit - 1)
        env.reset(seed=task.seed, options={"layout_seed": task.layout_seed})
        initial = env.state()
        found: dict[Any, int] = {}  # {state: the round in which it was first met}
        for walk in range(self.walks + _FURTHER_WALKS):
            if walk >= self.walks and found:  # further ones are for walks that were over, or back, at once
                break
            for each in rounds_of_play(env.game, initial, longest, rng):
                if not each.over and each.next_state != initial:
                    found.setdefault(each.next_state, each.played + 1)
        if not found:
            return None
        state, rounds = list(found.items())[int(rng.integers(len(found)))]
        return EpisodeStart(state, rounds if self.count_steps else 0)


@configured
class Branches:
    """Samples so many actions in every visited state, besides playing the ordinary episodes.

    The branches of a state are one round each and form a group; with the visits themselves they are ``actions`` samples
    of what the policy does there, for methods that compare actions in a state, such as ``direct_apo``.
    """

    actions: int = Field(4, ge=2)
    """Samples of the policy in each visited state, the episodes' own visits among them."""
    most_states: int = Field(0, ge=0)
    """Most states of an iteration in which further actions are sampled, drawn evenly from those visited; 0: all."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        episodes = iteration.play(iteration.tasks())
        branches = self.tasks(iteration, episodes, rng)
        return episodes + (iteration.play(branches) if branches else [])

    def tasks(self, iteration: Iteration, episodes: list[Trajectory], rng: np.random.Generator) -> list[EpisodeTask]:
        """Return the branches of the states that the episodes visited, as many as each of them still lacks."""
        visits: Counter[tuple[Any, Any, int]] = Counter()
        games: dict[Any, EpisodeTask] = {}
        counted: set[tuple[int, int]] = set()
        for each in episodes:
            task = task_of(each)
            game = task.scenario, task.team
            games.setdefault(game, task)
            for t, state in enumerate(each.states):
                seen = (task.seed, each.rounds[t])
                if seen not in counted:  # players who act at once are in one state together
                    counted.add(seen)
                    visits[game, state, rounds_before(each, t)] += 1
        places = list(visits)
        if self.most_states and len(places) > self.most_states:
            places = [places[i] for i in sorted(rng.choice(len(places), self.most_states, replace=False).tolist())]
        noise = (iteration.config.seed, iteration.number, _BRANCHES)
        seed = int(rng.integers(2**31))
        tasks: list[EpisodeTask] = []
        for game, state, elapsed in places:
            begun = replace(games[game], layout_seed=None, chance_seed=None, noise=noise)
            begun = replace(begun, start=EpisodeStart(state, elapsed, rounds=1))
            for _ in range(self.actions - visits[game, state, elapsed]):
                tasks.append(replace(begun, seed=seed + len(tasks)))
        return tasks


_TREES = 0x72EE5  # keeps the noise of branches apart from that of the chains


class Fork(NamedTuple):
    """The beginning of a branch: the state in which this trajectory's step t was taken."""

    trajectory: Trajectory
    t: int


@configured
class Trees:
    """Plays a part of each group from its start, and lets the rest branch off what was played.

    Two published samplers of language agents are settings of this one:

    * **Tree-GRPO** (arXiv 2509.21240), ``choose = "random"``: steps of each chain's tree are drawn evenly, and a branch
      keeps the step that was drawn and continues after it.
    * **AT2PO** (arXiv 2601.04767; zzfoutofspace/ATPO), ``choose = "entropy"``: the steps of the group of which the
      policy was least sure are taken again. A step's entropy is estimated by ``-mean_k log pi`` of its tokens.

    A branch begins exactly in the state of its step, with as many rounds left. What comes out are whole episodes, so
    every method of credit can be used; ``tree`` and ``nodes`` of a trajectory tell what is shared. As in the authors'
    code the last step of an episode isn't branched off; an episode of one step is taken again.
    """

    chains: int = Field(0, ge=0)
    """Episodes of a group that are played from its start; 0: half of the group. All others are branches."""
    rounds: int = Field(1, ge=1)
    """In how many rounds the branches are played; those of a later round may branch off those of an earlier one."""
    choose: Literal["random", "entropy"] = "random"
    """Branches begin after steps that are drawn evenly in each chain's tree, or at the steps of the group of which the
    policy was least sure, which are taken again."""
    crowding: float = Field(0.05, ge=0)
    """With entropy: taken off a step, in nats a token, for each further sample that its place has already."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        refuse_history(iteration.rollouts.policy)
        tasks, size = iteration.tasks(), iteration.config.group_size
        chains = self.chains or ceil(size / 2)
        if chains > size:
            raise ConfigError(
                f"[tasks.tree] chains = {chains} can't be used with group_size = {size}; accepted: 1 to {size}"
            )
        first = []
        for played in iteration.play([task for k, task in enumerate(tasks) if k % size < chains]):
            own = task_of(played).seed
            first.append(replace(played, tree=own, nodes=tuple((own, t) for t in range(len(played)))))
        groups = [first[k : k + chains] for k in range(0, len(first), chains)]
        seed = int(rng.integers(2**31))
        for number in range(self.rounds):
            done, due = ((size - chains) * k // self.rounds for k in (number, number + 1))
            places = [(group, place) for group in groups for place in self._places(group, done, due - done, rng)]
            if not places:
                continue
            noise = (iteration.config.seed, iteration.number, _TREES)
            branches = [
                replace(
                    task_of(place.trajectory),
                    seed=seed + k,
                    layout_seed=None,
                    noise=noise,
                    start=EpisodeStart(place.trajectory.states[place.t], rounds_before(*place)),
                )
                for k, (_, place) in enumerate(places)
            ]
            seed += len(branches)
            for (group, place), rest in zip(places, iteration.play(branches), strict=True):
                group.append(_joined(place, rest))
        return [each for group in groups for each in group]

    def _places(self, group: list[Trajectory], done: int, count: int, rng: np.random.Generator) -> list[Fork]:
        """Return where a group's next ``count`` branches begin, ``done`` having been played."""
        if self.choose == "entropy":
            if any(each.old_logprobs is None for each in group):
                raise ConfigError(
                    "choose = 'entropy' needs an engine that tells the log-probabilities of what it samples, and this "
                    "one doesn't: set choose = 'random' in [tasks.tree]"
                )
            steps = list(_steps(group).values())
            samples = Counter(map(_parent, steps))
            scores = [each.trajectory.surprise(each.t) - self.crowding * (samples[_parent(each)] - 1) for each in steps]
            order = np.argsort(-np.array(scores), kind="stable").tolist()
            return [steps[order[k % len(order)]] for k in range(count)]
        trees: dict[Hashable, list[Trajectory]] = {}
        for each in group:
            trees.setdefault(each.tree, []).append(each)
        shares = Counter(list(trees)[k % len(trees)] for k in range(done, done + count))
        places: list[Fork] = []
        for tree, share in shares.items():
            kept = list(_steps(trees[tree], after=True).values())
            drawn = rng.choice(len(kept), size=share, replace=share > len(kept)).tolist()
            places += [kept[k] for k in drawn]
        return places

    def check(self, task: EpisodeTask) -> None:
        refuse_several(task, "tree", "branched by")


def _parent(place: Fork) -> Hashable:
    """Return the step before a place, which tells it from others; ``None`` at the start of the group."""
    return place.trajectory.nodes[place.t - 1] if place.t else None


def _steps(trajectories: list[Trajectory], after: bool = False) -> dict[Hashable, Fork]:
    """Return ``{step: its place}`` of the steps that may be branched, once each, or with ``after`` of the next ones."""
    found: dict[Hashable, Fork] = {}
    for each in trajectories:
        for t in range(len(each) - 1):
            at = t + after
            # within a decision that a player around asked several answers for, there is no state to begin from
            if at == 0 or each.rounds[at] != each.rounds[at - 1]:
                found.setdefault(each.nodes[t], Fork(each, at))
    return found or {each.nodes[0]: Fork(each, 0) for each in trajectories}


_OF_STEPS = ("states", "observations", "responses", "actions", "steps_left", "prompt_ids", "response_ids")
"""The tuples of a trajectory that have an entry for each of its steps."""


def _joined(place: Fork, rest: Trajectory) -> Trajectory:
    """Return the whole episode of a branch: the steps before the place, and what was played from there."""
    before, t = place
    own = task_of(rest).seed
    joined: dict[str, Any] = {name: getattr(before, name)[:t] + getattr(rest, name) for name in _OF_STEPS}
    for name in ("rewards", "valid", "cut_off"):
        joined[name] = np.concatenate([getattr(before, name)[:t], getattr(rest, name)])
    joined["old_logprobs"] = None
    if before.old_logprobs is not None and rest.old_logprobs is not None:
        joined["old_logprobs"] = before.old_logprobs[:t] + rest.old_logprobs
    if before.allowed is not None or rest.allowed is not None:
        joined["allowed"] = (before.allowed or (None,) * len(before))[:t] + (rest.allowed or (None,) * len(rest))
    shared: dict[str, Any] = {"group": before.group, "task": before.task, "tree": before.tree}
    nodes = before.nodes[:t] + tuple((own, k) for k in range(len(rest)))
    rounds = before.rounds[:t] + tuple(before.rounds[t] + each for each in rest.rounds)
    return replace(rest, nodes=nodes, rounds=rounds, **shared, **joined)


class Unfinished(NamedTuple):
    """An episode that a later iteration continues: its latest segment, and what it was paid so far."""

    segment: Trajectory
    paid: float


@configured
class TruncatedRollouts:
    """Plays episodes a window at a time, and continues them in later iterations.

    An iteration plays ``groups x group_size`` segments (T-PPO, arXiv 2506.15050). An episode that isn't over keeps its
    place in the batch, and its next segment begins exactly in the state that it has reached, with as many rounds left,
    played by the newest weights. So every step is played once and trained once, and no iteration waits for long
    episodes. With ``credit = "tppo"`` the value behind a cut is that before it, in place of rewards that are still to
    come.

    Our reading: the paper cuts one long response after a number of tokens; here an episode is cut between its rounds. A
    continued segment is a group of its own, unless another one begins in the same state. The log's ``return`` is that
    of a segment; ``whole_return`` and ``whole_success`` are those of the episodes that ended. Unfinished episodes
    aren't in a checkpoint: a resumed run begins others in their places.
    """

    window: int = Field(4, ge=1)
    """Most rounds of an episode in one iteration."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self._unfinished: dict[int, Unfinished] = {}  # by their place in the batch

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        refuse_history(iteration.rollouts.policy)
        segments = iteration.play(self.tasks(iteration))
        ended = []
        for place, segment in enumerate(segments):
            before = self._unfinished.pop(place, None)
            paid = segment.returned() + (before.paid if before else 0.0)
            if segment.terminated or segment.steps_left[-1] == 1:
                ended.append((paid, segment.success))
            else:
                self._unfinished[place] = Unfinished(segment, paid)
        if ended:  # else the latest figures stay
            self.metrics = dict(zip(("whole_return", "whole_success"), np.mean(ended, axis=0).tolist(), strict=True))
        self.metrics |= {"whole_episodes": float(len(ended)), "unfinished": float(len(self._unfinished))}
        return segments

    def tasks(self, iteration: Iteration) -> list[EpisodeTask]:
        """Return an iteration's segments, those of new episodes in places without an unfinished one."""
        tasks, firsts = iteration.tasks(), dict[tuple[str, int | None], EpisodeStart]()
        for place, task in enumerate(tasks):
            if (before := self._unfinished.get(place)) is not None:
                own, segment = task_of(before.segment), before.segment
                elapsed = (own.start.elapsed_steps if own.start else 0) + segment.rounds[-1] + 1
                start = EpisodeStart(segment.end_state, elapsed, self.window)
                own = replace(own, start=start, layout_seed=None)
                tasks[place] = replace(own, seed=task.seed, chance_seed=task.chance_seed, noise=task.noise)
                continue
            layout = task.scenario, task.layout_seed
            if layout not in firsts:
                env = textgames.parallel_env(task.env_id, **task.kwargs)
                env.reset(seed=task.seed, options={"layout_seed": task.layout_seed})
                firsts[layout] = EpisodeStart(env.state(), 0, self.window)
            tasks[place] = replace(task, start=firsts[layout])
        return tasks

    def check(self, task: EpisodeTask) -> None:
        refuse_several(task, "truncated", "cut between")
