"""``webpilot(AGENT)`` asks for one plan an episode and a reflection on every step, which help if they are right."""

import re
from collections.abc import Sequence

import pytest

from agents import load_agent, request_in, search_player_of
from agents.turn import Turn, TurnRequest
from research.improve.around.webpilot import PLAN, WebPilotPolicy
from research.improve.tests.around.test_search import returns


class Pilot:
    """Plans the way to the goal, counts its steps when it reflects, and plays what plan and count say, else at random.

    A useless one writes a plan and reflections in which there is no way and no number.
    """

    name = "pilot"

    def __init__(self, useful: bool) -> None:
        self.useful, self.asked = useful, list[str]()
        self._planner, self._random = load_agent("planner"), load_agent("random")

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [Turn(self._answer(request)) for request in requests]  # type: ignore[arg-type]

    def _answer(self, request: TurnRequest) -> str:
        self.asked.append(request.observation)
        if request.observation.endswith(PLAN):
            return " ".join(self._way(request)) if self.useful else "Reach the goal."
        if request.observation.endswith("the next move."):
            before = len(re.findall("<action>", request.observation))
            return f"That went well, {before} more." if self.useful else "That went well."
        plan = re.search(r"Your plan: (.*)", request.observation)
        way = re.findall("left|right|up|down", plan[1]) if plan else []
        done = len(request.history) if "1 more" in request.observation else 0
        named = way[done] if done < len(way) else None
        return f"<action>{named}</action>" if named else self._random.act([request])[0].response

    def _way(self, request: TurnRequest) -> list[str]:
        """Return the moves of the planner; the lake isn't slippery, so they lead to the goal."""
        game, found = request.game, list[str]()
        state = search_player_of(game).state(request)
        while game.is_playing(state, request.player):
            asked = request_in(game, state, request.player, 8 - len(found))
            found.append(re.search(r"<action>(.*)</action>", self._planner.act([asked])[0].response)[1])
            state, *_ = game.transition(state, {request.player: found[-1]}, None)
        return found


@pytest.mark.parametrize(
    ("useful", "options", "gains"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"plan": False}, False),
        (True, {"reflect": False}, False),  # it plays the first move of its plan again and again
    ],
)
def test_a_good_plan_and_good_reflections_gain_everything_and_useless_ones_nothing(useful, options, gains):
    pilot = Pilot(useful)
    found = returns(WebPilotPolicy(pilot, proposals=1, **options), episodes=20).mean()
    assert found == 1.0 if gains else found <= 0.2
    assert sum(text.endswith(PLAN) for text in pilot.asked) == (20 if options.get("plan", True) else 0)


def test_what_it_asks():
    class Says:
        name, asked = "says", list[str]()

        def act(self, requests):
            self.asked += [each.observation for each in requests]
            return [Turn("go up" if each.observation.endswith(PLAN) else "<action>up</action>") for each in requests]

    policy = WebPilotPolicy(says := Says(), proposals=2)
    policy.act([TurnRequest("first", legal_actions=("up", "down"), seed=(1, 0, 0))])
    history = (("first", "<action>down</action>"),)
    policy.act([TurnRequest("second", legal_actions=("up", "down"), seed=(1, 1, 0), history=history)])
    reflection = (
        "first\n\nYour plan: go up\n\nYou answered: <action>down</action>\nThen you saw:\nsecond\n"
        "Say in a few words how that went and what follows for the next move."
    )
    second = "second\n\nYour plan: go up\n\nYour reflection on the last step: <action>up</action>"
    assert says.asked == [f"first\n\n{PLAN}", *["first\n\nYour plan: go up"] * 2, reflection, *[second] * 2]
    assert policy.asks(1, {"proposals": 2, "simulations": 64, "depth": 50, "plan": True, "reflect": True}) == (4,)
    assert policy.name == "webpilot(says)"
