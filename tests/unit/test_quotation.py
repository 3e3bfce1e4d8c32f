"""The text of a reply target that came with a message: read from its payload, and quoted if the target is unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.golden_prompts import ANA, said
from tests.unit.http_cast import site
from tests.unit.memory_cast import claimed

from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.quotation import DeliveredQuote, delivered_quote, quote_of
from keepsaid.domain.scene import Quote
from keepsaid.domain.turn import Recent, ReplyTarget, TurnInputs
from keepsaid.memory.recall.recollection import focus_text
from keepsaid.pipeline.prompt.attention import attend

TARGET = {"message_id": 31, "from": {"id": 8, "first_name": "Bob", "last_name": "Ray"}, "text": "the red key\nopens it"}


def replying(payload: object, *, unknown: str = "31") -> StoredMessage:
    """A message with this payload, which replies to something that is not stored."""
    one = said(5, "does it?", reply_to=unknown)
    content = replace(one.inbound.content, payload=json.dumps(payload).encode())
    return replace(one, inbound=replace(one.inbound, content=content))


def telegram(**fields: object) -> dict[str, object]:
    """A message of Telegram that replies."""
    return {"message_id": 40, "from": {"id": 7}, "text": "does it?", "reply_to_message": TARGET, **fields}


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (telegram(), DeliveredQuote("the red key\nopens it", "8", "Bob Ray")),
        ({"update_id": 1, "message": telegram()}, DeliveredQuote("the red key\nopens it", "8", "Bob Ray")),
        ({"update_id": 1, "edited_message": telegram()}, DeliveredQuote("the red key\nopens it", "8", "Bob Ray")),
        (telegram(quote={"text": "red key"}), DeliveredQuote("red key", "8", "Bob Ray")),
        (telegram(reply_to_message={"message_id": 3, "caption": "a photo"}), DeliveredQuote("a photo")),
        (
            {
                "message_id": 4,
                "quote": {"text": "so"},
                "external_reply": {"origin": {"sender_user": {"id": 9, "username": "eve"}}},
            },
            DeliveredQuote("so", "9", "eve"),
        ),
        ({"text": "does it?", "reply_to_text": "the red key"}, DeliveredQuote("the red key")),
        (telegram(reply_to_message={"message_id": 3}), None),
        (telegram(reply_to_message=7, quote=[]), None),
        ({"text": "hi", "reply_to_text": None}, None),
        ({"text": "hi", "reply_to_text": ["x"]}, None),
        (["reply_to_text"], None),
        ({"reply_to_text": "x", "data": "y" * 64_000}, None),
    ],
)
def test_the_text_is_read_from_the_payload(payload: object, found: DeliveredQuote | None) -> None:
    assert delivered_quote(json.dumps(payload).encode()) == found


def test_broken_payloads_have_none() -> None:
    for payload in (b'{"reply_to_text": "x', b'"reply_to_text"' + b"[" * 20_000, b""):
        assert delivered_quote(payload) is None


def test_long_texts_are_cut_and_made_fit_to_store() -> None:
    [long] = [delivered_quote(json.dumps({"reply_to_text": "a\x00\ud800" + "b" * 30_000}).encode())]
    assert long is not None
    assert len(long.text) <= 10_000
    assert "\0" not in long.text
    assert long.text.encode()


@pytest.mark.parametrize(("author", "trust"), [(7, Trust.OWNER), (8, Trust.EXTERNAL), (None, Trust.EXTERNAL)])
def test_it_is_external_unless_the_sender_wrote_it(author: int | None, trust: Trust) -> None:
    who = {} if author is None else {"from": {"id": author, "first_name": "Bob"}}
    found = quote_of(replying(telegram(reply_to_message={"message_id": 31, "text": "open it", **who})))
    assert found is not None
    assert found[1] is trust
    assert ANA.trust is Trust.OWNER


def test_an_unknown_target_is_quoted_and_a_known_one_as_it_is_stored() -> None:
    batch = claimed(replying(telegram()))
    [quote] = attend(batch, Recent(), ()).quotes
    assert quote == Quote("the red key\nopens it", "Bob Ray", 0, Trust.EXTERNAL)
    assert focus_text(batch, batch.messages[0]) == "the red key\nopens it"
    known = TurnInputs(said=(ReplyTarget("31", "message:3", "the blue key", "Bob"),))
    [quote] = attend(replace(batch, around=known), Recent(), ()).quotes
    assert quote.text == "the blue key"
    hidden = TurnInputs(said=(ReplyTarget("31", "message:3", ""),))
    assert attend(replace(batch, around=hidden), Recent(), ()).quotes == ()


def test_of_an_unnamed_author_the_words_are_somebodys() -> None:
    [quote] = attend(claimed(replying({"reply_to_text": "the red key"})), Recent(), ()).quotes
    assert quote == Quote("the red key", "somebody", 0, Trust.EXTERNAL)


async def test_over_http_the_text_is_quoted_and_goes_with_its_message(tmp_path: Path) -> None:
    secret = "ghp_" + "Zq4" * 12  # gitleaks:allow
    async with site(tmp_path) as running:
        body = {"text": "does it?", "sender": "ann", "conversation": "room", "reply_to": "p9"}
        first = await running.put({**body, "reply_to_text": f"the red key opens it with {secret}"})
        story = await running.settled(first.json()["id"])
        turn = (await running.client.get(f"/v1/turns/{story['turn']}", headers=running.owner)).json()
        assert "  the red key opens it with" in str(turn)
        assert "replies to this, written by somebody" in str(turn)
        assert not (await running.client.get("/v1/memories", headers=running.owner)).text.count("red key")
        forget = {"filter": "red key", "yes": True}
        assert (await running.client.post("/v1/forget", json=forget, headers=running.owner)).status_code == 200
        await running.client.post("/v1/forget/settled", json={"wait_s": 60}, headers=running.owner)
        assert running.rows("SELECT length(payload), forgotten_at IS NULL FROM message") == [(0, 0)]
    assert not any(secret.encode() in file.read_bytes() for file in (tmp_path / "data").glob("memory.db*"))
