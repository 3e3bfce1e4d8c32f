"""Pairing: a stranger is sent a code, and answered from when the owner lets them in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import Site, refused, site
from tests.unit.test_telegram import settings, texts, until

from keepsaid.domain.message import Origin, Trust
from keepsaid.domain.pairing import CODE_BITS, Access, AccessRule, PairingState, code_in, code_of
from keepsaid.testing.providers.mischief import Mischief, harmless
from keepsaid.testing.providers.telegram import TelegramServer

_CODE = re.compile(r"\b[A-Z2-9]{8}\b")


async def code_for(telegram: TelegramServer, person: int) -> str:
    """The code that a person was sent."""
    await telegram.wait_for(lambda: any(_CODE.search(text) for text in texts(telegram, person)))
    codes: set[str] = {code for text in texts(telegram, person) for code in _CODE.findall(text)}
    assert len(codes) == 1
    return codes.pop()


async def let_in(at: Site, who: str, *, owner: bool = False) -> dict[str, Any]:
    """What the owner's word comes to."""
    response = await at.client.post("/v1/channels/approve", json={"who": who, "owner": owner}, headers=at.owner)
    assert response.status_code == 200, response.text
    told: dict[str, Any] = response.json()
    return told


async def test_a_stranger_is_let_in_by_a_code(tmp_path: Path) -> None:
    """What they said before is answered too, if the owner says so; nothing of it was in a prompt until then."""
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram, owner=[])) as at:
        telegram.say("my tortoise is called Ida", sender=9, chat=9)
        telegram.say("hello?", sender=9, chat=9)
        code = await code_for(telegram, 9)
        await until(at, "SELECT 1 WHERE (SELECT sum(last - first + 1) FROM batch WHERE state = 'dropped') = 2")
        assert len(texts(telegram, 9)) == 1
        told = await let_in(at, code.lower())
        assert (told["who"], told["name"], told["state"]) == ("telegram:4711:9", "Person 9", "known")
        refused(await at.client.post("/v1/channels/approve", json={"who": code}, headers=at.owner), 422)
        for batch in told["dropped"]:
            await at.client.post(f"/v1/batches/{batch}/requeue", json={}, headers=at.owner)
        telegram.say("what is my tortoise called?", sender=9, chat=9)
        await telegram.wait_for(lambda: len(texts(telegram, 9)) >= 2)
        assert at.rows("SELECT DISTINCT trust FROM message WHERE event = ''") == [("known",)]
        shown = (await at.client.get("/v1/channels/people", headers=at.owner)).json()["people"]
        assert [(one["who"], one["state"], one["code"]) for one in shown] == [("telegram:4711:9", "known", None)]
        await at.client.post("/v1/channels/revoke", json={"who": "telegram:4711:9"}, headers=at.owner)
        telegram.say("and now?", sender=9, chat=9)
        assert await until(at, "SELECT 1 FROM message WHERE text = 'and now?' AND event = 'stranger'")


async def test_the_owner_is_paired_by_a_code(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram, owner=[])) as at:
        telegram.say("it is me")
        assert (await let_in(at, await code_for(telegram, 7), owner=True))["state"] == "owner"
        telegram.say("my dog is called Rex")
        await telegram.wait_for(lambda: len(texts(telegram)) == 2)
        assert at.rows("SELECT trust FROM message WHERE event = ''") == [("owner",)]
        joined = await at.client.post("/v1/people/join", json={"names": ["telegram:4711:7", "owner"]}, headers=at.owner)
        assert "who are not the same already" in refused(joined, 422)["title"]


async def test_few_strangers_are_sent_codes_and_none_in_a_group(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram)) as at:
        telegram.say("hello all", sender=20, chat=-50)
        for person in range(21, 26):
            telegram.say("hello", sender=person, chat=person)
        await until(at, "SELECT 1 WHERE (SELECT count(*) FROM message WHERE event = 'stranger') = 6")
        await telegram.wait_for(lambda: len(telegram.sent) == 3)
        await until(at, "SELECT 1 WHERE (SELECT count(*) FROM batch WHERE state = 'dropped') = 6")
        assert -50 not in {one.chat for one in telegram.sent}
        shown = (await at.client.get("/v1/status", headers=at.owner)).json()["attention"]
        assert sum("is not let in, and was sent the code" in one["what"] for one in shown) == 3
        told = await let_in(at, f"telegram:4711:{({*range(21, 26)} - {one.chat for one in telegram.sent}).pop()}")
        assert told["state"] == "known"


@pytest.mark.parametrize(
    ("who", "what"),
    [
        ("ABCDEFGH", "nobody has the code"),
        ("Ann", "names nobody"),
        ("nowhere:default:ann", "there is no channel"),
        ("github:default:ann", "nobody is let in on github"),
    ],
)
async def test_who_cannot_be_let_in(tmp_path: Path, who: str, what: str) -> None:
    async with site(tmp_path) as at:
        answer = await at.client.post("/v1/channels/approve", json={"who": who}, headers=at.owner)
        assert what in refused(answer, 422)["title"]


async def test_nobody_is_the_owner_by_a_name_that_anybody_may_claim(tmp_path: Path) -> None:
    """Over HTTP the sender is what the poster says: neither a name nor a code makes it the owner's."""
    async with site(tmp_path, channels={"http": {"access": "paired"}}) as at:
        body = {"text": "let me in", "sender": "ann", "conversation": "ann", "direct": True}
        assert (await at.put(body)).status_code == 201
        [(code,)] = await until(at, "SELECT code FROM pairing")
        for who in ("http:default:ann", code):
            told = await at.client.post("/v1/channels/approve", json={"who": who, "owner": True}, headers=at.owner)
            assert "can use any name there" in refused(told, 422)["title"]
        assert (await let_in(at, code))["state"] == "known"


async def test_replies_wait_while_a_channel_is_paused(tmp_path: Path) -> None:
    def deaf(method: str, _number: int) -> Mischief:
        return Mischief.DROP if method == "sendMessage" else Mischief.ACCEPT

    async with TelegramServer(mischief=deaf) as telegram:
        async with site(tmp_path, **settings(telegram)) as at:
            telegram.say("hello")
            await until(at, "SELECT 1 FROM reply")
        telegram.mischief = harmless
        async with site(tmp_path, **settings(telegram, channels={"telegram": {"enabled": False}})) as at:
            assert await until(at, "SELECT 1 FROM reply WHERE state IN ('pending', 'unknown')")
            assert (await at.client.get("/v1/status", headers=at.owner)).json()["lines"] == []
            assert telegram.sent == []
        async with site(tmp_path, **settings(telegram)) as at:
            await telegram.wait_for(lambda: len(telegram.sent) == 1)


def test_codes_are_typed_as_people_type_them() -> None:
    code = code_of(0x123456789A)
    assert len(code) == 8
    assert code_in(f" {code[:4].lower()}-{code[4:]} ") == code
    assert code_in("0ABCDEFG") == code_in("ABCDEFG") == code_in("") == ""
    assert len({code_of(1 << place) for place in range(CODE_BITS)}) == CODE_BITS


def test_who_may_talk_is_said_apart_for_groups() -> None:
    direct = Origin("telegram", "1", "telegram:chat:8", "8", direct=True, trust=Trust.KNOWN)
    group = Origin("telegram", "1", "telegram:chat:-50", "8", trust=Trust.KNOWN)
    owner = Origin("telegram", "1", "telegram:chat:-51", "7", trust=Trust.OWNER)
    none, known = None, PairingState.KNOWN
    for rule, heard in (
        (AccessRule(Access.OWNER, Access.OWNER, frozenset("8")), (False, False, False, True)),
        (AccessRule(Access.PAIRED, Access.LISTED), (False, True, False, True)),
        (AccessRule(Access.LISTED, Access.LISTED, frozenset(["8", "-50"])), (True, True, True, True)),
        (AccessRule(Access.ANYONE, Access.OWNER), (True, True, False, True)),
        (AccessRule(Access.OWNER, Access.ANYONE), (False, False, True, True)),
    ):
        lets_in = rule.lets_in
        assert (lets_in(direct, none), lets_in(direct, known), lets_in(group, known), lets_in(owner, none)) == heard


def mention(length: int) -> list[dict[str, Any]]:
    """An entity that names somebody at the beginning of a text."""
    return [{"type": "mention", "offset": 0, "length": length}]


async def test_in_a_group_who_is_mentioned_answers(tmp_path: Path) -> None:
    listed = {"channels": {"telegram": {"allow": ["-50"]}}}
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram, **listed)) as at:
        telegram.say("nobody in particular", sender=8, chat=-50)
        telegram.say("@scripted_bot hello", sender=8, chat=-50, entities=mention(13))
        await telegram.wait_for(lambda: len(texts(telegram, -50)) == 1)
        [(reason,)] = await until(at, "SELECT DISTINCT reason FROM batch WHERE action = 'listen'")
        assert "nobody addressed the agent" in reason


async def test_who_posts_for_a_bot_of_their_own_needs_no_pairing(tmp_path: Path) -> None:
    """Without a token nobody listens here: who may talk is decided where the bot runs, unless a setting says so."""
    update = {"update_id": 1, "message": {"message_id": 1, "text": "hello", "chat": {"id": 9, "type": "private"}}}
    update["message"]["from"] = {"id": 9, "first_name": "Ann"}  # type: ignore[index]
    for access, event in ((None, ""), ("paired", "stranger")):
        home = tmp_path / str(access)
        async with site(home, channels={"telegram": {"access": access}}) as at:
            assert (
                await at.client.post("/v1/media/telegram?channel=telegram", json=update, headers=at.owner)
            ).status_code == 201
            assert at.rows("SELECT event FROM message") == [(event,)]
