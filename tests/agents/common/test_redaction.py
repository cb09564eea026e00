"""Keys stay out, in every form in which they come by."""

import base64
import json
from math import ceil
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.common.redaction import KEY as KEY_FORM
from agents.common.redaction import MIN_PART, REDACTED, Redactor, public_url, url_secrets, with_variables

KEY = "sk-planted-0123456789"


def all_scrubbed(redactor, text):
    return redactor.scrub(text), redactor.scrub_message(text), redactor.scrub_bytes(text.encode()).decode()


SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=8, max_size=40)


@given(SECRETS)
@settings(max_examples=100, deadline=None)
def test_no_form_of_a_secret_is_left(secret):
    redactor = Redactor([secret])
    for form in (secret, quote(secret, safe=""), quote_plus(secret)):
        for scrubbed in all_scrubbed(redactor, f"before {form} after"):
            assert form not in scrubbed.replace(REDACTED, "")
    for ascii_only in (True, False):
        scrubbed = redactor.scrub(json.dumps({"error": f"wrong key: {secret}"}, ensure_ascii=ascii_only))
        assert json.loads(scrubbed)["error"] == f"wrong key: {REDACTED}"


@pytest.mark.slow
@given(SECRETS, st.binary(max_size=5), st.binary(max_size=5), st.sampled_from([b"+/", b"-_"]))
@settings(max_examples=200, deadline=None)
def test_no_secret_can_be_decoded_from_base64(secret, before, after, alphabet):
    encoded = base64.b64encode(before + secret.encode() + after, altchars=alphabet).decode()
    scrubbed = Redactor([secret]).scrub(f"Basic {encoded}, and without padding {encoded.rstrip('=')}.")
    assert scrubbed.count(REDACTED) == 2
    # of the secret at most the two characters at each end are left
    assert len(scrubbed) <= len("Basic , and without padding .") + 2 * (len(REDACTED) + len(before + after) * 2 + 8)


def test_secrets_come_from_variables_and_urls_whose_public_part_alone_is_written():
    planted = f"https://user:{KEY}@api.example.com:8000/v1?key={KEY}#{KEY}"
    assert public_url(planted) == public_url("https://api.example.com:8000/v1") == "https://api.example.com:8000/v1"
    environ = {
        "OPENAI_API_KEY": KEY,
        "AZURE_OPENAI_KEY": "azure_planted_key",
        "HF_TOKEN": "hf_planted_token",
        "HOME": "/home/somebody",
        "OTHER_BASE_URL": "https://u:p%40ssword-in-url@example.com/?api-version=2024-06-01",
        "HTTPS_PROXY": "http://me:password-of-proxy@proxy:3128",
        "BROKEN_BASE_URL": "http://[no-url-at-all",
    }
    scrub = Redactor.from_environment(["http://example.com/?sig=signature-value"], environ).scrub
    for secret in (*environ.values(), "p@ssword-in-url", "password-of-proxy", "signature-value", "2024-06-01"):
        assert (secret in scrub(f"x {secret} y")) is (secret in ("/home/somebody", "2024-06-01"))


def test_headers_name_variables_in_both_forms(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", KEY)
    assert with_variables("Bearer ${MY_TOKEN} $MY_TOKEN") == f"Bearer {KEY} {KEY}"
    with pytest.raises(ValueError, match=r"\$NOT_SET_HERE names an environment variable that isn't set"):
        with_variables("$NOT_SET_HERE")


def test_placeholders_of_local_servers_arent_scrubbed_out_of_the_text():
    redactor = Redactor(["EMPTY", "x"])
    assert redactor.scrub("an EMPTY box") == "an EMPTY box"
    assert redactor.scrub_message("an EMPTY box") == "an [redacted] box"


def test_the_name_of_an_account_is_a_word_but_a_lone_user_is_a_key():
    assert Redactor(url_secrets("http://textbench:password-1@host")).scrub('"kind": "textbench-run"').count("textbench")
    for url in ("http://abcdefghijkl@host", "http://abcdefghijkl:@host", "http://abcdefghijk1:password@host"):
        assert Redactor(url_secrets(url)).scrub("it was abcdefghijkl or abcdefghijk1").count(REDACTED) == 1


def test_a_secret_inside_another_leaves_no_half():
    for redactor in (Redactor(["password123", "user:password123"]), Redactor(["user:password123", "password123"])):
        for scrub in (redactor.scrub, redactor.scrub_message):
            assert scrub("user:password123 and password123") == f"{REDACTED} and {REDACTED}"


KEYS = st.text("ABCabcxyz0123456789-_", min_size=16, max_size=60).filter(KEY_FORM.fullmatch)


@given(KEYS, st.data())
@settings(max_examples=200, deadline=None)
def test_no_large_part_of_a_key_is_left(key, data):
    least = max(MIN_PART, ceil(0.6 * len(key)))
    begin = data.draw(st.integers(0, len(key) - least))
    part = key[begin : data.draw(st.integers(begin + least, len(key)))]
    for scrubbed in all_scrubbed(Redactor([key]), json.dumps([f"<{part}>", f"...{part}", "<>", 12345678901234567890])):
        found = json.loads(scrubbed)  # a number stays one
        if part.strip("0123456789.eE+-"):
            assert found == [f"<{REDACTED}>", f"...{REDACTED}", "<>", 12345678901234567890]


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        (KEY, f"{KEY[:11]} and {KEY[12:]}"),  # parts that are too short
        ("sk-planted-0123456789012345", '{"seed": 123456789012345}'),  # a number
        ("/home/me/keys/account-1.json", "/home/me/keys/account-2.json"),  # a path, and no key
        ("textbench-tester:pass-word-1", "textbench-tester plays"),  # a name
        ("development-password", "development-passing"),  # words
    ],
)
def test_what_only_looks_like_a_part_of_a_secret_stays(secret, text):
    assert Redactor([secret]).scrub(text) == text


def test_an_error_message_is_searched_for_whatever_looks_like_a_key():
    url = "http://me:p%40ss@host/v1?sig=0123456789abcdefXYZ"
    said = f"got Bearer other-token-1234, key sk-proj-abc***xyz and 'Basic bWU6cEBzcw==' for {url} (p@ss)"
    assert Redactor(url_secrets(url)).scrub_message(said) == (
        "got Bearer [redacted], key [redacted] and 'Basic [redacted]' for "
        "http://[redacted]@host/v1?sig=[redacted] ([redacted])"
    )
