"""Keeping keys out of everything that people read: error texts, names, settings."""

import base64
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

MASK = "***"
_LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|rk|key|gsk|hf)[-_][A-Za-z0-9][A-Za-z0-9_*.-]{5,}")
_AUTHORISATION = re.compile(r"\b(Bearer|Basic)\s+[^\s\"',}]+", re.IGNORECASE)
_SECRET_NAME = re.compile(r"key|token|secret|sig|pass|auth|code", re.IGNORECASE)


class Endpoint(NamedTuple):
    """A base URL taken apart.

    Attributes:
        url: without user information and query: what may be shown, and what requests go to.
        userinfo: ``"user:password"`` of the URL, decoded; empty for none.
        query: the query's names and values, sent with every request.
    """

    url: str
    userinfo: str
    query: dict[str, str]

    @classmethod
    def parse(cls, base_url: str) -> "Endpoint":
        """Take ``base_url`` apart.

        Raises:
            ValueError: not an http(s) URL; the message doesn't repeat the secret parts.
        """
        try:
            parts = urlsplit(base_url.strip())
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise ValueError(f"the base URL isn't a URL: {error}") from None
        if parts.scheme not in ("http", "https") or not host:
            shown = base_url.rpartition("@")[2].partition("?")[0]
            raise ValueError(
                f"the base URL has the form http://HOST:PORT/v1 or https://HOST/v1, got {shown!r}"
                + (f"; write http://{shown}" if not parts.scheme or "://" not in base_url else "")
            )
        host = f"[{host}]" if ":" in host else host
        netloc = host if port is None else f"{host}:{port}"
        userinfo = unquote(parts.netloc.rpartition("@")[0])
        return cls(urlunsplit((parts.scheme, netloc, parts.path, "", "")), userinfo, dict(parse_qsl(parts.query)))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The parts that must never be shown."""
        named = [value for name, value in self.query.items() if _SECRET_NAME.search(name) or len(value) >= 16]
        if not self.userinfo:
            return tuple(named)
        password = self.userinfo.partition(":")[2]
        encoded = base64.b64encode(self.userinfo.encode()).decode()
        return (self.userinfo, password, encoded, *named)


class Redactor:
    """Replaces secrets in texts by ``***``, as they are and percent-encoded, and whatever looks like a key."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in (secret, quote(secret, safe=""))}
        # longest first: a secret that contains another one must not leave its rest standing
        self._forms = sorted(forms, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """``text`` without secrets."""
        for form in self._forms:
            text = text.replace(form, MASK)
        text = _AUTHORISATION.sub(rf"\1 {MASK}", text)
        return _LOOKS_LIKE_A_KEY.sub(MASK, text)
