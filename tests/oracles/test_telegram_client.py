"""python-telegram-bot does with the scripted Telegram as a normal bot does, and parses what it answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from telegram import Bot, MessageEntity, ReplyParameters, Update
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, RetryAfter
from telegram.request import HTTPXRequest

from keepsaid.testing.providers.kept_files import PNG
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.providers.telegram import BOT, BadRequestError, TelegramServer

GROUP = -1_001


@pytest.fixture(autouse=True)
def _times_are_timedeltas(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library warns of its former type."""
    monkeypatch.setenv("PTB_TIMEDELTA", "1")


@asynccontextmanager
async def bot_of(telegram: TelegramServer, token: str = "") -> AsyncIterator[Bot]:
    """A bot of the library that is logged in."""
    request = HTTPXRequest(httpx_kwargs={"trust_env": False})
    polls = HTTPXRequest(httpx_kwargs={"trust_env": False})
    bot = Bot(token or telegram.token, base_url=f"{telegram.url}/bot", request=request, get_updates_request=polls)
    async with bot:
        yield bot


async def updates_of(bot: Bot, count: int) -> list[Update]:
    """The updates that wait, each confirmed by the next poll."""
    found: list[Update] = []
    while len(found) < count:
        offset = found[-1].update_id + 1 if found else None
        found += await bot.get_updates(offset=offset, timeout=10, allowed_updates=Update.ALL_TYPES)
    assert len(found) == count
    return found


async def test_bot_logs_in() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        me = await bot.get_me()
        assert (me.id, me.username, me.is_bot, me.first_name) == (4711, BOT, True, "Scripted bot")
        assert (me.can_join_groups, me.can_read_all_group_messages, me.supports_inline_queries) == (True, False, False)
        assert me.has_topics_enabled is False


async def test_wrong_token_is_refused() -> None:
    async with TelegramServer() as telegram:
        with pytest.raises(InvalidToken):
            async with bot_of(telegram, "4711:another"):
                pass


async def test_message_with_entities_in_a_topic_is_parsed() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        entities = [{"type": "bold", "offset": 0, "length": 5}, {"type": "mention", "offset": 6, "length": 13}]
        topic = {"message_thread_id": 12, "is_topic_message": True}
        number = telegram.say(f"hello @{BOT}", chat=GROUP, sender=8, entities=entities, **topic)
        [update] = await updates_of(bot, 1)
        message = update.effective_message
        assert message is not None
        assert update.message is message
        assert (message.message_id, message.chat_id, message.text) == (number, GROUP, f"hello @{BOT}")
        assert (message.chat.type, message.chat.title) == ("supergroup", "The room")
        assert message.from_user is not None
        assert (message.from_user.id, message.from_user.first_name, message.from_user.is_bot) == (8, "Person 8", False)
        assert (message.message_thread_id, message.is_topic_message) == (12, True)
        assert message.parse_entities() == {
            MessageEntity("bold", 0, 5): "hello",
            MessageEntity("mention", 6, 13): f"@{BOT}",
        }
        assert message.date.timestamp() == 1_700_000_000


async def test_private_message_has_the_name_of_the_person_as_chat() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        telegram.say("hi")
        [update] = await updates_of(bot, 1)
        assert update.effective_chat is not None
        assert (update.effective_chat.id, update.effective_chat.type) == (7, "private")
        assert update.effective_chat.first_name == "Person 7"


async def test_edit_is_parsed() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        number = telegram.say("teh")
        [said] = await updates_of(bot, 1)
        assert said.message is not None
        edited = said.message.to_dict() | {"text": "the", "edit_date": 1_700_000_060}
        telegram.update(edited_message=edited)
        second = (await bot.get_updates(offset=said.update_id + 1, timeout=10))[0].edited_message
        assert second is not None
        assert (second.message_id, second.text) == (number, "the")
        assert second.edit_date is not None
        assert second.edit_date.timestamp() == 1_700_000_060


async def test_reaction_is_parsed() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        person = {"id": 8, "is_bot": False, "first_name": "Person 8"}
        place = {"id": GROUP, "type": "supergroup", "title": "The room"}
        thumb = {"type": "emoji", "emoji": "\N{THUMBS UP SIGN}"}
        reaction = {"chat": place, "message_id": 3, "user": person, "date": 1_700_000_060}
        telegram.update(message_reaction={**reaction, "old_reaction": [], "new_reaction": [thumb]})
        [update] = await updates_of(bot, 1)
        found = update.message_reaction
        assert found is not None
        assert found.user is not None
        assert (found.chat.id, found.message_id, found.user.id, found.old_reaction) == (GROUP, 3, 8, ())
        assert [one.to_dict() for one in found.new_reaction] == [thumb]


async def test_confirmed_updates_do_not_come_again() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        telegram.say("one")
        telegram.say("two")
        found = await updates_of(bot, 2)
        assert [one.message.text for one in found if one.message] == ["one", "two"]
        assert await bot.get_updates(offset=found[0].update_id + 1, timeout=0) == (found[1],)
        assert await bot.get_updates(offset=found[1].update_id + 1, timeout=0) == ()
        assert telegram.waiting == 0


async def test_sent_message_comes_back_as_it_was_kept() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        anchor = telegram.say("what?", chat=GROUP, message_thread_id=12, is_topic_message=True)
        entities = [MessageEntity("bold", 0, 2), MessageEntity("text_link", 3, 4, url="https://example.org/")]
        sent = await bot.send_message(
            GROUP,
            "so that",
            entities=entities,
            message_thread_id=12,
            reply_parameters=ReplyParameters(anchor, allow_sending_without_reply=True),
        )
        [kept] = telegram.sent
        assert (kept.number, kept.chat, kept.text) == (sent.message_id, GROUP, "so that")
        assert kept.parameters["message_thread_id"] == 12
        assert kept.parameters["reply_parameters"]["message_id"] == anchor
        assert (sent.chat_id, sent.chat.type, sent.text) == (GROUP, "supergroup", "so that")
        assert sent.from_user == await bot.get_me()
        assert list(sent.entities) == entities
        assert (sent.message_thread_id, sent.is_topic_message) == (12, True)


async def test_typing_draft_and_menu_are_taken() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        assert await bot.send_chat_action(GROUP, "typing", message_thread_id=12)
        assert telegram.typing == [{"chat_id": GROUP, "action": "typing", "message_thread_id": 12}]
        assert await bot.send_message_draft(7, 1, "so f")
        assert [(one["chat_id"], one["draft_id"], one["text"]) for one in telegram.drafts] == [(7, 1, "so f")]
        assert await bot.set_my_commands([("new", "Begin again")])
        assert [(one.command, one.description) for one in await bot.get_my_commands()] == [("new", "Begin again")]


async def test_text_that_looks_like_a_number_stays_a_text() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        assert (await bot.send_message(7, "42")).text == "42"
        assert telegram.sent[0].text == "42"


async def test_rate_limit_says_how_long_to_wait() -> None:
    mischief = one_after_the_other(Mischief.SLOW_DOWN, method="sendMessage")
    async with TelegramServer(mischief=mischief) as telegram, bot_of(telegram) as bot:
        with pytest.raises(RetryAfter) as found:
            await bot.send_message(7, "hi")
        assert found.value.retry_after == timedelta(seconds=1)
        assert telegram.sent == []
        await bot.send_message(7, "hi")
        assert [one.text for one in telegram.sent] == ["hi"]


async def test_refusals_are_those_the_library_knows() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        with pytest.raises(BadRequest, match="Message is too long"):
            await bot.send_message(7, "x" * 4_097)
        with pytest.raises(BadRequest, match="Message text is empty"):
            await bot.send_message(7, " ")
        telegram.gone[8] = BadRequestError(403, "Forbidden: bot was blocked by the user")
        with pytest.raises(Forbidden, match="blocked by the user"):
            await bot.send_message(8, "hi")
        telegram.rival = True
        with pytest.raises(Conflict):
            await bot.get_updates(timeout=0)


async def test_webhook_is_shown_as_it_was_set() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        url = "https://bot.example.org/hooks/telegram"
        assert await bot.set_webhook(url, secret_token="between-us", max_connections=1)
        about = await bot.get_webhook_info()
        assert (about.url, about.pending_update_count, about.has_custom_certificate) == (url, 0, False)
        assert (telegram.posts.url, telegram.posts.secret) == (url, "between-us")
        with pytest.raises(Conflict):
            await bot.get_updates(timeout=0)
        assert await bot.delete_webhook()
        assert await bot.get_updates(timeout=0) == ()


@pytest.mark.parametrize("kind", ["photo", "voice", "document"])
async def test_file_is_downloaded(kind: str) -> None:
    """Of a photo the largest size; a file that is gone is refused."""
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        bot._base_file_url = f"{telegram.url}/file/bot{telegram.token}"
        sent = telegram.send_file(kind, PNG, "look")
        [update] = await updates_of(bot, 1)
        message = update.effective_message
        assert message is not None
        assert message.caption == "look"
        found = message.photo[-1] if kind == "photo" else message.voice if kind == "voice" else message.document
        assert found is not None
        assert (found.file_id, found.file_size) == (sent["file_id"], len(PNG))
        file = await found.get_file()
        assert await file.download_as_bytearray() == PNG
        telegram.files.contents.clear()
        with pytest.raises(BadRequest):
            await bot.get_file(found.file_id)
