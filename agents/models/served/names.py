"""The question whether a server has a model of a name, before a run of errors.

Its list of models (``GET /models``) answers it if it has the name. Many servers take names that they don't list; then
one small request is sent, and only a refusal in words about the model counts.
"""

import re

from agents.models.base import Decoding
from agents.models.served.answers import parsed
from agents.models.served.dialect import refusal_of
from agents.turn import Message
from textgames.names import did_you_mean

SECONDS = 10.0  # for either question
MOST_NAMES = 12  # of those that are listed in a message
MOST_LENGTH = 100  # of a name in it
QUESTION = (Message("user", "Say yes."),)
SMALL = Decoding(temperature=1.0, max_tokens=16, stop=())

_UNKNOWN = re.compile(
    r"not[ _](found|exist|available|supported|a valid|valid|recogni[sz]ed|have access)|n't (exist|have|found)|unknown"
    r"|invalid|no such|unsupported|does not exist|no endpoints",
    re.IGNORECASE,
)


def why_unknown(name: str, url: str, status: int, text: str, listed: list[str] | None) -> str | None:
    """Return why a server has no model of this name, as half a sentence, by its answer to the small request and the
    names in its list; ``None`` if it has, or if nothing tells."""
    words, parameter = refusal_of(text)
    about_the_name = (
        (parameter == "model" or "model_not_found" in text)
        or (listed is not None and status == 404)
        or ((re.search(r"\bmodels?\b", words, re.IGNORECASE) or name in words) and _UNKNOWN.search(words))
    ) and parameter in (None, "model")  # else "'seed' is not supported with this model"
    if status not in (400, 403, 404, 422) or not about_the_name:
        return None
    said = " ".join(words.split())[:200]
    names = [one for one in listed or [] if len(one) <= MOST_LENGTH and one.isprintable()]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    instead = did_you_mean(name, names) or (names and f"; it has {', '.join(names[:MOST_NAMES])}{more}") or ""
    return f"{url} has no model {name!r} (status {status}: {said}){instead}"


def read_names(text: str) -> list[str] | None:
    """Return the names in the answer of a models route; ``None`` if it is no list of models."""
    models = parsed(text)
    models = models.get("data") if isinstance(models, dict) else models
    names = [model.get("id") for model in models if isinstance(model, dict)] if isinstance(models, list) else []
    return [name for name in names if isinstance(name, str) and name] or None
