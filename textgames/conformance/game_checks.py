"""The checks of a game itself: its names, its rules and its texts, without an environment around it."""

import copy
import itertools
import math
import pickle
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from textgames.conformance.play import (
    ROUNDS,
    ConformanceError,
    Result,
    Round,
    draw,
    initial_state,
    legal_actions,
    playing,
    require,
    rounds_of,
    to_move,
    transition,
)
from textgames.environments.spaces import ObservationText
from textgames.names import misspelt
from textgames.registry import game_of
from textgames.tsmg import TSMG

_MOST_NAMED = 24
_DRAWS = 2000
_IMPURE = "it depends on something that is not in the state, on history or on chance"
_NO_ACTION = "no such action"
_NOT_ACTIONS = (
    "", " \n", "<action></action>", "<action>", "</action>", "<think>a thought</think>", "a thought\nand another",
    "☃\x00\u2028\n", "<action> <x> </action>", "<plan>" + "y" * 10_000,
)  # fmt: skip


def check_names(id: str, settings: Mapping[str, Any]) -> None:
    """Check that players and actions have distinct names, and an action's name can be read in a response."""
    game = game_of(id, **settings)
    for kind, names in (("players", game.players), ("actions", game.actions)):
        strings = isinstance(names, tuple) and all(isinstance(name, str) and name for name in names)
        enough = bool(names) or kind == "actions"
        require(strings and enough, f"{kind} must be a tuple of at least one name, got {names!r}")
        require(len(set(names)) == len(names), f"{kind} has a name twice: {names}")
    require(game.noop in (None, *game.actions), f"noop must be None or one of the actions, got {game.noop!r}")
    # no public name may be nearly one of the contract's which the game leaves as it is
    bases = [cls for cls in type(game).__mro__ if not issubclass(TSMG, cls)]
    own = {name for cls in bases for name in vars(cls)} | set(vars(game))
    contract = {name for name in dir(TSMG) if not name.startswith("_")}
    for name in sorted(own - contract):
        meant = None if name.startswith("_") else misspelt(name, sorted(contract - own))
        require(meant is None, f"{type(game).__name__} has {name}, which nothing asks for (did you mean {meant!r}?)")
    if not game.actions:
        _require_open_actions(game)


def _require_open_actions(game: TSMG[Any]) -> None:
    """Require that a game which lists no actions says itself what a player may write."""
    start = initial_state(game, np.random.default_rng(0))
    player = to_move(game, start)[0]
    if game.legal_actions(start, player):
        return
    asked: dict[str, Callable[[], str]] = {
        "default_action": lambda: game.default_action(start, player),
        "sample_action": lambda: game.sample_action(start, player, np.random.default_rng(0)),
        "action_help": lambda: game.action_help(start, player),
    }
    for name, ask in asked.items():
        try:
            told = ask()
        except (IndexError, ValueError):  # the base class takes one of the legal actions, and there are none
            told = ""
        require(bool(told), f"a game that lists no actions needs a {name}() of its own")


def check_states(id: str, settings: Mapping[str, Any]) -> None:
    """Check that states are values that rounds don't change, and every player plays at the start, whatever the seed."""
    game = game_of(id, **settings)
    for seed in range(20):
        initial_state(game, np.random.default_rng(seed))
    for _ in rounds_of(game):
        pass  # every answer is checked on the way


def check_purity(id: str, settings: Mapping[str, Any]) -> None:
    """Check that all answers depend on what is given alone: not on what was played before, nor on other randomness."""
    game, untouched = game_of(id, **settings), _global_generators()
    played = [(round_, _everything_told(game, round_.state, round_)) for round_ in rounds_of(game)]
    require(
        _global_generators() == untouched,
        "the game draws from a global generator (random or numpy.random); it must draw from the rng that it is given",
    )
    # Equal states must behave equally, so every question is put again to the first of the states that are equal: what
    # their equality leaves out is noticed. The order is another one, so that a dependence on history is noticed too.
    first_of_equals = {round_.state: round_.state for round_, _ in reversed(played)}
    for round_, told in reversed(played):
        _require_same_answers(game, first_of_equals[round_.state], round_, told, "when asked again")
    new = game_of(id, **settings)
    for round_, told in reversed(played):
        copied = pickle.loads(pickle.dumps(round_.state))
        _require_same_answers(new, copied, round_, told, "when asked in a new game")
    for seed in range(10):  # a game with few starts may draw the same one twice by chance
        starts = [each.initial_state(np.random.default_rng(seed)) for each in (game, game, new)]
        require(
            starts[0] == starts[1] == starts[2],
            "initial_state() gave different states for equal generators; it must draw everything random from rng",
        )


def _require_same_answers(
    game: TSMG[Any], state: Any, round_: Round, told: dict[tuple[str, str], Any], when: str
) -> None:
    for (method, player), answer in _everything_told(game, state, round_).items():
        before = told[method, player]
        require(answer == before, f"{method}() of {player} said {before!r}, and {answer!r} {when}: {_IMPURE}")
    result: Result = game.transition(state, dict(round_.joint_action), copy.deepcopy(round_.rng))
    same = "for an equal state, equal actions and an equal generator"
    require(result == round_.result, f"transition() gave another result {when}, {same}: {_IMPURE}")


def _everything_told(game: TSMG[Any], state: Any, round_: Round) -> dict[tuple[str, str], Any]:
    told: dict[tuple[str, str], Any] = {("to_move", "everybody"): game.to_move(state)}
    for player in game.players:
        for method in (game.observe, game.is_playing, game.succeeded, game.metrics):
            told[method.__name__, player] = method(state, player)
        if player in told["to_move", "everybody"]:
            for ask in (game.legal_actions, game.default_action, game.action_help):
                told[ask.__name__, player] = ask(state, player)
        told["instructions", player] = game.instructions(player)
        told["what_happened", player] = game.what_happened(state, round_.joint_action, round_.result[0], player)
    return told


def _global_generators() -> tuple[Any, ...]:
    name, keys, position, *_ = np.random.get_state()
    return random.getstate(), name, np.asarray(keys).tobytes(), position


def check_actions(id: str, settings: Mapping[str, Any]) -> None:
    """Check that the rules take the legal actions of those who are to move and refuse all else, with a ValueError."""
    game = game_of(id, **settings)
    for state, joint_action, rng, result in rounds_of(game):
        players = to_move(game, state)
        spare = copy.deepcopy(rng)  # one for all that is refused: whether it is doesn't depend on what was drawn
        for player in players:
            names = legal_actions(game, state, player)
            tried = names or tuple(draw(game, state, player, np.random.default_rng(seed)) for seed in range(5))
            for name in (*_some(tried), game.default_action(state, player)):
                transition(game, state, {**joint_action, player: name}, copy.deepcopy(rng))
            refused = [name for name in game.actions if name not in names] if names else []
            for name in (*_some(refused), *([_NO_ACTION] if names else []), "\x00"):
                wrong = {**joint_action, player: name}
                _require_refusal(game, state, wrong, spare, f"{name!r} of {player}, which is not legal")
            others = {other: name for other, name in joint_action.items() if other != player}
            _require_refusal(game, state, others, spare, f"a round without an action of {player}")
        stray = game.actions[0] if game.actions else _NO_ACTION
        ignored = {player: stray for player in game.players if player not in players}
        again = transition(game, state, {**joint_action, **ignored}, copy.deepcopy(rng))
        require(again == result, f"the actions of players who are not to move must be ignored: {', '.join(ignored)}")


def _some(names: Sequence[str]) -> Sequence[str]:
    return names[:: 1 + len(names) // 12]


def _require_refusal(
    game: TSMG[Any], state: Any, joint_action: dict[str, str], rng: np.random.Generator, what: str
) -> None:
    try:
        game.transition(state, joint_action, rng)
    except ValueError:
        return
    except Exception as error:  # it is refused, but not as callers can expect it
        outcome = f"raised {type(error).__name__} for"
        raise ConformanceError(f"transition() {outcome} {what}: {joint_action}; it must raise ValueError") from error
    raise ConformanceError(f"transition() accepted {what}: {joint_action}; it must raise ValueError")


def check_interpretation(id: str, settings: Mapping[str, Any]) -> None:
    """Check that every legal action can be written in a tag, or bare if the game allows it, and nothing else."""
    game = game_of(id, **settings)
    for state, *_ in rounds_of(game, 10):
        for player in to_move(game, state):
            legal = legal_actions(game, state, player)
            drawn = legal or tuple(draw(game, state, player, np.random.default_rng(seed)) for seed in range(10))
            for name in dict.fromkeys((*_some(drawn), game.default_action(state, player))):
                _require_readable(game, state, player, name)
            wrong = [*_NOT_ACTIONS, *(f"<action>{name}</action>" * 2 for name in _some(drawn))]
            if legal:
                wrong += _near_misses(game, legal)
            elif not game.bare_responses:
                wrong += drawn
            for text in wrong:
                if text in legal:
                    continue
                got = game.interpret(text, state, player)
                require(got is None, f"interpret() must not read {text[:60]!r} of {player} as an action, got {got!r}")


def _require_readable(game: TSMG[Any], state: Any, player: str, name: str) -> None:
    """Require that an action is read back as itself, whatever stands around its tag."""
    listed = name in game.legal_actions(state, player)
    for word in dict.fromkeys((name, name.upper() if listed else name)):
        texts = [word, f" {word}\n"] if game.bare_responses else []
        for text in (*texts, f"<action>{word}</action>", f"I go <action> {word} </action>."):
            got = game.interpret(text, state, player)
            require(got == name, f"interpret() must read {text!r} of {player} as {name!r}, got {got!r}")


def _near_misses(game: TSMG[Any], legal: Sequence[str]) -> list[str]:
    names = game.actions or legal
    wrong = [_NO_ACTION, *(name for name in _some(names) if name not in legal)]
    for name in _some(names):
        longer = f"{name}set"
        while longer in names:
            longer += "s"
        wrong += [longer, f"<action>{longer}</action>", f"{name} it is"]
    return wrong


def check_texts(id: str, settings: Mapping[str, Any]) -> None:
    """Check that observations are printable, and the instructions name every action as a word of its own."""
    game, space = game_of(id, **settings), ObservationText()
    for player in game.players:
        told = game.instructions(player)
        require(isinstance(told, str), f"instructions() for {player} must be a string, got {told!r}")
        # if there are many, the instructions say how they are made, and the prompt lists the legal ones
        named = game.actions if len(game.actions) <= _MOST_NAMED else ()
        missing = ", ".join(repr(action) for action in named if not _names(told, action, game.actions))
        require(not missing, f"the instructions for {player} don't name the action {missing} as a word of its own")
    for state, joint_action, _, (after, *_) in rounds_of(game):
        for player in game.players:
            for text in (game.observe(state, player), game.observe(after, player)):
                require(isinstance(text, str), f"observe() of {player} must return a string, got {text!r}")
                require(text in space, f"observe() of {player} returned a text that is not printable: {text[:200]!r}")
            if player in joint_action:
                told = game.action_help(state, player)
                require(isinstance(told, str) and told != "", f"action_help() of {player} must say what may be written")
            told = game.what_happened(state, joint_action, after, player)
            require(isinstance(told, str), f"what_happened() of {player} must return a string, got {told!r}")


def _names(text: str, action: str, actions: tuple[str, ...]) -> bool:
    """Return whether a text names an action: not as a part of another word, nor as a part of a longer action."""
    text = text.casefold()
    for longer in actions:
        if action in longer and action != longer:
            text = text.replace(longer, " ")
    return re.search(rf"(?<![\w-]){re.escape(action)}(?![\w-])", text) is not None


def check_outcomes(id: str, settings: Mapping[str, Any]) -> None:
    """Check that the listed chances are those that the game plays with, if it has any."""
    game = game_of(id, **settings)
    if game.has_outcomes:
        by_chance = 0
        for state, joint_action, rng, result in rounds_of(game):
            told = game.outcomes(state, joint_action)
            _require_distribution([chance for chance, *_ in told], f"outcomes() of {joint_action}")
            listed = {_frozen(outcome[1:]): 0.0 for outcome in told}
            for chance, *rest in told:
                listed[_frozen(rest)] += chance
            require(_frozen(result) in listed, f"transition() gave {result!r}, which outcomes() doesn't list")
            if len(listed) > 1:
                if by_chance % 13 == 0:  # a few of those in which chance plays: they are thousands of rounds each
                    draws = [_frozen(game.transition(state, joint_action, rng)) for _ in range(_DRAWS)]
                    _require_frequencies(draws, listed, f"outcomes() of {joint_action}")
                by_chance += 1
    if game.has_initial_outcomes:
        starts = game.initial_outcomes()
        _require_distribution([chance for chance, _ in starts], "initial_outcomes()")
        first: dict[Any, float] = {}
        for chance, state in starts:
            first[state] = first.get(state, 0.0) + chance
        rng = np.random.default_rng(0)
        _require_frequencies([game.initial_state(rng) for _ in range(_DRAWS)], first, "initial_outcomes()")


def _frozen(result: Any) -> Any:
    state, rewards, terminated = result
    # sums of floats in another order are the same reward
    return state, tuple(sorted((player, round(reward, 9)) for player, reward in rewards.items())), terminated


def _require_distribution(chances: Sequence[float], what: str) -> None:
    possible = all(isinstance(chance, float) and 0 < chance <= 1 + 1e-9 for chance in chances)
    require(possible, f"the probabilities of {what} must be floats above 0, got {list(chances)[:20]}")
    require(abs(sum(chances) - 1) < 1e-9, f"the probabilities of {what} sum to {sum(chances)!r}")


def _require_frequencies(draws: Sequence[Any], chances: Mapping[Any, float], what: str) -> None:
    counts = Counter(draws)
    unknown = next((draw for draw in counts if draw not in chances), None)
    require(unknown is None, f"{what} doesn't list {unknown!r}, which was played")
    for outcome, chance in chances.items():
        spread = (chance * (1 - chance) / len(draws)) ** 0.5
        share = counts[outcome] / len(draws)
        # six standard deviations, and a few draws for what is rare: no false alarm in any of thousands of checks
        require(
            abs(share - chance) <= 6 * spread + 6 / len(draws),
            f"{what} gives {outcome!r} the probability {chance:g}, it came {counts[outcome]} times of {len(draws)}",
        )


def check_scores(id: str, settings: Mapping[str, Any]) -> None:
    """Check ``worst_round``, ``return_range``, ``zero_sum`` and ``forfeit`` by play."""
    game = game_of(id, **settings)
    require(not game.zero_sum or len(game.players) == 2, f"zero_sum is for two players, got {len(game.players)}")
    played, episode, gains = list(rounds_of(game)), list[Round](), list[float]()
    for number, round_ in enumerate(played, 1):
        episode.append(round_)
        for player in playing(game, round_.state):
            reward, worst = round_.result[1][player], game.worst_round
            fits = worst is None or reward >= worst - 1e-6
            require(fits, f"a round paid {player} {reward:g}, less than worst_round, which is {worst}")
        if round_.result[2]:
            _require_returns(game, episode)
            gains += _gains_by_giving_up(game, episode, (0, ROUNDS))  # it ends so with more rounds left, too
            episode = []
        elif number == len(played) and game.longest_episode is None:  # else it is cut off by these checks alone
            gains += _gains_by_giving_up(game, episode, (0,))
    # if nothing bounds what a round pays, bad luck may pay less than bad play does: then on average
    bounded = game.worst_round is not None or game.return_range is not None
    gain = max(gains, default=0.0) if bounded else sum(gains) / max(len(gains), 1)
    require(gain <= 1e-6, f"forfeit() pays {gain:g} more than random play still got; it must pay what a loss does")


def _require_returns(game: TSMG[Any], episode: Sequence[Round]) -> None:
    returns = {player: sum(round_.result[1][player] for round_ in episode) for player in game.players}
    for player, total in returns.items():
        low, high = game.return_range or (-math.inf, math.inf)
        fits = low - 1e-6 <= total <= high + 1e-6
        require(fits, f"an episode paid {player} {total:g}, which is not within return_range, {game.return_range}")
    if game.zero_sum:
        require(abs(sum(returns.values())) <= 1e-6, f"the returns of a zero_sum game sum to 0, got {returns}")


def _gains_by_giving_up(game: TSMG[Any], episode: Sequence[Round], more: Sequence[int]) -> list[float]:
    """Return how much more a player got by giving up at each of its turns than by playing on as it did.

    The limit of rounds is the last of the episode, or so many ``more``.
    """
    gains, rest = [], dict.fromkeys(game.players, 0.0)
    for left, round_ in enumerate(reversed(episode), 1):
        for player, reward in round_.result[1].items():
            rest[player] += reward
        for player, further in itertools.product(round_.joint_action, more):
            try:
                paid = game.forfeit(round_.state, player, left + further)
            except NotImplementedError:  # what a loss pays here is unknown, which a game may say
                continue
            known = isinstance(paid, dict) and player in paid and set(paid) <= set(game.players)
            told = f"forfeit() of {player} must"
            require(known, f"{told} return {{player: reward}} with {player} and no strangers in it, got {paid!r}")
            require(all(map(math.isfinite, paid.values())), f"{told} pay finite numbers, got {paid}")
            cancels = not game.zero_sum or abs(sum(paid.values())) <= 1e-6
            require(cancels, f"{told} pay the other player of a zero_sum game what it costs, got {paid}")
            gains.append(paid[player] - rest[player])
    return gains


def check_success(id: str, settings: Mapping[str, Any]) -> None:
    """Check that a game in which players succeed says what that means: readers of results are told."""
    game = game_of(id, **settings)
    for *_, (after, _, _) in rounds_of(game):
        for player in game.players:
            said = bool(game.success_means) or not game.succeeded(after, player)
            require(said, f"{player} succeeded, but success_means is empty: what follows 'the player', such as 'won'")


def check_metrics(id: str, settings: Mapping[str, Any]) -> None:
    """Check that metrics are finite numbers by name."""
    game = game_of(id, **settings)
    for *_, (after, _, _) in rounds_of(game):
        for player in game.players:
            for name, value in game.metrics(after, player).items():
                finite = isinstance(name, str) and isinstance(value, float | int) and math.isfinite(value)
                require(finite, f"the metric {name!r} of {player} must be a finite number, got {value!r}")


def check_reading_back(id: str, settings: Mapping[str, Any]) -> None:
    """Check that what is read back from an observation shows and allows the same (games with ``read_observation``)."""
    game = game_of(id, **settings)
    if not game.reads_observations:
        return
    for state, *_ in rounds_of(game):
        for player in to_move(game, state):
            text = game.observe(state, player)
            read = game.read_observation(text, player)
            require(game.observe(read, player) == text, f"read_observation() of {player} lost something of {text!r}")
            same = game.legal_actions(read, player) == game.legal_actions(state, player)
            require(same, f"read_observation() of {player} gave a state with other legal actions, from {text!r}")
    try:
        game.read_observation("no observation of any game", game.players[0])
    except ValueError:
        return
    raise ConformanceError("read_observation() must raise ValueError for a text that is not an observation")
