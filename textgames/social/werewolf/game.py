"""Werewolf as a text-mediated stochastic game: the rules of :mod:`rules` seen through the texts of :mod:`text`.

The setting with seven players (two wolves, seer, doctor, three villagers) is that of Xu et al., arXiv 2502.04686, with
our choices for rules that it leaves open: the lowest-numbered wolf decides, and a tie puts no player out.
"""

import itertools
from collections.abc import Sequence

from numpy.random import Generator

from textgames.settings import check_whole
from textgames.social.werewolf import rules
from textgames.social.werewolf.rules import DOCTOR, NOBODY, SEER, VILLAGER, WOLF, Phase, WerewolfState
from textgames.social.werewolf.text import WerewolfText
from textgames.texts.actions import Unreadable, UnreadableReason
from textgames.texts.commands import MESSAGE_LENGTH, Message
from textgames.tsmg import Action, JointAction, Outcome, Player, Transition

ABSTAIN = "nobody"
SILENCE = "(says nothing)"  # what is heard of a player whose response could not be read when it was to speak
MAX_PLAYERS = 12

_RANDOM_WORDS = ("I have nothing to say.", "I am not a wolf.", "I don't trust anyone here.")


class Werewolf(WerewolfText):
    """Hidden roles: wolves who know each other, and a village that has to find them by talking and voting.

    Args:
        wolves: how many wolves; fewer than all others together.
        seers: 0 or 1 player who sees a role every night; ``doctors`` likewise, who protects a player every night.
        doctors: see ``seers``.
        villagers: players without a special role.
        speeches: whether everyone who is alive speaks before the vote.
        reveal_roles: whether the role of a player who is out is told to all.
        abstain: whether one may vote for ``nobody``, which is also what an unreadable vote counts as; else that is a
            vote for the first other player.
        protect_again: whether the doctor may protect the same player two nights in a row.
        days_in_full: of how many days, today included, an observation has the speeches; votes are always told.
    """

    success_means = "is on the side that won"
    bare_responses = False
    hidden_information = True
    return_range = (-1.0, 1.0)

    def __init__(
        self,
        *,
        wolves: int = 2,
        seers: int = 1,
        doctors: int = 1,
        villagers: int = 3,
        speeches: bool = True,
        reveal_roles: bool = True,
        abstain: bool = True,
        protect_again: bool = False,
        days_in_full: int = 2,
    ) -> None:
        check_whole("wolves", wolves, 1, MAX_PLAYERS)
        check_whole("seers", seers, 0, 1)
        check_whole("doctors", doctors, 0, 1)
        check_whole("villagers", villagers, 0, MAX_PLAYERS)
        check_whole("days_in_full", days_in_full, 1)
        others = seers + doctors + villagers
        if wolves >= others or wolves + others > MAX_PLAYERS:
            raise ValueError(
                f"wolves must be fewer than all others, and at most {MAX_PLAYERS} play; got wolves={wolves} and "
                f"{others} others"
            )
        self._roles = (WOLF,) * wolves + (SEER,) * seers + (DOCTOR,) * doctors + (VILLAGER,) * villagers
        self.players = tuple(f"player_{number}" for number in range(len(self._roles)))
        self.actions: tuple[Action, ...] = ((ABSTAIN,) if abstain else ()) + self.players
        self._numbers = {player: number for number, player in enumerate(self.players)} | {ABSTAIN: NOBODY}
        self._speeches, self._reveal, self._abstain = speeches, reveal_roles, abstain
        self._again, self._days_in_full = protect_again, days_in_full
        self._message = Message(MESSAGE_LENGTH, (*self.players, "votes"), _RANDOM_WORDS)
        self._last_choices: tuple[WerewolfState | None, dict[Player, tuple[Action, ...]]] = (None, {})

    def initial_state(self, rng: Generator) -> WerewolfState:
        roles = tuple(self._roles[card] for card in rng.permutation(len(self._roles)).tolist())
        return WerewolfState(roles, (True,) * len(roles), Phase.NIGHT)

    def initial_outcomes(self) -> Sequence[tuple[float, WerewolfState]]:
        deals = sorted(set(itertools.permutations(self._roles)))
        alive = (True,) * len(self._roles)
        return [(1 / len(deals), WerewolfState(roles, alive, Phase.NIGHT)) for roles in deals]

    def to_move(self, state: WerewolfState) -> tuple[Player, ...]:
        """Return at night the deciding wolf, the seer and the doctor; by day the next speaker; in a vote all who live.

        A player who is out is never to move again, but keeps playing until its side has won or lost.
        """
        return tuple(self._choices(state))

    def legal_actions(self, state: WerewolfState, player: Player) -> tuple[Action, ...]:
        return self._choices(state).get(player, ())

    def _choices(self, state: WerewolfState) -> dict[Player, tuple[Action, ...]]:
        known, choices = self._last_choices
        if known is not state:  # asked for several times in each state
            if state.phase is Phase.VOTE:
                names, nobody = [self.players[number] for number in state.living], (ABSTAIN,) * self._abstain
                choices = {name: (*nobody, *[other for other in names if other != name]) for name in names}
            elif state.phase is Phase.SPEECHES:
                choices = {self.players[number]: () for number in rules.movers(state)}
            else:
                choices = {
                    self.players[number]: tuple(self.players[n] for n in rules.targets(state, number, self._again))
                    for number in rules.movers(state)
                }
            self._last_choices = state, choices
        return choices

    def transition(self, state: WerewolfState, joint_action: JointAction, rng: Generator) -> Transition[WerewolfState]:
        ((_, after, rewards, over),) = self.outcomes(state, joint_action)
        return after, rewards, over

    def outcomes(self, state: WerewolfState, joint_action: JointAction) -> Sequence[Outcome[WerewolfState]]:
        """Return the one outcome of a night, a speech or a vote: chance deals the roles, and nothing else."""
        chosen: dict[int, Action] = {}
        for player, legal in self._choices(state).items():
            action = joint_action.get(player)
            if action is None or (action not in legal if legal else self._message.read(action) != action):
                accepted = f"one of {', '.join(legal)}" if legal else "a message as read_action() returns it"
                raise ValueError(f"{player} needs an action, {accepted}; got {action!r}")
            chosen[self._numbers[player]] = action
        if not chosen:
            raise ValueError("the game is over; there is no next round")
        if state.phase is Phase.SPEECHES:
            after = rules.play_speech(state, chosen[state.speakers[0]])
        else:
            named = {number: self._numbers[action] for number, action in chosen.items()}
            night = state.phase is Phase.NIGHT
            after = rules.play_night(state, named, self._speeches) if night else rules.play_vote(state, named)
        over, won = after.phase is Phase.OVER, rules.winner(after) == WOLF
        paid = [(1.0 if (role == WOLF) == won else -1.0) if over else 0.0 for role in after.roles]
        return [(1.0, after, dict(zip(self.players, paid, strict=True)), over)]

    def succeeded(self, state: WerewolfState, player: Player) -> bool:
        side = WOLF if state.roles[self._numbers[player]] == WOLF else VILLAGER
        return rules.winner(state) == side

    def metrics(self, state: WerewolfState, player: Player) -> dict[str, float]:
        """Return whether it lives, its votes' share on wolves, a seer's wolves seen, a doctor's players saved."""
        number = self._numbers[player]
        role = state.roles[number]
        found = {"alive": float(state.alive[number])}
        votes = [target for day in state.days for voter, target in day.votes if voter == number and target != NOBODY]
        if votes:
            found["votes_on_wolves"] = sum(state.roles[target] == WOLF for target in votes) / len(votes)
        if role == SEER:
            seen = {night.inspected for night in state.nights} - {NOBODY}
            found["wolves_seen"] = float(sum(state.roles[target] == WOLF for target in seen))
        if role == DOCTOR:
            found["saved"] = float(sum(night.attacked == night.protected for night in state.nights))
        return found

    def read_action(self, inside: str, state: WerewolfState, player: Player) -> "Action | Unreadable":
        """Return a name; or, when it is the player's turn to speak, the whole text inside the tag as one clean line."""
        if state.phase is not Phase.SPEECHES:
            return super().read_action(inside, state, player)
        words = self._message.read(inside)
        return Unreadable(UnreadableReason.EMPTY, inside) if words is None else words

    def default_action(self, state: WerewolfState, player: Player) -> Action:
        return SILENCE if state.phase is Phase.SPEECHES else self.legal_actions(state, player)[0]

    def sample_action(self, state: WerewolfState, player: Player, rng: Generator) -> Action:
        return self._message.sample(rng) if state.phase is Phase.SPEECHES else super().sample_action(state, player, rng)

    def action_help(self, state: WerewolfState, player: Player) -> str:
        if state.phase is Phase.SPEECHES:
            return f"{self._message.help}; names that a colon follows are taken out of it"
        return super().action_help(state, player)
