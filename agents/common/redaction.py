"""Keeping keys out of everything that is written or printed.

What a server says is redacted on its way in, so that no game, cache or episode ever holds a key that a server echoed.
Every file and every message is redacted again on its way out.
"""

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

REDACTED = "[redacted]"
MIN_LENGTH = 8
"""Shorter values ("EMPTY", "test") are placeholders that local servers want; taking them out would maul real text."""
MIN_LENGTH_IN_MESSAGES = 4
"""In an error message a short password is worth more than the word that it may be."""
MIN_PART = 12
"""The shortest part of a key that is taken out."""
KEY = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_+=-][A-Za-z0-9_.+/=-]{15,}", re.ASCII)
"""A secret that is a key and no path, address or word, whose parts may stand in any text."""

SECRET_VARIABLE = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH|_PAT)$", re.IGNORECASE)
SECRET_PARAMETER = re.compile(r"key|token|secret|sig|pass|auth|code|cred", re.IGNORECASE)
LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|rk|key|gsk|hf)[-_][A-Za-z0-9][A-Za-z0-9_*.-]{5,}")
VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
AUTHORISATION = re.compile(r"\b(Bearer|Basic)\s+[^\s\"',}]+", re.IGNORECASE)


def public_url(url: str) -> str:
    """Remove user, password, query and fragment from a URL, so that it may be written down."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def url_secrets(url: str) -> list[str]:
    """List all that may be a credential in a URL, percent-encoded and decoded.

    These are ``user:password`` and both of its parts, the fragment, and parts of the query that are named like a secret
    or as long as one.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]  # any part of something malformed may be the secret
    userinfo = parts.netloc.rpartition("@")[0]
    user, _, password = userinfo.partition(":")
    # Beside a password a plain word is an account's name, and masking it would maul every text with that word.
    credentials = [userinfo, password] if password and user.isalpha() else [userinfo, user, password]
    query = [text for name, text in parse_qsl(parts.query) if SECRET_PARAMETER.search(name) or len(text) >= 16]
    return [form for value in (*credentials, *query, parts.fragment) for form in (value, unquote(value)) if form]


def with_variables(text: str) -> str:
    """Fill in environment variables for ``$NAME`` and ``${NAME}``; a ValueError if one isn't set."""

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in os.environ:
            raise ValueError(f"${name} names an environment variable that isn't set: export {name}=...")
        return os.environ[name]

    return VARIABLE.sub(value_of, text)


class Redactor:
    """Replaces known secrets in text by ``[redacted]``: as they are, percent-encoded, inside JSON and inside base64.

    A key is recognised by a part of it, too (:class:`Key`).
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        secrets = set(secrets)
        forms = {form for secret in secrets for form in forms_of(secret) if len(form) >= MIN_LENGTH_IN_MESSAGES}
        # The longest first: a password inside "user:password" must not leave the rest of the pair behind.
        self._all = sorted(forms, key=len, reverse=True)
        self._long = [form for form in self._all if len(form) >= MIN_LENGTH]
        self._keys = [Key(secret) for secret in sorted(secrets) if KEY.fullmatch(secret)]

    @classmethod
    def from_environment(
        cls, urls: Iterable[str] = (), environ: Mapping[str, str] | None = None, secrets: Iterable[str] = ()
    ) -> "Redactor":
        """Collect secrets of variables named like one, of URLs among the variables, of ``urls`` and ``secrets``."""
        variables = os.environ if environ is None else environ
        secrets = [*secrets, *(value for name, value in variables.items() if SECRET_VARIABLE.search(name))]
        for name, value in variables.items():  # addresses of servers, proxies and databases
            if name.endswith("_BASE_URL") or ("://" in value and "@" in value):
                secrets += url_secrets(value)
        return cls([*secrets, *(secret for url in urls for secret in url_secrets(url))])

    def scrub(self, text: str) -> str:
        """Redact a text. What is left of a JSON document is one."""
        return self._scrubbed(text, self._long)

    def _scrubbed(self, text: str, forms: Iterable[str]) -> str:
        for form in forms:
            text = text.replace(form, REDACTED)
        for key in self._keys:
            text = key.scrub(text)
        return text

    def scrub_bytes(self, data: bytes) -> bytes:
        """Redact UTF-8, or bytes that are nearly that."""
        return self.scrub(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def scrub_message(self, text: str) -> str:
        """Redact an error message, with short secrets and everything that looks like a key."""
        text = AUTHORISATION.sub(rf"\1 {REDACTED}", self._scrubbed(text, self._all))
        return LOOKS_LIKE_A_KEY.sub(REDACTED, text)


class Key:
    """A secret that looks like a key, whose parts are secret as well: a server may echo it without its beginning.

    A part counts if it has three fifths of the key's characters and at least :data:`MIN_PART`. Every such part holds
    the key's ``middle``, so that a text without that needs no closer look.
    """

    def __init__(self, secret: str) -> None:
        self.secret, self.least = secret, max(MIN_PART, -(-3 * len(secret) // 5))
        self.begin = len(secret) - self.least
        self.middle = secret[self.begin : self.least]

    def scrub(self, text: str) -> str:
        at = text.find(self.middle)
        while at >= 0:
            low = at - _shared(text[max(0, at - self.begin) : at][::-1], self.secret[: self.begin][::-1])
            high = at + _shared(text[at : at + len(self.secret)], self.secret[self.begin :])
            # a number of a JSON document stays one
            if high - low >= self.least and text[low:high].strip("0123456789.eE+-"):
                text, at = f"{text[:low]}{REDACTED}{text[high:]}", low + len(REDACTED) - 1
            at = text.find(self.middle, at + 1)
        return text


def _shared(text: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))


def forms_of(secret: str) -> Iterator[str]:
    """Yield what a secret looks like as text, inside a URL, inside JSON and inside base64."""
    yield from (secret, quote(secret, safe=""), quote_plus(secret))
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    content = secret.encode("utf-8", "surrogatepass")
    for before in range(3):
        # a text looks different after 0, 1 and 2 other bytes; characters that depend on neighbours are left out
        encoded = base64.b64encode(b"\0" * before + content).decode()
        inner = encoded[(0, 2, 3)[before] : len(encoded) - (0, 3, 2)[(before + len(content)) % 3]]
        for form in (encoded, encoded.rstrip("="), inner) if before == 0 else (inner,):
            yield from (form, form.replace("+", "-").replace("/", "_"))
