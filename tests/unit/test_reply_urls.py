"""Where replies may be pushed."""

from __future__ import annotations

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.adapters.channels.pull import allowed


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("https://example.com/replies?a=b#c", ["example.com"]),
        ("HTTPS://EXAMPLE.com", ["Example.COM "]),
        ("https://example.com:8443/", ["example.com"]),
        ("https://example.com:8443/", ["example.com:8443"]),
        ("https://example.com/", ["example.com:443"]),
        ("http://example.com", ["example.com:80"]),
        ("http://localhost:9000/x", ["other.example", "localhost:9000"]),
        ("http://127.0.0.1:9000/x", ["127.0.0.1"]),
        ("http://[::1]:9000/x", ["[::1]"]),
        ("http://[::1]:9000/x", ["[::1]:9000"]),
        ("https://example.com/a@b\\c", ["example.com"]),
    ],
)
def test_allowed_hosts(url: str, hosts: list[str]) -> None:
    assert allowed(url, hosts) is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http:///x",
        "http://",
        "https://example.org/",
        "https://sub.example.com/",
        "https://example.com./",
        "https://example.com.evil.test/",
        "https://evil.test/example.com",
        "https://evil.test?example.com",
        "https://evil.test#@example.com/",
        "https://evil.test\\@example.com/",
        "https://example.com\\.evil.test/",
        "https://user@example.com/",
        "https://user:word@example.com/",
        "https://example.com@evil.test/",
        "https://example.com:443@evil.test/",
        "https://example.com:80:90/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com:/",
        "https://example.com:9000/",
        "https://example.com /",
        " https://example.com/",
        "https://example.com/\n",
        "https://example.com/\r\nHost: evil.test",
        "https://example.com/a b",
        "https://ex\tample.com/",
        "https://example.com/ü",
        "https://exämple.com/",
        "https://example。com/",
        "https://example%2ecom/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::ffff:127.0.0.1]/",
        "https://example.com/" + "x" * 3_000,
        "https://example.com/\ud800",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    assert allowed(url, ["example.com:443", "127.0.0.1"])


def test_nothing_is_allowed_without_hosts() -> None:
    assert allowed("https://example.com/", [])


@given(st.text(alphabet="htps:/@.\\[]#?%0a1 ex\t", max_size=30) | st.text(max_size=30))
def test_what_is_allowed_is_where_it_goes(rest: str) -> None:
    url = f"http://{rest}"
    if allowed(url, ["a.ex", "1.0"]) is None:
        assert httpx2.URL(url).host in {"a.ex", "1.0"}
        assert httpx2.URL(url).userinfo == b""
