"""Players that read something more, below the observation or in the rules, before they answer.

``advised`` and ``imagine``, ``decomposed``, ``modes`` and ``with_payoffs``; and for bandits ``ucb``, as a player and as
words: ``advised(AGENT, bounds)``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from agents import (
    Deciding,
    Policy,
    Question,
    SearchPlayers,
    Turn,
    TurnRequest,
    action_named,
    as_requests,
    lists_actions,
)
from agents.analysis import WORLD_QUESTION, asked_after
from research.improve.around.questions import Optioned, below, check_count, check_readable, choice, said
from textgames import TSMG
from textgames.exploration import Bandit, exploration_bonuses, read_evidence

SHOWN = "If you answer {action}, this is what you will see:\n{prediction}\nNow answer."
"""What stands below the observation where the player answers again."""


class AdvisedPolicy(Optioned):
    """A player that reads another one's advice, the words of ``advice`` with ``{advice}`` in them.

    That is the action that the advisor names, or all that it wrote if it names none: an advisor may write hints in
    words (Directional Stimulus Prompting, arXiv 2302.11520; Advisor Models, arXiv 2510.02453). ``planner`` is the most
    that advice can bring, ``random`` what any advice does.

    Raises:
        ValueError: words without a place for the advice, or a player that wouldn't read it.
    """

    def __init__(self, player: Policy, advisor: Policy, *, advice: str = "Advice: {advice}") -> None:
        if "{advice}" not in advice:
            raise ValueError(f"advice must have {{advice}} in it, where the advisor's words go; got {advice!r}")
        super().__init__("advised", player, advisor, shows=[player], advice=advice)
        self.advice = advice

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask the advisor, then the player; an advisor that wrote nothing leaves the observation as it is."""
        # draws of its own: with the player's, what it says would go with how the player takes it
        asked = replace(request, seed=(*request.seed, 1))
        (told,) = yield [Question(asked, 1, words=True)]
        words = action_named(request, told.response) or told.response.strip()
        if words:
            request = below(request, self.advice.replace("{advice}", words))
        (turn,) = yield [Question(request)]
        return turn


class ImaginePolicy(Optioned):
    """A player that revises its answer, ``revisions`` times at most, in view of what it would lead to.

    ``proposal -> what will be shown next -> revised answer`` (StarWM, arXiv 2602.14857); it is played as soon as it
    answers the same again. The world model is any player that can predict: a language model with the prompts ``world``,
    or one of the ends of the scale, :class:`TrueWorld` and :class:`FalseWorld`.

    Raises:
        ValueError: less than one revision, or a player that wouldn't read what is imagined or asked.
    """

    def __init__(self, player: Policy, world: Policy, *, revisions: int = 1) -> None:
        check_count("revisions", revisions)
        super().__init__("imagine", player, world, shows=[player, world], revisions=revisions)
        self.revisions = revisions

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        revisions = int(options["revisions"])
        return 1 + revisions, revisions

    def decide(self, request: TurnRequest) -> Deciding:
        """Propose, imagine and revise; an answer that names no action isn't imagined, and takes no other's place."""
        (turn,) = yield [Question(request)]
        shown = list[str]()
        for revision in range(1, self.revisions + 1):
            action = action_named(request, turn.response)
            if action is None:
                break
            (told,) = yield [Question(asked_after(request, action), 1, words=True)]
            shown.append(SHOWN.format(action=action, prediction=told.response.strip()))
            (revised,) = yield [Question(below(request, *shown, seed=(*request.seed, revision)))]
            named = action_named(request, revised.response)
            turn = turn if named is None else revised
            if named in (None, action):
                break
        return turn


class TrueWorld:
    """A world model that knows the rules: one of the possible next observations, by the true chances."""

    name = "true-world"

    def __init__(self) -> None:
        self._searchers = SearchPlayers()

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game whose next observation can't be told from what is shown and one answer."""
        name = type(game).__name__
        if not lists_actions(game):
            raise ValueError(f"{self.name} can't tell what comes next in {name}, which doesn't list its actions")
        if len(game.to_move(game.initial_state(np.random.default_rng(0)))) > 1:
            raise ValueError(f"{self.name} can't tell what comes next in {name}, whose players answer at the same time")
        try:
            check_readable(game)
        except ValueError as error:
            raise ValueError(f"{self.name} can't read {name}: {error}") from None

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [Turn(self._next(request)) for request in as_requests(requests)]

    def _next(self, request: TurnRequest) -> str:
        now, action = taken_apart(request)
        if now.game is None:
            raise ValueError(f"{self.name} takes the game: ask it with a TurnRequest")
        rng = np.random.default_rng([*request.seed, 7])
        state = self._searchers.of(now).state(now)
        after = now.game.transition(state, {now.player: action}, rng)[0]
        return now.game.observe(after, now.player)


class FalseWorld(TrueWorld):
    """A world model that knows nothing of the answer: what some random action would lead to."""

    name = "false-world"

    def _next(self, request: TurnRequest) -> str:
        now, _ = taken_apart(request)
        action = np.random.default_rng([*request.seed, 8]).choice(now.legal_actions)
        return super()._next(asked_after(now, str(action)))


def taken_apart(request: TurnRequest) -> tuple[TurnRequest, str]:
    """Return the request as it was, and the action that a world model is asked about; a ValueError if it isn't."""
    before, after = WORLD_QUESTION.split("{action}")
    now, found, rest = request.observation.rpartition(f"\n\n{before}")
    if not found or not rest.endswith(after):
        raise ValueError("a world model is asked below an observation, as imagine(PLAYER, WORLD) does")
    return replace(request, observation=now), rest.removesuffix(after)


WRITE = "Don't answer yet. Write the questions that have to be answered first, one a line."
ANSWER = "Answer this question alone: {question}"


class DecomposedPolicy(Optioned):
    """A solver that reads its own answers to the questions that a writer, mostly a small model, asks it first.

    The writer is asked once a decision, so that ``around = "decomposed(SOLVER, learner)"`` trains it on the solver's
    return (DaSLaM, arXiv 2310.18338). Each line that it writes is a question, of which the first ``subproblems`` count.
    Our reading: they are asked at the same time, and the writer doesn't see an attempt of the solver before them.

    Raises:
        ValueError: less than one subproblem, or a player that wouldn't read what it is asked.
    """

    def __init__(self, solver: Policy, writer: Policy, *, subproblems: int = 3) -> None:
        check_count("subproblems", subproblems)
        super().__init__("decomposed", solver, writer, shows=[solver, writer], subproblems=subproblems)
        self.subproblems = subproblems

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        return 1 + int(options["subproblems"]), 1

    def decide(self, request: TurnRequest) -> Deciding:
        """Have the questions written, answer each, and answer the request with them; as it is if there are none."""
        (written,) = yield [Question(below(request, WRITE, seed=(*request.seed, 1)), 1, words=True)]
        lines = [line.strip() for line in said(written).splitlines()]
        asked = [line for line in lines if line][: self.subproblems]
        if asked:
            turns = yield [
                Question(below(request, ANSWER.format(question=one), seed=(*request.seed, 2, at)), words=True)
                for at, one in enumerate(asked)
            ]
            answers = [f"{one}\n{said(turn)}" for one, turn in zip(asked, turns, strict=True)]
            request = below(request, *answers)
        (turn,) = yield [Question(request)]
        return turn


MODES = ("instant", "reasoning", "agentic")
MODE_ASKED = "How is this to be answered: instantly, after reasoning, or with the tool?"
THINK = "Don't answer yet. Reason about it in words."


class ModesPolicy(Optioned):
    """Asks an agent for its mode, and then for an answer in that mode (A2FM, arXiv 2510.12838).

    * ``instant``: it answers at once, as it does if it names no mode;
    * ``reasoning``: it writes words first, which it reads when it answers;
    * ``agentic``: the tool, any player, is asked, and the agent reads its answer.

    One model routes and answers, so that ``around = "modes(learner, TOOL)"`` trains both. ``cost`` is the price of the
    tool, ``reward = "a2fm"`` that of modes which weren't needed, and ``forced`` the share of decisions whose mode is
    drawn, so that each is learnt before it is chosen; evaluations of the training draw them too, so a trained model is
    played with 0. The turn says the mode (``served_by``). Our reading: a tool is asked once.

    Raises:
        ValueError: ``forced`` out of range, or an agent that wouldn't read what stands below an observation.
    """

    def __init__(self, agent: Policy, tool: Policy, *, forced: float = 0.0) -> None:
        if not 0 <= forced < 1:
            raise ValueError(f"forced is a number from 0 to 1, and less than 1, got {forced!r}")
        super().__init__("modes", agent, tool, shows=[agent], forced=forced)
        self.forced = forced

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        return 3, 1

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask for the mode, have its words written or its tool asked, and then for the answer."""
        rng = np.random.default_rng([*request.seed, 1])
        if rng.random() < self.forced:
            mode = MODES[rng.integers(len(MODES))]
        else:
            asked = choice(request, MODE_ASKED, names=MODES, seed=(*request.seed, 1))
            (told,) = yield [Question(asked)]
            mode = action_named(asked, told.response) or MODES[0]
        if mode == "reasoning":
            (thought,) = yield [Question(below(request, THINK, seed=(*request.seed, 2)), words=True)]
            request = below(request, thought.response.strip())
        elif mode == "agentic":
            (found,) = yield [Question(replace(request, seed=(*request.seed, 3)), 1)]
            words = action_named(request, found.response) or found.response.strip()
            request = below(request, f"The tool answers: {words}")
        (turn,) = yield [Question(request)]
        return replace(turn, served_by=turn.served_by or mode)


_CELL = re.compile(r"(\w+)\s*,\s*(\w+)\s*:\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*(?:;|$)")
LINE = re.compile(r"^- (\w+) against (\w+): you get (\S+), the other gets (\S+)$", re.MULTILINE)
"""A cell in the rules of a matrix game."""


def payoffs_in(text: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return ``{(own action, other's): (own payoff, other's)}`` of ``stag, hare: 0, 1; ...``; an equal cell's last."""
    return {(mine, his): (float(own), float(other)) for mine, his, own, other in _CELL.findall(text)}


class WithPayoffs(Optioned):
    """A player whose rules of a matrix game have the cells of ``payoffs`` in place of the game's own.

    It is GTAlign's change of payoffs at inference (arXiv 2510.08872): a player that reasons by what it reads aims at
    another outcome, without training. The game still pays by its own table, and each seat reads its own payoff first.

    Raises:
        ValueError: ``payoffs`` with no cell, or with something else, or a game whose rules have no such cell.
    """

    def __init__(self, player: Policy, *, payoffs: str = "") -> None:
        self.cells = payoffs_in(payoffs)
        if not self.cells or _CELL.sub("", payoffs).strip():
            raise ValueError(
                f"payoffs is {payoffs!r}; accepted are cells, OWN ACTION, OTHER'S: OWN PAYOFF, OTHER'S, and semicolons "
                "between them: payoffs = 'defect, cooperate: 2, 0; defect, defect: 0, 0'"
            )
        super().__init__("with_payoffs", player, payoffs=payoffs)

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game whose rules lack a cell."""
        super().check_game(game)
        start = game.initial_state(np.random.default_rng(0))
        rules = game.instructions(game.to_move(start)[0])
        if lacking := self.cells.keys() - {found.groups()[:2] for found in LINE.finditer(rules)}:
            raise ValueError(
                f"payoffs has a cell {', '.join(min(lacking))}, and the rules of {type(game).__name__} have none; "
                "accepted: the pairs of actions of a matrix game, such as prisoners-dilemma"
            )

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask the player under the changed rules."""
        told = LINE.sub(self._line, request.instructions)
        (turn,) = yield [Question(replace(request, instructions=told))]
        return turn

    def _line(self, found: re.Match[str]) -> str:
        mine, his = found.groups()[:2]
        if (mine, his) not in self.cells:
            return found[0]
        own, other = self.cells[mine, his]
        return f"- {mine} against {his}: you get {own:g}, the other gets {other:g}"


class UCBPlayer:
    """Chooses every arm once, in order, then one of the largest mean and exploration bonus together.

    EVOLvE (arXiv 2410.06238) helps a model that explores by *guided observations* of what an optimal algorithm
    computes, and by imitation of that algorithm's play: ``textbench improve imitate --set teacher=ucb``. Our reading:
    the bonus is that of the planner's UCB, ``scale * sqrt(.5 ln t / n)``.
    """

    name = "ucb"

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game that is no bandit."""
        if not isinstance(game, Bandit):
            raise ValueError(
                f"{self.name} computes confidence bounds, which {type(game).__name__} has none of: play a bandit, such "
                "as --scenario bandit"
            )

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [Turn(self._response(*self._bounds(request))) for request in as_requests(requests)]

    def _bounds(self, request: TurnRequest) -> tuple[dict[str, tuple[float, float]], str]:
        """Return ``{arm: (mean so far, exploration bonus)}``, and the word for choosing one."""
        game = request.game
        if not isinstance(game, Bandit):
            raise ValueError(f"{self.name} takes a bandit's rules: ask it with a TurnRequest that has the game")
        evidence = read_evidence(request.observation, game.actions)
        bonuses = exploration_bonuses(evidence, game.scale if game.prior == "gaussian" else 1.0)
        means = [total / max(pulls, 1) for pulls, total in zip(*evidence, strict=True)]
        return dict(zip(game.actions, zip(means, bonuses, strict=True), strict=True)), game.story.chosen

    def _response(self, bounds: dict[str, tuple[float, float]], chosen: str) -> str:
        arm = max(bounds, key=lambda name: sum(bounds[name]))
        return f"<think>It has the largest upper confidence bound.</think><plan>{arm}</plan><action>{arm}</action>"


class BoundsAdvisor(UCBPlayer):
    """Writes every arm's mean and exploration bonus, as a guided observation shows them, and names no action."""

    name = "bounds"

    def _response(self, bounds: dict[str, tuple[float, float]], chosen: str) -> str:
        told = "Average so far + exploration bonus = upper confidence bound of every arm:"
        lines = [
            f"{arm}: not {chosen} yet, so try it first"
            if bonus == float("inf")
            else f"{arm}: {mean:.2f} + {bonus:.2f} = {mean + bonus:.2f}"
            for arm, (mean, bonus) in bounds.items()
        ]
        return "\n".join([told, *lines])
