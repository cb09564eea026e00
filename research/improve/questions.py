"""Free questions to a language model, for improvers that let one reflect: every call a line of ``calls.jsonl``.

A second call with the same folder finds the answers there, each as often as it was given.
"""

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents import LanguageAgentPolicy, PromptMap, PromptTexts, TurnRequest
from agents.common import Redactor, open_for_appending, replacing
from benchmark import BenchmarkError, UsageError
from benchmark.play import AgentTable, RunOptions, secrets_of
from benchmark.runs import data_digest
from research.improve.agents import load_table
from research.improve.budget import SpendingMeter, Spent

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
