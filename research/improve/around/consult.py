"""A player that asks two others in rounds, and answers in view of them: ``consult(FIRST, SECOND, CHOOSER)``."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents import Around, Deciding, Policy, Question, TurnRequest, action_named
from research.improve.around.questions import below, by_player, check_count, check_reads_below

PLACES = ("first", "second")
ASKED = "Answer, or say which player is to be asked, the first or the second."
LAST = "Answer."


class ConsultPolicy(Around):
    """Lets a chooser ask one of two players, read the answer, ask again, up to ``rounds`` times, and answer itself.

    It names ``first``, ``second`` or an action, below what it has read so far; after the last round an action alone.
    The latest answer that it has read is played if it names nothing; the first player's if it has read none. Training
    with ``around = "consult(FIRST, SECOND, learner)"`` makes a chooser, on the return less a ``cost`` for each answer
    of the second (Router-R1, arXiv 2506.09033). Our reading: a player that is asked again draws another answer, and the
    model's tokens between two questions take the place of the paper's "think" actions.

    Raises:
        ValueError: less than one round, or a chooser that wouldn't read the answers.
    """

    def __init__(self, first: Policy, second: Policy, chooser: Policy, *, rounds: int = 3) -> None:
        check_count("rounds", rounds)
        check_reads_below(chooser)
        super().__init__("consult", first, second, chooser)
        self.rounds = rounds

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        rounds = int(options["rounds"])
        return rounds, rounds, rounds + 1

    @property
    def settings(self) -> dict[str, Any]:
        return {"rounds": self.rounds}

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask the chooser, then the player that it names, and so on; the turn says which of the three answered."""
        read, latest = list[str](), None
        for number in range(self.rounds):
            names = (*PLACES, *request.legal_actions) if request.legal_actions else ()  # else any text is an action
            # its draws are apart from those of the two
            asked = below(request, *read, ASKED, legal_actions=names, seed=(*request.seed, 2, number))
            (told,) = yield [Question(asked, 2)]
            named = action_named(asked, told.response)
            if named not in PLACES:
                break
            place = PLACES.index(named)
            fresh = replace(request, seed=(*request.seed, number)) if number else request
            (turn,) = yield [Question(fresh, place)]
            answer = action_named(request, turn.response) or turn.response.strip()
            read.append(f"The {named} player answers: {answer}")
            latest = by_player(turn, self.players[place])
        else:
            (told,) = yield [Question(below(request, *read, LAST, seed=(*request.seed, 2, self.rounds)), 2)]
            named = action_named(request, told.response)
        if named is not None:
            return by_player(told, self.players[2])
        if latest is None:
            (turn,) = yield [Question(request)]
            latest = by_player(turn, self.players[0])
        return latest
