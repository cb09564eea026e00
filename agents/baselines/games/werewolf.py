"""Reference players of Werewolf: fixed rules, named as such, and no optimum.

``planner`` follows the seer. The seer says whom it saw to be a wolf, and the village votes for that player as long as
the speaker isn't known to be a wolf. While there is no such claim, the village abstains if an even number is alive,
else votes for the first player in the list. The doctor protects the player that spoke as the seer, else itself; the
wolves attack and vote against that player. They tell no lies. ``greedy`` says nothing and believes no other player.
"""

import re
from typing import NamedTuple

import numpy as np

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer
from agents.turn import TurnRequest
from textgames.social.werewolf.game import ABSTAIN

_OWN = re.compile(r"^You are (\w+), a (\w+), ", re.MULTILINE)
_SEEN = re.compile(r"night \d+ (\w+) is a (\w+)")
_FOUND_OUT = re.compile(r"(\w+) \(a wolf\)")
_CLAIM = re.compile(r'^Day \d+: (\w+) says: "I am the seer, and (\w+) is a wolf\."$', re.MULTILINE)
_QUIET = "I have nothing to say."


class _View(NamedTuple):
    """A player's view, as read from an observation."""

    role: str  #: its own role
    alive: tuple[str, ...]  #: the living players, itself included
    wolves: tuple[str, ...]  #: other living players that it knows to be wolves, as the seer or as their fellow
    cleared: frozenset[str]  #: players that it has seen to be no wolves
    seer: str  #: the living player that it believes to be the seer, or ``""``
    accused: str


class WerewolfPlayer(SearchPlayer):
    """Werewolf by fixed rules: follow the seer."""

    method = "fixed rules: the village follows the seer"

    def values(self, request: TurnRequest) -> dict[str, float]:
        raise ValueError("the reference player of Werewolf follows fixed rules and can't tell what actions are worth")

    def plan(self, request: TurnRequest) -> Choice:
        view = _read(request)
        if not request.legal_actions:
            if view.role == "seer" and view.wolves:
                return Choice(f"I am the seer, and {view.wolves[0]} is a wolf.", "The village has to know.")
            return Choice(_QUIET, "I know nothing that would help my side.")
        if ABSTAIN in request.legal_actions or "Vote now" in request.observation:
            return self._vote(view, request)
        if view.role == "doctor":
            for name, why in ((view.seer, "The seer must live."), (request.player, "I had better live.")):
                if name in request.legal_actions:
                    return Choice(name, why)
        if view.role == "wolf" and view.seer in request.legal_actions:
            return Choice(view.seer, "The seer is our greatest danger.")
        return self._random(view, request)

    def _vote(self, view: _View, request: TurnRequest) -> Choice:
        legal = request.legal_actions
        if view.role == "wolf":
            others = [name for name in legal if name not in (*view.wolves, ABSTAIN)]
            target = view.seer if view.seer in others else others[0]
            return Choice(target, f"Without {target} we are nearer to winning.")
        if view.role == "seer" and view.wolves:
            return Choice(view.wolves[0], f"I have seen that {view.wolves[0]} is a wolf.")
        if view.accused in legal:
            return Choice(view.accused, f"{view.seer} says that {view.accused} is a wolf.")
        if view.accused == request.player and view.seer in legal:
            return Choice(view.seer, f"I am no wolf, so {view.seer} lies.")
        if ABSTAIN in legal and len(view.alive) % 2 == 0:
            # with an even number a wrong vote costs the village a day, and abstaining costs it nothing
            return Choice(ABSTAIN, "We know nothing, and have as many days left if nobody is out today.")
        names = [name for name in legal if name != ABSTAIN]
        target = next((name for name in names if name not in view.cleared), names[0])
        return Choice(target, f"We know nothing, so all of us should vote for the same one, and {target} comes first.")

    def greedy(self, request: TurnRequest) -> Choice:
        if not request.legal_actions:
            return Choice(_QUIET, "I keep what I know to myself.")
        return self._random(_read(request), request)

    def _random(self, view: _View, request: TurnRequest) -> Choice:
        """Return a wolf that it knows of, for the village; else any player not known to be on its own side."""
        names = [name for name in request.legal_actions if name != ABSTAIN]
        voting = "Vote now" in request.observation
        if voting and view.role == "seer" and view.wolves:
            return Choice(view.wolves[0], f"I have seen that {view.wolves[0]} is a wolf.")
        if view.role == "wolf":
            names = [name for name in names if name not in view.wolves] or names
        if view.role == "seer":
            known = view.cleared if voting else {*view.cleared, *view.wolves}
            names = [name for name in names if name not in known] or names
        rng = np.random.default_rng(request.seed or 0)
        return Choice(names[int(rng.integers(len(names)))], "I know nothing that speaks for another choice.")


def _read(request: TurnRequest) -> _View:
    text = request.observation
    own = _OWN.search(text)
    if own is None:
        raise ValueError(f"not an observation of Werewolf: {text[:200]!r}")
    me, role = own.groups()
    alive = _names(text, "Alive")
    wolves, cleared = _names(text, "Your fellow wolves"), frozenset[str]()
    if role == "seer":
        seen = _SEEN.findall(next(line for line in text.splitlines() if line.startswith("You have seen: ")))
        wolves = tuple(name for name, shown in seen if shown == "wolf")
        cleared = frozenset(name for name, shown in seen if shown != "wolf")
    liars = set(_FOUND_OUT.findall(next(line for line in text.splitlines() if line.startswith("Out: "))))
    claims = [(speaker, named) for speaker, named in _CLAIM.findall(text) if speaker not in liars]
    first = claims[0][0] if claims else ""
    accused = next((named for speaker, named in reversed(claims) if speaker == first and named in alive), "")
    seer = first if first in alive and first != me else ""
    return _View(role, alive, tuple(name for name in wolves if name in alive), cleared, seer, accused)


def _names(text: str, label: str) -> tuple[str, ...]:
    """Return the players of the line ``"Alive: player_0, player_1"``; none if there is no such line."""
    found = re.search(rf"^{label}: (.*)$", text, re.MULTILINE)
    return tuple(re.findall(r"player_\d+", found[1])) if found else ()
