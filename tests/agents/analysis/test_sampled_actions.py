"""Responses that are sampled from players behind servers."""

import pytest

from agents import TurnRequest
from agents.analysis.action_probabilities import sample_responses
from agents.turn import Turn


class Gone:
    """A player behind a server that isn't there; it knows how often it was asked."""

    name = "gone"
    asked = 0

    def act(self, requests):
        self.asked += len(requests)
        return [Turn("", finish_reason="error", error="connection refused") for _ in requests]

    async def act_async(self, request):
        return self.act([request])[0]


def test_a_server_that_is_not_there_is_asked_once():
    player = Gone()
    requests = [TurnRequest(f"Here is cell {number}.", legal_actions=("left", "right")) for number in range(50)]
    with pytest.raises(RuntimeError, match="sampling responses failed: connection refused"):
        sample_responses(player, requests, 64)
    assert player.asked == 1
