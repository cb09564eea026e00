"""Keeps keys out of everything that is written or printed.

The guard stands at the boundary: every manifest, episode line and message passes :meth:`Redactor.scrub` on its way
out, whatever the provider, the server or a model put into it.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

REDACTED = "[redacted]"

_SECRET_NAME = re.compile(r"(API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)

MIN_LENGTH = 8
"""Shorter values ("EMPTY", "test") are placeholders that local servers want; scrubbing them would maul real text."""


def public_url(url: str) -> str:
    """The part of a URL that may be written down: without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def url_secrets(url: str) -> list[str]:
    """Everything in a URL that may be a credential: user, password, and the values of its query."""
    parts = urlsplit(url)
    userinfo = parts.netloc.rpartition("@")[0]
    values = [userinfo, *userinfo.split(":", 1), *(value for _, value in parse_qsl(parts.query)), parts.fragment]
    return [text for value in values for text in (value, unquote(value))]


class Redactor:
    """Replaces known secrets in text by ``[redacted]``.

    Args:
        secrets: the values; those shorter than :data:`MIN_LENGTH` are ignored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) >= MIN_LENGTH:
                # As it is, and as it looks inside a URL or a JSON string.
                forms |= {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}
        # The longest first: a password inside "user:password" must not leave half of the pair behind.
        self._forms = sorted(forms, key=len, reverse=True)

    @classmethod
    def from_environment(cls, urls: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> "Redactor":
        """The secrets in environment variables that are named like one, and in ``urls`` and ``*_BASE_URL``."""
        variables = os.environ if environ is None else environ
        secrets = [value for name, value in variables.items() if _SECRET_NAME.search(name)]
        for url in [*urls, *(value for name, value in variables.items() if name.endswith("_BASE_URL"))]:
            secrets += url_secrets(url)
        return cls(secrets)

    def scrub(self, text: str) -> str:
        """``text`` without the secrets."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, REDACTED)
        return text
