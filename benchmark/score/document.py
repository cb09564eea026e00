"""The document that tables and pages show: plain JSON, whose rows are the rows of all tables (:class:`ViewDocument`).

``benchmark.show.document_of`` builds it. The same sources give the same bytes (no clock, no host name). Every number is
finite; an unknown one is ``None``. Texts of others (responses, errors, names) are in it as they were written: a drawer
escapes them.
"""

from typing import Any, Literal, NotRequired, TypedDict

SCHEMA_VERSION = 2


class EstimateView(TypedDict):
    """A figure with its interval, of 95% but for ``--until``: ``low <= value <= high``.

    Both ends are ``None`` with fewer than two episodes, if all are equal and it is unknown what else was possible, and
    if the figure is fixed by definition (the score of the agent that is the end of the scale).
    """

    value: float
    low: float | None
    high: float | None


class SourceView(TypedDict):
    """A run folder or a leaderboard entry."""

    name: str
    kind: Literal["run", "entry"]
    textbench_version: str
    commit: str | None
    dirty: bool | None
    started: str  # ISO 8601, UTC
    finished: str | None
    complete: bool  # every planned episode was played, without errors
    season: str | None


class AgentView(TypedDict):
    """An agent; its ``name`` is unique in the document."""

    name: str
    spec: str  # as ``--agent`` takes it; it never holds a key
    kind: str  # "scripted" for players without a model, else the spec's scheme: "openai", "hf", "tiny", ...
    source: int  # index into ``sources``
    authorship: str | None  # who vouches for an entry's responses (:mod:`benchmark.runs.authorship`); None in a run
    settings: dict[str, Any]  # of model and decoding, as in the manifest


class ScenarioView(TypedDict):
    """A scenario as it was played."""

    name: str
    env_id: str
    kwargs: dict[str, Any]
    horizon: int
    first_seed: int
    training: bool
    protocol: str
    moves: str
    num_players: int
    actions: list[str]
    instructions: str
    palette: dict[str, tuple[int, int, int]]  # {board character: (r, g, b)}
    board_labels: list[list[str]] | None  # names of columns and rows; None: (0, 0) is below left
    success_means: str  # what follows "the player": "reached the goal"; empty in a game that knows no success
    legend: dict[str, str]  # {board character: what it is}


class BlindView(TypedDict):
    """The 0 of normalised scores: what the best player gets that doesn't read."""

    value: float | None  # the mean over the agent's episodes, or over many others if it isn't exact
    policy: str  # its distribution over actions: "right 0.5, down 0.5", "uniform"
    exact: bool  # whether it is computed by the game's own chances from the start of each episode


class ReferenceView(TypedDict):
    """The 1 of normalised scores, on the same seeds as the agent's episodes."""

    value: float | None
    kind: Literal["optimal", "clairvoyant", "reference"] | None
    """``"optimal"``: the exact optimum of a player that knows what players are told. ``"reference"``: what the
    strongest player got, which can be beaten. A clairvoyant bound is never the 1."""
    source: str  # how it is computed, or who played it: "value iteration", "planner (search)"


class LuckView(TypedDict):
    """The correction of an agent's returns for luck, and the amount of luck."""

    values: str  # the fixed values that luck is measured by, with their version
    beta: float  # the mean coefficient: the corrected return is ``return - beta * luck``
    sd_ratio: float | None  # standard deviation of corrected over plain returns, as distances from the start's worth
    z: float  # the luck of all episodes in standard deviations of an honest player's
    p: float  # how likely an honest player has at least so much, by the normal distribution


class ScoreView(TypedDict):
    """One agent in one scenario. Estimates are ``None`` if no episode was scored; intervals are over seeds.

    In a game for several players an episode counts once for every seat that the agent had in it.
    """

    agent: str
    scenario: str
    protocol: str  # of ``agents.protocol.PROTOCOLS``, or ``retry:K``
    moves: str  # whether prompts list the legal moves: "listed" or "unlisted"
    twin: int  # of ``textgames.twins``; 0 for the game itself
    level: int  # of ``textgames.ladders``; 0 for none
    episodes: int  # scored ones
    planned: int
    confidence: float  # the level of its intervals; above 0.95 if ``--until`` looked several times
    unscored: int  # episodes that ended in an error, neither won nor lost; with any there is no rank
    errors: dict[str, int]  # {reason: episodes} of the unscored ones
    served_by: dict[str, int]  # {model that a server says answered: episodes}; several are a mix under one name
    left_out: dict[str, int]  # {parameter of the decoding that the server refused: episodes}
    eaten_up: int  # responses that are empty because reasoning took all of their tokens
    rank: int | None  # from 1; None with unscored or missing episodes. Shared with the best one not told apart
    tied: bool
    mean_return: EstimateView | None  # plain
    luck_free_return: EstimateView | None  # if the game has exact values and chances (``benchmark.score.luck``)
    controlled_return: EstimateView | None  # the same mean, with luck removed as far as a fixed heuristic knows it
    luck: LuckView | None  # how either was made
    normalized: EstimateView | None  # (mean - blind) / (reference - blind); None too if these don't differ
    normalized_by: Literal["luck_free", "plain"]  # which mean that is; ranks and comparisons are by the same
    normalized_plain: EstimateView | None
    above_blind: bool | None  # whether ``normalized`` and its interval are above 0
    success_rate: EstimateView | None  # of episodes; None in a game that knows no success
    invalid_rate: EstimateView | None  # of responses: named no legal action
    invalid_reasons: dict[str, int]  # {a value of ``textgames.UnreadableReason``: responses}
    length: EstimateView | None  # rounds per episode
    tokens: EstimateView | None  # of prompts and completions, per episode
    cost: float | None  # US dollars over all episodes; None without a price for the model
    seconds: float | None  # mean per episode; depends on the machine and the load
    cpu_seconds: float | None  # of a core, mean per episode; None if the agent ran elsewhere or the run is older
    seats: dict[str, EstimateView]  # {player: mean return in this seat}; empty in a game for one player
    metrics: dict[str, EstimateView]  # {name: mean over seeds} of what the game reports, and the value lost per move
    blind: BlindView
    reference: ReferenceView


class OverallView(TypedDict):
    """One agent over the document's ``overall_scenarios``."""

    agent: str
    rank: int | None  # from 1, by ``normalized``; None unless it is ranked in all of these scenarios
    tied: bool
    normalized: EstimateView | None  # mean over games of normalised scores, floored at 0
    above_blind: bool | None
    """Whether ``normalized`` and its interval are above 0, or those of one scenario are, after Bonferroni."""
    success: EstimateView | None  # over those of the scenarios whose game knows success, weighted in the same way
    invalid_rate: float | None  # of all responses on this board
    scenarios: int  # how many of these scenarios it is ranked in
    lacks: list[str]  # the others


class SizeView(OverallView):
    """An agent whose model's size is known."""

    size: int  # parameters of the model, as it is loaded
    cpu_seconds: float | None  # per episode, the mean over all of its scenarios


class SuiteView(TypedDict):
    """The agents over a suite, of which the document has all scenarios."""

    name: str
    about: str
    scenarios: list[str]  # those that count: for one player, with a scale, and most agents were to play them
    normalized: dict[str, EstimateView | None]  # {agent: overall score}; None without a rank in one of these
    ratings: NotRequired[dict[str, EstimateView | None]]
    """``{agent: rating}`` over the suite's games of several agents, which weigh the same: Elo points, mean 0."""
    unrated: NotRequired[str]  # why there is no such rating, if agents meet in the suite


class NeededView(TypedDict):
    """A number of pairs or starts with its 95% interval; ``high`` is ``None`` if perhaps no number is enough."""

    value: int
    low: int
    high: int | None


class ComparisonView(TypedDict):
    """Two agents on the same seeds of one scenario. Positive means that ``a`` got the higher returns."""

    scenario: str
    a: str
    b: str
    pairs: int  # seeds that both scored
    difference: EstimateView  # mean of ``return_a - return_b`` over seeds
    luck_free: bool  # whether the returns of both are luck-free ones
    p_value: float  # paired sign-flip permutation test, two-sided, exact up to 1,000 pairs
    p_holm: float  # after Holm's correction over all comparisons of the table or the board, shown or not
    verdict: str  # "NAME is better" or "not told apart", by ``p_holm``, or by intervals that don't meet
    episodes_needed: int | None
    """Episodes to detect this difference with power 0.8 at level 0.05, after the same correction; ``None`` if it is
    0."""
    episodes_needed_low: int | None
    episodes_needed_high: int | None  # None, too, if the difference may be 0


class OverallPairView(TypedDict):
    """Two agents' overall scores, by the resampling of their intervals."""

    a: str
    b: str
    difference: float  # positive if ``a`` is higher
    low: float | None
    high: float | None
    p: float  # two-sided, not corrected
    corrected: float  # Bonferroni's over all that a board could compare; in a comparison Holm's over all of it
    verdict: str


class OverallComparisonView(OverallPairView):
    """The comparison of two agents over all scenarios, on common seeds, of ``textbench compare``."""

    scenarios: list[str]
    unit: Literal["score", "return"]  # of the difference; the return if a single scenario is compared
    comparisons: int  # that the correction is for
    decided_by: list[str]  # scenarios in which the better agent is told apart by itself
    against: list[str]  # and in which the other one is better
    starts: int  # common ones in each scenario, on average
    starts_needed: NotRequired[NeededView | None]
    """If they aren't told apart: starts of each scenario that would, with power 0.8 after the same correction."""


class RatingView(TypedDict):
    """Head-to-head strength in a scenario for several players (Bradley-Terry, in Elo points)."""

    scenario: str
    agent: str
    group: int  # ratings of one group are on one scale with mean 0; those of different groups can't be compared
    rating: EstimateView | None  # None for an agent alone in its group: it won, or lost, all games
    in_cycle: bool  # whether it is one of several agents that beat each other in a circle
    games: int
    wins: int
    losses: int
    draws: int
    opposed: bool  # whether all games' returns sum to the same number, so that one's gain is the others' loss


class ReliabilityView(TypedDict):
    """The shares of an agent's answers and episodes that failed, over everything that it played."""

    agent: str
    protocol: str
    moves: str
    episodes: int  # that were played, times seats
    responses: int  # in the scored ones; all of a decision count, if the protocol asks again
    invalid: EstimateView | None  # of responses: named no legal action
    cut_off: EstimateView | None  # of responses: out of tokens
    refused: EstimateView | None  # of responses: the model, or a filter, declined
    forfeited: EstimateView | None  # of scored episodes: lost by a response that couldn't be read
    timed_out: EstimateView | None  # of all episodes: unscored, since a request's time was up
    failed: EstimateView | None  # of all episodes: unscored for another reason


Reading = Literal["lenient", "strict"]


class ReadingView(TypedDict):
    """An agent's answers in a scenario, read again by another reading than the strict one; no score goes by it."""

    agent: str
    scenario: str
    reading: Reading
    episodes: int  # whose answers were read again, times seats
    unknown: int  # that don't replay to what the players saw, or are beyond the limit of a scenario; in no figure
    counts: dict[str, int]
    """``answers``; those ``invalid`` when they were played, of which it reads ``read``; valid ones it reads otherwise,
    ``changed``; of the decisions so read those whose values are exact, ``valued``, and those of them without a loss,
    ``optimal``; episodes in which a decision differs from what was executed, ``diverged``, and ``known`` its values."""
    invalid: EstimateView | None  # share of the answers
    read: EstimateView | None  # share of the invalid ones
    optimal: EstimateView | None  # share of the decisions that only this reading reads, if values are exact
    chance: float | None  # the share that would be optimal if they were drawn at random; None if actions aren't listed
    lost: float | None  # the value that such a decision loses, on average
    first_round: float | None  # of the first decision that differs from what was executed: from 1, on average
    lost_executed: float | None  # the value lost there by what was executed, on average
    lost_decided: float | None  # and by the decision


class SkillShareView(TypedDict):
    """The part of one kind of decision in the value that an agent loses."""

    lost: EstimateView  # its share of the value lost
    decisions: float  # its share of the decisions


class SkillView(TypedDict):
    """At which decisions an agent loses value in a scenario whose values are exact."""

    agent: str
    scenario: str
    episodes: int  # whose decisions were looked at, times seats
    lost: EstimateView  # value lost per episode, in units of the return; agents that lost nothing have no row
    kinds: dict[str, SkillShareView]  # by the keys of ``benchmark.score.move_losses.KINDS``, which overlap


class ProtocolView(TypedDict):
    """An agent in a scenario by one of the protocols that it played it by."""

    agent: str  # as its run calls it: the same one by every protocol
    scenario: str  # without the protocol
    protocol: str
    moves: str
    mean: EstimateView | None  # the mean return, luck-free if possible
    invalid_rate: EstimateView | None
    difference: EstimateView | None  # mean return by this protocol less that by ``against`` on common seeds
    against: str  # the label of the protocol that the others are compared with: "random", "retry, unlisted"
    pairs: int  # common seeds


class SampleView(TypedDict):
    """An agent's returns in a scenario over ``k`` of the samples that it drew on each start; intervals are over starts.

    Every figure is unbiased for ``k`` fresh samples: the mean over all choices of ``k`` of a start's samples.
    """

    agent: str  # the name of the first sample
    others: list[str]  # the names of the other samples
    scenario: str
    k: int
    samples: int  # that every start has
    starts: int  # that are scored in every sample
    mean: EstimateView | None  # the plain return of a sample
    best: EstimateView | None  # the mean of the highest return of k
    worst: EstimateView | None  # the mean of the lowest
    pass_at_k: EstimateView | None  # the chance that one or more of k succeed; ``None`` if the game knows no success
    pass_all_k: EstimateView | None  # the chance that all do


class RungView(TypedDict):
    """The share of the headroom that an agent kept at one level of a ladder."""

    level: int
    scenario: str
    episodes: int
    kept: EstimateView  # 1 for best play, 0 for the best play that doesn't read


class LadderView(TypedDict):
    """The level at which an agent keeps half of the surplus of best play over play that doesn't read."""

    agent: str
    scenario: str  # what the levels are levels of
    level: EstimateView  # the posterior mean and the central 95%; one end alone beyond the levels that were played
    beyond: Literal["below", "above"] | None
    first: int  # the easiest and
    last: int  # the hardest level that was played
    spread: float  # over how many levels the agent falls from good play to bad
    episodes: int
    rungs: list[RungView]


class MeetingView(TypedDict):
    """The results of all games of two agents in a scenario for several players; ``a`` before ``b`` by name."""

    scenario: str
    a: str
    b: str
    wins: int  # of ``a``
    draws: int
    losses: int


class StepColumns(TypedDict):
    """The steps of one episode as columns of equal length, an entry for each player and round."""

    round: list[int]
    player: list[str]
    board: list[str | None]  # before the action: rows joined by newlines, one character a cell
    observation: list[str | None]
    prompt: list[list[tuple[str, str]] | None]  # (role, content) of each message to a model; None for scripts
    reasoning: list[str | None]  # if the server gives that apart from the response
    response: list[str]
    action: list[str]  # that was executed
    valid: list[bool]
    unreadable: list[str | None]  # why a response was invalid
    reward: list[float]
    happened: list[str | None]  # what the round did to the player ("fell into a hole")
    lost: list[float | None]  # the value that the action lost, if the game's values are exact
    best: list[str | None]  # and actions that lose none
    finish_reason: list[str]


class EpisodeView(TypedDict):
    """One episode; those with equal ``scenario`` and ``seed`` start from the same state."""

    id: int
    scenario: str
    seed: int
    agents: dict[str, str]  # {player: agent}
    returns: dict[str, float]
    successes: dict[str, bool]
    terminated: bool
    truncated: bool
    error: str | None
    ending: str  # what follows "the episode": "reached the step limit"
    final_board: str | None
    final_observation: str | None  # of the first player
    steps: StepColumns


class ViewDocument(TypedDict):
    """The whole document. Tables of installed packages have their rows in it, each under its own key."""

    schema_version: int
    title: str
    textbench_version: str
    sources: list[SourceView]
    agents: list[AgentView]  # best first
    scenarios: list[ScenarioView]
    scores: list[ScoreView]  # one for every agent and scenario with at least one planned episode
    overall: list[OverallView]  # best first; agents without a rank last
    overall_scenarios: list[str]
    """The paper's scenarios if more than half of the agents were to play all of them, else every scenario for one
    player that more than half were to play."""
    suites: list[SuiteView]
    comparisons: list[ComparisonView]  # the best eight agents with everyone, and neighbours
    overall_pairs: list[OverallPairView]  # every pair of the best 30 agents
    comparisons_family: int  # how many comparisons the board could make: what p-values are corrected for
    ratings: list[RatingView]
    meetings: list[MeetingView]
    reliability: list[ReliabilityView]
    sizes: NotRequired[list[SizeView]]  # smallest first; if there are several
    skill: NotRequired[list[SkillView]]
    protocols: NotRequired[list[ProtocolView]]  # if agents played by several
    samples: NotRequired[list[SampleView]]  # if agents drew several on each start
    ladders: NotRequired[list[LadderView]]
    readings: NotRequired[list[ReadingView]]  # by the lenient reading, if answers couldn't be read
    episodes: list[EpisodeView]  # the first seeds of every scenario, the same ones for all agents
    episodes_planned: int
    episodes_total: int  # episodes in the sources; more than ``episodes`` if the page would get too large
