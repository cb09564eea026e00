"""One episode, played by the user at the terminal."""

from benchmark.cli.settings import Play
from benchmark.errors import UsageError
from benchmark.play.by_hand import play_by_hand
from benchmark.runs.plan import find_scenario, num_players


def run(settings: Play) -> int:
    """Let the user play one episode."""
    scenario = find_scenario(settings.scenario, "play")
    if settings.against is not None and num_players(scenario) == 1:
        raise UsageError(f"{settings.scenario} is played alone: leave out --against {settings.against}")
    return play_by_hand(scenario, scenario.seed(settings.episode), settings.against)
