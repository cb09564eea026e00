"""A question, and how the tests of served models ask it: a model of a local server, its connections closed again."""

import asyncio

from agents import Decoding
from agents.models.openai import OpenAIModel
from agents.turn import Message

PROMPT = (Message("system", "Play."), Message("user", "Where to?"))
KEY = "sk-planted-0123456789"
ANSWER = "<think>up it is</think><action>up</action>"
"""A response to the default ``up``, once what follows it is cut."""


def up(request):
    return f"{ANSWER} and more"


def several(number):
    return [PROMPT, *((Message("user", f"prompt {n}"),) for n in range(number - 1))]


def ask(server, prompts=(PROMPT,), *, decoding=None, seed=(1, 2), at_once=False, make=OpenAIModel, **options):
    async def play():
        given = {"base_url": server and server.base_url, "api_key": KEY} | options
        model = make(given.pop("model", "local"), **given)
        asked = [model.generate_async(prompt, decoding or Decoding(), seed) for prompt in prompts]
        try:
            return await asyncio.gather(*asked) if at_once else [await one for one in asked]
        finally:
            await model.aclose()

    return asyncio.run(play())


def complete_many(server, number, **options):
    return ask(server, several(number), at_once=True, **options)
