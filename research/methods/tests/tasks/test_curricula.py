"""Samplers that suit the policy: levels, layouts by a critic, hints for groups that fail, and masks that fade."""

from collections import Counter
from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
import pytest

from agents.baselines.random import RandomPlayer
from agents.baselines.search import PlannerPlayer
from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer, load
from agents.msgrpo.credit import Floats, Trajectory
from agents.msgrpo.rollouts import Rollouts
from agents.msgrpo.tasks import SAMPLERS, Hint
from agents.turn import Turn, TurnRequest
from research.methods.tasks.curricula import GHPO, PCL, LadderSampling
from research.tests.rooms import RIGHT, SPARSE
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.runs import Known, iteration_of, play
from textgames import SCENARIOS, TRAINING_SEEDS, known_scenario

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "game", "why"),
    [
        ("ghpo", "kuhn-poker", "can't be used with kuhn-poker: it has several players"),
        ("tree", "kuhn-poker", "can't be used on kuhn-poker, which has several"),
        ("truncated", "kuhn-poker", "can't be used on kuhn-poker, which has several"),
        ("ghpo", "bandit", "it counts no episode as a success"),
        ("pcl", "snake", r"snake tells none .return_range.: choose another sampler or another game"),
        ("camel", "frozen-lake", "has no program; accepted is a file with allowed"),
    ],
)
def test_games_that_a_sampler_cannot_play_are_refused(name, game, why):
    (task, *_) = iteration_of(game, groups=1, group_size=2).tasks()
    with pytest.raises(ConfigError, match=f"task_sampling = '{name}' .*{why}"):
        SAMPLERS.make(name).check(task)


@pytest.mark.parametrize(("setting", "name"), [("task_sampling", "ghpo"), ("credit", "igpo")])
def test_a_run_refuses_its_game_before_anything_is_made_or_played(setting, name):
    with pytest.raises(ConfigError, match=rf"{setting} = '{name}' .*TestButtons-v0"):
        MSGRPOTrainer(None, None, "TestButtons-v0", MSGRPOConfig(**{setting: name}), quiet=True)


# ---------------------------------------------------------------- levels


def lake(policy: Any = None, **settings: Any) -> Rollouts:
    return iteration_of("frozen-lake", policy, **{"groups": 8, "group_size": 3, **settings})


def played(sampler: LadderSampling, policy: Any, iterations: int) -> list[dict[str, float]]:
    metrics = []
    for number in range(iterations):
        sampler.sample(lake(policy, groups=4, number=number), np.random.default_rng(number))
        metrics.append(sampler.metrics)
    return metrics


def test_groups_are_of_the_level_the_next_one_and_easier_ones():
    tasks = LadderSampling(start=5).tasks(lake(), np.random.default_rng(0))
    levels = [int(task.scenario.removeprefix("frozen-lake-level-")) for task in tasks]
    assert levels[::3] == levels[1::3] == levels[2::3]  # a group has one
    counted = Counter(levels[::3])
    assert (counted[5], counted[6], sum(count for level, count in counted.items() if level < 5)) == (4, 2, 2)
    for task in tasks:
        scenario, rules = known_scenario(task.scenario), {"format_penalty": 1.0, "invalid_action": "default"}
        assert task.kwargs == {**scenario.kwargs, **rules, "max_steps": scenario.horizon}
        assert task.layout_seed in TRAINING_SEEDS
    for one, plain in zip(tasks, lake().tasks(), strict=True):
        assert (one.seed, one.noise, one.layout_seed) == (plain.seed, plain.noise, plain.layout_seed)


def test_every_game_is_played_at_the_level_and_beside_it():
    """Groups are dealt to games in turn: levels in order would leave the second game at the next level for ever."""
    seen: Counter[str] = Counter()
    for number in range(24):
        made = Rollouts(MSGRPOConfig(groups=2, group_size=2), ["frozen-lake", "taxi"], number, RandomPlayer(), play)
        found = LadderSampling(start=2).tasks(made, np.random.default_rng(number))
        assert [task.scenario.rpartition("-level-")[0] for task in found] == ["frozen-lake"] * 2 + ["taxi"] * 2
        seen.update(task.scenario for task in found)
    assert set(seen) == {f"{game}-level-{level}" for game in ("frozen-lake", "taxi") for level in (1, 2, 3)}


def test_the_first_and_the_last_level_have_no_others_and_a_run_may_limit_all():
    first = LadderSampling().tasks(lake(), np.random.default_rng(0))
    last = LadderSampling(start=10).tasks(lake(), np.random.default_rng(0))
    assert {task.scenario for task in first} == {"frozen-lake-level-1", "frozen-lake-level-2"}
    assert "frozen-lake-level-11" not in {task.scenario for task in last}
    alone = LadderSampling(share=0.1).tasks(lake(groups=1), np.random.default_rng(0))
    assert {task.scenario for task in alone} == {"frozen-lake-level-1"}
    tasks = LadderSampling(start=4).tasks(lake(max_steps=9), np.random.default_rng(0))
    limits = {task.scenario: task.kwargs["max_steps"] for task in tasks}
    assert limits["frozen-lake-level-4"] == 9  # its own is 10
    assert max(limits.values()) == 9


def test_it_steps_up_where_half_is_kept_and_only_there():
    good = played(LadderSampling(window=2), PlannerPlayer(), 7)
    assert [row["ladder_level"] for row in good] == [1, 1, 2, 2, 3, 3, 4]
    assert all(row["ladder_kept"] == pytest.approx(1.0, abs=0.02) for row in good)
    bad = played(LadderSampling(window=2), None, 5)
    assert {row["ladder_level"] for row in bad} == {1}
    assert all(row["ladder_kept"] < 0 for row in bad)


def test_penalties_for_the_form_say_nothing_of_the_level():
    task = EpisodeTask.of("frozen-lake-level-1", 0, format_penalty=1.0)
    clean = LadderSampling().share_kept(trajectory([0.0, 1.0], task=task))
    charged = trajectory([-1.0, 1.0], task=task, valid=np.array([False, True]))
    assert LadderSampling().share_kept(charged) == clean == pytest.approx(1.0, abs=0.02)


def test_what_it_has_learnt_is_carried_over():
    whole, again = LadderSampling(window=3), LadderSampling(window=3)
    assert played(whole, PlannerPlayer(), 4)[-1]["ladder_level"] == 2
    again.load_state_dict(whole.state_dict())
    assert played(again, PlannerPlayer(), 4) == played(whole, PlannerPlayer(), 4)


def test_other_games_are_refused_before_anything_is_played():
    for name in ("snake", "TextFrozenLake-v0"):
        with pytest.raises(ConfigError, match=f"'{name}' has 0 of them: choose a scenario of docs/research/ladders.md"):
            LadderSampling().games([name])
    with pytest.raises(ConfigError, match=r"from level 11 on, and 'frozen-lake' has 10"):
        LadderSampling(start=11).tasks(lake(), np.random.default_rng(0))
    with pytest.raises(ConfigError, match=r"\[tasks.ladder\] share must be .* got 0"):
        SAMPLERS.make("ladder", {"share": 0})
    games = LadderSampling().games(["frozen-lake", SCENARIOS["sokoban"]])  # all are looked at before a run
    assert [one.name for one in games[:10]] == [f"frozen-lake-level-{level}" for level in range(1, 11)]
    assert games[10:] == list(SCENARIOS["sokoban"].levels)


# ---------------------------------------------------------------- PCL


def value_of(task: EpisodeTask) -> float:
    """Any number that depends on the layout."""
    return float(np.random.default_rng(task.layout_seed).random())


def critic(tasks: Sequence[EpisodeTask]) -> Floats:
    return np.array([value_of(task) for task in tasks])


def test_the_candidates_nearest_to_the_target_are_played():
    made = Rollouts(MSGRPOConfig(groups=5, group_size=3), ["frozen-lake"], 0, Known(), play, critic)  # type: ignore[arg-type]
    tasks = PCL(candidates=6, target=0.9).tasks(made)
    offered = [task for part in range(6) for task in made.tasks(part)[::3]]
    values = {task.layout_seed: value_of(task) for task in offered}
    nearest = sorted(values, key=lambda layout: abs(values[layout] - 0.9))[:5]
    assert [task.layout_seed for task in tasks] == np.repeat(nearest, 3).tolist()
    plain = made.tasks()
    assert [(task.seed, task.noise) for task in tasks] == [(task.seed, task.noise) for task in plain]
    with pytest.raises(RuntimeError, match="there is no critic"):
        PCL().sample(iteration_of("frozen-lake", groups=1, group_size=2), RNG)


def test_the_critic_learns_the_scaled_mean_of_each_group_at_its_first_prompts():
    """Kuhn poker pays from -2 to 2: returns -1 and 2 are 0.25 and 1, and their mean is 0.625; -2.5 counts as 0."""
    task = EpisodeTask.of("kuhn-poker", 0)
    given = batch(
        trajectory([-1.0], group="a", task=task),
        trajectory([0.0, 2.0], group="a", task=task),
        trajectory([-2.5, 0.0], group="b", task=task),
    )
    targets = PCL().value_targets(given)
    assert list(targets) == ["difficulty"]
    wanted = [[0.625], [0.625, np.nan], [0.0, np.nan]]
    for got, row in zip(targets["difficulty"], wanted, strict=True):
        np.testing.assert_array_equal(got, row)


# ---------------------------------------------------------------- GHPO


class Obedient(PlannerPlayer):
    """Does what it is told, and without that what the planner does in episodes of some seeds, elsewhere nothing."""

    def __init__(self, able: set[int], hint: Hint | None) -> None:
        super().__init__()
        self.able, self.hint, self.told = able, hint, list[tuple[TurnRequest, str]]()

    def act(self, requests: Sequence[Any]) -> list[Turn]:
        turns = []
        for request in requests:
            hint = self.hint(request) if self.hint is not None else ""
            self.told.append((request, hint))
            known = self.choose(request).action if request.seed[0] in self.able else "?"
            turns.append(Turn(f"<action>{hint.split()[-1].strip('.') if hint else known}</action>"))
        return turns


class Hinted(Rollouts):
    """Rollouts whose players need no prompts to be told hints; the first group's are able."""

    def __init__(self, made: Rollouts) -> None:
        vars(self).update(vars(made))
        self.levels: list[Obedient] = []
        self.able = {task.seed for task in made.tasks()[:2]}

    def play(self, tasks: Any, hint: Hint | None = None) -> list[Trajectory]:
        self.levels.append(Obedient(self.able, hint))
        self.policy = self.levels[-1]  # type: ignore[assignment]
        return super().play(tasks)


def test_groups_that_fail_are_told_the_first_quarter_then_half_then_three_quarters_of_the_solution():
    """Players that do nothing unless they are told fail until the end: each play tells so many rounds."""
    iteration, planner = Hinted(iteration_of("frozen-lake", groups=3, group_size=2)), PlannerPlayer()
    tasks = iteration.tasks()
    episodes = rollout(planner, [*{task.layout_seed: task for task in tasks}.values()])
    lengths = {episode.layout_seed: len(episode.steps) for episode in episodes}
    trajectories = GHPO().sample(iteration, RNG)
    assert not any(hint for _, hint in iteration.levels[0].told)
    layout_of = {task.seed: task.layout_seed for task in tasks}
    for fraction, level in zip((0.25, 0.5, 0.75), iteration.levels[1:], strict=True):
        assert {request.seed[0] for request, _ in level.told} == {task.seed for task in tasks[2:]}
        for request, hint in level.told:
            most = ceil(fraction * lengths[layout_of[request.seed[0]]])
            action = planner.choose(request).action
            assert hint == (f"The best action here is {action}." if request.seed[-2] < most else "")
    assert [each.success for each in trajectories] == [True] * 2 + [False] * 4
    assert [each.task.seed for each in trajectories] == [task.seed for task in tasks]  # type: ignore[union-attr]
    assert [each.task.noise for each in trajectories] == [(0, 0)] * 2 + [(0, 0, 1, 2, 3)] * 4  # type: ignore[union-attr]
    assert len(iteration.played) == 6 + 3 * 4
    again = Hinted(iteration_of("frozen-lake", groups=3, group_size=2))
    assert {each.task.noise for each in GHPO(most_reruns=1).sample(again, RNG)} == {(0, 0), (0, 0, 1)}  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_model_learns_from_the_hinted_prompts(tokenizer, make_trainer):
    config = MSGRPOConfig(
        groups=1, group_size=2, iterations=1, response_mode="direct", max_response_tokens=1, max_steps=3, eval_every=0,
        samples_every=0, task_sampling="ghpo", temperature=1.0, max_prompt_tokens=4000,
        method_settings={"tasks": {"ghpo": {"most_reruns": 2, "hint": "green {action}"}}},
    )  # fmt: skip
    trainer = make_trainer(config, "frozen-lake")
    batch = trainer.rollout()
    assert all(each.hinted for each in batch.trajectories)
    first = [tokenizer.decode(each.prompt_ids[0]) for each in batch.trajectories]
    assert all(text.count("green") == 1 for text in first)
    assert not any("green" in tokenizer.decode(each.prompt_ids[0]) for each in batch.played[:2])
    assert [each.hinted for each in batch.played] == [False] * 2 + [True] * 4
    (metrics,) = trainer.train()
    assert metrics["return"] == pytest.approx(np.mean([each.returned() for each in batch.played[:2]]))


# ---------------------------------------------------------------- CAMEL


GOOD = f"def allowed(observation, legal):\n    return [{RIGHT!r}[observation[5:].split(',')[0]]]\n"
ALL = "def allowed(observation, legal):\n    return legal\n"


@pytest.fixture
def make(reader, tmp_path):
    """Return a trainer of the reader, without a document, whose decisions a program masks."""

    def made(source: str, iterations: int = 12, **own: Any) -> MSGRPOTrainer:
        (tmp_path / "mask.py").write_text(source)
        config = MSGRPOConfig(
            model=reader.removeprefix("hf:"), scenarios=(SPARSE,), response_mode="direct", max_response_tokens=8,
            lora_rank=0, groups=3, group_size=8, temperature=1.0, iterations=iterations, minibatches=1, eval_every=0,
            samples_every=0, stop_after=0, episode_sampling="off", learning_rate=3e-3, task_sampling="camel",
            method_settings={"tasks": {"camel": {"program": str(tmp_path / "mask.py"), **own}}},
        )  # fmt: skip
        return MSGRPOTrainer(*load(config), config=config, quiet=True)

    return made


def test_epsilon_falls_evenly_to_nothing():
    sampler = SAMPLERS.make("camel", {"epsilon": 0.8, "fade": 0.5})
    made = [sampler.epsilon_of(iteration_of("frozen-lake", number=k, iterations=8)) for k in range(8)]
    assert made == pytest.approx([0.8, 0.6, 0.4, 0.2, 0, 0, 0, 0])


@pytest.mark.slow
def test_masked_tokens_have_the_probabilities_that_they_were_sampled_with(make):
    """Right doors alone are forced: probability 1 among the allowed ones, and about 1/2 among all."""
    forced = make(GOOD, among="allowed").rollout().trajectories
    assert all(each.success and each.allowed is not None for each in forced)
    assert all(np.exp(step) == pytest.approx(1) for each in forced for step in each.old_logprobs)
    trainer = make(GOOD, among="all")
    played = trainer.rollout().trajectories
    assert all(each.success and each.allowed is None for each in played)
    assert all(np.exp(step) == pytest.approx(1) for each in played for step in each.old_logprobs)
    told = [logprobs for logprobs, _ in trainer.learner.logprobs_and_entropies(played[0].rows)]
    assert all(0.2 < float(step.exp().prod()) < 0.8 for step in told)
    half = make(GOOD, epsilon=0.5)
    half.rollout()
    assert 0.35 < half.methods.sampler.metrics["masked"] < 0.65
    with pytest.raises(ConfigError, match="returned 3; accept"):
        make("def allowed(o, l):\n    return 3").rollout()


@pytest.mark.slow
def test_a_good_mask_teaches_and_one_that_allows_everything_does_not(make):
    """Eight rooms: by chance one episode in 256 wins, so without a mask there is nothing to learn from."""
    after = {}
    for name, source in {"good": GOOD, "all": ALL}.items():
        trainer = make(source, epsilon=0.9, fade=0.75)
        history = trainer.train()
        assert [metrics["masked"] for metrics in history[9:]] == [0, 0, 0]
        (result,) = trainer.evaluate()
        after[name] = result.success
    assert after["good"] > 0.5
    assert after["all"] < 0.2


def test_other_masks_and_other_places_are_refused():
    for setting, said in (({"legal_only": True}, "accepted is among = 'allowed'"), ({"engine": "ray"}, "runs here")):
        with pytest.raises(ConfigError, match=said):
            SAMPLERS.make("camel").sample(iteration_of("frozen-lake", **setting), RNG)
