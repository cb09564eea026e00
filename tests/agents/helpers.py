"""A model behind a server, without the server."""

import asyncio

from agents import Turn


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
