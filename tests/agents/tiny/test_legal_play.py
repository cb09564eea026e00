"""Random legal play: answers in the right form for every player of a game, and nothing that could be called skill."""

from collections import Counter

import numpy as np
import pytest

from agents.prompt import PromptMap, as_text
from agents.tiny.data import favourite, legal_play, whole_texts
from agents.tiny.recipe import Recipe
from agents.turn import TurnRequest
from textgames import SCENARIOS

pytest.importorskip("torch")


@pytest.mark.parametrize("name", ["tic-tac-toe", "nim", "kuhn-poker", "frozen-lake"])
def test_prompts_are_those_of_play_and_every_response_is_legal(name):
    """Told from the texts alone: a prompt says who is asked, what it sees and what is legal."""
    game = SCENARIOS[name].game()
    rng = np.random.default_rng(0)
    examples, clocks = legal_play(SCENARIOS[name], 200, rng), set()
    assert len(examples) == 200
    starts = {game.instructions(player): player for player in game.players}
    seen = set()
    for example in examples:
        player = starts[example.before.removesuffix("\n\n")]
        legal = example.after.partition("NAME is one of: ")[2].partition(". Write")[0].split(", ")
        left = int(example.after.partition("this one included: ")[2].partition(".")[0])
        request = TurnRequest(
            example.observation, game.instructions(player), tuple(legal), player=player, steps_left=left
        )
        clocks.add(left)
        assert example.prompt == as_text(PromptMap("direct")(request))
        assert example.response in {f"<action>{action}</action>" for action in legal}
        seen.add(player)
    assert seen == set(game.players)
    assert max(clocks) == SCENARIOS[name].horizon
    assert len(clocks) > 1


@pytest.mark.parametrize(("favourites", "beyond"), [(0.0, 26.1), (0.5, 24.3)])  # 0.1% of chi-square, 8 and 7 degrees
def test_a_favourite_has_its_share_and_the_other_moves_are_equally_likely(favourites, beyond):
    examples = legal_play(SCENARIOS["tic-tac-toe"], 12_000, np.random.default_rng(1), favourites=favourites)
    first = (example.response for example in examples if "X" not in example.observation.partition("Board")[2])
    (most, *others), n = (counts := Counter(first)).most_common(), counts.total()
    assert len(counts) == 9
    assert abs(most[1] / n - (favourites + (1 - favourites) / 9)) < 4 * (0.25 / n) ** 0.5
    rest = [count for _, count in (others if favourites else counts.items())]
    expected = sum(rest) / len(rest)
    assert sum((count - expected) ** 2 / expected for count in rest) < beyond


def test_favourites_may_be_somebody_elses():
    def always_up(*_: object) -> str:
        return "up"

    rng = np.random.default_rng(0)
    examples = legal_play(SCENARIOS["frozen-lake"], 100, rng, favourites=1.0, favourite_of=always_up)
    assert {example.response for example in examples} == {"<action>up</action>"}


def test_favourites_are_no_skill():
    """Over many positions the favourite gives away what a random move does."""
    from agents.analysis.regret import random_positions
    from agents.msgrpo.run.evaluating import evaluation_tasks

    gaps = []
    for request, values, _ in random_positions(evaluation_tasks("tic-tac-toe", 150)):
        gaps.append(values[favourite(request.observation, request.legal_actions)] - np.mean(list(values.values())))
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / len(gaps) ** 0.5
    assert np.std(gaps) > 0.1


def test_only_what_never_changes_is_one_token():
    from agents.tiny.imitation import make_tokenizer

    examples = legal_play(SCENARIOS["tic-tac-toe"], 400, np.random.default_rng(2))
    texts = whole_texts(examples)
    assert "Board (. is a free cell):\n" in texts
    assert not [text for text in texts if text.startswith("3 ")]  # a row of the board
    tokenizer = make_tokenizer(examples)
    lengths = set()
    for example in examples:
        ids = tokenizer(example.prompt)["input_ids"]
        assert tokenizer.decode(ids) == example.prompt
        board = example.observation.partition(":\n")[2].partition("\n  a b c")[0]
        lengths.add(len(tokenizer(board)["input_ids"]))
        assert len(tokenizer(example.response)["input_ids"]) == 3
    assert lengths == {14}  # so a cell of the board stands in the same place in every prompt


def test_what_cannot_be_demonstrated_is_refused():
    from agents.tiny.imitation import demonstrate

    with pytest.raises(ValueError, match="set modes to direct"):
        demonstrate(Recipe.quick(games=("nim",), examples=4))
    with pytest.raises(ValueError, match="doesn't list its actions"):
        legal_play(next(s for s in SCENARIOS.values() if not s.game().actions), 4, np.random.default_rng(0))
