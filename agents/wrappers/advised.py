"""``advised(PLAYER, ADVISOR)``: the second player says what it would do, and the first reads that before it answers.

The advice stands below the observation. It is the action that the advisor names, or all that it wrote where it names
none, so that an advisor with prompts of its own may write hints in words (Directional Stimulus Prompting, arXiv
2302.11520; Advisor Models, arXiv 2510.02453). ``planner`` as the advisor is the most that advice can bring, ``random``
what any advice does.
"""

from dataclasses import replace
from typing import Any

from agents.turn import Policy, TurnRequest
from agents.wrappers.around import Around, Deciding, Question, action_named, check_reads_below


class AdvisedPolicy(Around):
    """A player that reads another one's advice.

    Args:
        player: who answers.
        advisor: who is asked first.
        advice: the words below the observation, with ``{advice}`` in them.

    Raises:
        ValueError: words without a place for the advice, or a player that wouldn't read it.
    """

    def __init__(self, player: Policy, advisor: Policy, *, advice: str = "Advice: {advice}") -> None:
        if "{advice}" not in advice:
            raise ValueError(f"advice must have {{advice}} in it, where the advisor's words go; got {advice!r}")
        check_reads_below(player)
        super().__init__("advised", player, advisor)
        self.advice = advice

    @property
    def settings(self) -> dict[str, Any]:
        return {"advice": self.advice}

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask the advisor, then the player; an advisor that wrote nothing leaves the observation as it is."""
        # draws of its own: with the player's, what it says would go with how the player takes it
        asked = replace(request, seed=(*request.seed, 1))
        (told,) = yield [Question(asked, 1, words=True)]
        words = action_named(request, told.response) or told.response.strip()
        if words:
            below = self.advice.replace("{advice}", words)
            request = replace(request, observation=f"{request.observation}\n\n{below}")
        (turn,) = yield [Question(request)]
        return turn
