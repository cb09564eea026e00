import pytest

from agents.common.clock import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (4.24, "4.2 s"), (9.96, "10 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")],
)
def test_a_duration_rounds_and_carries(seconds, text):
    assert duration(seconds) == text
