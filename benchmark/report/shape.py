"""The shape of the document that the page is made from: plain JSON types, nothing else.

``results -> statistics -> Document -> page``: whoever builds a :class:`Document` decides every number; the page only
draws it. Numbers are finite (an unknown one is ``None``, never NaN). Text is untrusted everywhere: names, responses and
errors may hold anything that a model, a provider or a stranger's entry put there.

Order matters in three places, and is the builder's: ``scenarios`` as they are listed, ``scores`` best first within a
scenario, ``steps`` as they were played.
"""

from collections.abc import Iterable
from typing import NotRequired, TypedDict

Scalar = str | int | float | bool | None


class Estimate(TypedDict):
    """A figure with its interval; the ends are ``None`` where there is none (a single episode, a known constant)."""

    value: float
    low: float | None
    high: float | None


class ScenarioCard(TypedDict):
    """What a scenario is.

    Attributes:
        name: its name, as in ``textgames.SCENARIOS``.
        env_id: the environment's id.
        settings: what the environment was made with.
        horizon: steps until truncation.
        first_seed: episode k is played with seed ``first_seed + k``.
        players: the game's players, in order.
        instructions: what a player is told about the game, constant over an episode; the same for all players.
        random_return: mean return of the random player on these episodes: normalised score 0.
        optimal_return: mean return that counts as normalised score 1.
        optimal_source: what that is: ``"exact, by value iteration"``, or the search player that stands for it.
        palette: colour of the board's characters, ``{character: [red, green, blue]}`` in 0..255.
        legend: what the board's characters are, ``{character: "apple"}``; shown beside the board.
    """

    name: str
    env_id: str
    settings: dict[str, Scalar]
    horizon: int
    first_seed: int
    players: list[str]
    instructions: str
    random_return: float | None
    optimal_return: float | None
    optimal_source: str | None
    palette: NotRequired[dict[str, list[int]]]
    legend: NotRequired[dict[str, str]]


class AgentCard(TypedDict):
    """Who plays: the name that everything else refers to, and what is known about it (settings, versions, a link)."""

    name: str
    details: dict[str, Scalar]


class Score(TypedDict):
    """One agent's row in one scenario's table.

    Attributes:
        rank: its place from 1; ``None`` when it isn't ranked.
        unranked_reason: why it isn't, ``None`` when it is.
        episodes: scored episodes.
        unscored: episodes without a result (provider errors); they count in nothing else here.
        mean_return: undiscounted return per episode.
        normalised: ``(mean - random) / (optimal - random)``.
        success: share of episodes that the game counts as a success, 0..1.
        invalid: share of responses that named no legal action, 0..1.
        invalid_reasons: how many, by reason (values of ``textgames.UnreadableReason``).
        length: steps per episode.
        tokens: completion tokens per episode, ``None`` for players without a model.
        cost: US dollars for all of it, ``None`` where no price is known.
        seconds: wall-clock seconds per episode.
    """

    scenario: str
    agent: str
    rank: int | None
    unranked_reason: str | None
    episodes: int
    unscored: int
    mean_return: Estimate | None
    normalised: Estimate | None
    success: Estimate | None
    invalid: Estimate | None
    invalid_reasons: dict[str, int]
    length: Estimate | None
    tokens: Estimate | None
    cost: float | None
    seconds: float | None


class Comparison(TypedDict):
    """Two agents on the same seeds of one scenario; the page turns it round where it shows B before A.

    Attributes:
        episodes: seeds that both have a scored episode of.
        difference: mean of (return of ``a`` - return of ``b``) over those seeds.
        p_value: of a paired permutation test against no difference, two-sided.
        p_adjusted: the same, corrected for the number of scenarios (Holm).
        episodes_needed: paired episodes that it would take to tell the two apart; ``None`` when no number would.
    """

    scenario: str
    a: str
    b: str
    episodes: int
    difference: Estimate | None
    p_value: float | None
    p_adjusted: float | None
    episodes_needed: int | None


class Rating(TypedDict):
    """Head-to-head strength in a scenario for several players (Bradley-Terry, Elo scale)."""

    scenario: str
    agent: str
    rating: Estimate
    games: int


class StepRecord(TypedDict):
    """One player's part of one round.

    Attributes:
        round: from 0; players of one round follow each other.
        player: who acted.
        observation: what it read.
        response: what it answered, as it is.
        action: the action that was executed.
        unreadable: why the response named no legal action, ``None`` when it did.
        reward: of this round, format penalty included.
        board: the rows of the board before this round, top row first, one character a cell; empty without a board.
    """

    round: int
    player: str
    observation: str
    response: str
    action: str
    unreadable: str | None
    reward: float
    board: list[str]


class EpisodeRecord(TypedDict):
    """One episode, with everything that its replay shows.

    Attributes:
        agents: ``{player: agent name}``.
        returns: ``{player: sum of its rewards}``.
        successes: ``{player: whether it succeeded}``.
        ending: ``"terminated"``, ``"truncated"`` or ``"unscored"``.
        error: why it is unscored, else ``None``.
        steps: in the order played.
        final_board: the board after the last round; empty without a board.
    """

    scenario: str
    seed: int
    agents: dict[str, str]
    returns: dict[str, float]
    successes: dict[str, bool]
    ending: str
    error: str | None
    steps: list[StepRecord]
    final_board: list[str]


class Document(TypedDict):
    """Everything that a page shows.

    Attributes:
        title: the page's heading.
        subtitle: a line below it: what this is a result of.
        provenance: where it came from (version, commit, date, seeds), shown in the footer.
        confidence: level of every interval, 0.95.
        episodes: may be any iterable, read once: a hundred thousand episodes needn't be in memory at a time.
        episodes_left_out: how many were scored but aren't on the page.
    """

    title: str
    subtitle: str
    provenance: dict[str, Scalar]
    confidence: float
    scenarios: list[ScenarioCard]
    agents: list[AgentCard]
    scores: list[Score]
    comparisons: list[Comparison]
    ratings: list[Rating]
    episodes: Iterable[EpisodeRecord]
    episodes_left_out: int
