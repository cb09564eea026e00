"""The shape of everything that tables and pages show: one JSON-able document, :class:`ViewDocument`.

The page (``benchmark.show.page``) knows nothing of run folders, environments or statistics; it draws this document,
which ``benchmark.show.document_of`` builds. The document is deterministic: the same sources give the same bytes (no
clock, no host name), so a page can be compared with the committed one. Every number in it is finite; an unknown one is
``None``.

Untrusted text (responses, error messages, names) is in here as it was written: whoever draws it must escape it.
"""

from typing import Any, Literal, NotRequired, TypedDict

SCHEMA_VERSION = 2


class EstimateView(TypedDict):
    """A :class:`agents.common.intervals.Estimate` as JSON: a figure with its interval, of 95% but for ``--until``.

    ``low <= value <= high``. Both ends are ``None`` if there are fewer than two episodes, if all of them are equal and
    it is unknown what else was possible (say, the tokens of a player without a model), and if the figure is fixed by
    definition (the normalised score of the agent that is the end of the scale).
    """

    value: float
    low: float | None
    high: float | None


class SourceView(TypedDict):
    """A run folder or a leaderboard entry that the document was made from."""

    name: str
    kind: Literal["run", "entry"]
    textbench_version: str
    commit: str | None
    dirty: bool | None
    started: str  # ISO 8601, UTC; from the manifest
    finished: str | None
    complete: bool  # every planned episode was played, without errors
    season: str | None  # the name of the season that it was played in


class PromptPiece(TypedDict):
    """A stretch of a prompt: either literal ``text`` or, with ``slot``, the step's observation or moves left."""

    text: NotRequired[str]
    slot: NotRequired[Literal["observation", "steps_left"]]


class PromptMessageView(TypedDict):
    """One chat message of a prompt; its content is the pieces joined without separator."""

    role: Literal["system", "user", "assistant"]
    pieces: list[PromptPiece]


class AgentView(TypedDict):
    """One row of the leaderboard. ``name`` is unique in the document and is what everything else refers to."""

    name: str
    spec: str  # as ``--agent`` takes it (``"openai:MODEL"``); no key and no credentials are ever in it
    kind: str
    """``"scripted"`` for players without a model, else the spec's scheme: ``"openai"``, ``"hf"``, ``"tiny"``, ..."""
    source: int  # index into ``sources``
    authorship: str | None
    """Who vouches for an entry's responses: ``"re-run here"``, ``"reproduced by maintainers"`` or ``"self-reported"``
    (:mod:`benchmark.runs.authorship`); ``None`` in a run."""
    settings: dict[str, Any]
    """Model and decoding settings as in the manifest (temperature, max_tokens, mode, ...); may be empty."""
    prompts: dict[str, list[PromptMessageView]]
    """``{scenario: messages}``: what the model is sent, with a slot for the observation. Empty for scripted players."""


class ScenarioView(TypedDict):
    """One scenario: a column group or tab of the leaderboard."""

    name: str
    env_id: str
    kwargs: dict[str, Any]
    horizon: int
    first_seed: int
    training: bool
    protocol: str  # of the runs in it, as in the scores: runs of another one have a scenario of their own
    moves: str
    num_players: int
    actions: list[str]
    instructions: str
    palette: dict[str, tuple[int, int, int]]  # ``{board character: (r, g, b)}`` for drawing boards; may be empty
    board_labels: list[list[str]] | None  # names of columns and rows, as prompts have them; ``None``: (0, 0) below left
    success_means: str  # what follows "the player": ``"reached the goal"``; empty in a game that knows no success
    legend: dict[str, str]  # ``{board character: what it is}``, for example ``{"P": "player"}``; may be empty


class BlindView(TypedDict):
    """The 0 of a scenario's normalised scores: what the best player that doesn't read gets."""

    value: float | None  # the mean over the agent's episodes, or over many others where ``exact`` is false
    policy: str  # from which distribution it draws its actions: ``"right 0.5, down 0.5"``, ``"uniform"``
    exact: (
        bool  # whether the value is computed by the game's own chances, from the start of each of the agent's episodes
    )


class ReferenceView(TypedDict):
    """The 1 of a scenario's normalised scores, on the same seeds as the agent's episodes."""

    value: float | None
    kind: Literal["optimal", "clairvoyant", "reference"] | None
    """``"optimal"``: the exact optimum of a player who knows what players are told. ``"reference"``: what the strongest
    player got, which can be beaten. A clairvoyant bound, for which hidden things are known, is never the 1."""
    source: str  # how it is computed, or who played it: ``"value iteration"``, ``"planner (search)"``


class LuckView(TypedDict):
    """How luck was taken out of an agent's returns in a scenario, and how much there was."""

    values: str  # the fixed values that luck is measured by, with their version
    beta: float  # the mean of the fitted coefficients: the corrected return is ``return - beta * luck``
    sd_ratio: float | None
    """The standard deviation of corrected returns over that of plain ones, both as distances from what the start was
    worth by these values."""
    z: float  # the luck of all episodes in standard deviations of an honest player's
    p: float  # how likely an honest player is to have at least so much, by the normal distribution


class ScoreView(TypedDict):
    """One agent in one scenario. Estimates are ``None`` when no episode was scored.

    In a game for several players an episode counts once for every seat that the agent had in it; the mean return is
    over all its seats at all its tables. Intervals are over seeds, since games of one seed depend on each other.
    """

    agent: str
    scenario: str
    protocol: str  # what an unreadable response led to: a name of ``agents.protocol.PROTOCOLS``, or ``retry:K``
    moves: str  # whether prompts list the legal moves: ``"listed"`` or ``"unlisted"``
    twin: int  # which twin of the game was played (``textgames.twins``); 0 for the game itself
    level: int  # which level of its game's ladder it is (``textgames.ladders``); 0 for none
    episodes: int  # scored episodes
    planned: int
    confidence: float  # the level of its intervals; above 0.95 if ``--until`` looked several times
    unscored: int
    """Episodes that ended in an error: neither won nor lost. With any, the scenario isn't ranked for the agent."""
    errors: dict[str, int]  # ``{reason: episodes}`` of the unscored ones
    served_by: dict[str, int]
    """``{model: episodes}``: what a server called the model that answered, with its fingerprint. More than one is a mix
    of models under one name."""
    left_out: dict[str, int]  # ``{parameter of the decoding: episodes}`` in which the server refused it: it wasn't sent
    eaten_up: int  # responses that are empty because reasoning took all of their tokens
    rank: int | None
    """From 1, by the luck-free mean return if there is one, else by the plain one; ``None`` if it isn't ranked
    (unscored or missing episodes). Agents share the rank of the best one that they can't be told apart from."""
    tied: bool  # whether it shares its rank with another agent
    mean_return: EstimateView | None  # plain
    luck_free_return: EstimateView | None
    """The mean return with luck taken out, if the game has exact values and chances (``benchmark.score.luck``)."""
    controlled_return: EstimateView | None
    """The mean return with luck taken out as far as a fixed heuristic tells it, in games whose exact values aren't
    knows (Snake). It estimates the same mean as ``mean_return``; nothing else is made of it."""
    luck: LuckView | None  # how either was made; ``None`` if neither was, or there is no chance in the game
    normalized: EstimateView | None
    """``(mean - blind) / (reference - blind)``; ``None`` too if an end is missing, or blind play gets as much as the
    reference."""
    normalized_by: Literal["luck_free", "plain"]  # which mean that is; ranks and comparisons are by the same
    normalized_plain: EstimateView | None  # the same of the plain mean
    above_blind: bool | None
    """Whether ``normalized`` and its interval are above 0: an agent for which that is false does no better than a
    player that doesn't read. ``None`` if there is no such score."""
    success_rate: EstimateView | None  # share of episodes, 0..1; ``None`` in a game that knows no success
    invalid_rate: EstimateView | None  # share of responses that named no legal action, 0..1
    invalid_reasons: dict[str, int]  # ``{reason: responses}``; reasons are values of ``textgames.UnreadableReason``
    length: EstimateView | None  # rounds per episode
    tokens: EstimateView | None  # prompt + completion tokens per episode
    cost: float | None  # US dollars over all episodes; ``None`` without a price for the model
    seconds: float | None  # mean seconds per episode. Depends on the machine and the load; doesn't count.
    seats: dict[str, EstimateView]  # ``{player: mean return in this seat}``; empty in a game for one player
    metrics: dict[str, EstimateView]
    """``{name: mean over seeds}`` of what the game tells besides the return, and of the value lost per move."""
    blind: BlindView
    reference: ReferenceView


class OverallView(TypedDict):
    """One agent over the document's ``overall_scenarios``."""

    agent: str
    rank: int | None  # from 1, by ``normalized``; ``None`` unless the agent is ranked in all of these scenarios
    tied: bool  # whether it shares its rank with another agent, as in :class:`ScoreView`
    normalized: EstimateView | None
    """Mean over games of the normalised scores, of which those below 0 count as 0; a game's scenarios share its
    weight."""
    above_blind: bool | None
    """Whether ``normalized`` and its interval are above 0, or the score and interval of one of the scenarios are, at
    the level corrected by Bonferroni for their number. ``None`` if there is no such score."""
    success: EstimateView | None
    """Mean success rate over those of the scenarios whose game knows success, weighted in the same way."""
    invalid_rate: float | None  # share of the responses that named no legal action, in everything that it played here
    scenarios: int  # how many of these scenarios it is ranked in
    lacks: list[str]  # the others


class SuiteView(TypedDict):
    """The agents over one suite of scenarios, of which the document has all."""

    name: str
    about: str
    scenarios: list[str]  # those that count: for one player, with a scale, and most agents were to play them
    normalized: dict[str, EstimateView | None]
    """``{agent: overall score}`` as in :class:`OverallView`; ``None`` for one that isn't ranked in all of these."""


class ComparisonView(TypedDict):
    """Two agents on the same seeds of one scenario. Positive means that ``a`` got the higher returns."""

    scenario: str
    a: str
    b: str
    pairs: int  # seeds that both played and scored
    difference: EstimateView  # mean of ``return_a - return_b`` over seeds
    luck_free: bool  # whether the returns of both are luck-free ones
    p_value: float  # paired sign-flip permutation test, two-sided, exact up to 1,000 pairs
    p_holm: float  # the same after Holm's correction over all comparisons of the table or the board, shown or not
    verdict: str  # ``"NAME is better"`` or ``"not told apart"``, by ``p_holm``, or by intervals that don't meet
    episodes_needed: int | None
    """Episodes to detect the observed difference with power 0.8 at level 0.05, after the same correction as ``p_holm``;
    ``None`` when the difference is 0."""
    episodes_needed_low: int | None  # the 95% interval of that number
    episodes_needed_high: int | None  # ``None``, too, if the difference may be 0


class OverallPairView(TypedDict):
    """Two agents' overall scores over the document's ``overall_scenarios``, by the resampling of their intervals."""

    a: str
    b: str
    difference: float  # positive where ``a`` is higher
    low: float | None  # its 95% interval
    high: float | None
    p: float  # two-sided, not corrected
    corrected: float
    """After correction for all comparisons: Bonferroni's for everything that a board could compare, in a comparison
    Holm's for everything in it."""
    verdict: str  # as in :class:`ComparisonView`


class OverallComparisonView(OverallPairView):
    """What ``textbench compare`` says of two agents over all scenarios, on common seeds."""

    scenarios: list[str]  # that it is over
    unit: Literal["score", "return"]  # of the difference: the return if a single scenario is compared
    comparisons: int  # that the correction is for
    decided_by: list[str]  # scenarios in which the better agent is told apart by itself
    against: list[str]  # and in which the other one is better
    starts: int  # common ones in each scenario, on average
    starts_needed: NotRequired["NeededView | None"]
    """If the agents aren't told apart: how many starts of each scenario would tell, with power 0.8 after the same
    correction, if all are as these; ``None`` if they don't differ at all."""


class NeededView(TypedDict):
    """A number of starts with its 95% interval; ``high`` is ``None`` if perhaps no number is enough."""

    value: int
    low: int
    high: int | None


class RatingView(TypedDict):
    """Head-to-head strength in a scenario for several players (Bradley-Terry, in Elo points).

    A table of more than two seats is one game for every two agents at it: the higher mean return wins.
    """

    scenario: str
    agent: str
    group: int  # agents with equal numbers are on one scale with mean 0; ratings of different groups can't be compared
    rating: EstimateView | None
    """``None`` for an agent alone in its group: it won, or lost, all games against each of the others."""
    in_cycle: bool  # whether it is one of several agents that beat each other in a circle, which no order explains
    games: int
    wins: int
    losses: int
    draws: int
    opposed: bool  # whether all games' returns sum to the same number, so that one's gain is the others' loss


class ReliabilityView(TypedDict):
    """How often an agent answers as it should, over everything that it played; nothing of it says how well it plays.

    Shares are 0..1 and in scored episodes, but for those of episodes that failed. Intervals are over seeds.
    """

    agent: str
    protocol: str  # what an unreadable response led to
    moves: str  # whether prompts listed the legal moves
    episodes: int  # that were played, times seats
    responses: int  # in the scored ones; all of a decision count, if the protocol asks again
    invalid: EstimateView | None  # of responses: named no legal action
    cut_off: EstimateView | None  # of responses: out of tokens
    refused: EstimateView | None  # of responses: the server says that the model, or a filter, declined
    forfeited: EstimateView | None  # of scored episodes: lost by a response that couldn't be read
    timed_out: EstimateView | None  # of all episodes: unscored, since a request's time was up
    failed: EstimateView | None  # of all episodes: unscored for another reason


class SkillShareView(TypedDict):
    """What one kind of decision makes of the value that an agent loses."""

    lost: EstimateView  # its share of the value lost, 0..1
    decisions: float  # its share of the decisions, 0..1


class SkillView(TypedDict):
    """At which decisions an agent loses value in a scenario whose values are exact. Intervals are over seeds."""

    agent: str
    scenario: str
    episodes: int  # whose decisions were looked at, times seats
    lost: EstimateView  # value lost per episode, in units of the return; agents that lost nothing have no row
    kinds: dict[str, SkillShareView]
    """By the keys of :data:`benchmark.score.move_losses.KINDS`; a decision may be of several kinds."""


class ProtocolView(TypedDict):
    """An agent in a scenario by one of the protocols that it played it by."""

    agent: str  # as its run calls it: the same one by every protocol
    scenario: str  # without the protocol
    protocol: str
    moves: str
    mean: EstimateView | None  # the mean return, luck-free if there is such
    invalid_rate: EstimateView | None
    difference: EstimateView | None
    """The mean of its return by this protocol less that by ``against``, over the seeds that it played by both; ``None``
    in the row of ``against`` itself."""
    against: str  # the protocol that the others are compared with, as a label: ``"random"``, ``"retry, unlisted"``
    pairs: int  # common seeds


class RungView(TypedDict):
    """What an agent kept of the headroom at one level of a ladder."""

    level: int
    scenario: str
    episodes: int  # scored ones
    kept: EstimateView  # 1 for best play, 0 for the best play that doesn't read; the interval is over starts


class LadderView(TypedDict):
    """The level of an agent: where it keeps half of what best play gets above play that doesn't read."""

    agent: str
    scenario: str  # what the levels are levels of
    level: EstimateView
    """The posterior mean and the central 95%, see ``benchmark.score.levels``. Beyond the levels that were played
    the figure means little, and only one end of the interval is there, which leaves out 5%."""
    beyond: Literal["below", "above"] | None  # whether the level is outside of those that were played
    first: int  # the easiest and
    last: int  # the hardest level that was played
    spread: float  # over how many levels the agent falls from good play to bad
    episodes: int  # scored ones, at all levels
    rungs: list[RungView]  # by level


class MeetingView(TypedDict):
    """What came of all games of two agents in a scenario for several players; ``a`` before ``b`` by name."""

    scenario: str
    a: str
    b: str
    wins: int  # of ``a``
    draws: int
    losses: int


class StepColumns(TypedDict):
    """The steps of one episode as columns of equal length, in the order played.

    With two players there is one entry per player and round; ``round`` tells which belong together. Columns that hold
    text hold an index into the document's ``texts`` (equal texts are stored once); -1 means that there is none.
    """

    round: list[int]
    player: list[str]
    board: list[int]
    """The board *before* the action: rows joined by newlines, one character a cell; -1 for games without a board."""
    observation: list[int]  # what the player read before it acted
    prompt: list[int]
    """The whole prompt where the agent's ``prompts`` pieces don't reproduce it (history is on); else -1."""
    reasoning: list[int]
    """What a model thought, if its server gives that apart from the response; else -1."""
    response: list[int]
    action: list[str]  # the executed action's name
    valid: list[bool]
    unreadable: list[str | None]  # the reason why a response was invalid
    reward: list[float]
    happened: list[int]
    """What the round did to the player and why (``"fell into a hole"``); -1 if there is nothing to tell."""
    finish_reason: list[str]


class EpisodeView(TypedDict):
    """One episode. ``id`` is unique; episodes with equal ``scenario`` and ``seed`` start from the same state."""

    id: int
    scenario: str
    seed: int
    agents: dict[str, str]  # ``{player: agent name}``; one item in the single-player scenarios
    returns: dict[str, float]
    successes: dict[str, bool]
    terminated: bool
    truncated: bool
    error: str | None
    ending: int
    """How it ended and why, as what follows "the episode": ``"reached the step limit"`` (index into ``texts``)."""
    final_board: int  # the board after the last action (index into ``texts``, or -1)
    final_observation: int
    """The last observation, which has no answer; of the first player (index into ``texts``, or -1)."""
    steps: StepColumns


class ViewDocument(TypedDict):
    """The whole document. Lists are in the order in which a page shows them by default.

    Tables of installed packages (:mod:`benchmark.show.board`) have their rows in it, each under its own key.
    """

    schema_version: int
    title: str
    textbench_version: str
    sources: list[SourceView]
    agents: list[AgentView]  # best first
    scenarios: list[ScenarioView]
    scores: list[ScoreView]  # one for every agent and scenario with at least one planned episode
    overall: list[OverallView]  # best first; agents without a rank last
    overall_scenarios: list[str]
    """What the overall score is over: the paper's scenarios where more than half of the agents were to play all of
    them, else every scenario for one player that more than half were to play."""
    suites: list[SuiteView]  # those whose scenarios are all in the document, in order
    comparisons: list[ComparisonView]
    """Pairs of agents, ``a`` before ``b`` in ``agents``: the best eight with everyone, and neighbours."""
    overall_pairs: list[OverallPairView]  # every pair of the best 30 agents
    comparisons_family: int  # how many comparisons the board could make: what the correction of the p-values counts
    ratings: list[RatingView]
    meetings: list[MeetingView]
    reliability: list[ReliabilityView]  # agents as in ``agents``
    skill: NotRequired[list[SkillView]]  # if values are exact
    protocols: NotRequired[list[ProtocolView]]  # where agents played by several
    ladders: NotRequired[list[LadderView]]  # where levels of a game were played
    texts: list[str]  # the string table of the episodes
    episodes: list[EpisodeView]
    episodes_planned: int  # how many the sources are to hold
    episodes_total: int
    """Episodes in the sources; more than ``len(episodes)`` where the page would get too large. The ones kept are the
    first seeds of every scenario, the same seeds for all agents, so that they can be shown side by side."""
