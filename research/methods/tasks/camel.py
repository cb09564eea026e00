"""CAMEL: a program masks actions in training, less and less, until the policy plays alone (arXiv 2502.11896).

With probability ``epsilon_k`` a decision of iteration k is held to the actions that ``allowed(observation,
legal_actions)`` of a program returns, as ``masked(AGENT)`` has it in play; epsilon falls evenly to 0. The mask is one
of tokens: the policy samples among those that begin an allowed answer. Evaluations play without a mask.

The sampler's log-probabilities are those under the mask. With ``among = "all"`` the learner's are without it, so that
the ratio is the policy's own share in what the mask made it do, and allowed actions become likelier than others. If
``old_logprobs`` are recomputed, as ``auto`` does with several minibatches or passes, the ratio begins at 1, and masked
decisions weigh as much as the policy's own. With ``"allowed"`` both are among the same tokens, on policy, and a forced
action teaches nothing.

Our reading: the paper masks ranges of continuous actions, by programs that a language model writes; here the programs
are yours, and an action is allowed or not. The log's ``return`` is that of play with the mask; ``masked`` is the share
of decisions that it held.
"""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents import EpisodeTask, TurnRequest
from agents.msgrpo import ConfigError, Iteration, configured
from agents.msgrpo.credit import Trajectory
from research.improve.programs.players import ALLOWED, opened
from research.improve.programs.sandbox import Call

_MASKS = 0xCA3E1  # keeps what decides whether a decision is masked apart from its other randomness


@configured
class FadingMask:
    """Holds a falling share of decisions to what a program allows."""

    program: str = ""
    """A file with ``allowed(observation, legal_actions)``, which runs in a sandbox."""
    epsilon: float = Field(1.0, ge=0, le=1)
    """The share of decisions that are masked in the first iteration."""
    fade: float = Field(0.5, gt=0, le=1)
    """The share of the run's iterations after which nothing is masked."""

    among: Literal["all", "allowed"] = "all"
    """The tokens among which the update takes the probabilities of masked decisions."""

    needs: ClassVar[frozenset[str]] = frozenset()
    asks_alone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.metrics: dict[str, float] = {}

    def epsilon_of(self, iteration: Iteration) -> float:
        """Return ``epsilon_k = epsilon max(0, 1 - k / (fade K))`` in iteration k of K."""
        return self.epsilon * max(0.0, 1 - iteration.number / (self.fade * int(iteration.config.iterations)))

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        if iteration.config.engine == "ray":
            raise ConfigError(
                "engine = 'ray' with task_sampling = 'camel', whose program runs here: accepted are others"
            )
        if iteration.config.legal_only and self.among == "all":
            raise ConfigError(
                "legal_only = true with [tasks.camel] among = 'all', which takes unmasked decisions for free: "
                "accepted is among = 'allowed', or legal_only = false"
            )
        epsilon, asked, held = self.epsilon_of(iteration), 0, 0

        def mask(request: TurnRequest) -> tuple[str, ...]:
            nonlocal asked, held
            drawn = np.random.default_rng([_MASKS, *request.seed]).random() < epsilon
            names = self.allowed(request) if drawn else ()
            asked, held = asked + 1, held + bool(names)
            return names

        played = iteration.play(iteration.tasks(), mask=mask if epsilon else None)
        self.metrics = {"epsilon": epsilon, "masked": held / max(1, asked)}
        return [replace(each, allowed=None) for each in played] if self.among == "all" else played

    def allowed(self, request: TurnRequest) -> tuple[str, ...]:
        """Return the legal actions that the program allows; a ConfigError if it fails."""
        call = Call("allowed", (request.observation, list(request.legal_actions)), request.seed)
        (answer,) = self._sandbox.calls([call])
        if answer.error or not isinstance(answer.value, list):
            wrong = answer.error or f"{ALLOWED} returned {answer.value!r:.80}"
            raise ConfigError(f"[tasks.camel] program = {self.program!r}: {wrong}; accepted is a list of names")
        names = {str(name).strip().casefold() for name in answer.value}
        return tuple(name for name in request.legal_actions if name.casefold() in names)

    def check(self, task: EpisodeTask) -> None:
        wanted = f"accepted is a file with {ALLOWED}: --set tasks.camel.program=FILE"
        if not self.program:
            raise ConfigError(f"task_sampling = 'camel' on {task.scenario} has no program; {wanted}")
        try:
            self._sandbox, _ = opened(self.program, (ALLOWED,), key="camel")
        except (OSError, ValueError) as error:
            raise ConfigError(f"[tasks.camel] program = {self.program!r}: {error}; {wanted}") from error
