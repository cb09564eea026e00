"""A player that listens, a model behind a server without the server, and a package without its installation."""

import asyncio

from agents import Turn


def install(place, entry_points, name="mine"):
    """Make a folder of ``sys.path`` one in which a package with these entry points is installed."""
    folder = place / f"{name}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(entry_points)


def essence(episode):
    """Return what was played and what came of it, to compare and to sort episodes by."""
    steps = []
    for s in episode.steps:
        refused = [(each.turn.response, each.unreadable) for each in s.refused]
        steps.append((s.index, s.player, s.observation, s.turn.response, s.action, s.valid, s.reward, refused))
    ends = (episode.successes, episode.terminated, episode.truncated, episode.error, episode.metrics)
    return (episode.scenario, episode.seed, steps, episode.returns, *ends)


class Listener:
    """Gives one answer, and remembers the batches that it was asked."""

    name = "listener"

    def __init__(self, answer, history_turns=0):
        self.answer, self.history_turns, self.batches = answer, history_turns, []

    @property
    def asked(self):
        return [request for batch in self.batches for request in batch]

    def act(self, requests):
        self.batches.append(list(requests))
        return [Turn(self.answer) for _ in requests]


class Server:
    """A model behind a server whose answers take their own time."""

    name = "served"

    def __init__(self, respond, delay=lambda seed: 0.0):
        self.respond, self.delay = respond, delay
        self.in_flight = self.peak = self.cancelled = self.closed = 0

    async def generate_async(self, prompt, decoding, seed):
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self.delay(seed))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.in_flight -= 1
        answer = self.respond(seed)
        return answer if isinstance(answer, Turn) else Turn(answer)

    async def aclose(self):
        self.closed += 1
