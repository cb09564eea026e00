"""Random legal play of any game that lists its actions: what teaches a model to read and to answer, and no skill.

A start for self-play (:mod:`agents.msgrpo`), whose own contribution is then all the skill that there is. Half of the
moves are drawn from the legal ones with equal chances, which teaches the form of answers. The other half is a favourite
that every observation has, picked by a checksum of its text: it is as good or bad as any legal move, but can't be
imitated without reading the whole observation. A model that has seen uniform play alone learns to overlook everything
but the list of what is legal, and self-play takes very long to change that.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from agents.prompt import PromptMap, as_text
from agents.prompt_texts import PromptTexts
from agents.tiny.data import MARKED_STEPS, Example, around_the_clock
from agents.turn import TurnRequest
from textgames.rounds import rounds_of_play
from textgames.scenarios import TRAINING_SEEDS, Scenario
from textgames.tsmg import TSMG, Action, Player

_CONSTANT = 0.9  # a line in fewer of a player's observations than this share says something about the position


def legal_play(
    scenario: Scenario,
    count: int,
    rng: np.random.Generator,
    *,
    favourites: float = 0.5,
    favourite_of: Callable[[TSMG[Any], Any, Player], Action] | None = None,
    texts: PromptTexts | None = None,
) -> list[Example]:
    """Play training seeds at random until there are ``count`` decisions, of all players, answered directly.

    ``favourites`` is the share of moves that are the observation's favourite; the others are uniform. With
    ``favourite_of(game, state, player)`` the favourite is what that says, such as a good move. ``texts`` is the
    prompts' wording, the package's when not given.

    Raises:
        ValueError: the game doesn't list its actions.
    """
    game = scenario.game()
    if not game.actions:
        raise ValueError(f"{scenario.name} doesn't list its actions, so random legal play can't be demonstrated")
    prompt_map = PromptMap("direct", texts=PromptTexts.default() if texts is None else texts)
    frames = {player: _frame(prompt_map, game, player) for player in game.players}

    def choose(state: Any, player: Player) -> Action:
        legal = game.legal_actions(state, player)
        drawn = legal[int(rng.integers(len(legal)))]
        if rng.random() >= favourites:
            return drawn
        return favourite_of(game, state, player) if favourite_of else favourite(game.observe(state, player), legal)

    examples: list[Example] = []
    while len(examples) < count:
        start = game.initial_state(np.random.default_rng(int(rng.integers(len(TRAINING_SEEDS)))))
        for played, state, joint_action, *_ in rounds_of_play(game, start, scenario.horizon, rng, choose):
            left = str(scenario.horizon - played)
            for player, action in joint_action.items():
                legal, observation = game.legal_actions(state, player), game.observe(state, player)
                before, between, after = frames[player]
                examples.append(
                    Example(
                        left.join(before),
                        observation,
                        f"{left.join(between)}{', '.join(legal)}{left.join(after)}",
                        f"<action>{action}</action>",
                        (before, (*between, *after)),
                        (*before, *between, *after, *game.actions),
                    )
                )
    return examples[:count]


def favourite(observation: str, legal: Sequence[str]) -> str:
    """Return the legal action that an observation's checksum points at: always the same one, for no reason."""
    return legal[crc32(observation.encode()) % len(legal)]


def _frame(prompt_map: PromptMap, game: TSMG[Any], player: Player) -> tuple[tuple[str, ...], ...]:
    """Return what a player's prompts say before the observation, between it and the legal actions, and after these.

    Each is in parts, which the number of moves left joins.
    """
    here, there = "<observation>", "<actions>"
    request = TurnRequest(
        here, game.instructions(player), game.actions, player=player, steps_left=MARKED_STEPS, action_help=there
    )
    before, _, rest = as_text(prompt_map(request)).partition(here)
    between, _, after = rest.partition(there)
    return around_the_clock(before), around_the_clock(between), around_the_clock(after)


def whole_texts(examples: Sequence[Example]) -> list[str]:
    """Return what is to be one token each: the fixed texts of the examples, and the lines that observations always
    have.

    Everything else, such as a board's cells, is left to be read piece by piece. In order of first appearance.
    """
    texts: dict[str, None] = {}
    lines: dict[tuple[str, ...], Counter[str]] = {}
    count: Counter[tuple[str, ...]] = Counter()
    for example in examples:
        texts |= dict.fromkeys(example.fixed)
        # what stands before the observation tells the players apart
        player = example.frame[0]
        count[player] += 1
        lines.setdefault(player, Counter()).update(set(example.observation.splitlines(keepends=True)))
    for player, found in lines.items():
        # sorted: a set's order differs from process to process, and with it the ids of tokens
        texts |= dict.fromkeys(line for line, times in sorted(found.items()) if times >= _CONSTANT * count[player])
    return [text for text in texts if len(text) > 1]
