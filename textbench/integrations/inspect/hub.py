"""Single decisions as a benchmark for the Hugging Face Hub: ``python -m textbench.integrations.inspect.hub --out DIR``.

A data set whose root has an ``eval.yaml`` is a benchmark there, and ``inspect eval hf/OWNER/NAME`` evaluates on it
(https://huggingface.co/docs/hub/eval-results). Its tasks are single answers, so that a sample is one decision of an
episode, in a game that is solved exactly, in which one action is better than all others.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from agents import EpisodeSession, PromptMap
from agents.baselines.search import find_search_player
from agents.common.files import replacing_folder
from agents.common.settings import REQUIRED, option, read_words, settings
from agents.common.terminal import plain_streams
from agents.prompt import as_text
from benchmark.errors import BenchmarkError, UsageError
from benchmark.runs.plan import find_scenarios
from textgames.scenarios import Scenario

MARGIN = 1e-6
"""By so much the best action's value is larger than the next one's; less may be the solver's rounding."""
SOLVED = ("frozen-lake", "frozen-lake-slippery", "taxi", "sliding-puzzle")

CARD = """---
license: mit
configs:
{configs}---

# {title}

Single decisions of text games that are solved exactly, by the prompts of textbench. `target` is the one best action;
`value` is the expected return of playing it and then optimally, `next_value` that of the second best action.

Without reading the position:

| decisions | chance | the most frequent action alone |
| :-- | --: | --: |
{blind}
`inspect eval hf/OWNER/NAME` evaluates a model on them.
"""
EVAL = """name: {title}
description: Single decisions of solved text games; the score is the share of best actions.
evaluation_framework: inspect-ai
tasks:
"""
TASK = r"""  - id: {name}
    config: {name}
    split: test
    field_spec:
      input: input
      target: target
    solvers:
      - name: generate
    scorers:
      - name: pattern
        args:
          pattern: '(?s).*<action>\s*(.+?)\s*</action>'
"""


@settings
class Hub:
    """Write decisions of solved games as a data set with an eval.yaml, for the Hugging Face Hub."""

    out: str = option(REQUIRED, "DIR", "the data set's folder")
    scenarios: tuple[str, ...] = option(SOLVED, "NAME", f"a scenario that is solved (default: {', '.join(SOLVED)})")
    decisions: int = option(200, "N", "decisions of each scenario", ge=1, le=100_000)


def decisions_of(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Yield one decision of every episode in the order of its seeds, after a number of random moves.

    Episodes without a decision that has a single best action are left out.

    Raises:
        UsageError: the game isn't solved exactly, or has several players.
    """
    game = scenario.game()
    solver = find_search_player(game)
    if solver is None or not solver.exact or len(game.players) > 1:
        raise UsageError(f"{scenario.name} isn't a game of one player that is solved exactly: choose another scenario")
    for seed in map(scenario.seed, range(10**6)):
        rng, session, found = np.random.default_rng(seed), EpisodeSession(scenario, seed, prompt_map=PromptMap()), []
        while not session.over:
            values = solver.values(session.request)
            first, *others = sorted(values, key=lambda action: -values[action])
            if others and values[first] > values[others[0]] + MARGIN:
                place = {"id": f"{scenario.name}/{seed}/{len(session.steps)}", "input": as_text(session.prompt)}
                value, lower = round(values[first], 9), round(values[others[0]], 9)
                found.append({**place, "target": first, "value": value, "next_value": lower, "actions": list(values)})
            session.respond(str(rng.choice(list(values))))
        if found:
            yield found[rng.integers(len(found))]


def write_hub(folder: Path, scenarios: tuple[str, ...] = SOLVED, decisions: int = 200) -> None:
    """Write the data set: ``eval.yaml``, ``README.md`` and ``data/SCENARIO.jsonl``; equal arguments give equal files.

    Raises:
        UsageError: an unknown scenario, or one of :func:`decisions_of`'s.
        OSError: the folder can't be written.
    """
    rows = {name: list(islice(decisions_of(one), decisions)) for name, one in find_scenarios(scenarios).items()}
    title = "textbench decisions"
    configs = "".join(
        f"- config_name: {name}\n  data_files:\n  - split: test\n    path: data/{name}.jsonl\n" for name in rows
    )
    blind = ""
    for name, some in rows.items():
        chance = sum(1 / len(row["actions"]) for row in some) / len(some)
        most_frequent = Counter(row["target"] for row in some).most_common(1)[0][1] / len(some)
        blind += f"| {name} | {chance:.0%} | {most_frequent:.0%} |\n"
    with replacing_folder(folder, own=("eval.yaml", "README.md", "data")) as draft:
        (draft / "data").mkdir()
        (draft / "eval.yaml").write_text(EVAL.format(title=title) + "".join(TASK.format(name=name) for name in rows))
        (draft / "README.md").write_text(CARD.format(configs=configs, title=title, blind=blind))
        for name, some in rows.items():
            (draft / "data" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))


@plain_streams()
def main() -> int:
    """Write the folder that the command names."""
    asked = read_words(Hub, None, "python -m textbench.integrations.inspect.hub")
    try:
        write_hub(Path(asked.out), asked.scenarios, asked.decisions)
    except (BenchmarkError, OSError) as error:
        print(f"textbench: {error}", file=sys.stderr)
        return 2
    print(asked.out, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
