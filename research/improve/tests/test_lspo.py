"""What is said in Werewolf: speeches are told apart, the finite game finds those that help, and a model says them."""

from pathlib import Path

import numpy as np
import pytest

from benchmark.runs.plan import find_scenarios
from research.improve.methods import learning
from research.improve.methods.lspo import Decision, play_in, solve, solved
from research.improve.methods.village import Choice, clustered, filled, fitted, standings, template_of, unnamed
from research.improve.tests.talkers import DENIAL, QUIET, make_talking_model, played_by
from textgames.scenarios import SCENARIOS
from textgames.social.werewolf.rules import NOBODY, SEER, VILLAGER, WOLF, Day, Night, Phase, WerewolfState
from textgames.solving.equilibrium import exploitability, uniform_policy
from textgames.solving.game_tree import expand


class Listed:
    """A game that lists its actions, as one that can only be played; an ``idle`` one is decided by chance alone."""

    def __init__(self, game, idle: bool = False) -> None:
        self.game, self.idle = game, idle

    def deal(self, rng):
        state, luck = self.game.initial_state(rng), float(rng.normal()) * self.idle
        return state, (luck, -luck), False

    def decision(self, node):
        state, _, over = node
        if over:
            return None
        (player,) = self.game.to_move(state)
        known = player, self.game.observe(state, player)
        return Decision(self.game.players.index(player), known, self.game.legal_actions(state, player))

    def after(self, node, action):
        state, returns, _ = node
        (player,) = self.game.to_move(state)
        state, rewards, over = self.game.transition(state, {player: action}, np.random.default_rng(0))
        paid = [0.0 if self.idle else rewards[p] for p in self.game.players]
        return state, tuple(one + more for one, more in zip(returns, paid, strict=True)), over

    def returns(self, node):
        return node[1]


def test_regret_of_what_can_only_be_played_leads_to_equilibrium_and_stays_uniform_if_nothing_matters():
    game = SCENARIOS["kuhn-poker"].game()
    tree = expand(game)

    def lost(traversals: int) -> float:
        found = solve(Listed(game), 2, traversals, np.random.default_rng(0)).policy
        own = {one.key: dict(zip(one.actions, found[one.key], strict=True)) for one in tree.information_sets}
        return exploitability(tree, own)

    uniform = exploitability(tree, uniform_policy(tree))
    assert uniform > 0.45
    assert lost(200) < 0.4 * uniform
    assert lost(2500) < 0.15 * uniform
    found = solve(Listed(game, idle=True), 2, 300, np.random.default_rng(0)).policy
    assert len(found) == 12
    assert all(np.ptp(policy) == 0 for policy in found.values())


def state_of(*roles: str, inspected: int, out: int, said: tuple[tuple[int, str], ...] = ()) -> WerewolfState:
    """The first day after a night."""
    alive = tuple(number != out for number in range(len(roles)))
    speakers = tuple(number for number in range(len(roles)) if alive[number] and number not in dict(said))
    return WerewolfState(roles, alive, Phase.SPEECHES, (Night(out, NOBODY, inspected),), (Day(said),), speakers)


def test_a_speech_is_said_again_of_players_who_stand_alike():
    here = state_of(SEER, WOLF, VILLAGER, VILLAGER, VILLAGER, inspected=1, out=2)
    there = state_of(VILLAGER, VILLAGER, SEER, VILLAGER, WOLF, inspected=4, out=0)
    words, order = "I am the seer, and player_1 is a wolf, not player_3 or player_4.", (3, 1, 0, 2, 4)
    template = template_of(words, here, 0)
    assert template == "I am the seer, and ⟦wolf 1⟧ is a wolf, not ⟦other 1⟧ or ⟦other 2⟧."
    assert unnamed(template) == unnamed(words)
    again = "I am the seer, and player_4 is a wolf, not player_3 or player_1."
    assert filled(template, standings(there, 2), order) == again
    blind = state_of(VILLAGER, VILLAGER, SEER, VILLAGER, WOLF, inspected=3, out=0)
    assert filled(template, standings(blind, 2), order) is None  # who has seen no wolf can't say it
    accused = state_of(WOLF, SEER, VILLAGER, VILLAGER, VILLAGER, inspected=2, out=3, said=((2, "It is player_0!"),))
    assert standings(accused, 1) == ["other named", "me", "cleared", "out", "other"]
    assert standings(accused, 0)[:2] == ["me", "other"]  # a wolf doesn't know the seer


def test_what_is_worded_alike_is_one_cluster():
    claims = [f"I am the seer{end} ⟦wolf 1⟧ is a wolf{mark}" for end in (", and", ";", ": surely") for mark in ".!"]
    denials = [f"{begin} I am no wolf, trust me{mark}" for begin in ("Really,", "Friends,", "Well,") for mark in ".!"]
    quiet = ["I have nothing to say.", "Nothing to say.", "I have nothing to say today."]
    found = clustered([*claims, *denials, *quiet * 2], 3, seed=0)
    assert [len({found.of[text] for text in texts}) for texts in (claims, denials, quiet)] == [1, 1, 1]
    assert len(set(found.of.values())) == 3
    assert clustered(quiet[:2], 5, seed=0).members == (((quiet[0], 1),), ((quiet[1], 1),))


@pytest.mark.parametrize("heed", [2.0, 0.0])
def test_weights_of_choices_are_found_where_there_are_some_and_nowhere_else(heed):
    rng, choices = np.random.default_rng(0), []
    for _ in range(600):
        named = int(rng.integers(3))
        options = tuple(("named",) if one == named else ("other",) for one in range(3))
        values = [heed if one == named else 0.0 for one in range(3)] + rng.gumbel(size=3)
        choices.append(Choice(options, int(np.argmax(values))))
    weights = fitted(choices, [1] * len(choices))
    assert weights["named"] - weights["other"] == pytest.approx(heed, abs=0.3)


def pairs_of(player: str, out: Path, traversals: int):
    """What a player of the tests prefers to say."""
    played = play_in([played_by(player, 120, out)], "direct")
    latent = solved([*find_scenarios(["werewolf-5"]).values()], played.speeches, played, 4, traversals, seed=0)
    return [one.pair for one in latent.preferences(played.speeches)]


@pytest.mark.slow
def test_the_seer_prefers_to_tell_whom_it_has_seen_where_it_is_heeded(workplace):
    pairs = pairs_of("Talker", workplace, 3000)
    told = [pair for pair in pairs if "I am the seer, and player_" in pair.chosen]
    assert len(told) > max(10, 0.8 * len(pairs))
    assert not [pair for pair in pairs if "I am the seer" in pair.rejected]
    assert {pair.rejected for pair in told} == {f"<action>{words}</action>" for words in (QUIET, DENIAL)}
    for pair in told:  # of the player that the one who is asked has seen
        seen = pair.prompt[-1].content.partition("You have seen: ")[2].partition("\n")[0]
        assert f"{pair.chosen.split()[5]} is a wolf" in seen


@pytest.mark.nightly  # half a minute, as the one before
def test_no_speech_is_preferred_where_no_player_heeds_any(workplace):
    assert not pairs_of("Deaf", workplace, 4000)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    pytest.importorskip("trl")
    return make_talking_model("Talker", tmp_path_factory.mktemp("talking") / "base")


DIRECT = ("--mode", "direct", "--temperature", "1")


def share_told(textbench, out: str, agent: str) -> float:
    """How often a seer who has seen a wolf says so."""
    own = ("run", "--agent", agent, *DIRECT, "--scenario", "werewolf-5", "--episodes", 400, "--quiet")
    assert textbench(*own, "--out", out).code == 0
    seers = [one for one in play_in([Path(out)], "direct").speeches if one.role == SEER]
    knew = [one for one in seers if any(kind.startswith("wolf") for kind in standings(one.decision.state, one.me))]
    assert len(knew) > 100
    return sum("I am the seer" in one.words for one in knew) / len(knew)


@pytest.mark.nightly  # minutes of a core; what the seers prefer takes seconds
def test_more_seers_tell_and_nothing_is_preferred_if_all_speeches_are_alike(base, improve, textbench, monkeypatch):
    monkeypatch.setattr(learning, "COMPARED", 2)  # who wins more isn't what this is about
    # of the seeds 0, 1 and 2 the one with many pairs at so few traversals; the budget is for one round of two
    sizes = {"traversals": 4000, "episodes": 150, "attempts": 2}
    done = improve("lspo", base, *DIRECT, "--seed", 2, "--budget-calls", 6000, scenario="werewolf-5", **sizes)
    assert "the budget is spent" in done.err  # in the play for a second round
    assert not Path("o/dpo-model-1").exists()
    Path("o").rename("moved")
    assert share_told(textbench, "after", "hf:moved/model-1") > share_told(textbench, "before", base) + 0.05
    done = improve("lspo", base, *DIRECT, scenario="werewolf-5", clusters=1, episodes=5, traversals=20)
    assert ", 0 pairs of answers" in done.err
    assert done.agent["spec"] == base
