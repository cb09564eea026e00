"""``webpilot(AGENT[, WORLD])``: tree search by an agent that plans once and reflects on every step."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents import Policy, Question, TurnRequest
from research.improve.around.choosing import SearchPolicy
from research.improve.around.questions import Asking, below, check_reads_below, said

PLAN = "Before the first move, write a plan for the whole episode in a few words."
PLANNED = "Your plan: {told}"
REFLECT = (
    "You answered: {response}\nThen you saw:\n{after}\n"
    "Say in a few words how that went and what follows for the next move."
)
REFLECTED = "Your reflection on the last step: {told}"

MOST_PLANS = 10_000
"""Plans that are kept, one an episode; all are forgotten above that, and asked for again."""


class WebPilotPolicy(SearchPolicy):
    """A search whose proposals are made below the agent's own plan and its reflection on the last step.

    Our reading of WebPilot (arXiv 2408.15978), whose global optimisation plans and reflects, and whose local one is a
    tree search: the plan is asked for once an episode, below its first observation, and the reflection before every
    later decision, below the last observation, with the answer and what came of it. Both are told to the proposals,
    which are the priors of the tree.

    Raises:
        ValueError: an option that is out of range, or a player that wouldn't read what stands below an observation.
    """

    def __init__(
        self,
        inner: Policy,
        world: Policy | None = None,
        *,
        proposals: int = 8,
        simulations: int = 64,
        depth: int = 50,
        plan: bool = True,
        reflect: bool = True,
    ) -> None:
        check_reads_below(inner)
        super().__init__(inner, world, proposals=proposals, rank_by="tree", simulations=simulations, depth=depth)
        self.name = self.name.replace("search", "webpilot", 1)
        self.plan, self.reflect = plan, reflect
        self._plans: dict[tuple[tuple[int, ...], str, str], str] = {}

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        own, *others = super().asks(players, options)
        return (own + bool(options["plan"]) + bool(options["reflect"]), *others)

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "plan": self.plan, "reflect": self.reflect}

    @property
    def history_turns(self) -> int | None:
        """All of them: the first observation names the episode, and the last step is reflected on."""
        return None

    def proposing(self, request: TurnRequest) -> Asking[TurnRequest]:
        """Return the request with the plan and the reflection below its observation, after asking for them."""
        told = list[str]()
        if self.plan:
            first = request.history[0][0] if request.history else request.observation
            key = (request.seed[:1], request.player, first)
            if key not in self._plans:
                plan = yield from self._told(request, f"{first}\n\n{PLAN}", (*request.seed[:1], 3))
                if len(self._plans) >= MOST_PLANS:
                    self._plans.clear()
                self._plans[key] = plan
            told.append(PLANNED.format(told=self._plans[key]))
        if self.reflect and request.history:
            observation, response = request.history[-1]
            question = REFLECT.format(response=response, after=request.observation)
            words = yield from self._told(request, "\n\n".join([observation, *told, question]), (*request.seed, 4))
            told.append(REFLECTED.format(told=words))
        return below(request, *told)

    @staticmethod
    def _told(request: TurnRequest, observation: str, seed: tuple[int, ...]) -> Asking[str]:
        asked = replace(request, observation=observation, history=(), history_steps_left=(), seed=seed)
        (turn,) = yield [Question(asked, words=True)]
        return said(turn)
