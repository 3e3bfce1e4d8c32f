"""Checks of what comes over Nostr: forged events are counted, unreadable messages are kept, kinds are read."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from tests.unit.nostr_cast import AGENT, SECRET

from keepsaid.adapters.channels.nostr.keys import NostrForged, NostrKeys, NostrRumor
from keepsaid.adapters.channels.nostr.opening import WrapOpener
from keepsaid.adapters.channels.nostr.rumors import incoming_of
from keepsaid.domain.message import REACTION, UNREADABLE
from keepsaid.ports.channel import Incoming
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.providers.nostr_people import NostrPerson, secret_of

_NOW_S = 1_750_000_000
_ANN, _BOB = (NostrPerson(name, lambda: _NOW_S) for name in ("ann", "bob"))
_KEYS = NostrKeys(SECRET)
_TARGET = "ab" * 32


def sealed(rumor: str, seal: dict[str, Any] | None = None) -> dict[str, Any]:
    """A wrap whose rumor is any text, sealed by Ann; `seal` changes the kind or the tags of the seal."""
    sdk: Any = importlib.import_module("nostr_sdk")

    ann, once = sdk.Keys.parse(secret_of("ann")), sdk.Keys.generate()
    agent = sdk.PublicKey.parse(AGENT)
    changed = seal or {}

    def event(keys: Any, kind: int, text: str, tags: list[list[str]]) -> str:
        content = sdk.nip44_encrypt(keys.secret_key(), agent, text, sdk.Nip44Version.V2)
        builder = sdk.EventBuilder(sdk.Kind(kind), content).tags([sdk.Tag.parse(tag) for tag in tags])
        return str(builder.finalize(keys).as_json())

    inner = event(ann, changed.get("kind", 13), rumor, changed.get("tags", []))
    made: dict[str, Any] = json.loads(event(once, 1_059, inner, [["p", AGENT]]))
    return made


def rumor_by(author: str, **fields: Any) -> str:
    given = {"pubkey": author, "created_at": _NOW_S, "kind": 14, "tags": [["p", AGENT]], "content": "hello"}
    return json.dumps({**given, **fields})


def said_by_ann(text: str, kind: int = 14, tags: list[list[str]] | None = None) -> Incoming | None:
    _, wrap = _ANN.write(text, AGENT, kind=kind, tags=tags or [])
    return incoming_of(_KEYS.open_wrap(wrap), AGENT)


@pytest.mark.parametrize(
    "change", [{"content": "x"}, {"sig": "0" * 128}, {"id": "0" * 64}, {"pubkey": "0" * 64}, {"kind": 1}, {"tags": 1}]
)
def test_wrap_that_was_changed_is_refused(change: dict[str, Any]) -> None:
    _, wrap = _ANN.write("hello", AGENT)
    with pytest.raises(NostrForged):
        _KEYS.open_wrap({**wrap, **change})


def test_seal_by_another_than_the_author_is_refused() -> None:
    with pytest.raises(NostrForged, match="seal is not by the author"):
        _KEYS.open_wrap(sealed(rumor_by(_BOB.public)))


@pytest.mark.parametrize("seal", [{"kind": 14}, {"tags": [["p", AGENT]]}])
def test_seal_of_another_form_is_refused(seal: dict[str, Any]) -> None:
    with pytest.raises(NostrForged, match="does not hold a seal"):
        _KEYS.open_wrap(sealed(rumor_by(_ANN.public), seal))


def test_id_is_computed_and_a_claimed_one_has_to_be_the_same() -> None:
    opened = _KEYS.open_wrap(sealed(rumor_by(_ANN.public)))
    assert len(opened.id) == 64
    assert _KEYS.open_wrap(sealed(rumor_by(_ANN.public, id=opened.id))).id == opened.id
    with pytest.raises(NostrForged, match="id of another"):
        _KEYS.open_wrap(sealed(rumor_by(_ANN.public, id="0" * 64)))


def test_wrap_for_somebody_else_is_refused() -> None:
    with pytest.raises(NostrForged, match="decrypted"):
        _KEYS.open_wrap(_ANN.write("hello", _BOB.public)[1])


@pytest.mark.parametrize(
    "rumor",
    [
        "not json",
        "[]",
        "1",
        '"text"',
        "[" * 20_000,
        rumor_by(_ANN.public, kind="x"),
        rumor_by(_ANN.public, tags=[["p", 1]]),
        rumor_by(_ANN.public, created_at=-1),
        rumor_by(_ANN.public, created_at=10**30),
        rumor_by(_ANN.public, content=None),
    ],
)
def test_unreadable_message_is_kept_as_it_came(rumor: str) -> None:
    opened = _KEYS.open_wrap(sealed(rumor))
    kept = incoming_of(opened, AGENT)
    assert kept is not None
    assert (kept.event, kept.payload, kept.account) == (UNREADABLE, rumor.encode(), AGENT)
    assert kept.external_id == getattr(incoming_of(_KEYS.open_wrap(sealed(rumor)), AGENT), "external_id", "")


@pytest.mark.parametrize("text", ["a\x00b", "a\u2028b", "🙂" * 3_000, "\u202eabc", "x" * 40_000, "{}", "\ud800 alone"])
def test_any_text_is_read_as_it_was_written(text: str) -> None:
    said = said_by_ann(text)
    assert said is not None
    assert said.text == text.encode("utf-8", "replace").decode()


def test_subject_and_parent_are_read() -> None:
    said = said_by_ann("hello", tags=[["p", _BOB.public], ["subject", " Plans "], ["e", _TARGET, "", "reply"]])
    assert said is not None
    assert (said.conversation_name, said.reply_to, said.direct, said.addressed) == ("Plans", _TARGET, False, False)


def test_message_of_a_room_that_mentions_the_account_is_addressed() -> None:
    _, wrap = _ANN.write(f"nostr:{_KEYS.npub()} what now?", AGENT, _BOB.public)
    said = incoming_of(_KEYS.open_wrap(wrap), AGENT, _KEYS.npub())
    assert said is not None
    assert (said.addressed, said.direct) == (True, False)


def test_file_is_named_and_its_key_stays_in_the_payload() -> None:
    tags = [["file-type", "image/png"], ["size", "2104"], ["decryption-key", "feedfeed"], ["x", _TARGET]]
    said = said_by_ann("https://files.example/1", 15, tags)
    assert said is not None
    assert said.text == "[file: image/png, 2,104 bytes, https://files.example/1]"
    assert b"feedfeed" in (said.payload or b"")


def test_file_has_the_name_that_its_sender_gave_it() -> None:
    said = said_by_ann("https://files.example/1", 15, [["name", "plan\n(final).pdf"], ["file-type", "application/pdf"]])
    assert said is not None
    assert said.text == "[file: plan (final).pdf, application/pdf, https://files.example/1]"
    assert [(one.name, one.kind) for one in said.files] == [("plan (final).pdf", "application/pdf")]


@pytest.mark.parametrize(("content", "emoji"), [("+", "👍"), ("", "👍"), ("-", "👎"), ("🎉", "🎉")])
def test_reaction_names_its_message(content: str, emoji: str) -> None:
    said = said_by_ann(content, 7, [["e", "cd" * 32], ["e", _TARGET]])
    assert said is not None
    assert (said.text, said.event, said.reply_to, said.provider_id) == (emoji, REACTION, _TARGET, None)


@pytest.mark.parametrize("kind", [5, 0, 1_984])
def test_other_kinds_are_no_messages(kind: int) -> None:
    assert said_by_ann("gone", kind, [["e", _TARGET]]) is None


def test_reaction_without_target_and_empty_text_are_no_messages() -> None:
    assert said_by_ann("+", 7) is None
    assert said_by_ann("  ") is None


def test_message_of_the_account_itself_is_none() -> None:
    assert incoming_of(NostrRumor("a" * 64, AGENT, _NOW_S, {}, b""), AGENT) is None


async def test_refused_events_are_counted_and_not_opened_again() -> None:
    clock = VirtualClock()
    opener = WrapOpener(_KEYS, clock)
    future = _ANN.write("soon", AGENT, at_s=_NOW_S + 601)[1]
    near = _ANN.write("in ten minutes", AGENT, at_s=_NOW_S + 600)[1]
    large = {**near, "content": "x" * 64_001}
    opened = await opener.open_all([future, near, large, {}, {"id": 3}])
    assert [one.rumor is not None for one in opened] == [False, True, False, False, False]
    assert opener.failures["the message is from the future"] == 1
    assert opener.failures["the event is larger than 64 kB"] == 1
    assert sum(opener.failures.values()) == 4
    opener.commit(opened)
    assert await opener.open_all([future, near, large]) == []
    assert not opener.is_new(near)


async def test_more_than_20_events_a_minute_under_one_key_are_not_decrypted() -> None:
    clock = VirtualClock()
    opener = WrapOpener(_KEYS, clock)
    events = [{"id": f"{n:064x}", "pubkey": "a" * 64, "kind": 1_059} for n in range(25)]
    await opener.open_all(events)
    assert opener.failures["too many events under one key"] == 5
    genuine = [_ANN.write(f"message {n}", AGENT)[1] for n in range(30)]
    assert all(one.rumor is not None for one in await opener.open_all(genuine))
    await clock.advance(60_000)
    await opener.open_all([{"id": "b" * 64, "pubkey": "a" * 64, "kind": 1_059}])
    assert opener.failures["too many events under one key"] == 5


@pytest.mark.parametrize("secret", ["", "nsec1", "npub1xyz", "0" * 64, "f" * 64, "g" * 64, "ab"])
def test_secret_key_of_another_form_is_refused_and_not_shown(secret: str) -> None:
    with pytest.raises(ValueError, match="nsec1") as caught:
        NostrKeys(secret)
    assert len(secret) < 10 or secret not in str(caught.value)


def test_secret_key_is_read_in_both_forms() -> None:
    sdk: Any = importlib.import_module("nostr_sdk")

    bech32 = sdk.Keys.parse(SECRET).secret_key().to_bech32()
    assert NostrKeys(f" {bech32}\n").public == AGENT
    assert _KEYS.npub().startswith("npub1")
    assert SECRET not in repr(_KEYS)
    assert SECRET not in str(vars(_KEYS))
