"""Rules from a game's text at once: ``code-model`` with ``search=text``, which plays nothing before it has written."""

from pathlib import Path
from typing import Any

import numpy as np

from agents import TurnRequest, request_in
from research.improve.methods.programming.rules_explain import Explained
from research.improve.methods.programming.versions import Version
from research.improve.methods.programming.writing import NO_PROGRAM, Writer
from research.improve.programs.players import wrong_with
from research.improve.programs.rules import RulesPlayer
from research.improve.programs.sandbox import Sandbox
from textgames import Scenario


def formalised(
    asked: Writer, scenario: Scenario, seed: int, rounds: int, options: dict[str, Any], found: list[Version]
) -> None:
    """Let a writer formalise a game's description, and check its own work until it finds it right; ``found`` grows.

    Our reading of LLMFP (arXiv 2410.12112): a model states a planning problem as a program, a solver plans, and the
    model assesses and modifies its statement. It reads the instructions and the first observation of a training seed's
    episode, then its own program with the move that is planned there, or with why there is none.
    """
    game = scenario.game()
    state = game.initial_state(np.random.default_rng(seed))
    request = request_in(game, state, game.to_move(state)[0], scenario.horizon)
    shown = f"Observation:\n{request.observation}\n\nLegal actions: {', '.join(request.legal_actions)}"
    while len(found) < rounds:
        if not found or found[-1].tested.file is None:
            file, parent = asked.write(shown, "text"), None
        else:
            parent = found[-1]
            assert parent.tested.file is not None
            source = parent.tested.file.read_text(encoding="utf-8").strip()
            file = asked.write(shown, "text", "check", source=source, results=parent.tested.failures[0])
            if file is None or file == parent.tested.file:
                break  # it finds its program right
        tested = planned(file, request, options)
        found.append(Version("check" if parent else "text", parent, tested, float(tested.runs)))


def planned(file: Path | None, request: TurnRequest, options: dict[str, Any]) -> Explained:
    """Plan by rules for one observation; ``failures`` has what came of it in a sentence."""
    if file is None:
        return Explained(None, 0, (NO_PROGRAM,))
    with Sandbox(file.read_text(encoding="utf-8"), harness=RulesPlayer.harness, seconds=options["seconds"]) as sandbox:
        if (wrong := wrong_with(sandbox, RulesPlayer.functions)) is not None:
            return Explained(file, 0, (f"The program {wrong}",))
        legal = list(request.legal_actions)
        told = sandbox.call("plan", request.observation, legal, request.steps_left, options["max_states"])
    if told.error is not None:
        return Explained(file, 0, (f"Planning with it for that observation fails: {told.error}",))
    return Explained(file, 1, (f"Planning with it for that observation, the best action is {told.value}.",), True)
