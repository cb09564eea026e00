"""Decisions of runs as data to train on: JSONL in the conversational formats that TRL's trainers read.

``--sft``: ``prompt`` and ``completion``. ``--preferences``: ``prompt``, ``chosen``, ``rejected``. All are lists of chat
messages, or plain texts; the other columns say where a line comes from. Records hold no prompts: an episode is played
again, and each decision is asked for anew, by the agent's own prompt map or, without a model, by the default one.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from agents.analysis.inspection import TIE, best_actions
from agents.baselines.search import PlannerPlayer, SearchPlayer, find_search_player
from agents.episode import Episode
from agents.prompt import PromptMap, as_text
from agents.turn import Message, Prompt, TurnRequest, without_prefix
from agents.wrappers import told_more, wrappers
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import replay_if_unchanged, requests_of
from benchmark.score.results import ResultColumns
from benchmark.show.document_of import prompt_map_of
from benchmark.show.export import text_output
from textgames.scenarios import Scenario
from textgames.texts.actions import CLOSE_TAG, OPEN_TAG

Kept = Literal["all", "best", "value"]
"""The decisions that become demonstrations: all valid ones; those of episodes that paid more than the mean of their
scenario and seat (all of them if returns are equal); or those with an action of the largest value."""

REASONED, BARE = "think", "direct"
EVALUATED = 1000  # episodes of a scenario, from its first seed on, that published scores may be of

Line = dict[str, Any]


class RecordedDecision(NamedTuple):
    """One valid decision of a recorded episode."""

    origin: Mapping[str, Any]  # scenario, seed, round, player, agent and action, as columns
    request: TurnRequest  # the player's information
    prompt_map: PromptMap
    response: str  # in the form of the prompt map's mode
    result: float  # the return of the player's episode
    state: Any  # of the game's rules, in which it was taken
    reward: float = 0.0  # paid until the player's next decision

    @property
    def action(self) -> str:
        return str(self.origin["action"])

    @property
    def prompt(self) -> Prompt:
        """The prompt, without the response's prefix, which the response has."""
        return without_prefix(self.prompt_map(self.request))

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [message.as_chat() for message in self.prompt]


class Source:
    """The decisions of runs and entries, read one episode at a time.

    ``mode`` is that of prompts and completions, by default each agent's own, and ``"think"`` for players without a
    model. If ``lenient``, responses that lack their mode's reasoning are left out; else they raise.

    Attributes:
        left_out: ``{why: how many episodes}`` weren't used.
        evaluation_seeds: whether an episode has a seed that published scores are of.
    """

    def __init__(self, results: ResultColumns, mode: str | None = None, *, lenient: bool = False) -> None:
        self._results, self._mode, self._lenient = results, mode, lenient
        self.left_out: Counter[str] = Counter()
        self.evaluation_seeds = False
        self._solvers: dict[str, SearchPlayer | None] = {}

    def of_agent(self, agent: str) -> "Source":
        """Return a source of one agent's episodes, whose ``left_out`` are counted in this one, too."""
        names = [{known: name for known, name in one.items() if name == agent} for one in self._results.names]
        source = Source(replace(self._results, names=names), self._mode, lenient=self._lenient)
        source.left_out = self.left_out
        return source

    def solver(self, scenario: str) -> SearchPlayer | None:
        """Return the search player that values a scenario's actions; ``None`` if there is none."""
        if scenario not in self._solvers:
            self._solvers[scenario] = find_search_player(self._results.scenarios[scenario].game())
        return self._solvers[scenario]

    def require_values(self) -> None:
        if not any(self.solver(scenario) for scenario in self._results.scenarios):
            raise UsageError(
                f"the value of an action isn't known in {', '.join(self._results.scenarios)}: choose by return with "
                "--sft FILE --keep best, or play a game that planner can play (textbench list)"
            )

    def mean_returns(self) -> dict[tuple[str, str], float]:
        """Return ``{(scenario, player): mean return}`` of the used episodes, minus infinity if all are equal."""
        returns: dict[tuple[str, str], list[float]] = {}
        for record, scenario, names, _ in self.records():
            for player, agent in record.agents.items():
                if agent in names:
                    returns.setdefault((scenario.name, player), []).append(record.returns[player])
        means = {key: sum(values) / len(values) for key, values in returns.items()}
        return {key: mean if max(returns[key]) > mean + TIE else float("-inf") for key, mean in means.items()}

    def decisions(self) -> Iterator[RecordedDecision]:
        """Yield every valid decision of the agents, in the order of the sources.

        A UsageError is raised for a mode that an agent's texts don't have, or a response that lacks its mode's
        reasoning.
        """
        self.left_out.clear()
        for record, scenario, names, prompt_maps in self.records():
            replayed = replay_if_unchanged(record, scenario)
            if replayed is None:
                self.left_out[f"{scenario.name}'s rules or texts have changed since they were played"] += 1
                continue
            past = scenario.first_seed + EVALUATED
            self.evaluation_seeds |= scenario.first_seed <= record.seed < past
            for step, request in requests_of(replayed):
                agent = record.agents[step.player]
                if agent not in names or not step.valid:
                    continue
                prompt_map = prompt_maps[agent]
                if self._lenient and not _has_its_form(step.turn.response, prompt_map.mode):
                    continue
                response = _in_mode(step.turn.response, step.action, prompt_map.mode, names[agent])
                origin = {"scenario": record.scenario, "seed": record.seed, "round": step.index, "player": step.player}
                origin |= {"agent": names[agent], "action": step.action}
                result = record.returns[step.player]
                yield RecordedDecision(origin, request, prompt_map, response, result, step.state, step.reward)

    def records(self) -> Iterator[tuple[Episode, Scenario, Mapping[str, str], Mapping[str, PromptMap]]]:
        """Yield every scored episode with its scenario, ``{agent: name here}`` and ``{agent: prompt map}``."""
        for (path, manifest), known in zip(self._results.sources, self._results.names, strict=True):
            odd = {card["name"]: why for card in manifest["agents"] if (why := _why_unknown_prompts(card)) is not None}
            names = {agent: name for agent, name in known.items() if agent not in odd}
            maps = {card["name"]: self._prompt_map(card) for card in manifest["agents"] if card["name"] in names}
            for record in RunFolder(path, manifest).records() if known else ():
                playing = set(record.agents.values())
                for agent in sorted(playing & set(known) & set(odd)):
                    self.left_out[odd[agent]] += 1
                if not playing & set(names):
                    continue
                if record.error is not None:
                    self.left_out["they broke off with an error"] += 1
                    continue
                yield record, self._results.scenarios[record.scenario], names, maps

    def _prompt_map(self, card: Mapping[str, Any]) -> PromptMap:
        own = prompt_map_of(card) or PromptMap()
        try:
            return PromptMap(self._mode or own.mode, own.history_turns, own.texts)
        except ValueError as error:
            raise UsageError(f"{card['name']}: {error}") from None


def _why_unknown_prompts(card: Mapping[str, Any]) -> str | None:
    """Return why it is unknown what an agent's answers were given to; ``None`` for most."""
    if told_more(card["spec"]):
        return f"{card['spec']} was told more than its records hold"
    if card["settings"].get("tools"):
        return "they were answered by calls of a tool (--protocol tools), and lines have answers in text"
    if len({json.dumps(own, sort_keys=True) for own in _prompt_maps(card["settings"])}) > 1:
        return f"the players in {card['spec']} are asked with different prompts, and records don't say which was"
    return None


def _prompt_maps(settings: Mapping[str, Any]) -> Iterator[Any]:
    """Yield those of an agent's models, of the others inside a wrapper as well."""
    yield from [settings["prompt_map"]] if settings.get("prompt_map") else []
    for name in wrappers():
        own = settings.get(name)
        others = own.get("others") if isinstance(own, Mapping) else None
        for other in others if isinstance(others, list) else ():
            yield from _prompt_maps(other) if isinstance(other, Mapping) else ()


def _has_its_form(response: str, mode: str) -> bool:
    return mode != REASONED or "<think>" in response


def _in_mode(response: str, action: str, mode: str, agent: str) -> str:
    if mode == BARE:
        return f"{OPEN_TAG}{action}{CLOSE_TAG}"
    if not _has_its_form(response, mode):
        raise UsageError(
            f"{agent} doesn't write its reasoning between <think> tags, as the mode think asks for: add --mode direct "
            f"to export the actions alone; it answered {response[:60]!r}"
        )
    return response


def demonstrations(source: Source, keep: Kept = "all") -> Iterator[Line]:
    """Yield lines for supervised fine-tuning."""
    if keep == "value":
        source.require_values()
    means = source.mean_returns() if keep == "best" else {}
    for decision in source.decisions():
        scenario, told = decision.origin["scenario"], dict[str, Any]()
        if keep == "best" and decision.result <= means[scenario, decision.origin["player"]] + TIE:
            continue
        if keep == "value":
            solver = source.solver(scenario)
            values = solver.values(decision.request) if solver else {}
            if solver is None or decision.action not in best_actions(solver, decision.request, values):
                continue
            told = {"value": values[decision.action], "values": _kind(solver)}
        yield {
            "prompt": decision.messages,
            "completion": _said(decision.response),
            **decision.origin,
            "return": decision.result,
            **told,
        }


def preferences(source: Source, *, own: bool = False) -> Iterator[Line]:
    """Yield lines for preference optimisation: at one prompt, a response whose action is worth more than another's.

    The better response is the best that the runs have there; if the planner knows a better one, it is the planner's,
    unless a player is to learn from its ``own`` responses alone.
    """
    source.require_values()
    answered: dict[tuple[Any, ...], dict[str, RecordedDecision]] = {}
    for decision in source.decisions():
        if source.solver(decision.origin["scenario"]) is not None:
            request = decision.request
            where = decision.origin["scenario"], decision.prompt_map(request), request.player, request.steps_left
            answered.setdefault(where, {}).setdefault(decision.response, decision)
    planner = PlannerPlayer()
    for given in answered.values():
        first = next(iter(given.values()))
        solver = source.solver(first.origin["scenario"])
        assert solver is not None, "decisions of other scenarios were left out"
        values = solver.values(first.request)
        known = [decision for decision in given.values() if decision.action in values]
        if not known:
            continue
        good = best_actions(solver, first.request, values)
        best = max(known, key=lambda decision: values[decision.action])
        chosen, action = best.response, best.action
        if not own and action not in good:
            better = planner.choose(best.request).action
            if values[better] > values[action] + TIE:
                response, action = planner.act([best.request])[0].response, better
                chosen = _in_mode(response, action, best.prompt_map.mode, planner.name)
        for decision in known:
            if decision.action not in good and values[decision.action] < values[action] - TIE:
                yield {
                    "prompt": decision.messages,
                    "chosen": _said(chosen),
                    "rejected": _said(decision.response),
                    **decision.origin,
                    "better": action,
                    "value_chosen": values[action],
                    "value_rejected": values[decision.action],
                    "values": _kind(solver),
                }


def _kind(solver: SearchPlayer) -> str:
    return "exact" if solver.exact else "search"


def _said(response: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": response}]


def write_lines(lines: Iterable[Line], file: str, *, text: bool = False) -> int:
    """Write lines as JSONL, conversations as plain ``text`` if asked, and return how many; ``"-"`` is stdout."""
    count = 0
    with text_output(file) as stream:
        for line in lines:
            if text:
                if any(isinstance(message["content"], list) for message in line["prompt"]):
                    raise UsageError("prompts with pictures are no plain text: leave --text out")
                line = {
                    name: as_text(tuple(Message(**message) for message in value)) if isinstance(value, list) else value
                    for name, value in line.items()
                }
            written = json.dumps(line, ensure_ascii=False)
            try:
                written.encode()
            except UnicodeEncodeError:  # half a surrogate pair in a response: escapes hold it, UTF-8 doesn't
                written = json.dumps(line)
            print(written, file=stream)
            count += 1
    return count
