"""Bodies that are made to be slow to read: time grows in proportion to their size, and no answer quotes them."""

from __future__ import annotations

from time import thread_time

import pytest

from keepsaid.config import Config
from keepsaid.interfaces.http.inbound import inbound_of
from keepsaid.interfaces.http.problems import BadRequest, parsed


def seconds_to_refuse(body: bytes) -> float:
    """Processor time that reading a body takes which is refused; the best of three."""
    took = []
    for _ in range(3):
        began = thread_time()
        with pytest.raises(BadRequest) as caught:
            parsed(body)
        took.append(thread_time() - began)
        assert len(caught.value.what) < 300
    return min(took)


def last_key_twice(count: int) -> bytes:
    """An object of that many keys, the last of which stands twice."""
    return b"{" + b",".join(b'"k%d":0' % min(n, count - 2) for n in range(count)) + b"}"


def test_a_duplicate_key_is_found_in_linear_time() -> None:
    small, large = seconds_to_refuse(last_key_twice(16_000)), seconds_to_refuse(last_key_twice(96_000))
    assert large < 15 * small, (small, large)


def test_an_unknown_field_with_a_giant_name_is_refused_at_once() -> None:
    began = thread_time()
    with pytest.raises(BadRequest, match="unknown field") as caught:
        inbound_of(Config(), {"ab" * 2_000_000: 1}, b"{}", None)
    assert thread_time() - began < 0.2
    assert len(caught.value.what) < 300
