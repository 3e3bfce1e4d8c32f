"""Shapes of secrets by the hundred: how many are found in which carriers, and that talk holds none."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable
from math import inf
from random import Random

import pytest
from tests.redaction.shapes import BARE, CARRIERS, PLAIN, PREFIXED, Case, cases, held_out, made
from tests.redaction.talk import talk

from keepsaid.adapters.redaction.redactor import PatternRedactor

RECALL_MIN = 0.93
BARE_MIN = 0.85
_TALK = 5_000

NAMED = {
    "1password service": "ops_eyJ{b250}",
    "1password key": "A3-{u6}-{u11}-{u5}-{u5}-{u5}",
    "doppler personal": "dp.pt.{a43}",
    "dynatrace": "dt0c01.{u24}.{u64}",
    "gitlab feed": "glft-{w20}",
    "gitlab mail": "glimt-{w25}",
    "gitlab agent": "glagent-{w50}",
    "gitlab oauth": "gloas-{h64}",
    "gitlab registration": "GR1348941{w20}",
    "clojars": "CLOJARS_{l60}",
    "flutterwave": "FLWSECK_TEST-{h32}-X",
    "duffel": "duffel_test_{w43}",
    "easypost": "EZAK{a54}",
    "easypost test": "EZTK{a54}",
    "huggingface organisation": "api_org_{s34}",
    "defined networking": "dnkey-{w26}-{w52}",
    "bedrock": "ABSK{b109}=",
}
"""Shapes that an outside report named as unknown; each is found also in a sentence that says nothing of it."""


def _missed(found: Iterable[Case]) -> tuple[list[str], int]:
    """Format and carrier of the cases whose secret is not covered whole, and how many cases there are."""
    redactor, missed, count = PatternRedactor(), [], 0
    for case in found:
        count += 1
        if not any(mark.start <= case.start and case.end <= mark.end for mark in redactor.marks(case.text)):
            missed.append(f"{case.format}: {case.carrier}")
    return missed, count


def test_secrets_of_known_shapes_are_found_where_something_gives_them_away() -> None:
    """Of formats with a rule of their own and of those held out while the generic rules were written."""
    held = held_out(PREFIXED)
    listed = {name: shape for name, shape in PREFIXED.items() if name not in held}
    for what, formats in (("listed", listed), ("held out", held), ("without a beginning", PLAIN)):
        missed, count = _missed(cases(formats, CARRIERS))
        print(f"recall of {what}: {1 - len(missed) / count:.3f} of {count}")
        assert count >= 200
        assert 1 - len(missed) / count >= RECALL_MIN, missed


def test_secrets_of_known_shapes_are_found_in_a_sentence_that_says_nothing() -> None:
    missed, count = _missed(cases(PREFIXED, BARE))
    print(f"recall of bare ones: {1 - len(missed) / count:.3f} of {count}")
    assert count >= 800
    assert 1 - len(missed) / count >= BARE_MIN, missed


@pytest.mark.parametrize("name", NAMED)
def test_a_reported_shape_is_found_wherever_it_stands(name: str) -> None:
    missed, count = _missed(cases({name: NAMED[name]}, {**CARRIERS, **BARE}))
    assert count == len(CARRIERS) + len(BARE)
    assert missed == []


def test_talk_holds_no_secret() -> None:
    redactor = PatternRedactor()
    lines = list(talk(_TALK))
    assert len(set(lines)) > _TALK * 0.8
    assert [line for line in lines if redactor.marks(line)] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("curl -u admin:S3same99 https://example.org", "curl -u admin:[redacted: password] https://example.org"),
        ("curl --user 'a:S3same99' x", "curl --user 'a:[redacted: password]' x"),
        ("curl -u admin:$PASSWORD https://example.org", "curl -u admin:$PASSWORD https://example.org"),
        ("docker run -u 1000:1000 app", "docker run -u 1000:1000 app"),
        ("<password>\n  S3same99\n</password>", "<password>\n  [redacted: password]\n</password>"),
        ("<password>${db.password}</password>", "<password>${db.password}</password>"),
        ("<count>S3same99</count>", "<count>S3same99</count>"),
        (
            '<add key="ClearTextPassword" value="S3same99" />',
            '<add key="ClearTextPassword" value="[redacted: password]" />',
        ),
    ],
)
def test_syntax_gives_a_secret_away(text: str, shown: str) -> None:
    assert PatternRedactor().redacted(text) == shown


def test_every_value_of_a_kubernetes_secret_is_one() -> None:
    """Those below `data` and `stringData`, wherever `kind` stands, and nothing else of the file."""
    value = base64.b64encode(b"sesame").decode()
    text = f"metadata:\n  name: app-db\ndata:\n  user: {value}\n  pass: {value}\nimmutable: maybe\nkind: Secret\n"
    hidden = "[redacted: credential]"
    assert PatternRedactor().redacted(text) == text.replace(value, hidden)
    assert PatternRedactor().redacted(text.replace("Secret", "ConfigMap")).count(hidden) <= 1


HOSTILE = {
    "elements": "<password>",
    "open elements": "<token ",
    "pairs": 'key="token" ',
    "spaces in an element": "<secret>" + " " * 39,
    "curl": "curl -u a:",
    "a secret of kubernetes": "kind: Secret\ndata:\n  a: bbbbb\n",
    "indented": "kind: Secret\n" + " " * 30,
    "beginnings": "abc_",
    "hyphens": "a-b-",
    "a long token": "aB3",
    "keys": "key: ",
    "paths": "token /a/b/",
    "dots": "token a.",
    "ones": "1//0",
    "dp": "dp.pt.",
}


_TRIES = 10


def _seconds(text: str) -> float:
    redactor, started = PatternRedactor(), time.thread_time()
    redactor.marks(text)
    return time.thread_time() - started


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_length_alone(name: str) -> None:
    """Four times the text takes no more than six times the time, by the quickest of a few tries."""
    piece, short, long = HOSTILE[name], inf, inf
    for _ in range(_TRIES):
        short, long = (min(best, _seconds((piece * n)[:n])) for best, n in ((short, 20_000), (long, 80_000)))
        if long <= max(6 * short, 0.05):
            return
    pytest.fail(f"{short} s for 20,000 characters, {long} s for 80,000")


def test_a_shape_is_made_as_it_says() -> None:
    token = made("ab-{h8}.{u4}", Random(1))
    assert len(token) == 16
    assert token.startswith("ab-")
