import pytest

from agents.models.served import pacing


@pytest.fixture
def quick(monkeypatch):
    """Back-off in hundredths of a second."""
    monkeypatch.setattr(pacing, "FIRST_BACK_OFF", 0.01)
