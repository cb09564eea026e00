"""No page of the site needs a network: what .ci/site asks of it."""

import pytest
from loads_nothing import loaded, main


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".html", '<script src="https://a.org/x.js"></script>'),
        (".html", '<script>const s = document.createElement("script"); s.src = "//a.org/x.js";</script>'),
        (".html", '<link rel="preload stylesheet" href="//a.org/x.css">'),
        (".html", '<img src="small.png" srcset="small.png 1x, https://a.org/x.png 2x">'),
        (".html", '<p style="background: url(https://a.org/x.png)">'),
        (".svg", '<svg><image href="https://a.org/x.png"/></svg>'),
        (".css", '@font-face { src: url("https://a.org/x.woff2") }'),
        (".js", 'fetch("https://a.org/x.json")'),
    ],
)
def test_what_comes_from_elsewhere_is_found(suffix, text, tmp_path):
    (address,) = loaded(text, suffix)
    assert "//a.org/" in address
    assert main([str(tmp_path)]) == 2  # no site
    (tmp_path / "index.html").write_text("")
    assert main([str(tmp_path)]) == 0
    (tmp_path / f"page{suffix}").write_text(text)
    assert main([str(tmp_path)]) == 1


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".html", '<a href="https://a.org/">there</a><link rel="canonical" href="https://a.org/page.html">'),
        (".html", '<img src="../x.png"><script src="x.js"></script><code>src="https://a.org/x.js"</code>'),
        (".svg", '<svg xmlns="http://www.w3.org/2000/svg"></svg>'),
        (".js", '// see "https://a.org/"\nconst ns = "http://www.w3.org/2000/svg";'),
    ],
)
def test_links_and_names_are_not_loaded(suffix, text):
    assert loaded(text, suffix) == []
