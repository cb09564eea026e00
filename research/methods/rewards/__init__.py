"""Reward rules; docs/research/credit/methods.md has their sources and our readings."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from agents import EpisodeTask
from agents.msgrpo import ConfigError, configured
from agents.msgrpo.credit import Batch, Floats, Trajectory, same, task_of
from research.improve.around.reading import MODES, payoffs_in
from textgames import TSMG, game_of


def game_for(each: Trajectory, made: dict[str, TSMG[Any]]) -> TSMG[Any]:
    """Return the game of a trajectory, from those that were ``made`` for a batch (by id and settings) or a new one."""
    task = task_of(each)
    key = repr((task.env_id, sorted(task.kwargs.items())))
    if key not in made:
        made[key] = game_of(task.env_id, **task.kwargs)
    return made[key]


def gains_times(played: Sequence[Trajectory], factors: Floats) -> list[Floats]:
    """Return the rewards of episodes, those above 0 times the episode's factor, (N,)."""
    pairs = zip([each.rewards for each in played], factors, strict=True)
    return [np.where(rewards > 0, rewards * factor, rewards) for rewards, factor in pairs]


@configured
class Coverage:
    """The cells that each step is the first of its episode to cover, in place of the game's reward.

    ``r_it = F(s_0, ..., s_t+1) - F(s_0, ..., s_t)``, F being the number of cells that some state covers: monotone
    and submodular, so that a step pays less the more was visited before (submodular RL, arXiv 2307.13372). With returns
    to go, as in the preset ``subpo``, the gradient is SubPO's, log-probabilities times the marginal gains that follow.
    Our reading: its baseline is that of ``rtg``, the group's other episodes.
    """

    part: str = ""
    """The part of a state that is a cell, such as position; empty: the whole state."""
    reach: int = Field(0, ge=0)
    """A state covers the cells within so many rounds of it, whatever the player does; 0: its own."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"

    def check(self, task: EpisodeTask) -> None:
        game = game_of(task.env_id, **task.kwargs)
        state = game.initial_state(np.random.default_rng(0))
        if self.part and not hasattr(state, self.part):
            parts = ", ".join(getattr(state, "_fields", ())) or "none"
            raise ConfigError(
                f"[reward.coverage] part = {self.part!r} is no part of a state of {task.scenario}; accepted: {parts}, "
                "or '' for the whole state"
            )
        if self.reach and (len(game.players) != 1 or not game.has_outcomes):
            raise ConfigError(
                f"[reward.coverage] reach = {self.reach} takes a game of one player whose rules list what may follow, "
                f"and {task.scenario} isn't one; accepted with it: reach = 0"
            )

    def pay(self, batch: Batch) -> list[Floats]:
        paid, sizes, known, games = list[Floats](), list[int](), dict[Any, frozenset[Any]](), dict[str, TSMG[Any]]()
        for each in batch.trajectories:
            seen, gains = set[Any](), list[float]()
            for t, state in enumerate((*each.states, each.end_state)):
                key = (each.seat[0], state, t == len(each) and each.terminated)
                if key not in known:
                    known[key] = self.cover(each, state, games, over=key[-1])
                gains.append(float(len(known[key] - seen)))
                seen |= known[key]
            paid.append(np.array(gains[1:]))
            sizes.append(len(seen))
        self.metrics = {"covered": float(np.mean(sizes))}
        return paid

    def cover(self, each: Trajectory, state: Any, games: dict[str, TSMG[Any]], *, over: bool = False) -> frozenset[Any]:
        """Return the cells that a state of a trajectory covers; the last one of an ended game its own alone."""
        found, reached = {state: over}, {state: over}
        for _ in range(0 if over else self.reach):
            game = game_for(each, games)
            reached = {
                after: ended
                for one, done in reached.items()
                if not done
                for action in game.legal_actions(one, each.player)
                for _, after, _, ended in game.outcomes(one, {each.player: action})
                if after not in found
            }
            found |= reached
        return frozenset(getattr(one, self.part) if self.part else one for one in found)


@configured
class EMPO:
    """The share of a group's episodes that gave the same answer to the same prompt, in place of the game's reward.

    A prompt is a state with its rounds left, and answers that name one action are one semantic cluster (arXiv
    2504.05812). ``r_it = |cluster| / |group| / T_i``: an episode is paid the mean over its steps, so that a longer one
    isn't paid more. An invalid answer is paid 0. Agreement on a wrong action is paid as well.
    """

    least_entropy: float = Field(0.0, ge=0, le=1)
    """Answers to a prompt are paid 0 if their entropy is less, as a share of the largest that so many can have."""
    most_entropy: float = Field(1.0, ge=0, le=1)
    """Answers to a prompt are paid 0 if their entropy is more."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"
    evaluates: ClassVar[bool] = False

    def pay(self, batch: Batch) -> list[Floats]:
        played = batch.trajectories
        paid, entropies, several = [np.zeros(len(each)) for each in played], 0.0, 0
        for (group, _), steps in batch.visits(lambda each, t: (each.states[t], each.steps_left[t])).items():
            # an invalid answer is a cluster of its own
            named = [played[i].actions[t] if played[i].valid[t] else (i, t) for i, t in steps]
            counts, all_of = Counter(named), len(batch.groups[group])
            shares = np.array([*counts.values()]) / len(steps)
            entropy = float(-(shares * np.log(shares)).sum())
            entropies, several = entropies + entropy * len(steps), several + len(steps) * (len(steps) > 1)
            if self.least_entropy <= entropy / np.log(max(2, len(steps))) <= self.most_entropy:
                for (i, t), answer in zip(steps, named, strict=True):
                    paid[i][t] = counts[answer] / all_of / len(paid[i]) * played[i].valid[t]
        self.metrics = {"answer_entropy": entropies / max(1, several)}
        return paid


@configured
class OTC:
    """The game's rewards above 0, times a factor that falls with the calls beyond those that were needed.

    With m calls in an episode and n in the shortest of its group's best ones (arXiv 2504.14870, OTC-GRPO): ::

        factor = sin(f pi / (2 n)),   f = 2 m n / (m + n)

    which is 1 for m = n and falls to 0. With a ``constant`` c it is OTC-PPO's ``cos(m pi / (2 m + c))``, which also
    stands, with c = 1, for n = 0. Our reading: that number; a call is a decision, which the environment
    answers, or an answer of a second player that the learner chose to ask; the best episodes are those of the highest
    return, where the paper has correct answers; and a loss isn't made smaller by calls.
    """

    calls: Literal["steps", "tokens", "calls"] = "steps"
    """The calls that are spared: decisions of an episode, response tokens, or answers of the second player inside
    ``around``, in place of ``cost``."""
    constant: float = Field(0.0, ge=0)
    """c of OTC-PPO, by which a call costs less; 0: OTC-GRPO's factor."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"

    @property
    def evaluates(self) -> bool:
        return self.constant > 0

    def pay(self, batch: Batch) -> list[Floats]:
        played, returns = batch.trajectories, batch.returns()
        m = np.array([self._made(each) for each in played], dtype=np.float64)
        n = np.zeros(len(played))
        for members in batch.groups.values():
            own = returns[members]
            n[members] = m[members][same(own, own.max())].min()
        # f / (2 n) = m / (m + n); an episode with fewer calls than the best ones isn't paid less for it
        most = np.maximum(m, n)
        sine = np.sin(np.pi * most / np.maximum(most + n, 1))
        cosine = np.cos(m * np.pi / (2 * m + (self.constant or 1.0)))
        factor = cosine if self.constant else np.where(n > 0, sine, cosine)
        self.metrics = {"call_factor": float(factor.mean()), "calls": float(m.mean())}
        return gains_times(played, factor)

    def _made(self, each: Trajectory) -> int:
        """Return the calls of an episode."""
        if self.calls != "calls":
            return max(1, len(each) if self.calls == "steps" else each.tokens)
        if None in each.bought or not each.bought:
            raise ConfigError(
                "reward = 'otc' with calls = 'calls' counts a second player's answers, and there is none beside the "
                "learner; accepted: around = 'router(AGENT, AGENT, learner)', or calls = 'steps' or 'tokens'"
            )
        return sum(one for one in each.bought if one is not None)


@configured
class A2FM:
    """The game's rewards above 0, times a factor for the modes of :class:`research.improve.around.reading.ModesPolicy`.

    Let p be the share with the group's best return, above 0, among its episodes that chose ``instant`` alone. An
    episode's factor is the mean over its choices of: ::

        1             if the mode is instant, or p < easy
        1 - p^power   else

    which is the adaptive part of its policy optimisation (arXiv 2510.12838): what is solved instantly isn't paid for in
    a dear mode, and if instant answers fail, all modes are paid alike. Our reading: p is measured among what the
    model chose itself, and the group's best return stands for a correct answer.
    """

    easy: float = Field(0.5, ge=0, le=1)
    """The least p at which dear modes are paid less."""
    power: float = Field(2.0, gt=0)
    """The larger, the nearer p has to be to 1 for it."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"
    evaluates: ClassVar[bool] = False

    def pay(self, batch: Batch) -> list[Floats]:
        played, returns = batch.trajectories, batch.returns()
        dear = np.array([share_dear(each.actions) for each in played])
        chose = np.array([any(action in MODES for action in each.actions) for each in played])
        price = np.zeros(len(played))
        for members in batch.groups.values():
            own = returns[members]
            instant = chose[members] & (dear[members] == 0)
            if instant.any() and own.max() > 0:
                p = float(same(own, own.max())[instant].mean())
                price[members] = p**self.power if p >= self.easy else 0.0
        factor = 1 - dear * price
        self.metrics = {"dear_modes": float(dear.mean()), "mode_factor": float(factor.mean())}
        return gains_times(played, factor)


def share_dear(actions: tuple[str, ...]) -> float:
    """Return the share of an episode's choices of a mode that aren't instant; 0 without any."""
    chosen = [action != MODES[0] for action in actions if action in MODES]
    return sum(chosen) / max(1, len(chosen))


@configured
class Regret:
    """Minus what each step adds to ``h`` of the episode's regret, in place of the game's reward.

    ``r_it = w_g (h(R_it) - h(R_i,t+1))``, with ``R_it`` the regret of the first t rounds to the best fixed action. It
    needs the payoffs of all actions, but no labels of good ones (the regret loss of arXiv 2403.16843). Group g is
    played against one sequence of losses and weighs ``w_g ~ max(mean_g R, 0)^focus``, 1 on average: a large focus looks
    at the worst sequence alone. Our reading: the loss is of sampled actions and spread over the steps as it grows; that
    of a policy's chances is in ``research.methods.regret_loss``.
    """

    h: Literal["linear", "square"] = "square"
    """The loss of a regret R: R itself (linear), or ``max(R, 0)^2`` (square)."""
    focus: float = Field(0.0, ge=0)
    """The power of a sequence's mean regret that it weighs by; 0: all weigh the same."""
    metric: str = "external_regret"
    """The regret, by its name among the game's metrics: also swap_regret, or regret in a bandit."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"

    def check(self, task: EpisodeTask) -> None:
        game = game_of(task.env_id, **task.kwargs)
        known = game.metrics(game.initial_state(np.random.default_rng(0)), game.players[0])
        if self.metric not in known:
            raise ConfigError(
                f"[reward.regret] metric = {self.metric!r} is none of the metrics of {task.scenario} "
                f"({', '.join(known) or 'it has none'}); accepted: a regret among them, such as external_regret in "
                "online-iid and rock-paper-scissors"
            )

    def pay(self, batch: Batch) -> list[Floats]:
        regrets, games = list[Floats](), dict[str, TSMG[Any]]()
        for each in batch.trajectories:
            game, states = game_for(each, games), (*each.states, each.end_state)
            regrets.append(np.array([game.metrics(state, each.player)[self.metric] for state in states]))
        last = np.array([own[-1] for own in regrets])
        self.metrics = {self.metric: float(last.mean())}
        of_groups = [max(float(last[members].mean()), 0.0) ** self.focus for members in batch.groups.values()]
        weights = np.array(of_groups) / np.mean(of_groups) if any(of_groups) else np.ones(len(of_groups))
        weight_of = dict(zip(batch.groups, weights.tolist(), strict=True))
        grown = [own if self.h == "linear" else np.maximum(own, 0.0) ** 2 for own in regrets]
        pairs = zip(batch.trajectories, grown, strict=True)
        return [-weight_of[each.group] * np.diff(own) for each, own in pairs]


@configured
class GTAlign:
    """The welfare of both players in place of one's own payoff, and a payment for the game's payoffs in the answer.

    ``r_it = sqrt(u v) + w c`` (arXiv 2510.08872): u and v are what the round paid to the player and to the other one,
    less the least that the round can pay, and c is the share of the round's payoffs that the answer's ``<payoffs>``
    state rightly, each as ``own action, other's action: own payoff, other's payoff`` and ended by a semicolon. Our
    reading: the other player takes the user's place, and payoffs are those of the round, which the rules give exactly.
    If a learner inside another player answers several times in one decision, the last answer is paid.
    """

    matrix_weight: float = Field(0.5, ge=0)
    """w, the weight of stated payoffs; 0: the answer needn't have any."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"
    evaluates: ClassVar[bool] = False

    def check(self, task: EpisodeTask) -> None:
        game = game_of(task.env_id, **task.kwargs)
        first = game.to_move(game.initial_state(np.random.default_rng(0)))
        if len(first) != 2 or len(game.players) != 2 or not game.has_outcomes:
            raise ConfigError(
                f"reward = 'gtalign' takes a game of two players that act at once and whose payoffs the rules list, "
                f"and {task.scenario} isn't one; accepted: prisoners-dilemma, stag-hunt, chicken"
            )

    def pay(self, batch: Batch) -> list[Floats]:
        seats = {(task_of(each).seed, each.player): each for each in batch.trajectories}
        paid, right, games = list[Floats](), list[float](), dict[str, TSMG[Any]]()
        for each in batch.trajectories:
            task, own, game = task_of(each), list[float](), game_for(each, games)
            (other,) = [player for player in game.players if player != each.player]
            if (partner := seats.get((task.seed, other))) is None:
                raise ConfigError(
                    "reward = 'gtalign' takes both players' rounds; accepted: self-play, without opponents"
                )
            mine_by, theirs_by = by_round(each), by_round(partner)
            for t, state in enumerate(each.states):
                if each.rounds[t] in each.rounds[t + 1 :]:
                    own.append(0.0)
                    continue
                table: dict[tuple[str, str], tuple[float, ...]] = {}
                for mine, his in product(game.legal_actions(state, each.player), game.legal_actions(state, other)):
                    outcomes = game.outcomes(state, {each.player: mine, other: his})
                    table[mine, his] = tuple(sum(p * r[one] for p, _, r, _ in outcomes) for one in (each.player, other))
                least = min(min(pair) for pair in table.values())
                right.append(float(np.mean([stated(each, t).get(key) == pair for key, pair in table.items()])))
                gains = (mine_by[each.rounds[t]] - least, theirs_by.get(each.rounds[t], least) - least)
                own.append(float(np.sqrt(np.maximum(gains, 0.0).prod()) + self.matrix_weight * right[-1]))
            paid.append(np.array(own, dtype=np.float64))
        self.metrics = {"payoffs_right": float(np.mean(right))}
        return paid


def by_round(each: Trajectory) -> dict[int, float]:
    """Return what each round paid the player, for all answers of its decision together."""
    paid = dict.fromkeys(each.rounds, 0.0)
    for at, reward in zip(each.rounds, each.rewards.tolist(), strict=True):
        paid[at] += reward
    return paid


def stated(each: Trajectory, t: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the payoffs that a response states, by own and other's action; of contradicting ones the last."""
    told = re.search(r"<payoffs>(.*?)</payoffs>", each.responses[t], re.DOTALL)
    return payoffs_in(told.group(1)) if told else {}
