"""The GitHub hook: what it refuses, and that it takes everything GitHub really sends."""

from __future__ import annotations

import hmac
import json
import os
from collections import Counter
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepsaid.adapters.channels.github import TEXT_CHARS_MAX, GitHubHook
from keepsaid.domain.message import Inbound, Lane, Trust
from keepsaid.domain.reply import Delivered, ReplyDraft, Sending, StoredReply
from keepsaid.errors import Forged, HookClosed, InputError
from keepsaid.ports.channel import Channel, Hook
from keepsaid.testing.webhooks import EVENTS, deliveries, payload, sign

SECRET = "a fine secret"  # gitleaks:allow
BENCH = os.environ.get("KEEPSAID_BENCH_DATA")


def headers_of(event: str, body: bytes) -> dict[str, str]:
    return {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": "5f1c0000-aaaa-bbbb-cccc-000000000001",
        "x-hub-signature-256": sign(SECRET, body),
    }


def read_raw(event: str, body: bytes) -> Inbound:
    inbound = GitHubHook(SECRET).read(headers_of(event, body), body)
    assert inbound is not None
    return inbound


def read(event: str, fields: object) -> Inbound:
    return read_raw(event, json.dumps(fields).encode())


REPOSITORY = {"id": 9, "name": "api", "full_name": "acme/api"}
SENDER = {"id": 4_711, "login": "mirelda-h"}


def told(**fields: object) -> dict[str, object]:
    return {"repository": REPOSITORY, "sender": SENDER, **fields}


# What it is


async def test_it_is_a_channel_that_cannot_reply() -> None:
    hook: Hook = GitHubHook(SECRET)
    channel: Channel = GitHubHook(SECRET)
    assert hook.name == channel.name == "github"
    assert channel.sending is Sending.NONE
    lane = Lane("github", "default", "github:acme/api#1", "root:github:acme/api#1")
    result = await channel.send(StoredReply(1, lane, None, "sending", ReplyDraft(1, "hello")))
    assert result.outcome is Delivered.REFUSED
    assert "github.token is not set" in result.detail
    await channel.close()


# The signature

BODY = json.dumps(told(action="opened", issue={"id": 5, "number": 1})).encode()
RIGHT = sign(SECRET, BODY)


@pytest.mark.parametrize("secret", ["", " ", "\t\n", "\u00a0"])
@pytest.mark.parametrize("event", ["issues", "ping"])
def test_without_a_secret_it_is_closed(secret: str, event: str) -> None:
    headers = headers_of(event, BODY) | {"x-hub-signature-256": sign(secret, BODY)}
    with pytest.raises(HookClosed):
        GitHubHook(secret).read(headers, BODY)


@pytest.mark.parametrize(
    "signature",
    [
        None,
        "",
        " ",
        "sha256=",
        RIGHT.removeprefix("sha256="),
        RIGHT[:-1],
        RIGHT + "0",
        RIGHT + "\n",
        " " + RIGHT,
        RIGHT.upper(),
        RIGHT.replace("sha256", "sha1"),
        RIGHT.replace("sha256", "sha512"),
        f"{RIGHT}, {RIGHT}",
        "sha256=" + "0" * 64,
        "sha256=" + "é" * 64,
        "sha256=" + "٠" * 64,
        "sha256=\ud800",
        "sha1=" + hmac.digest(SECRET.encode(), BODY, "sha1").hex(),
        sign("another secret", BODY),
        sign("", BODY),
        sign(SECRET, BODY + b" "),
        sign(SECRET, b""),
    ],
)
@pytest.mark.parametrize("event", ["issues", "ping"])
def test_any_other_signature_is_forged(signature: str | None, event: str) -> None:
    headers = headers_of(event, BODY) | {"x-hub-signature": "sha1=" + hmac.digest(SECRET.encode(), BODY, "sha1").hex()}
    del headers["x-hub-signature-256"]
    if signature is not None:
        headers["x-hub-signature-256"] = signature
    with pytest.raises(Forged):
        GitHubHook(SECRET).read(headers, BODY)


def test_a_body_written_anew_is_forged() -> None:
    anew = json.dumps(json.loads(BODY), indent=1).encode()
    with pytest.raises(Forged):
        GitHubHook(SECRET).read(headers_of("issues", BODY), anew)


@given(st.integers(0, len(BODY) * 8 - 1))
def test_one_flipped_bit_is_forged(bit: int) -> None:
    flipped = bytearray(BODY)
    flipped[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Forged):
        GitHubHook(SECRET).read(headers_of("issues", BODY), bytes(flipped))


def test_github_documents_this_signature() -> None:
    # docs.github.com, "Validating webhook deliveries", Testing the webhook payload validation.
    body = b"Hello, World!"
    headers = headers_of("ping", body)
    headers["x-hub-signature-256"] = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert GitHubHook("It's a Secret to Everybody").read(headers, body) is None


# Headers and bodies


def test_a_ping_is_nothing_to_keep() -> None:
    body = b'{"zen": "Keep it."}'
    assert GitHubHook(SECRET).read(headers_of("ping", body), body) is None


@pytest.mark.parametrize("name", ["x-github-delivery", "x-github-event"])
@pytest.mark.parametrize("value", [None, "", "  ", "x" * 201, "a\x00b", "é", "\ud800"])
def test_event_and_delivery_must_be_named(name: str, value: str | None) -> None:
    headers = headers_of("issues", BODY)
    del headers[name]
    if value is not None:
        headers[name] = value
    with pytest.raises(InputError, match=name):
        GitHubHook(SECRET).read(headers, BODY)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"17",
        b"\xff\xfe\xfa",
        b'{"a": "\xff"}',
        b"\0",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"a": ' + b"9" * 5_000 + b"}",
    ],
    ids=lambda body: repr(body[:12]),
)
def test_a_body_that_is_no_object_cannot_be_taken(body: bytes) -> None:
    with pytest.raises(InputError) as caught:
        GitHubHook(SECRET).read(headers_of("issues", body), body)
    assert type(caught.value) is InputError


def test_a_form_carries_the_same_payload() -> None:
    document = json.dumps(told(action="opened", issue={"id": 5, "number": 1, "title": "a+b & c=ü"}), ensure_ascii=False)
    body = f"x=1&payload={quote_plus(document)}&y".encode()
    headers = headers_of("issues", body) | {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    inbound = GitHubHook(SECRET).read(headers, body)
    assert inbound == read_raw("issues", document.encode())
    assert inbound is not None
    assert inbound.content.payload == document.encode()


@pytest.mark.parametrize(
    "body", [b"", b"payload=", b"payload=%7B", b"other=%7B%7D", b"payload=%7B%7D&payload=%7B%7D", b"{}"]
)
def test_a_form_without_a_payload_cannot_be_taken(body: bytes) -> None:
    headers = headers_of("issues", body) | {"content-type": "application/x-www-form-urlencoded"}
    with pytest.raises(InputError):
        GitHubHook(SECRET).read(headers, body)


# What it reads


def test_a_comment_whole() -> None:
    fields = told(
        action="created",
        issue={"id": 31, "number": 77, "title": "Lantern\tflickers"},
        comment={"id": 55, "body": "It is the\r\nwick. \ud800\0"},
    )
    inbound = read("issue_comment", fields)
    origin, content, marks = inbound.origin, inbound.content, inbound.marks
    assert (origin.channel, origin.account, origin.conversation) == ("github", "default", "github:acme/api#77")
    assert (origin.sender, origin.name, origin.direct, origin.trust) == ("4711", "mirelda-h", False, Trust.EXTERNAL)
    assert content.event == "issue_comment.created"
    assert content.payload == json.dumps(fields).encode()
    assert content.text == (
        "mirelda-h: issue comment created, acme/api#77\nLantern flickers\nIt is the\nwick. \ufffd\ufffd"
    )
    assert (marks.external_id, marks.provider_id) == ("5f1c0000-aaaa-bbbb-cccc-000000000001", "comment:55")
    assert marks.reply_to is None
    assert inbound.priority == 50
    assert inbound.lane.key == "root:github:acme/api#77"


def test_account_and_priority_are_configured() -> None:
    inbound = GitHubHook(SECRET, "work", 70).read(headers_of("issues", BODY), BODY)
    assert inbound is not None
    assert (inbound.origin.account, inbound.priority) == ("work", 70)


def test_the_number_is_the_sender_and_the_login_only_a_name() -> None:
    before, after = read("watch", told()), read("watch", told(sender={"id": 4_711, "login": "renamed"}))
    assert before.origin.sender == after.origin.sender == "4711"
    stranger = read("watch", told(sender={"login": "4711"}))
    assert (stranger.origin.sender, stranger.origin.name) == ("unknown", "4711")


def test_generated_deliveries() -> None:
    hook, seen, kept = GitHubHook(SECRET), set(), []
    for delivery in deliveries(3, 400, SECRET):
        if delivery.forged:
            with pytest.raises(Forged):
                hook.read(delivery.headers, delivery.body)
            continue
        inbound = hook.read(delivery.headers, delivery.body)
        assert inbound is not None
        if delivery.repeat_of is not None:
            assert inbound.key_hash in seen
        seen.add(inbound.key_hash)
        kept.append(inbound)
        assert inbound.origin.conversation.startswith(("github:brindlewick/", "github:ostravane/"))
        assert inbound.content.text.splitlines()[0].startswith(f"{inbound.origin.name}: ")
    assert {inbound.content.event.partition(".")[0] for inbound in kept} == set(EVENTS)


# Mutated payloads

FINITE = st.floats(allow_nan=False, allow_infinity=False)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | st.text() | st.sampled_from(["\ud800", "\0", "x" * 999]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for name, inner in value.items():
            found += places(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += places(inner, (*path, index))
    return found


def put(value: object, path: tuple[str | int, ...], odd: object) -> None:
    for name in path[:-1]:
        assert isinstance(value, dict | list)
        value = value[name]  # type: ignore[index] # names of objects, indexes of arrays
    assert isinstance(value, dict | list)
    value[path[-1]] = odd  # type: ignore[index]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(EVENTS), st.integers(0, 50), st.data())
def test_no_mutation_of_a_payload_breaks_it(event: str, seed: int, data: st.DataObject) -> None:
    mutated: dict[str, object] = payload(event, seed)
    for _ in range(data.draw(st.integers(1, 6))):
        if open_places := places(mutated):
            put(mutated, data.draw(st.sampled_from(open_places)), data.draw(ODD))
    inbound = read(event, mutated)
    assert inbound.origin.conversation.startswith("github:")
    assert inbound.origin.sender
    stored = (inbound.origin.conversation, inbound.origin.sender, inbound.origin.name, inbound.marks.provider_id)
    for text in (*stored, inbound.content.text, inbound.content.event):
        assert text is None or "\0" not in text
        assert text is None or text.encode() is not None
    assert all(text is None or (len(text) <= 1_000 and text.isprintable()) for text in stored)
    assert len(inbound.content.text) <= TEXT_CHARS_MAX


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400", "9" * 5_000])
def test_a_number_that_is_none_is_refused(number: str) -> None:
    body = json.dumps(told(issue={"number": "HERE"})).replace('"HERE"', number).encode()
    with pytest.raises(InputError, match="number"):
        read_raw("issues", body)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["application/json", "application/x-www-form-urlencoded", ""]))
def test_no_body_breaks_it(body: bytes, content_type: str) -> None:
    headers = headers_of("issues", body) | {"content-type": content_type}
    try:
        GitHubHook(SECRET).read(headers, body)
    except InputError as error:
        assert type(error) is InputError  # noqa: PT017 - being taken is fine too


@given(st.dictionaries(st.sampled_from(list(headers_of("issues", BODY))), st.text()))
def test_no_headers_break_it(odd: dict[str, str]) -> None:
    try:
        GitHubHook(SECRET).read(headers_of("issues", BODY) | odd, BODY)
    except InputError as error:
        assert type(error) in {InputError, Forged}  # noqa: PT017 - being taken is fine too


# Real payloads


@pytest.mark.skipif(BENCH is None, reason="KEEPSAID_BENCH_DATA is not set")
def test_every_real_payload_is_taken() -> None:
    seen: Counter[tuple[str, str, str | None]] = Counter()
    folder = Path(BENCH or "", "github-webhooks")
    paths = sorted(folder.glob("*/*.json"))
    assert paths
    for path in paths:
        body = path.read_bytes()
        inbound = read_raw(path.parent.name, body)
        fields = json.loads(body)
        assert inbound.origin.conversation.startswith(f"github:{fields['repository']['full_name']}"), path
        assert inbound.origin.sender == str(fields["sender"]["id"])
        assert inbound.content.payload == body
        expected = [path.parent.name, fields["action"]] if "action" in fields else [path.parent.name]
        assert inbound.content.event == ".".join(expected)
        assert inbound.content.text
        seen[inbound.origin.conversation, inbound.content.event, inbound.marks.provider_id] += 1
    for (place, event, mark), count in sorted(seen.items()):
        print(f"{count:3} {place:45} {event:40} {mark}")
    assert sum(seen.values()) == len(paths)
