"""Telegram: a bot that is spoken to answers, whatever goes wrong on the way; the Bot API is a scripted one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import Site, site

from keepsaid.domain.line import LineState
from keepsaid.testing.model_script import Call, ChatRequest, Empty, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.mischief import Mischief, harmless, mischief_of, one_after_the_other
from keepsaid.testing.providers.telegram import BadRequestError, TelegramServer

_OWNER = [{"channel": "telegram", "account": "4711", "sender": "7"}]
_REPEAT = "(may be a repeat)\n"
_CHATS = range(1, 11)


def settings(telegram: TelegramServer, **more: Any) -> dict[str, Any]:
    """A home whose bot is the scripted one."""
    return {"telegram": {"token": telegram.token, "api_url": telegram.url}, "owner": _OWNER, **more}


def texts(telegram: TelegramServer, chat: int = 7) -> list[str]:
    return [one.text for one in telegram.sent if one.chat == chat]


async def line_that_is(at: Site, state: LineState) -> dict[str, Any]:
    """The line of the bot, as the status shows it, once it is so."""
    while True:
        told = (await at.client.get("/v1/status", headers=at.owner)).json()["lines"]
        if found := [line for line in told if line["state"] == state]:
            line: dict[str, Any] = found[0]
            return line


async def until(at: Site, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query, once it has any."""
    while not (found := at.rows(sql)):
        await at.client.get("/livez")
    return found


async def published(at: Site, topic: str) -> list[dict[str, Any]]:
    """The payloads of the events of a topic, once there are any."""
    return [json.loads(row[0]) for row in await until(at, f"SELECT payload FROM journal WHERE topic = '{topic}'")]


_ALL_SENT = "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM reply WHERE state <> 'sent')"


async def test_what_is_said_to_the_bot_is_answered_there(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram)) as at:
        telegram.say("my dog is called Rex")
        await telegram.wait_for(lambda: len(texts(telegram)) == 1)
        telegram.say("what is the name of my dog?")
        await telegram.wait_for(lambda: any("Rex" in text for text in texts(telegram)))
        await telegram.wait_for(lambda: telegram.waiting == 0)
        assert (await line_that_is(at, LineState.UP))["reason"] == ""
        assert await published(at, "channel.up") == [{"channel": "telegram", "account": "4711"}]
        ready = (await at.client.get("/readyz")).json()
        assert ready == {"ready": True, "lines": [{"channel": "telegram", "state": "up"}]}
        [trust] = {row[0] for row in at.rows("SELECT trust FROM message")}
        assert trust == "owner"
        assert at.rows("SELECT DISTINCT account, conversation FROM lane") == [("4711", "telegram:chat:7")]
    assert all("parse_mode" not in one.parameters for one in telegram.sent)


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_lost_and_no_repeat_is_unmarked(tmp_path: Path, seed: int) -> None:
    """Ten people write while requests fail in every way: each is answered, and what comes twice says so."""
    anyone = {"telegram": {"access": "anyone"}}
    async with (
        TelegramServer(mischief=mischief_of(seed)) as telegram,
        site(tmp_path, **settings(telegram, channels=anyone)) as at,
    ):
        for chat in _CHATS:
            telegram.say("hello", sender=chat, chat=chat)
        await telegram.wait_for(lambda: telegram.waiting == 0)
        telegram.mischief = harmless
        await telegram.wait_for(lambda: {one.chat for one in telegram.sent} == {*_CHATS})
        await until(at, _ALL_SENT)
        for chat in _CHATS:
            first, *again = texts(telegram, chat)
            assert all(text == f"{_REPEAT}{first}" for text in again)


async def test_a_long_answer_goes_in_parts_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """The second part fails after it arrived: it alone is repeated, and marked; an answer to it finds the strand."""
    long = "\n\n".join(f"**Point {n}** " + "word " * 300 for n in range(6))

    def say(request: ChatRequest) -> Say:
        return Say(long if "long" in request.last("user") else "yes")

    trouble = one_after_the_other(Mischief.ACCEPT, Mischief.RESET_AFTER, method="sendMessage")
    async with TelegramServer(mischief=trouble) as telegram, ModelServer(say) as model:
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}
        async with site(tmp_path, **settings(telegram, models=models)) as at:
            telegram.say("a long answer, please")
            await telegram.wait_for(lambda: "Point 5" in "".join(texts(telegram)))
            await until(at, _ALL_SENT)
            parts = texts(telegram)
            assert len(parts) >= 4
            assert [text.startswith(_REPEAT) for text in parts] == [False, False, True] + [False] * (len(parts) - 3)
            assert parts[2] == f"{_REPEAT}{parts[1]}"
            assert "".join(parts[:2] + parts[3:]).count("word") == 1_800
            assert {row[0] for row in at.rows("SELECT body FROM reply_part")} == {""}
            telegram.say("why?", reply_to_message={"message_id": telegram.sent[-1].number})
            await telegram.wait_for(lambda: texts(telegram)[-1] == "yes")
            assert at.rows("SELECT count(*) FROM lane") == [(1,)]


@pytest.mark.parametrize(
    ("refusal", "state", "detail"),
    [
        (BadRequestError(403, "Forbidden: bot was blocked by the user"), "dead", "blocked"),
        (BadRequestError(400, "Bad Request: chat not found"), "dead", "nothing is sent elsewhere"),
        (BadRequestError(400, "Bad Request: group chat was upgraded", migrate_to_chat_id=-99), "sent", "supergroup"),
    ],
)
async def test_a_place_that_is_gone(tmp_path: Path, refusal: BadRequestError, state: str, detail: str) -> None:
    """A reply goes nowhere else; a group that became a supergroup is still the same."""
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram)) as at:
        telegram.gone[7] = refusal
        telegram.say("hello")
        [(found, why)] = await until(at, "SELECT state, detail FROM reply WHERE state IN ('dead', 'sent')")
        assert (found, detail in why) == (state, True)
        assert [one.chat for one in telegram.sent] == ([-99] if state == "sent" else [])


async def test_what_cannot_be_read_is_kept_and_holds_up_nobody(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram)) as at:
        telegram.update(message={"message_id": "not a number", "chat": 5})
        telegram.update(poll={"id": "1"})
        telegram.say("and this?")
        await telegram.wait_for(lambda: len(texts(telegram)) == 1)
        await telegram.wait_for(lambda: telegram.waiting == 0)
        [(reason,)] = await until(at, "SELECT reason FROM batch WHERE state = 'dropped'")
        assert reason == "it cannot be read; it is kept as it came"
        assert at.rows("SELECT count(*) FROM message") == [(2,)]


async def test_a_token_that_is_refused_is_said_and_no_reply_is_given_up(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram)) as at:
        telegram.say("hello")
        await telegram.wait_for(lambda: len(texts(telegram)) == 1)
        telegram.token = "4711:another-one"
        telegram.update(poll={"id": "1"})
        line = await line_that_is(at, LineState.REFUSED)
        assert "telegram.token is not accepted" in line["reason"]
        told = await published(at, "channel.down")
        assert told == [{"channel": "telegram", "account": "4711", "state": "refused"}]
        shown = (await at.client.get("/v1/status", headers=at.owner)).json()["attention"]
        assert any("telegram (4711) is refused" in one["what"] for one in shown)
        assert "scripted-bot" not in str(shown)


async def test_another_reader_is_said_and_waited_for(tmp_path: Path) -> None:
    """One 409 is no reason to stop for good."""
    async with TelegramServer() as telegram:
        telegram.rival = True
        async with site(tmp_path, **settings(telegram)) as at:
            line = await line_that_is(at, LineState.REFUSED)
            assert "another program reads this account" in line["reason"]
            assert line["next_try_at"] is not None


async def test_an_album_that_a_restart_cuts_is_whole(tmp_path: Path) -> None:
    """Each of its pictures is a message once, and none is sent an answer twice; the rest may be answered apart."""
    album = {"chat": {"id": 7, "type": "private"}, "from": {"id": 7, "is_bot": False, "first_name": "Ann"}}
    async with TelegramServer() as telegram:
        for number in range(1, 4):
            async with site(tmp_path, **settings(telegram)) as at:
                photo = [{"file_id": f"photo-{number}", "file_unique_id": f"u{number}", "file_size": 3}]
                told = {**album, "message_id": number, "date": 1_700_000_000, "media_group_id": "album", "photo": photo}
                telegram.update(message=told)
                await until(at, f"SELECT 1 FROM message WHERE provider_id = '{number}'")
        async with site(tmp_path, **settings(telegram)) as at:
            await until(at, "SELECT 1 WHERE (SELECT sum(last - first + 1) FROM batch WHERE state = 'done') = 3")
            await until(at, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM reply WHERE state <> 'sent')")
            assert [row[0] for row in at.rows("SELECT provider_id FROM message ORDER BY number")] == ["1", "2", "3"]
            assert at.rows("SELECT count(DISTINCT ref) FROM file") == [(3,)]
            assert 1 <= len(telegram.sent) == len(at.rows("SELECT id FROM batch")) <= 3


async def test_strangers_are_kept_and_not_answered(tmp_path: Path) -> None:
    """Neither alone nor in a group that is not listed; whatever a rule says of the channel."""
    rule = {"name": "all", "match": {"channel": "telegram"}, "action": "forward"}
    who = {"access": "listed", "allow": ["8", "-50"], "answer": "always"}
    listed = {"channels": {"telegram": who}, "routes": {"rules": [rule]}}
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram, **listed)) as at:
        telegram.say("the password is tortoise", sender=9, chat=9)
        telegram.say("let me in", sender=8, chat=-51)
        telegram.say("a friend", sender=8, chat=8)
        telegram.say("from the group", sender=9, chat=-50)
        telegram.say("what is the password?")
        await telegram.wait_for(lambda: {one.chat for one in telegram.sent} == {7, 8, -50})
        await until(at, "SELECT 1 WHERE (SELECT count(*) FROM batch WHERE state = 'dropped') = 2")
        trusts = dict(at.rows("SELECT sender, trust FROM message WHERE event = 'stranger'"))
        assert trusts == {"9": "external", "8": "external"}
        assert not any("tortoise" in one.text for one in telegram.sent)
        while "friend" not in (told := (await at.client.get("/v1/memories", headers=at.owner)).text):
            pass
        assert "tortoise" not in told


async def test_the_menu_of_the_app_has_the_commands(tmp_path: Path) -> None:
    async with TelegramServer() as telegram:
        for _ in range(2):
            async with site(tmp_path, **settings(telegram)) as at:
                telegram.say("/start")
                await telegram.wait_for(lambda: telegram.waiting == 0)
                assert (await line_that_is(at, LineState.UP))["reason"] == ""
        assert telegram.calls["setMyCommands"] == 1
        assert {"command": "help", "description": "this list"} in telegram.menu
        await telegram.wait_for(lambda: len(telegram.sent) >= 1)
        assert "/help lists the commands" in texts(telegram)[0]


_GROUP = {"channels": {"telegram": {"access": "anyone", "answer": "always"}}}


async def test_a_group_that_became_a_supergroup_goes_on(tmp_path: Path) -> None:
    """Its lane is the same, also after a restart, and ids of messages that begin again are not mixed up."""
    async with TelegramServer() as telegram:
        async with site(tmp_path, **settings(telegram, **_GROUP)) as at:
            telegram.say("our password is tortoise", chat=-50)
            await telegram.wait_for(lambda: len(texts(telegram, -50)) == 1)
            telegram.say("", chat=-50, migrate_to_chat_id=-1001)
            telegram.say("", chat=-1001, migrate_from_chat_id=-50)
            telegram.say("still here", chat=-1001)
            await telegram.wait_for(lambda: len(texts(telegram, -1001)) == 1)
        async with site(tmp_path, **settings(telegram, **_GROUP)) as at:
            answered = telegram.sent[-1].number
            telegram.say("and now?", chat=-1001, reply_to_message={"message_id": answered, "chat": {"id": -1001}})
            await telegram.wait_for(lambda: len(texts(telegram, -1001)) == 2)
            assert at.rows("SELECT conversation, count(*) FROM lane GROUP BY 1") == [("telegram:chat:-50", 1)]
            assert at.rows("SELECT value FROM cursor") == [("-1001",)]
            named = {row[0] for row in at.rows("SELECT provider_id FROM message")}
            assert sum(name.startswith("-1001/") for name in named) == 2
            anchors = [one.parameters["reply_parameters"]["message_id"] for one in telegram.sent]
            assert all(isinstance(anchor, int) for anchor in anchors)


async def test_a_group_that_became_a_supergroup_while_an_answer_was_sent(tmp_path: Path) -> None:
    """Telegram says it when it refuses the message; what is said there later is in the same lane."""
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram, **_GROUP)) as at:
        telegram.gone[-50] = BadRequestError(400, "Bad Request: group chat was upgraded", migrate_to_chat_id=-1001)
        telegram.say("hello", chat=-50)
        await telegram.wait_for(lambda: len(texts(telegram, -1001)) == 1)
        telegram.say("again", chat=-1001)
        await telegram.wait_for(lambda: len(texts(telegram, -1001)) == 2)
        assert at.rows("SELECT count(*) FROM lane") == [(1,)]
        assert [one.chat for one in telegram.sent] == [-1001, -1001]


async def test_a_turn_that_only_reacts_sends_nothing_and_the_next_one_knows(tmp_path: Path) -> None:
    """The model reacts to thanks and says no word; `why` shows it, and the next turn has the call in its transcript."""
    script = Script(Call("react", {"emoji": "👍"}), Empty(), Say("you thanked me"))
    async with TelegramServer() as telegram, ModelServer(script) as model:
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}
        async with site(tmp_path, **settings(telegram, models=models)) as at:
            number = telegram.say("thank you!")
            [(reason,)] = await until(at, "SELECT reason FROM turn WHERE state = 'committed'")
            assert telegram.reactions.given == {(7, number): "👍"}
            telegram.say("what did I say?")
            await telegram.wait_for(lambda: texts(telegram) == ["you thanked me"])
            assert reason == "silent: the agent reacted with an emoji"
            assert "react" in [
                call["function"]["name"] for one in model.requests[-1].messages for call in one.get("tool_calls", ())
            ]
