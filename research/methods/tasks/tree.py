"""Trees: a group plays a few whole episodes, and the others branch off steps of theirs and are played to their ends.

Two published samplers of language agents are settings of this one:

* **Tree-GRPO** (arXiv 2509.21240), ``choose = "random"``: steps of each chain's tree are drawn evenly, and a branch
  keeps the step that was drawn and continues after it.
* **AT2PO** (arXiv 2601.04767; zzfoutofspace/ATPO), ``choose = "entropy"``: the steps of the group of which the policy
  was least sure are taken again. A step's entropy is estimated by ``-mean_k log pi`` of its tokens.

A branch begins exactly in the state of its step, with as many rounds left. What comes out are whole episodes, so every
method of credit can be used; ``tree`` and ``nodes`` of a trajectory tell what is shared. As in the authors' code the
last step of an episode isn't branched off; an episode of one step is taken again.
"""

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

_TREES = 0x72EE5  # keeps the noise of branches apart from that of the chains


class Fork(NamedTuple):
    """Where a branch begins: in the state in which this trajectory's step t was taken."""

    trajectory: Trajectory
    t: int


@configured
class Trees:
    """Plays a part of each group from its start, and lets the rest branch off what was played."""

    chains: int = Field(0, ge=0)
    """Episodes of a group that are played from its start; 0: half of the group. All others are branches."""
    rounds: int = Field(1, ge=1)
    """In how many rounds the branches are played; those of a later round may branch off those of an earlier one."""
    choose: Literal["random", "entropy"] = "random"
    """Where branches begin: after steps that are drawn evenly in each chain's tree, or at the steps of the group of
    which the policy was least sure, which are taken again."""
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
        if len(textgames.parallel_env(task.env_id, **task.kwargs).possible_agents) > 1:
            raise ConfigError(
                f"task_sampling = 'tree' can't be used on {task.scenario}, which has several players: an episode is "
                "branched by one player's steps; accepted: games of one player, of others against opponents"
            )


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
