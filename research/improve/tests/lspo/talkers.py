"""Players of Werewolf who say this or that with equal chances, and who believe what they hear or don't."""

import numpy as np

from agents.baselines.games.social import WerewolfPlayer
from agents.turn import Turn

QUIET, DENIAL = "I have nothing to say.", "I am not a wolf."


class Talker:
    """Names others by the rules of the reference player that follows the seer, if it heeds, else at random."""

    name, heeds = "talker", True

    def act(self, requests):
        return [Turn(f"<action>{self.choose(request)}</action>") for request in requests]

    def choose(self, request):
        rng, rules = np.random.default_rng(request.seed), WerewolfPlayer(request.game)
        plan = rules.plan(request).action
        if not request.legal_actions:
            return str(rng.choice(list(dict.fromkeys([plan, QUIET, DENIAL]))))
        return plan if self.heeds else str(rng.choice(request.legal_actions))


class Deaf(Talker):
    name, heeds = "deaf", False
