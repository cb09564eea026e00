"""Keys stay out, in every form in which they come by."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.runs.redaction import Redactor, public_url, url_secrets

KEY = "sk-planted-0123456789"


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://api.example.com/v1", "https://api.example.com/v1"),
        (f"https://user:{KEY}@api.example.com:8000/v1", "https://api.example.com:8000/v1"),
        (f"https://api.example.com/v1?api-version=1&key={KEY}", "https://api.example.com/v1"),
        (f"https://api.example.com/v1#{KEY}", "https://api.example.com/v1"),
    ],
)
def test_only_the_public_part_of_a_url_is_written(url, public):
    assert public_url(url) == public


@given(st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=8, max_size=40))
@settings(max_examples=100, deadline=None)
def test_no_form_of_a_secret_is_left(secret):
    import json
    from urllib.parse import quote, quote_plus

    redactor = Redactor([secret])
    for form in (secret, quote(secret, safe=""), quote_plus(secret)):
        assert form not in redactor.scrub(f"before {form} after").replace("[redacted]", "")
    assert json.loads(redactor.scrub(json.dumps({"error": f"wrong key: {secret}"})))["error"] == "wrong key: [redacted]"


def test_secrets_come_from_variables_and_urls():
    environ = {
        "OPENAI_API_KEY": KEY,
        "HF_TOKEN": "hf_planted_token",
        "HOME": "/home/somebody",
        "OTHER_BASE_URL": "https://u:password-in-url@example.com",
    }
    scrub = Redactor.from_environment(["http://example.com/?sig=signature-value"], environ).scrub
    for secret in (KEY, "hf_planted_token", "password-in-url", "signature-value"):
        assert secret not in scrub(f"x {secret} y")
    assert scrub("/home/somebody") == "/home/somebody"


def test_placeholders_of_local_servers_arent_scrubbed_out_of_the_text():
    assert Redactor(["EMPTY", "x"]).scrub("an EMPTY box") == "an EMPTY box"


def test_a_secret_inside_another_leaves_no_half():
    scrub = Redactor(["password123", "user:password123"]).scrub
    assert scrub("user:password123") == "[redacted]"


def test_url_secrets_decodes():
    assert "p@ssword!" in url_secrets("https://user:p%40ssword%21@example.com/")
