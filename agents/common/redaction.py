"""Keeping keys out of everything that is written or printed.

One guard stands at every boundary. What a server says passes it on the way in, so that neither the game, the response
cache nor an episode ever holds a key that a server echoed; every file and every message passes it again on its way
out, whoever put a secret there.
"""

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

REDACTED = "[redacted]"
MIN_LENGTH = 8
"""Shorter values ("EMPTY", "test") are placeholders that local servers want; taking them out would maul real text."""
MIN_LENGTH_IN_MESSAGES = 4
"""In an error message a short password is worth more than the word that it may be."""

SECRET_VARIABLE = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH|_PAT)$", re.IGNORECASE)
SECRET_PARAMETER = re.compile(r"key|token|secret|sig|pass|auth|code|cred", re.IGNORECASE)
LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|rk|key|gsk|hf)[-_][A-Za-z0-9][A-Za-z0-9_*.-]{5,}")
VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
AUTHORISATION = re.compile(r"\b(Bearer|Basic)\s+[^\s\"',}]+", re.IGNORECASE)


def public_url(url: str) -> str:
    """The part of a URL that may be written down: without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def url_secrets(url: str) -> list[str]:
    """Everything in a URL that may be a credential, percent-encoded and decoded.

    These are ``user:password`` and both of its parts, the fragment, and of the query what is named like a secret or
    is as long as one (an API version isn't).
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]  # nobody can say which part of something malformed is the secret
    userinfo = parts.netloc.rpartition("@")[0]
    user, _, password = userinfo.partition(":")
    # Beside a password a plain word is an account's name, and masking it would maul every text with that word.
    credentials = [userinfo, password] if password and user.isalpha() else [userinfo, user, password]
    query = [text for name, text in parse_qsl(parts.query) if SECRET_PARAMETER.search(name) or len(text) >= 16]
    return [form for value in (*credentials, *query, parts.fragment) for form in (value, unquote(value)) if form]


def with_variables(text: str) -> str:
    """``text`` with the values of environment variables in place of ``$NAME`` and ``${NAME}``.

    Raises:
        ValueError: one of them isn't set.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in os.environ:
            raise ValueError(f"${name} names an environment variable that isn't set: export {name}=...")
        return os.environ[name]

    return VARIABLE.sub(value_of, text)


class Redactor:
    """Replaces known secrets in text by ``[redacted]``, in every form in which they come by.

    A secret is recognised as it is, percent-encoded, inside a JSON string and, whatever stands around it, in base64.

    Args:
        secrets: the values. Those shorter than :data:`MIN_LENGTH` are taken out of messages alone, and those shorter
            than :data:`MIN_LENGTH_IN_MESSAGES` of nothing.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for form in forms_of(secret) if len(form) >= MIN_LENGTH_IN_MESSAGES}
        # The longest first: a password inside "user:password" must not leave the rest of the pair behind.
        self._all = sorted(forms, key=len, reverse=True)
        self._long = [form for form in self._all if len(form) >= MIN_LENGTH]
        self._long_bytes = [form.encode("utf-8", "surrogatepass") for form in self._long]

    @classmethod
    def from_environment(
        cls, urls: Iterable[str] = (), environ: Mapping[str, str] | None = None, secrets: Iterable[str] = ()
    ) -> "Redactor":
        """The secrets in environment variables that are named like one, in URLs among their values, and in ``urls``.

        ``secrets`` are further ones.
        """
        variables = os.environ if environ is None else environ
        secrets = [*secrets, *(value for name, value in variables.items() if SECRET_VARIABLE.search(name))]
        for name, value in variables.items():  # addresses of servers, proxies and databases
            if name.endswith("_BASE_URL") or ("://" in value and "@" in value):
                secrets += url_secrets(value)
        return cls([*secrets, *(secret for url in urls for secret in url_secrets(url))])

    def scrub(self, text: str) -> str:
        """``text`` without the secrets. What is left of a JSON document is one."""
        return replace_all(text, self._long)

    def scrub_bytes(self, data: bytes) -> bytes:
        """Scrub UTF-8 without decoding it, for the many lines that hold no secret."""
        if not any(form in data for form in self._long_bytes):
            return data
        return self.scrub(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def scrub_message(self, text: str) -> str:
        """An error message without the secrets, without short ones too, and without whatever looks like a key."""
        text = AUTHORISATION.sub(rf"\1 {REDACTED}", replace_all(text, self._all))
        return LOOKS_LIKE_A_KEY.sub(REDACTED, text)


def replace_all(text: str, forms: Iterable[str]) -> str:
    """``text`` with each of ``forms``, in this order, replaced by ``[redacted]``."""
    for form in forms:
        if form in text:
            text = text.replace(form, REDACTED)
    return text


def forms_of(secret: str) -> Iterator[str]:
    """What a secret looks like as text, inside a URL, inside JSON and inside base64."""
    yield from (secret, quote(secret, safe=""), quote_plus(secret))
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    content = secret.encode("utf-8", "surrogatepass")
    for before in range(3):
        # Base64 writes 3 bytes as 4 characters, so a text looks different after 0, 1 and 2 other bytes. Characters
        # that also depend on the neighbours are left out, except at the ends of the whole text.
        encoded = base64.b64encode(b"\0" * before + content).decode()
        inner = encoded[(0, 2, 3)[before] : len(encoded) - (0, 3, 2)[(before + len(content)) % 3]]
        for form in (encoded, encoded.rstrip("="), inner) if before == 0 else (inner,):
            yield from (form, form.replace("+", "-").replace("/", "_"))
