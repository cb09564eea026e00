"""Improvers that imitate: a cheap expert (``imitate``), and play that is there (``offline``)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from agents import PromptMap, check_spec, models_inside
from benchmark import UsageError
from benchmark.play import AgentTable
from benchmark.score import read_columns
from benchmark.show import EVALUATED, Source
from research.improve.agents import behind_the_rules, in_folder, prompt_map_of, with_texts
from research.improve.budget import Spent
from research.improve.methods import learning
from research.improve.methods.learning import (
    compared_seeds,
    config_of,
    learnt,
    mode_of,
    own_play,
    plays_better,
    said_as_usage,
    teach,
    value_in,
)
from research.improve.methods.weighing import (
    RecordedEpisode,
    check_measures,
    criticised,
    exponential,
    history_weights,
    regularised,
    weights_of,
)
from research.improve.task import ImprovementTask

if TYPE_CHECKING:
    from agents.msgrpo.warmup import TaughtDecision


def imitate(
    task: ImprovementTask,
    *,
    teacher: str = "planner",
    examples: int = 2000,
    explore: float = 0.5,
    rank: int = 16,
    learning_rate: float | None = None,
    passes: int = 1,
) -> AgentTable:
    """Train the agent's model on a teacher's decisions, as ``textbench warmup`` does: SCOUT's first stage.

    See arXiv 2601.21754.

    Args:
        task: the agent has a local model.
        teacher: who is imitated: planner, greedy, random or a player of your own, whose answers cost nothing.
        examples: decisions to learn from.
        explore: share of moves that the random player takes, after which the teacher still says what it would do.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest; 1e-3 for an adapter and 1e-4 for all weights if nothing is said.
        passes: how often the model goes through the decisions.
    """
    from agents.msgrpo.warmup import Teaching, untaught_seeds, warm_start

    task.meter.check()
    try:
        if not models_inside(teacher):
            check_spec(teacher)
    except ValueError as error:
        raise UsageError(f"the teacher: {error}") from None
    if models_inside(teacher):
        raise UsageError(
            f"the teacher {teacher!r} is a language model, whose answers would be on no record: play it, textbench run "
            f"--agent {quote(teacher)} --seed-offset {EVALUATED}, and learn from that: textbench improve offline --set "
            "learn_from=DIR"
        )
    config = config_of(task, examples, rank=rank, learning_rate=learning_rate, passes=passes)
    with said_as_usage():
        made = warm_start(config, Teaching((teacher,), examples, explore), task.say)
    task.meter.charge(Spent(seconds=made["seconds"]))
    return learnt(task, task.agent, seeds=untaught_seeds(task.seed, learning.COMPARED))


Method = Literal["filtered", "weighted", "return", "a2pr", "context"]
HELD_OUT = 10
"""Every so manieth seed is held out, to see what imitation learns."""

EQUAL = "all episodes have the same return, so nothing tells good play from bad"
NO_BETTER = "no action does better there than the others of its state, so nothing tells good decisions from bad"
NONE_IMPROVES = "no history improves, so none is left to learn from"

BEST = 10
"""The number of the best return in prompts; the lowest of a scenario is 0."""

HEAD = "Earlier games of this kind, from the worst to the best:"


def offline(
    task: ImprovementTask,
    *,
    method: Method = "filtered",
    learn_from: list[str] | None = None,
    episodes: int = 200,
    attempts: int = 4,
    top: float = 0.25,
    beta: float = 1.0,
    critic: str | None = None,
    weigh: list[str] | None = None,
    discount: float = 0.95,
    told: int = 4,
    rank: int = 16,
    learning_rate: float | None = None,
    passes: int = 1,
) -> AgentTable:
    """Train the agent's model on recorded play, its own or that of others, or tell it some of that.

    ``run folders -> decisions, returns -> weights -> imitation``: better play is imitated more than worse.

    - ``filtered``: the episodes of the highest returns are imitated, the others not at all (the %BC of Chen et al.,
      Decision Transformer, arXiv 2106.01345, section 4).
    - ``weighted``: every decision is imitated with the weight ``exp(A / beta)``, at most 20, the advantage ``A`` being
      the episode's return less the mean of its seed, in standard deviations (advantage-weighted regression, Peng et
      al., arXiv 1910.00177, equation 11).
    - ``return``: all are imitated, each with a line in its prompt that says how the episode ended; the player is then
      asked for the best end (Decision Transformer, with the return in words).
    - ``a2pr``: decisions are imitated whose action has an advantage, or with one that has (:func:`.regularised`).
    - ``context``: nothing is trained; prompts tell some of the episodes, from the worst to the best, as algorithm
      distillation does (Laskin et al., arXiv 2210.14215). So it works behind a server as well.

    A model that imitates what it says at a temperature below 1 becomes surer, and may play better by that alone.

    Args:
        task: the agent has a local model, or for ``context`` any language model.
        method: ``filtered``, ``weighted``, ``return``, ``a2pr`` or ``context``.
        learn_from: run folders; without any the agent plays itself first.
        episodes: training seeds that it then plays, of each scenario.
        attempts: how often it plays each of them, with other samples.
        top: of ``filtered`` and ``context``: the share of a scenario's episodes, those of the highest returns, that is
            imitated or told of; equal returns go together.
        beta: of ``weighted``: how many standard deviations of the return are a factor of ``e``.
        critic: of ``filtered``, ``weighted`` and ``return``: the folder of a learned value (``textbench improve
            value``), by which each decision is judged on its own.
        weigh: ``improvement``, ``stability`` or both: seeds are histories over ``learn_from``, in that order, and the
            ``top`` share of them that improve most, or most steadily, is imitated (``weighted`` has their weights) or
            told of.
        discount: of ``a2pr``: the factor of a return for each decision that it is further away.
        told: of ``context``: how many episodes the prompts tell.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest; 1e-3 for an adapter and 1e-4 for all weights if nothing is said.
        passes: how often the model goes through the decisions.
    """
    if not 0 < top <= 1 or beta <= 0 or told < 1 or not 0 < discount < 1:
        raise UsageError(
            "top is above 0 and at most 1, beta above 0, discount between 0 and 1 and told at least 1, got "
            f"top = {top:g}, beta = {beta:g}, discount = {discount:g} and told = {told}"
        )
    check_measures(weigh or ())
    if weigh and method in ("return", "a2pr"):
        raise UsageError(f"weigh goes with the methods filtered, weighted and context, got method = {method!r}")
    if critic and (weigh or method not in ("filtered", "weighted", "return")):
        raise UsageError(f"a critic goes with filtered, weighted and return without weigh, got method = {method!r}")
    judge = value_in(critic) if critic else None
    if method == "context" and len(task.scenarios) > 1:
        raise UsageError(f"histories in the prompt are of one scenario, got {', '.join(task.scenarios)}: choose one")
    mode = prompt_map_of(task.agent).mode if method == "context" else mode_of(task)
    folders = [Path(each) for each in learn_from] if learn_from else own_play(task, task.agent, episodes, attempts)
    found = recorded(folders, task.scenarios, mode, apart=compared_seeds(task))
    if judge is not None:
        found = criticised(found, judge, advantages=method != "return")
    if weigh:
        weights = history_weights(found, weigh, top)
        shown = [
            Shown(one, own if method == "weighted" else 1.0) for one, own in zip(found, weights, strict=True) if own
        ]
        task.say(f"{len(shown)} of {len(found)} episodes are of histories that are kept")
    elif method == "a2pr":
        shown = [Shown(one) for one in regularised(found, discount, np.random.default_rng(task.seed))]
    elif judge is not None and method == "weighted":
        weights = weights_of([one.result for one in found], beta)
        shown = [Shown(one, weight) for one, weight in zip(found, weights, strict=True)]
    else:
        shown = imitated(found, "filtered" if method == "context" else method, top, beta)
    if method == "context":
        kept = found if top == 1 and not weigh else [one.episode for one in shown]
        if not kept:
            task.say(NONE_IMPROVES if weigh else EQUAL)
            return task.agent
        made = with_history(task, kept, told)
        return in_folder(made, task.out) if plays_better(task, task.agent, made) else task.agent
    learnt_from = [one for one in shown if one.episode.seed % HELD_OUT]
    if not learnt_from:
        task.say(NO_BETTER if method == "a2pr" else NONE_IMPROVES if weigh else EQUAL)
        return task.agent
    before = task.agent
    if method == "return":  # the player is asked for the best result
        prompts = prompt_map_of(task.agent)
        texts = replace(prompts.texts, opening=f"{prompts.texts.opening}\n\n{_line(BEST)}")
        task = replace(task, agent=with_texts(task.agent, texts, prompts.mode, task.out))
    decisions = sum(len(one.episode.decisions) for one in learnt_from)
    config = config_of(task, decisions, rank=rank, learning_rate=learning_rate, passes=passes)

    def demonstrations(prompt_map: PromptMap) -> tuple[list["TaughtDecision"], list["TaughtDecision"]]:
        kept_out = [one for one in shown if one.episode.seed % HELD_OUT == 0]
        task.say(f"{decisions:,} decisions of {len(learnt_from)} episodes, and those of {len(kept_out)} held out")
        return _taught(learnt_from, prompt_map), _taught(kept_out, prompt_map)

    source = {"method": method, "learn_from": [str(folder) for folder in folders], "top": top, "beta": beta}
    source |= {"weigh": weigh} if weigh else {}
    source |= {"critic": [critic]} if critic else {}
    teach(task, config, source, demonstrations)
    return learnt(task, before)


def recorded(
    folders: Sequence[Path], scenarios: Sequence[str], mode: str, apart: Collection[int] = ()
) -> list[RecordedEpisode]:
    """Return the episodes of run folders with responses in a mode, without those that scores are of.

    Nor is anything learnt from the seeds that are kept ``apart``, on which players are compared. A UsageError if none
    is left.
    """
    found: dict[tuple[Any, ...], RecordedEpisode] = {}
    readable: set[str] = set()
    for number, folder in enumerate(folders):
        results = read_columns([folder])
        for decision in Source(results, mode, lenient=True).decisions():
            told = decision.origin
            readable.add(told["scenario"])
            scenario = results.scenarios[told["scenario"]]
            scored = 0 <= told["seed"] - scenario.first_seed < EVALUATED
            if scored or told["scenario"] not in scenarios or told["seed"] in apart:
                continue
            place = number, *(told[name] for name in ("scenario", "seed", "player", "agent"))
            episode = RecordedEpisode(told["scenario"], told["seed"], decision.result, [], told["player"])
            found.setdefault(place, episode).decisions.append(decision)
    if not found:
        if not readable:
            why = f"no response there is valid in the mode {mode} (begin with a warm start: textbench warmup --help)"
        elif readable.isdisjoint(scenarios):
            why = f"what was played there is {', '.join(sorted(readable))}"
        else:
            why = (
                f"the first {EVALUATED} episodes of a scenario are left out, since scores are of them (play others: "
                f"--seed-offset {EVALUATED})"
            )
        where = ", ".join(map(str, folders))
        raise UsageError(f"there is nothing to learn from for {', '.join(scenarios)} in {where}: {why}")
    return [found[place] for place in sorted(found)]  # folders have them in the order in which they ended


class Shown(NamedTuple):
    """An episode as it is imitated: with which weight, and which line in its prompts."""

    episode: RecordedEpisode
    weight: float = 1.0
    line: str = ""


def imitated(episodes: Sequence[RecordedEpisode], method: Method, top: float, beta: float) -> list[Shown]:
    """Return what is imitated of recorded play; empty if all returns are equal."""
    names = dict.fromkeys(episode.scenario for episode in episodes)
    returns = {name: np.array([one.result for one in episodes if one.scenario == name]) for name in names}
    ends = {name: (float(own.min()), float(own.max())) for name, own in returns.items()}
    if all(low == high for low, high in ends.values()):
        return []
    if method == "filtered":  # those of the highest returns of their scenario, never those of the lowest
        least = {name: float(np.quantile(own, 1 - top, method="higher")) for name, own in returns.items()}
        return [Shown(one) for one in episodes if ends[one.scenario][0] < one.result >= least[one.scenario]]
    if method == "weighted":
        return [Shown(one, weight) for one, weight in zip(episodes, _weighted(episodes, returns, beta), strict=True)]
    shown = []
    for one in episodes:
        low, high = ends[one.scenario]
        result = round(BEST * (one.result - low) / (high - low)) if high > low else BEST
        shown.append(Shown(one, line=_line(result)))
    return shown


def _weighted(episodes: Sequence[RecordedEpisode], returns: Mapping[str, Any], beta: float) -> list[float]:
    """Return ``exp(A / beta)``, at most 20, of mean 1 over the decisions; ``returns`` are those of each scenario."""
    of_seed: dict[tuple[str, int], list[float]] = {}
    for one in episodes:
        of_seed.setdefault((one.scenario, one.seed), []).append(one.result)
    means = {name: float(own.mean()) for name, own in returns.items()}
    spreads = {name: float(own.std()) or 1.0 for name, own in returns.items()}
    advantages = []
    for one in episodes:
        others = of_seed[one.scenario, one.seed]
        baseline = float(np.mean(others)) if len(others) > 1 else means[one.scenario]
        advantages.append((one.result - baseline) / spreads[one.scenario])
    return exponential(advantages, beta, [len(one.decisions) for one in episodes])


def _line(result: int) -> str:
    return f"Your result: {result} of {BEST}."


def _saying(prompt_map: PromptMap, line: str) -> PromptMap:
    """Return the prompts with this line, if there is one, in the place of that which asks for the best."""
    if not line:
        return prompt_map
    texts = replace(prompt_map.texts, opening=prompt_map.texts.opening.replace(_line(BEST), line))
    return PromptMap(prompt_map.mode, prompt_map.history_turns, texts)


def _taught(shown: Sequence[Shown], prompt_map: PromptMap) -> list["TaughtDecision"]:
    from agents.msgrpo.warmup import TaughtDecision

    found = []
    for one in shown:
        asked = _saying(prompt_map, one.line)
        found += [TaughtDecision(asked(each.request), each.response, one.weight) for each in one.episode.decisions]
    return found


def improving(episodes: Sequence[RecordedEpisode], count: int) -> list[RecordedEpisode]:
    """Return so many of the episodes from the worst to the best, at equal distances of their rank."""
    ordered = sorted(episodes, key=lambda one: one.result)
    places = np.unique(np.linspace(0, len(ordered) - 1, count).round().astype(int)) if count > 1 else [-1]
    return [ordered[place] for place in places]


def with_history(task: ImprovementTask, episodes: Sequence[RecordedEpisode], count: int) -> AgentTable:
    """Return the agent with prompts that tell so many of the episodes between the rules and what is shown."""
    prompts, parts = prompt_map_of(task.agent), [HEAD]
    for number, episode in enumerate(improving(episodes, count), 1):
        steps = [f"{each.request.observation}\nAnswer: {each.response}" for each in episode.decisions]
        parts.append(f"Game {number}:\n" + "\n\n".join(steps) + f"\nReturn: {episode.result:g}")
    texts = behind_the_rules(prompts.texts, "\n\n".join(parts))
    return with_texts(task.agent, texts, prompts.mode, task.out)
