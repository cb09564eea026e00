"""Credit of the model asked again (HCAPO, IGPO), and methods that change another's advantages (EMPG, Choice)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeTask, TurnRequest, action_probabilities, request_in, response_logprobs
from agents.msgrpo import ConfigError, Method, compared, configured, learner_of
from agents.msgrpo.credit import (
    METHODS,
    Batch,
    ByReturn,
    Credit,
    CreditMethod,
    Floats,
    StepCredit,
    local_policy,
    returns_to_go,
    split_like,
    standardised,
    task_of,
    within_groups,
    within_steps,
)
from research.methods.rewards import game_for
from textgames import TSMG, Yardstick, find_yardstick

TOLD = "The episode will end like this:\n{end}\n\nNow:\n{now}"
TIE = 1e-9
_NOISE = 0x19B0


@configured
class HCAPO(ByReturn):
    """The episode's return among its group, plus what of it each step deserves as the model sees it in hindsight.

    The model scores its own responses again, with the last observation told in the prompt (arXiv 2603.08754, equations
    6 to 8, section 4.3 and appendix A): ::

        p_it   = exp(mean_k log pi(y_itk | prompt with the end) / temperature)
        rho_it = clip(p_it / mean_t p_it, 0.8, 1.2)
        Q_it   = rho_it gamma^(T_i - 1 - t) R_i,   then smoothing Q_it + (1 - smoothing) Q_i,t+1
        A_it   = z_g(R_i) + w z(Q_it) over the group's steps, the second part not below 0 in a success

    The pass over all responses isn't counted as tokens.
    """

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the hindsight's part; 0 leaves the episode's alone."""
    temperature: float = Field(5.0, gt=0)
    """Divides the mean log-probability of a response."""
    least: float = Field(0.8, ge=0)
    """The least ratio of a step's probability in hindsight to the episode's mean."""
    most: float = Field(1.2, gt=0)
    """The largest such ratio."""
    discount: float = Field(0.95, gt=0, le=1)
    """Discount of the return per step before the last."""
    smoothing: float = Field(1.0, gt=0, le=1)
    """The share of a step's own value, the rest being the next step's; 1 smooths nothing, the paper's option is 0.5."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts"})
    asks_alone: ClassVar[bool] = True

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        return self.by_scores(batch, hindsight(batch))

    def by_scores(self, batch: Batch, scores: Sequence[Floats]) -> Credit:
        """Credit by (T_i,) mean log-probabilities of the responses in hindsight."""
        values = []
        for score, each in zip(scores, batch.trajectories, strict=True):
            likely = np.exp(score / self.temperature)
            ratio = np.clip(likely / likely.mean(), self.least, self.most)
            q = ratio * self.discount ** np.arange(len(score) - 1, -1, -1) * each.returned()
            values.append(self.smoothing * q + (1 - self.smoothing) * np.append(q[1:], q[-1:]))
        whole = within_groups(batch, batch.returns(), standardised)
        parts = zip(whole, within_steps(batch, "group", values, standardised), batch.trajectories, strict=True)
        return Credit.of([e + self.step_weight * (np.maximum(s, 0.0) if own.success else s) for e, s, own in parts])


def hindsight(batch: Batch) -> list[Floats]:
    """Return (T_i,) the mean log-probability of each response's tokens with the end of its episode told in the prompt.

    Raises:
        ConfigError: the policy has no model in this process, or reads earlier turns.
    """
    policy = local_policy(batch)
    if policy is None:
        raise ConfigError(
            "credit = 'hcapo' scores responses under other prompts: it takes a model in this process (engine = 'live') "
            "whose prompts show no earlier turns (history_turns = 0)"
        )
    games: dict[str, TSMG[Any]] = {}
    prompts, responses = [], []
    for each in batch.trajectories:
        game = game_for(each, games)
        end = game.observe(each.end_state, each.player)
        for state, left, response in zip(each.states, each.steps_left, each.response_ids, strict=True):
            request = request_in(game, state, each.player, left)
            told = replace(request, observation=TOLD.format(end=end, now=request.observation))
            prompts.append(policy.prompt_map(told))
            responses.append(response)
    sums = np.array(response_logprobs(policy, prompts, responses))
    lengths = np.array([max(1, len(response)) for response in responses])
    return split_like(sums / lengths, batch.trajectories)


@configured
class IGPO:
    """Each step's gain in the probability of what the planner would do, and the return at the end.

    Information gain (arXiv 2510.14967) in our reading for games: ``u_t = P_t+1 - P_t`` with ``P_t`` the probability
    that the policy gives in ``s_t`` to the planner's actions, those of the largest value by the game's yardstick.
    Advantages are returns-to-go of ``u`` less the mean of the group's other episodes that are alive at t. A step is
    praised for leading where the policy knows what is right, so that the optimum may change.
    """

    samples: int = Field(8, ge=1)
    """Responses for each state's probabilities, if they aren't known exactly."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts"})
    asks_alone: ClassVar[bool] = True
    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"
    evaluates: ClassVar[bool] = False

    def check(self, task: EpisodeTask) -> None:
        game_and_yardstick(task)

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        ahead = [returns_to_go(paid) for paid in self.pay(batch)]
        how = partial(compared, baseline="others")
        return Credit.of(within_steps(batch, "time", ahead, how), metrics=self.metrics)

    def pay(self, batch: Batch) -> list[Floats]:
        """Return the gains, and the return as the last step's, so that other methods of credit can have them."""
        sureness, asked = self.sureness(batch)
        self.metrics = {
            "planner_probability": float(np.concatenate(sureness).mean()), "probabilities_asked": float(asked)
        }  # fmt: skip
        pairs = zip(batch.trajectories, sureness, strict=True)
        return [np.append(np.diff(sure), each.returned()) for each, sure in pairs]

    def sureness(self, batch: Batch) -> tuple[list[Floats], int]:
        """Return (T_i,) probabilities of the planner's actions in the visited states, and how many states there are."""
        if batch.rollouts is None:
            raise ValueError("igpo asks the policy for probabilities: this batch has no rollouts")
        places: dict[Any, TurnRequest] = {}
        best: dict[Any, tuple[str, ...]] = {}
        games: dict[str, tuple[TSMG[Any], Yardstick]] = {}
        keys = []
        for each in batch.trajectories:
            scenario = task_of(each).scenario
            if scenario not in games:
                games[scenario] = game_and_yardstick(task_of(each))
            game, yardstick = games[scenario]
            for state, left in zip(each.states, each.steps_left, strict=True):
                key = (scenario, each.player, state, left)
                keys.append(key)
                if key not in places:
                    noise = (_NOISE, batch.iteration, len(places))
                    places[key] = request_in(game, state, each.player, left, seed=noise)
                    # of equally good actions those that are so with fewer rounds left, too: else dawdling is no worse
                    best[key] = yardstick.best_actions(state, left, each.player, TIE)
        told = action_probabilities(batch.rollouts.policy, list(places.values()), self.samples).probabilities
        chances = dict(zip(places, told, strict=True))
        flat = np.array([sum(chances[key].get(action, 0.0) for action in best[key]) for key in keys])
        return split_like(flat, batch.trajectories), len(places)


def game_and_yardstick(task: EpisodeTask) -> tuple[TSMG[Any], Yardstick]:
    """Return the game of a task and its yardstick.

    Raises:
        ConfigError: it has none.
    """
    game = textgames.parallel_env(task.env_id, **task.kwargs).game
    yardstick = find_yardstick(game)
    if yardstick is None:
        raise ConfigError(
            f"credit = 'igpo' measures by what a planner would do, and {task.scenario} has no yardstick: choose "
            "another method or game"
        )
    return game, yardstick


@configured
class Composed:
    """A method that takes another one's credit and changes it."""

    base: str = "msgrpo"
    """The method whose advantages are taken; its own settings stand in its own table, [credit.NAME]."""

    adds: ClassVar[frozenset[str]] = frozenset()  # needed besides what the base method needs

    def __post_init__(self) -> None:
        if issubclass(METHODS.find(self.base), type(self)):
            raise ValueError(f"base = {self.base!r} can't be used: accepted is another method of credit")
        self._method: CreditMethod = METHODS.make(self.base)

    def compose(self, make: Callable[[str], CreditMethod]) -> None:
        self._method = make(self.base)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset(self._method.needs) | self.adds

    @property
    def heads(self) -> Mapping[str, Any]:
        return self._method.heads

    def beside(self, *parts: Any) -> Any:
        return self._method.beside(*parts)

    @property
    def learnt_by(self) -> str:
        return learner_of(self._method)

    def state_dict(self) -> dict[str, Any]:
        return self._method.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state and type(self._method).load_state_dict is Method.load_state_dict:
            raise ValueError(f"the base method {self.base!r} learns nothing")
        if state:
            self._method.load_state_dict(state)


@configured
class EMPG(Composed):
    """Another method's advantages, larger if the policy was sure (arXiv 2509.09265).

    With ``H_it`` the mean entropy of the tokens of a response::

        h_it = (H_it - min H) / (max H - min H + 1e-8)      over all steps of the batch
        g_it = exp(-h_it) / mean of exp(-h) over the batch
        A'_it = A_it g_it + zeta exp(-h_i,t+1)              without the bonus at an episode's last step

    less the mean of ``A'`` over all steps, in which a step counts with the mean of its tokens.
    """

    zeta: float = Field(0.05, ge=0)
    """Weight of the bonus for what a step leads to."""

    adds: ClassVar[frozenset[str]] = frozenset({"entropies"})

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        base = self._method.assign(batch, rng)
        entropies = [each.entropies for each in batch.trajectories if each.entropies is not None]
        if len(entropies) < len(batch):
            raise ValueError('credit = "empg" needs entropies, and this batch has none')
        everything = np.concatenate(entropies)
        least, most = everything.min(), everything.max()
        sureness = [np.exp(-(each - least) / (most - least + 1e-8)) for each in entropies]
        mean = np.concatenate(sureness).mean()
        modulated: list[StepCredit] = []
        for advantages, sure in zip(base.advantages, sureness, strict=True):
            factors, bonus = sure / mean, np.append(self.zeta * sure[1:], 0.0)
            if isinstance(advantages, np.ndarray):
                modulated.append(advantages * factors + bonus)
            else:
                steps = zip(advantages, factors.tolist(), bonus.tolist(), strict=True)
                modulated.append([tokens * g + b for tokens, g, b in steps])
        level = float(np.concatenate([_per_step(each) for each in modulated]).mean())
        centred: list[StepCredit] = [
            each - level if isinstance(each, np.ndarray) else [tokens - level for tokens in each] for each in modulated
        ]
        # what a critic or a reward model of the base method learns by stays
        return base._replace(advantages=centred, draw_weight=Credit.of(centred).draw_weight)


def _per_step(advantages: StepCredit) -> Floats:
    if isinstance(advantages, np.ndarray):
        return advantages
    return np.array([tokens.mean() if len(tokens) else 0.0 for tokens in advantages])


@configured
class Choice(Composed):
    """Another method's advantages, on the tokens of the choice alone; all other tokens get 0.

    For reasoning that only reports: a report is as true before a good move as before a bad one. It is wrong for
    reasoning that decides (docs/research/credit/recipe.md). A response without any of the parts keeps its advantages:
    its form is what has to be learnt then. The method is our own.
    """

    credited: tuple[str, ...] = ("plan", "action")
    """The tags of the parts whose tokens get advantages."""

    adds: ClassVar[frozenset[str]] = frozenset({"segments"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.credited:
            raise ValueError("credited is empty, so nothing would be learnt; accepted: names of tags, such as action")

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        base = self._method.assign(batch, rng)
        advantages: list[StepCredit] = []
        for trajectory, steps in zip(batch.trajectories, base.advantages, strict=True):
            if trajectory.segments is None:
                raise ValueError('credit = "choice" needs segments, and this batch has none')
            on_parts: list[Floats] = []
            for parts, ids, own in zip(trajectory.segments, trajectory.response_ids, steps, strict=True):
                chosen = np.zeros(len(ids), dtype=np.bool_)
                for part in parts:
                    if part.name in self.credited:
                        chosen[part.start : part.stop] = True
                on_parts.append(np.where(chosen if chosen.any() else ~chosen, own, 0.0))
            advantages.append(on_parts)
        return base._replace(advantages=advantages)
