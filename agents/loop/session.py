"""Episodes that another loop plays: it asks for a prompt, and gives back a response.

Trainers and evaluation tools have loops of their own, in which :func:`~agents.loop.rollout.rollout` has no place. The
adapters in ``textbench.integrations`` are made of this. In a Gymnasium environment any player may sit in the other
seats: ``gym.make(id, opponents="planner")``, or ``agents.opponent(policy)``.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import LiveEpisode, ask, environment_of
from agents.models.base import CLOSE_TAG
from agents.models.reasoning import end_of_response
from agents.prompt import PromptMap
from agents.protocol import INVALID, OF_MODELS
from agents.turn import Policy, Prompt, Turn, TurnRequest, check_game, prefix_of, request_in
from textgames.environments.opponents import OpponentTurn, Together
from textgames.names import did_you_mean
from textgames.tsmg import TSMG

if TYPE_CHECKING:
    from textgames.scenarios import Scenario

Opponents = str | Policy | Mapping[str, str | Policy]
"""The players inside: a spec as :func:`agents.load_agent` takes it, a policy, or ``{player: either of them}``."""


class Outcome(NamedTuple):
    """The outcome of one response.

    The rewards of one player outside sum to its return. If several play from outside, what comes later in a round, or
    after a player's last response, is in :attr:`EpisodeSession.returns` alone.
    """

    reward: float  #: paid since the player's last outcome, until it is asked again or the episode is over
    valid: bool | None  #: ``None`` if others have to answer before the round is played, and of an error
    action: str  #: the name of the executed action; empty if ``valid`` is ``None``, and if ``retry`` asks again
    unreadable: str | None  #: the reason if it isn't valid (a value of ``textgames.UnreadableReason``), or ``None``


class EpisodeSession:
    """One episode, a response at a time.

    ::

        session = EpisodeSession("frozen-lake", seed=1_000_000)
        while not session.over:
            outcome = session.respond(ask_my_model(session.messages))
        session.episode.returns

    Every prompt stands for itself: it has the rules, the observation and, if the prompt map says so, the last turns.
    Equal seeds and equal responses give equal episodes, those of ``textbench run``.

    Args:
        scenario: a scenario, by name or itself, an environment id, or a whole task, which has the seeds and settings.
        seed: drives the layout, unless ``layout_seed`` is given, and the transitions.
        layout_seed: fixes the initial state alone. Sessions that share it and differ in ``seed`` are an MS-GRPO group.
        seat: in a game of several players, the one played from outside; the first one when not given.
        opponents: who plays the other seats. ``None``: they are played from outside as well (self-play), in turn.
        prompt_map: makes the prompts; the one that ``textbench run`` uses when not given.
        name: what the episode's record calls the player outside.
        **settings: of the environment, in place of the scenario's, and ``protocol`` and ``moves``.

    Raises:
        ValueError: no such scenario, player, agent or setting, a seed that is no whole number of at least 0, or a
            protocol of models that are asked here: ``tools`` or ``legal-only``.
    """

    def __init__(
        self,
        scenario: "Scenario | str | EpisodeTask",
        seed: int = 0,
        *,
        layout_seed: int | None = None,
        seat: str | None = None,
        opponents: Opponents | None = "random",
        prompt_map: PromptMap | None = None,
        name: str = "outside",
        **settings: Any,
    ) -> None:
        if isinstance(scenario, EpisodeTask):
            self.task = scenario
        else:
            asked_for = settings.get("protocol") or getattr(scenario, "protocol", "")
            if asked_for in OF_MODELS.values():
                raise ValueError(
                    f"protocol {asked_for!r} is for models that textbench asks itself (textbench run --protocol "
                    f"{asked_for}), and this one is asked from outside; accepted: {', '.join(INVALID)} or retry:K"
                )
            self.task = EpisodeTask.of(scenario, seed, layout_seed=layout_seed, **settings)
        self.prompt_map = PromptMap() if prompt_map is None else prompt_map
        outside = PlayedOutside(name, self.prompt_map.turns_read)
        game = environment_of(self.task).game
        players = game.players
        self._game = game
        self._inside = _policies_inside(players, seat, opponents)
        self.seat = players[0] if seat is None else seat
        """The player from outside; the first of them if there are several."""
        for policy in self._inside.values():
            check_game(policy, game)
        self._live = LiveEpisode(self.task, {player: self._inside.get(player, outside) for player in players})
        self._reported = dict.fromkeys(players, 0.0)
        self._asked: dict[str, TurnRequest] = {}  # all who are to move in this round
        self._requests: dict[str, TurnRequest] = {}  # those of them who are played from outside
        self._turns: dict[str, Turn] = {}  # what they have answered so far
        self._asked_last = self.seat
        self._episode: Episode | None = None
        self._go_on()

    @property
    def over(self) -> bool:
        return self._episode is not None

    @property
    def player(self) -> str | None:
        """The player that is asked now; ``None`` when the episode is over."""
        return next((player for player in self._requests if player not in self._turns), None)

    @property
    def reader(self) -> str:
        """The player that is asked now, or was asked last; else :attr:`seat`."""
        return self.player or self._asked_last

    @property
    def request(self) -> TurnRequest:
        """What the player who is asked may know; a RuntimeError when the episode is over."""
        if self.player is None:
            raise RuntimeError(f"the episode of {self.task.scenario!r} is over; make a new session for another one")
        return self._requests[self.player]

    @property
    def prompt(self) -> Prompt:
        """The prompt of the player who is asked, as the prompt map makes it of :attr:`request`."""
        return self.prompt_map(self.request)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """:attr:`prompt` as chat messages: ``[{"role": ..., "content": ...}]``."""
        return [message.as_chat() for message in self.prompt]

    @property
    def instructions(self) -> str:
        """The game's rules and actions, for :attr:`reader`; they don't change during an episode."""
        return self._game.instructions(self.reader)

    @property
    def returns(self) -> dict[str, float]:
        """``{player: what it was paid so far}``."""
        return dict(self._live.returns)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was played so far, of all players; the rewards are final when the episode is over."""
        return self._live.steps if self._episode is None else self._episode.steps

    def steps_of(self, player: str) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.player == player)

    @property
    def episode(self) -> Episode:
        """The whole episode as a record: steps, returns, successes, metrics; a RuntimeError until it is over."""
        if self._episode is None:
            raise RuntimeError(f"the episode of {self.task.scenario!r} isn't over: {self.player} is asked")
        return self._episode

    def last_observation(self, player: str) -> str:
        """Return a player's observation of the end state; a RuntimeError until the episode is over."""
        return self._game.observe(self.episode.end_state, player)

    def respond(self, response: str | Turn) -> Outcome:
        """Give the response of the player who is asked, and play until a player outside is asked again.

        ``response`` is what the model wrote after :attr:`prompt`, without the prefix that the prompt may end with; or a
        :class:`~agents.turn.Turn`, whose response is whole. A turn with an error ends the episode, unscored. A
        RuntimeError says that the episode is over.
        """
        player = self.request.player
        self._asked_last = player
        if not isinstance(response, Turn):
            prompt, prefix = self.prompt, prefix_of(self.prompt)
            response = Turn(prefix + response[: end_of_response(response, (CLOSE_TAG,), prefix)], prompt=prompt)
        self._turns[player] = response
        played: tuple[Step, ...] = ()
        if self.player is None:  # all outside have answered
            turns = {player: self._turns[player] for player in self._requests} | self._answers_inside()
            self._turns = {}
            played = self._live.play({player: turns[player] for player in self._asked})
            self._go_on()
        paid = self._live.returns[player] - self._reported[player]
        self._reported[player] += paid
        for step in played:
            if step.player == player:
                return Outcome(paid, step.valid, step.action, step.unreadable)
        if refused := self._live.refused_of(player):
            return Outcome(paid, False, "", refused[-1].unreadable)
        return Outcome(paid, None, "", None)

    def _answers_inside(self) -> dict[str, Turn]:
        """Return the turns of those inside who are asked in this round."""
        return {
            player: ask(self._inside[player], [request])[0]
            for player, request in self._asked.items()
            if player in self._inside
        }

    def _go_on(self) -> None:
        """Play the rounds in which no player outside is asked, to the next one in which one is, or to the end."""
        while not self._live.over:
            self._asked = self._live.requests()
            self._requests = {player: request for player, request in self._asked.items() if player not in self._inside}
            if self._requests:
                return
            self._live.play(self._answers_inside())
        self._requests = {}
        self._episode = self._live.finish()


class PlayedOutside:
    """Stands for a player outside in the record of an episode."""

    def __init__(self, name: str, history_turns: int | None) -> None:
        self.name, self.history_turns = name, history_turns

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        raise RuntimeError(f"{self.name} is played from outside: give its response to EpisodeSession.respond")


def check_seat(seat: str, players: Sequence[str]) -> None:
    """Raise a ``ValueError`` for a seat that is none of a game's players."""
    if seat not in players:
        raise ValueError(f"unknown seat {seat!r}{did_you_mean(seat, players)}; the players are {', '.join(players)}")


def _policies_inside(players: Sequence[str], seat: str | None, opponents: Opponents | None) -> dict[str, Policy]:
    """Return ``{player: policy}`` of all players who aren't played from outside."""
    if seat is not None:
        check_seat(seat, players)
    if opponents is None:
        if seat is not None:
            raise ValueError(f"seat={seat!r} leaves the other seats empty: give opponents, or leave seat out")
        return {}
    others = [player for player in players if player != (players[0] if seat is None else seat)]
    if not isinstance(opponents, Mapping):
        return dict.fromkeys(others, policy_of(opponents)) if others else {}
    if missing := [player for player in others if player not in opponents]:
        raise ValueError(
            f"opponents has no player for {', '.join(missing)}, where {seat or players[0]} is played from outside: it "
            f"has {', '.join(opponents) or 'no player'}; give one agent for all or one for each, or choose the seat"
        )
    return {player: policy_of(opponents[player]) for player in others}


def policy_of(player: str | Policy, **options: Any) -> Policy:
    """Load the player of a spec; a policy is one."""
    if not isinstance(player, str):
        return player
    from agents.load import load_agent

    return load_agent(player, **options)


def opponent(player: str | Policy, **options: Any) -> Together:
    """Make a player for the ``opponents`` of an environment of a policy, or of a spec and its options.

    A batch of games asks it once for all of them. It has no history, and draws from the environment's generator.
    """
    return Together(_Answers(player, options))


def opponent_in(game: TSMG[Any], spec: str) -> Together:
    """Load the player that an environment names among its ``opponents``; a ValueError if it can't play the game."""
    answers = _Answers(spec, {})
    check_game(answers.policy, game)
    return Together(answers)


class _Answers:
    """A player's answers; pickled as its spec, since players hold caches and models."""

    def __init__(self, player: str | Policy, options: Mapping[str, Any]) -> None:
        if not isinstance(player, str | Policy):
            raise TypeError(f"an opponent is a spec such as 'planner', or has a name and act(requests), got {player!r}")
        self._made_of = player, options
        self.policy = policy_of(player, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Answers, self._made_of

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Answers":
        return self  # Gymnasium copies its specs deeply, which would make a second model

    def __call__(self, turns: Sequence[OpponentTurn]) -> list[str]:
        requests = []
        for turn in turns:
            seed = tuple(turn.rng.integers(2**32, size=2).tolist())
            requests.append(request_in(turn.game, turn.state, turn.player, turn.steps_left, seed))
        return [answer.response for answer in ask(self.policy, requests)]
