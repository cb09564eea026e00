"""The address of a server and the key to it: reading both, and what is wrong with them."""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from agents.common.redaction import public_url, with_variables


class MissingAPIKeyError(ValueError):
    """There is no key for a server that needs one; raised when the model is built, before any request."""


def read_key(variable: str | None, usual: str) -> str | None:
    """Return the key in an environment variable, else in the usual one; a MissingAPIKeyError if a named one isn't
    set."""
    key = os.environ.get(variable or usual, "").strip()
    if not key and variable is not None:
        raise MissingAPIKeyError(f"key_variable names {variable}, which isn't set: export {variable}=...")
    return key or None


def read_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return further headers, the environment variables in them replaced; a ValueError if one isn't set."""
    return {name: with_variables(value) for name, value in (headers or {}).items()}


def check_timeout(seconds: float) -> float:
    """Return the seconds that one attempt may take; a ValueError if they aren't above 0."""
    if not seconds > 0:
        raise ValueError(f"timeout is above 0, got {seconds!r}")
    return float(seconds)


def check_url(url: str) -> None:
    """Refuse a text that isn't an http(s) URL with a ValueError that doesn't repeat its secret parts."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"the base URL isn't a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        shown = url.rpartition("@")[2].partition("?")[0]
        raise ValueError(
            f"the base URL has the form http://HOST:PORT/v1 or https://HOST/v1, got {shown!r}"
            + (f"; write http://{shown}" if not parts.scheme or "://" not in url else "")
        )


def proxy_for(url: str) -> str:
    """Return the proxy that the environment names for a URL, or ``""``; the transport finds it by itself."""
    parts, proxies = urlsplit(url), getproxies()
    name = parts.scheme if parts.scheme in proxies else "all"
    proxy = proxies.get(name, "")
    if proxy_bypass(parts.hostname or ""):
        return ""
    if "://" in proxy and not proxy.startswith(("http://", "https://")):
        shown = f"{name.upper()}_PROXY has the form http://HOST:PORT, got {public_url(proxy)!r}"
        raise ValueError(f"{shown}; set another one")
    return proxy
