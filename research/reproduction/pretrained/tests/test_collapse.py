"""The screen of what prevents format collapse: every arm begins from the model itself and changes what it says."""

import pytest

pytest.importorskip("torch")

from agents.msgrpo import MSGRPOConfig
from benchmark.cli import main
from research.reproduction.pretrained.settings import Pretrained

CHANGED = {
    "plain": set(),
    "entropy-02": {"entropy_coefficient"},
    "entropy-10": {"entropy_coefficient"},
    "legal": {"legal_only"},
    "no-penalty": {"format_penalty", "invalid_action"},
    "clip-higher": {"clip_high", "update_passes"},
    "starts": {"task_sampling"},
    "starts-legal": {"task_sampling", "legal_only"},
}


def test_each_arm_changes_one_thing_of_a_run_that_nothing_stops():
    screen = Pretrained.read("smollm2-collapse")
    assert set(screen.arms) == set(CHANGED)
    plain = MSGRPOConfig.from_mapping(screen.training_settings("plain", 0))
    assert (plain.min_valid_share, plain.stop_after) == (0.0, 0)
    for name, arm in screen.arms.items():
        assert (arm.start, arm.seeds) == ("", 1)
        config = MSGRPOConfig.from_mapping(screen.training_settings(name, 0))
        assert set(config.differences(plain)) == CHANGED[name]
    played = {player.agent for player in screen.players.values()}
    assert played == {"blind", "model", *(f"arms.{name}" for name in CHANGED)}
    legal = {player.agent for player in screen.players.values() if player.options}
    assert legal == {"arms.legal", "arms.starts-legal"}  # they are played as they were trained


def test_it_is_a_recipe_of_the_command(workplace, capsys):
    assert main(["reproduce", "--config", "smollm2-collapse", "--dry-run"]) == 0
    assert "collapse" in capsys.readouterr().out
