"""What players of Werewolf read: what is public, what only they know, and what they are asked.

Everything that a player said stands in double quotation marks on a line of its own, and a message can hold neither line
ends nor double quotation marks, so it can't be taken for a line of the game.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from textgames.social.werewolf.rules import (
    DOCTOR,
    NOBODY,
    SEER,
    VILLAGER,
    WOLF,
    Day,
    Night,
    Phase,
    WerewolfState,
    movers,
    winner,
)
from textgames.tsmg import TSMG, JointAction, Player

SIDES = {WOLF: "the wolves", VILLAGER: "the village"}
_PLURALS = {WOLF: "wolves", SEER: "seers", DOCTOR: "doctors", VILLAGER: "villagers"}


def _name(number: int) -> str:
    return "nobody" if number == NOBODY else f"player_{number}"


def _list(numbers: Sequence[int]) -> str:
    return ", ".join([f"player_{number}" for number in numbers]) or "nobody"


def _lines(lines: Sequence[str]) -> str:
    return "".join([f"{line}\n" for line in lines])


@lru_cache(maxsize=1024)
def _secrets(roles: tuple[str, ...], nights: tuple[Night, ...], number: int) -> str:
    role, lines, done = roles[number], list[str](), list[str]()
    for night, one in enumerate(nights, 1):
        if role == WOLF:
            end = "died" if one.killed != NOBODY else "was protected"
            done.append(f"night {night} {_name(one.attacked)}, who {end}")
        elif role == SEER and one.inspected != NOBODY:
            done.append(f"night {night} {_name(one.inspected)} is a {roles[one.inspected]}")
        elif role == DOCTOR and one.protected != NOBODY:
            done.append(f"night {night} {_name(one.protected)}")
    if role == WOLF:
        wolves = [n for n, other in enumerate(roles) if other == WOLF and n != number]
        lines.append(f"Your fellow wolves: {_list(wolves)}" if wolves else "You are the only wolf.")
    told = {WOLF: "The wolves attacked", SEER: "You have seen", DOCTOR: "You have protected"}.get(role)
    nothing = "nothing yet" if role == SEER else "nobody yet"
    return _lines([*lines, f"{told}: {'; '.join(done) or nothing}"]) if told else ""


@lru_cache(maxsize=1024)
def _past(nights: tuple[Night, ...], days: tuple[Day, ...], today: int, days_in_full: int) -> str:
    """Return everything public up to the last night, in order; what was said too long before today is left out."""
    lines = []
    for number, night in enumerate(nights, 1):
        lines.append(f"Night {number}: {_name(night.killed)} was killed.")
        if number <= len(days):
            lines += _day(number, days[number - 1], in_full=today - number < days_in_full)
    return _lines(lines)


def _day(number: int, day: Day, in_full: bool) -> list[str]:
    lines = [f'Day {number}: player_{speaker} says: "{words}"' for speaker, words in day.speeches]
    if day.speeches and not in_full:
        lines = [f"Day {number}: what was said is left out here."]
    if day.votes:
        votes = ", ".join(f"player_{voter} for {_name(target)}" for voter, target in day.votes)
        lines.append(f"Day {number}: votes: {votes}.")
        lines.append(f"Day {number}: {_name(day.removed)} was voted out.")
    return lines


class WerewolfText(TSMG[WerewolfState]):
    """The texts of Werewolf, by settings that the game itself sets."""

    _roles: tuple[str, ...]
    _speeches: bool
    _reveal: bool
    _abstain: bool
    _again: bool
    _days_in_full: int
    _numbers: dict[Player, int]
    # the last state that was read, and its texts that are the same for everybody; one tuple, which is replaced whole,
    # since episodes of several threads may be read by one game
    _public: tuple[WerewolfState | None, str, str, str] = None, "", "", ""

    # ---------------------------------------------------------------- the observation

    def observe(self, state: WerewolfState, player: Player) -> str:
        """Return what a player reads; equal for all states that differ only in what is hidden from it."""
        number = self._numbers[player]
        known, heading, before, log = self._public
        if known is not state:  # several players read the same state, one after another
            heading, over = self._heading(state), state.phase is Phase.OVER
            if known is None or over or known[:2] != state[:2] or known.nights != state.nights:
                before = f"Alive: {_list(state.living)}\nOut: {'; '.join(self._deaths(state)) or 'nobody'}"
            passed = max(0, len(state.nights) - 1)
            log = _past(state.nights, state.days[:passed], len(state.days), self._days_in_full)
            if len(state.days) > passed:
                log += _lines(_day(len(state.nights), state.days[-1], in_full=True))
            self._public = state, heading, before, log
        secrets = _secrets(state.roles, state.nights, number)
        role = state.roles[number]
        status = "alive" if state.alive[number] else "out, and play no more; your side's result still counts for you"
        own = f"You are {player}, a {role}, on the side of {SIDES.get(role, SIDES[VILLAGER])}."
        return f"{heading}\n{own} You are {status}.\n{before}\n{secrets}{log}{self._question(state, number)}"

    def _heading(self, state: WerewolfState) -> str:
        if state.phase is Phase.OVER:
            return f"Werewolf. The game is over: {SIDES[winner(state) or WOLF]} won."
        if state.phase is Phase.NIGHT:
            return f"Werewolf. Night {len(state.nights) + 1}."
        return f"Werewolf. Day {len(state.nights)}, {state.phase}."

    def _deaths(self, state: WerewolfState) -> list[str]:
        shown = self._reveal or state.phase is Phase.OVER
        names = [f"{name} (a {role})" if shown else name for name, role in zip(self.players, state.roles, strict=True)]
        told = []
        for night, done in enumerate(state.nights, 1):
            if done.killed != NOBODY:
                told.append(f"{names[done.killed]} killed in night {night}")
            if night <= len(state.days) and (removed := state.days[night - 1].removed) != NOBODY:
                told.append(f"{names[removed]} voted out on day {night}")
        return told

    def _question(self, state: WerewolfState, number: int) -> str:
        if state.phase is Phase.OVER:
            return f"Roles: {', '.join(f'{p} {r}' for p, r in zip(self.players, state.roles, strict=True))}"
        if not state.alive[number]:
            return "Nothing is asked of you any more."
        if number not in movers(state):
            return "Others are deciding now."
        if state.phase is Phase.SPEECHES:
            after = f"After you speak {_list(state.speakers[1:])}" if state.speakers[1:] else "You speak last"
            return f"It is your turn to speak to all. {after}; then all vote."
        if state.phase is Phase.VOTE:
            or_nobody = " You may also vote for nobody." if self._abstain else ""
            return f"Vote now, at the same time as all others: who should be out?{or_nobody}"
        return {
            WOLF: "You choose for the wolves: whom do they attack tonight?",
            SEER: "Whose role do you want to see tonight?",
            DOCTOR: "Whom do you protect tonight?",
        }[state.roles[number]]

    # ---------------------------------------------------------------- for people

    def describe(self, state: WerewolfState) -> str:
        lines = [self._heading(state)]
        for number, (player, role) in enumerate(zip(self.players, state.roles, strict=True)):
            lines.append(f"  {'+' if state.alive[number] else '-'} {player} {role}")
        if state.nights:
            last = state.nights[-1]
            done = [f"the wolves attacked {_name(last.attacked)}"]
            if last.protected != NOBODY:
                done.append(f"the doctor protected {_name(last.protected)}")
            if last.inspected != NOBODY:
                done.append(f"the seer saw {_name(last.inspected)}")
            lines.append(f"Night {len(state.nights)}: {'; '.join(done)}.")
        if state.days:
            lines += _day(len(state.days), state.days[-1], in_full=True)
        return "\n".join(lines)

    def what_happened(
        self, state: WerewolfState, joint_action: JointAction, next_state: WerewolfState, player: Player
    ) -> str:
        number, after = self._numbers[player], next_state
        role, told = state.roles[number], list[str]()
        if not state.alive[number]:
            return ""
        if state.phase is Phase.NIGHT:
            night = after.nights[-1]
            if number == state.acting_wolf:
                told.append(f"attacked {_name(night.attacked)}" + (", in vain" if night.killed == NOBODY else ""))
            if role == DOCTOR:
                told.append(f"protected {_name(night.protected)}")
            if role == SEER:
                told.append(f"saw that {_name(night.inspected)} is a {state.roles[night.inspected]}")
            if night.killed == number:
                told.append("was killed")
        if state.phase is Phase.VOTE and after.days[-1].removed == number:
            told.append("was voted out")
        if after.phase is Phase.OVER:
            side = WOLF if role == WOLF else VILLAGER
            told.append(f"{'won' if winner(after) == side else 'lost'} with {SIDES[side]}")
        return "; ".join(told)

    # ---------------------------------------------------------------- the instructions

    def instructions(self, player: Player) -> str:
        counts = Counter(self._roles)
        roles = ", ".join(f"{number} {role if number == 1 else _PLURALS[role]}" for role, number in counts.items())
        order = "everyone who is alive speaks once to all, in an order that begins one seat further each day; then "
        spoken = order if self._speeches else ""
        night = "First comes a night. The living wolf with the lowest number chooses a player whom the wolves kill"
        if DOCTOR in self._roles:
            again = "" if self._again else ", but not the same player two nights in a row"
            night += f"; the doctor chooses a player, maybe itself, who can't be killed that night{again}"
        if SEER in self._roles:
            night += "; the seer chooses a player and learns its role"
        known = " The wolves know each other." if self._roles.count(WOLF) > 1 else ""
        nobody = " Votes for nobody count like those for a player." if self._abstain else ""
        lines = [
            f"You are {player} in a game of Werewolf of {len(self.players)} players. Their secret roles are drawn at "
            f"random: {roles}. All but the wolves are the village.",
            "The village wins when no wolf is left; the wolves win as soon as they are at least as many as all others "
            "who are alive. When the game is over every player of the side that won is paid +1 and every other -1, "
            "whether alive or out. Nothing else is paid.",
            f"{night}.{known} Nobody is told what others did, only who was killed.",
            f"By day {spoken}all who are alive vote at the same time, and all are told the votes. The one with most "
            f"votes is out; with a tie nobody is.{nobody} Then comes the next night.",
        ]
        if self._reveal:
            lines.append("The role of a player who is out is told to all.")
        names = ", ".join(self.players)
        lines.append(
            f"To choose a player, write its name: {names}."
            + (" In a vote you may write nobody instead." if self._abstain else "")
            + (" When it is your turn to speak, write what you want to say to all." if self._speeches else "")
        )
        return "\n".join(lines)
