"""Agents as improvers hand them on: tables ``{"spec": ..., option: value}``, their prompts, and their models' answers.

``agent -> PromptTexts -> changed texts -> prompts/DIGEST.toml -> agent``. Free questions, for improvers that let a
model reflect, are lines of ``calls.jsonl``: a second call with the same folder finds the answers there, each as often
as it was given.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents import LanguageAgentPolicy, Policy, PromptMap, PromptTexts, TurnRequest
from agents.common import Redactor, open_for_appending, replacing, to_toml
from benchmark import BenchmarkError, UsageError
from benchmark.play import AGENT_NAME, AgentTable, RunOptions, load_one, secrets_of, unloaded, without_spec
from benchmark.runs import data_digest
from research.improve.budget import SpendingMeter, Spent
from textgames import Scenario


def load_table(table: AgentTable, options: RunOptions, *scenarios: Scenario) -> tuple[Policy, RunOptions]:
    """Make an agent with the options of its table, which go before those of all agents, as ``load_one`` does."""
    spec, own = str(table["spec"]), without_spec(table)
    return load_one(spec, replace(options, agent_options={spec: own} if own else None), *scenarios)


def write_agent_folder(folder: Path, table: Mapping[str, Any]) -> None:
    """Write ``agent.toml`` without the options that are ``None``; raises an OSError if it can't be written."""
    lines = [f"{option} = {to_toml(value)}\n" for option, value in table.items() if value is not None]
    with replacing(folder / AGENT_NAME) as stream:
        stream.writelines(lines)


PROMPTS = "prompts"
"""The folder of all texts that were tried."""


def prompt_map_of(agent: AgentTable) -> PromptMap:
    """Return what an agent is asked with; a UsageError if it has no language model, or several wordings."""
    own = without_spec(agent)
    policy: Any = unloaded(agent["spec"], RunOptions(agent_options={"agent": own}), "agent")
    if not isinstance(policy, LanguageAgentPolicy):
        raise UsageError(f"{agent['spec']!r} is asked with no prompts, so none can be improved: name a language model")
    if policy.prompt_map.texts.wordings:
        raise UsageError(f"{agent['spec']!r} is asked in several wordings: name one of them with --prompts")
    return policy.prompt_map


def with_texts(agent: AgentTable, texts: PromptTexts, mode: str, folder: Path) -> AgentTable:
    """Return the agent with other texts, written to a file below ``folder`` that is named after them."""
    file = folder / PROMPTS / f"{data_digest(texts.as_data())[:12]}.toml"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_prompts(file, texts)
    return {**{name: value for name, value in agent.items() if name != "system"}, "prompts": str(file), "mode": mode}


def behind_the_rules(texts: PromptTexts, text: str) -> PromptTexts:
    """Return the texts with another one, in which nothing is filled in, behind the game's rules."""
    text = text.replace("$", "$$")
    if "$instructions" in texts.opening:
        return replace(texts, opening=f"{texts.opening}\n\n{text}")
    return replace(texts, system=f"{texts.system}\n\n{text}")


def in_folder(agent: AgentTable, folder: Path) -> AgentTable:
    """Return the agent as its folder names it, whose prompts lie there."""
    return {**agent, "prompts": str(Path(agent["prompts"]).relative_to(folder))}


def write_prompts(file: Path, texts: PromptTexts) -> None:
    """Write texts so that :meth:`~agents.prompt_texts.PromptTexts.from_file` reads these, and completes nothing."""
    data = {"clock": texts.clock, **texts.as_data()}
    data["open_response"] = {**texts.response, **texts.open_response}  # what a mode has that has none of its own
    with replacing(file) as stream:
        stream.writelines(f"{key} = {to_toml(value)}\n" for key, value in data.items())


CALLS_NAME = "calls.jsonl"
LONGEST_ANSWER = 4096  # tokens, if the agent doesn't say

_AS_IT_IS = PromptTexts(
    system="", opening="$instructions", observation="$observation", response={"free": ""}, no_actions="", no_limit=""
)
"""Prompts of a game's texts that say what is asked and nothing else."""


class Questions:
    """Asks one agent with a language model; a UsageError for an agent without one."""

    def __init__(self, agent: AgentTable, file: Path, meter: SpendingMeter) -> None:
        spec = str(agent["spec"])
        policy, options = load_table(agent, RunOptions(max_tokens=LONGEST_ANSWER))
        if not isinstance(policy, LanguageAgentPolicy):
            raise UsageError(f"{spec!r} has no language model to ask: name one that has, such as openai:MODEL")
        # an answer is about moves, and isn't over with the first that it names
        decoding = replace(policy.decoding, stop=())
        self._policy = LanguageAgentPolicy(policy.model, PromptMap("free", 0, _AS_IT_IS), decoding, policy.name)
        self._spec, self._file, self._meter = spec, file, meter
        self._redactor = Redactor.from_environment(secrets=secrets_of(options))
        self._kept: dict[str, list[dict[str, Any]]] = {}
        self._asked: Counter[str] = Counter()
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # the last line of a process that was killed
            with replacing(file) as stream:
                stream.write(whole)
        try:
            for line in map(json.loads, whole.splitlines()):
                self._kept.setdefault(line["key"], []).append(line)
        except (ValueError, TypeError, KeyError) as error:
            raise UsageError(f"{file} isn't what an improvement wrote ({error}); choose another --out") from None

    def ask(self, question: str) -> str:
        """Return the answer to a question, which is charged; a BudgetSpentError before it is asked."""
        self._meter.check()
        key = data_digest([self._spec, question])
        number = self._asked[key]
        self._asked[key] += 1
        kept = self._kept.get(key, [])
        if number < len(kept):
            call = kept[number]
        else:
            (turn,) = self._policy.act([TurnRequest(question, seed=(int(key[:12], 16), number))])
            if turn.error is not None:
                raise BenchmarkError(self._redactor.scrub(f"{self._spec} could not be asked: {turn.error}"))
            tokens = [turn.paid.prompt_tokens, turn.paid.completion_tokens]
            call = {"key": key, "agent": self._spec, "question": question, "answer": turn.response}
            call |= {"tokens": tokens, "seconds": round(turn.seconds, 3)}
            with os.fdopen(open_for_appending(self._file), "a", encoding="utf-8") as lines:
                lines.write(self._redactor.scrub(json.dumps(call)) + "\n")
        self._meter.charge(Spent(sum(call["tokens"]), 1, call["seconds"]))
        return str(call["answer"])
