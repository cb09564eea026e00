import pytest

from agents.models.local.card import CARD_NAME, trained_mode, write_card


def test_a_card_is_read_back(tmp_path):
    assert trained_mode(str(tmp_path)) is None
    write_card(tmp_path, mode="direct")
    assert trained_mode(str(tmp_path)) == "direct"


def test_a_hub_name_has_no_card():
    assert trained_mode("nobody/no-such-model") is None


def test_a_broken_card_is_named(tmp_path):
    (tmp_path / CARD_NAME).write_text("[]")
    with pytest.raises(ValueError, match=r"textbench\.json should hold"):
        trained_mode(str(tmp_path))
