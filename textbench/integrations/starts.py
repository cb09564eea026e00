"""Episodes for trainers, and their starts: a whole group of episodes begins from one start."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from agents.episode import Episode, EpisodeTask, invalid_rate
from agents.loop.live import environment_of
from agents.loop.session import EpisodeSession, Opponents, Outcome, check_seat
from agents.prompt import PromptMap
from agents.protocol import read_protocol
from textgames.scenarios import TRAINING_SEEDS

TRAINED_WITH = {"protocol": "default"}
"""The protocol of training episodes, as in the paper: an unreadable answer executes the first legal action."""

SEEDS = 2**52
"""Transitions have a seed below this."""

_episodes = count()


class Start(NamedTuple):
    """The start of a group of episodes, and the player that is trained on them.

    Attributes:
        scenario: a scenario, or the id of an environment.
        layout_seed: fixes the initial state; the transitions have a seed of their own.
        seat: the player that is trained.
    """

    scenario: str
    layout_seed: int
    seat: str

    @classmethod
    def of(cls, row: Mapping[str, Any], scenario: str = "") -> "Start":
        """Read a row of a data set; it may leave ``scenario`` and the first player's seat out."""
        return cls(row.get("scenario") or scenario, int(row.get("layout_seed") or 0), row.get("seat") or "")


def list_starts(
    scenario: str, starts: int = 64, *, first_seed: int = 0, seats: Sequence[str] | None = None, **settings: Any
) -> list[Start]:
    """List the starts of a scenario, from training seeds.

    Args:
        scenario: a scenario, or the id of an environment.
        starts: how many layouts there are, of consecutive training seeds.
        first_seed: of the first layout.
        seats: the players that are trained, each with a start of its own for every layout; all by default.
        **settings: of the environment, if they decide who its players are; rows have no others.

    Raises:
        ValueError: no such scenario, setting or player, a setting that doesn't change who plays, or seeds that aren't
            training seeds.
    """
    if starts < 1 or first_seed < 0 or first_seed + starts > len(TRAINING_SEEDS):
        raise ValueError(
            f"training seeds are 0 to {TRAINING_SEEDS[-1]}, so that evaluation meets no layout that was trained on; "
            f"got first_seed={first_seed!r} and starts={starts!r}"
        )

    def players_with(**chosen: Any) -> Sequence[str]:
        return environment_of(EpisodeTask.of(scenario, first_seed, **chosen)).game.players

    players = players_with(**settings)
    for name in settings:
        if players_with(**{other: value for other, value in settings.items() if other != name}) == players:
            raise ValueError(
                f"starts don't hold {name}={settings[name]!r}, which doesn't change who plays: give it to what plays "
                "them, StepRollouts or game_environment of TRL, the option settings of SkyRL's environment, or that of "
                "verl's loop"
            )
    for seat in seats or ():
        check_seat(seat, players)
    return [Start(scenario, seed, seat) for seed in range(first_seed, first_seed + starts) for seat in seats or players]


def rows_of(starts: Sequence[Start], **columns: Any) -> list[dict[str, Any]]:
    """Return rows of a data set, to be written as Parquet; the game writes the prompt, which is empty here."""
    return [{"prompt": [{"role": "user", "content": ""}], **columns, **start._asdict()} for start in starts]


def begin(
    start: Start, entropy: Any, prompt_map: PromptMap, opponents: Opponents, settings: Mapping[str, Any] | None
) -> EpisodeSession:
    """Begin an episode from a start (an empty seat is the first player), with transitions of its own.

    Their seed follows from ``entropy``, as numpy takes it, and ``None`` draws it; ``settings`` are the environment's.

    Raises:
        ValueError: no such scenario, player, agent or setting, or a protocol that shows pictures.
    """
    chosen = TRAINED_WITH | dict(settings or {})
    if read_protocol(chosen["protocol"]).observe != "text":
        raise ValueError(
            f"trainers are given text alone, got protocol={chosen['protocol']!r}: leave out + and the rest"
        )
    return EpisodeSession(
        start.scenario,
        int(np.random.default_rng(entropy).integers(SEEDS)),
        layout_seed=start.layout_seed,
        seat=start.seat or None,
        opponents=opponents,
        prompt_map=prompt_map,
        **chosen,
    )


class Conversation:
    """An episode as one conversation, which grows by a response and an observation with every turn.

    Attributes:
        session: the episode; prompts have all turns, so that they end with the new observation.
        turns: how many responses were given. An episode that ended before its player was asked takes one.
    """

    def __init__(
        self,
        row: Mapping[str, Any],
        *,
        scenario: str = "frozen-lake",
        mode: str = "think",
        opponents: Opponents = "random",
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin at the start of a row; rows that are played several times have transitions of their own each time."""
        prompts = PromptMap(mode, history_turns=None)
        entropy = (int(seed), next(_episodes))
        self.session, self.turns = begin(Start.of(row, scenario), entropy, prompts, opponents, settings), 0

    def opening(self) -> list[dict[str, str]]:
        """Return the first prompt.

        A player can be out before it is asked, as one that dies in Werewolf's first night. It reads how that ended, and
        whatever it answers, :meth:`answer` pays the episode's return.
        """
        if self.session.over:
            return [{"role": "user", "content": self.session.last_observation(self.session.seat)}]
        return self.session.messages

    def answer(self, response: str) -> Outcome:
        """Give a response; a RuntimeError says that the episode is over."""
        session = self.session
        out = session.over and not self.turns
        outcome = Outcome(session.returns[session.seat], None, "", None) if out else session.respond(response)
        self.turns += 1
        return outcome

    def observation(self) -> list[dict[str, str]]:
        """Return the message that the conversation grows by; none when the episode is over."""
        return [] if self.session.over else self.session.messages[-1:]

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the player so far: return, success (1 or 0), steps, share of invalid responses."""
        session, seat = self.session, self.session.seat
        return {
            "return": session.returns[seat],
            "success": float(session.over and session.episode.successes[seat]),
            "steps": self.turns,
            "invalid_rate": invalid_rate(session.steps_of(seat)),
        }


def figures(episode: Episode, seat: str) -> dict[str, float]:
    """Return what is logged of a player's episode: its success (1 or 0), steps and share of invalid responses."""
    steps = episode.steps_of(seat)
    success = float(episode.successes[seat])
    return {"success": success, "steps": float(len(steps)), "invalid_rate": invalid_rate(steps)}
