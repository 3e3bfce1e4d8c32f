"""Files that come with messages: fetched, shown and read by the agent; what cannot be is named with its reason."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import Site, site
from tests.unit.test_telegram import settings, texts, until

from keepsaid.domain.files import handle_of, read_handle
from keepsaid.testing.model_script import Call, ChatRequest, Refuse, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.kept_files import OGG, PNG
from keepsaid.testing.providers.telegram import TelegramServer

_DONE = "SELECT 1 FROM batch WHERE state = 'done'"


def home(telegram: TelegramServer, model: ModelServer | None = None, **files: Any) -> dict[str, Any]:
    """A home whose agent has a model, if one is given."""
    models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"} if model else {"chat": "none"}
    return settings(telegram, models=models, files=files)


def user_parts(request: ChatRequest) -> list[Mapping[str, Any]]:
    """The parts of the last message of the user."""
    content = request.messages[-1]["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def words_of(request: ChatRequest) -> str:
    """The words of the last message of the user."""
    return "\n".join(str(one["text"]) for one in user_parts(request) if one["type"] == "text")


async def file_rows(at: Site, state: str) -> list[tuple[Any, ...]]:
    """The files in a state, once there are any."""
    return await until(at, f"SELECT name, kind, size, reason FROM file WHERE state = '{state}' ORDER BY message_id, n")


async def test_a_model_is_shown_a_picture(tmp_path: Path) -> None:
    """Its bytes, beside the words; the next turn has its name alone."""
    script = Script(Say("a small dog"), Say("you sent it before"))
    async with (
        TelegramServer() as telegram,
        ModelServer(script) as model,
        site(tmp_path, **home(telegram, model)) as at,
    ):
        telegram.send_file("photo", PNG, "who is this?")
        [first] = await model.wait_for(1)
        [picture] = [one for one in user_parts(first) if one["type"] == "image_url"]
        assert picture["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
        assert "who is this?" in words_of(first)
        assert await file_rows(at, "kept") == [("photo", "image/png", len(PNG), "")]
        await telegram.wait_for(lambda: texts(telegram) == ["a small dog"])
        telegram.say("and what was that?")
        second = (await model.wait_for(2))[1]
        assert all(one["type"] == "text" for one in user_parts(second))
        assert f"photo (image/png, {len(PNG)} bytes, kept as msg_" in str(second.messages)


async def test_a_model_that_refuses_pictures_is_asked_without(tmp_path: Path) -> None:
    script = Script(Refuse(400, message="this model takes no images"), Say("I see no picture"))
    async with TelegramServer() as telegram, ModelServer(script) as model, site(tmp_path, **home(telegram, model)):
        telegram.send_file("photo", PNG, "who is this?")
        await telegram.wait_for(lambda: texts(telegram) == ["I see no picture"])
        assert all(one["type"] == "text" for one in user_parts(model.requests[1]))


async def test_what_a_model_takes_no_pictures_is_told_their_names(tmp_path: Path) -> None:
    script = Script(Say("I cannot see it"))
    async with TelegramServer() as telegram, ModelServer(script) as model:
        given = home(telegram, model)
        async with site(tmp_path, **{**given, "models": {**given["models"], "pictures": False}}):
            telegram.send_file("photo", PNG, "who is this?")
            [request] = await model.wait_for(1)
            assert all(one["type"] == "text" for one in user_parts(request))
            assert "[attached: photo (image/png" in words_of(request)


async def test_what_is_said_in_a_voice_note_is_said(tmp_path: Path) -> None:
    """Without a chat model too: what was said is found again by its words."""
    async with TelegramServer() as telegram, ModelServer() as speech:
        speech.words = "my dog is called Rex"
        given = home(telegram, transcriber="endpoint", transcriber_url=speech.url, transcriber_key="k")
        async with site(tmp_path, **given) as at:
            telegram.send_file("voice", OGG, mime_type="audio/ogg", duration=3)
            await telegram.wait_for(lambda: len(texts(telegram)) == 1)
            assert OGG in speech.recordings[0]
            telegram.say("what is the name of my dog?")
            await telegram.wait_for(lambda: any("Rex" in text for text in texts(telegram)))
            [text] = at.rows("SELECT text FROM message ORDER BY id LIMIT 1")[0]
            assert text.endswith("\nmy dog is called Rex")


async def test_without_words_a_voice_note_is_kept(tmp_path: Path) -> None:
    """Nobody can write it down, or who can does not answer."""
    async with TelegramServer() as telegram, ModelServer() as speech:
        given = home(telegram, transcriber="endpoint", transcriber_url=f"{speech.url}/nowhere")
        async with site(tmp_path, **given) as at:
            telegram.send_file("voice", OGG, mime_type="audio/ogg")
            await telegram.wait_for(lambda: len(texts(telegram)) == 1)
            [(_, kind, _, reason)] = await file_rows(at, "kept")
            assert kind == "audio/ogg"
            assert "its words are not known" in reason
            assert "404" in reason


async def test_the_agent_reads_a_text_file(tmp_path: Path) -> None:
    """By its handle, and from this conversation alone."""
    async with TelegramServer() as telegram, ModelServer() as model, site(tmp_path, **home(telegram, model)) as at:
        telegram.send_file("document", b"the code is 4711", file_name="notes.txt", mime_type="text/plain")
        [(message_id,)] = await until(at, "SELECT message_id FROM file WHERE state = 'kept'")
        [request] = await model.wait_for(1)
        handle = words_of(request).partition("kept as ")[2].partition(")")[0]
        assert read_handle(handle) == (message_id, 1)
        model.script = Script(Call("read_file", {"file": handle}), Say("4711"))
        telegram.say("what is in the file?")
        await telegram.wait_for(lambda: "4711" in texts(telegram))
        [result] = [one for one in model.requests[-1].messages if one["role"] == "tool"]
        assert "the code is 4711" in result["content"]
        model.script = Script(Call("read_file", {"file": handle}), Say("there is none"))
        telegram.say("what is in the file?", chat=8)
        await telegram.wait_for(lambda: "there is none" in texts(telegram, 8))
        [result] = [one for one in model.requests[-1].messages if one["role"] == "tool"]
        assert "no such file in this conversation" in result["content"]


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("too large", "it is larger than 0.002 MB"),
        ("lies", "it is larger than 0.002 MB"),
        ("gone", "Telegram does not hand it out"),
        ("moved", "Telegram answered 302"),
    ],
)
async def test_what_is_not_fetched_is_named_with_its_reason(tmp_path: Path, trouble: str, said: str) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(Script(Say("a pity"))) as model,
        site(tmp_path, **home(telegram, model, bytes_max=2_000)) as at,
    ):
        content = bytes(3_000) if trouble in ("too large", "lies") else b"GIF89a"
        more = {"file_size": 10} if trouble == "lies" else {}
        file = telegram.send_file("document", content, "look", file_name="big.bin", **more)
        if trouble == "gone":
            telegram.files.contents.pop(file["file_id"])
        if trouble == "moved":
            telegram.files.moved[file["file_id"]] = "http://127.0.0.1:9/secret"
        [request] = await model.wait_for(1)
        assert "big.bin (not kept: " in words_of(request)
        [(_, _, _, reason)] = await file_rows(at, "left")
        assert said in reason
        assert telegram.token not in reason


async def test_a_file_that_lies_about_its_type_is_what_its_bytes_are(tmp_path: Path) -> None:
    """A program that calls itself a picture is not shown."""
    async with (
        TelegramServer() as telegram,
        ModelServer(Script(Say("odd"))) as model,
        site(tmp_path, **home(telegram, model)) as at,
    ):
        telegram.send_file("document", b"MZ\x90\x00 a program", file_name="cat.png", mime_type="image/png")
        [request] = await model.wait_for(1)
        assert all(one["type"] == "text" for one in user_parts(request))
        assert [row[1] for row in await file_rows(at, "kept")] == ["application/x-msdownload"]


async def test_a_turn_does_not_wait_for_ever(tmp_path: Path) -> None:
    """A file whose connection ends in the midst is tried again later; the turn goes on with its name."""
    async with (
        TelegramServer() as telegram,
        ModelServer(Script(Say("it is not there yet"))) as model,
        site(tmp_path, **home(telegram, model, wait_s=0.2)) as at,
    ):
        telegram.files.cut.add("file-1")
        telegram.send_file("document", PNG * 99, "look", file_name="photo.png")
        [request] = await model.wait_for(1)
        assert "photo.png (not there yet)" in words_of(request)
        telegram.files.cut.clear()
        assert await file_rows(at, "kept") == [("photo.png", "image/png", 99 * len(PNG), "")]


async def test_of_strangers_nothing_is_fetched(tmp_path: Path) -> None:
    """Until they are let in and their message is queued after all."""
    async with TelegramServer() as telegram, site(tmp_path, **{**home(telegram), "owner": []}) as at:
        telegram.send_file("photo", PNG, "let me in")
        assert await file_rows(at, "left") == [("photo", "image/jpeg", len(PNG), "its message was dropped")]
        assert "getFile" not in telegram.calls
        told = (await at.client.post(
            "/v1/channels/approve", json={"who": "telegram:4711:7", "owner": False}, headers=at.owner
        )).json()  # fmt: skip
        for batch in told["dropped"]:
            await at.client.post(f"/v1/batches/{batch}/requeue", json={}, headers=at.owner)
        assert [row[1] for row in await file_rows(at, "kept")] == ["image/png"]


async def test_files_can_be_left_where_they_are(tmp_path: Path) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(Script(Say("I see no picture"))) as model,
        site(tmp_path, **home(telegram, model, fetch=False)) as at,
    ):
        telegram.send_file("photo", PNG, "who is this?")
        [request] = await model.wait_for(1)
        assert "photo (not kept: files.fetch is false)" in words_of(request)
        assert await file_rows(at, "left")
        assert "getFile" not in telegram.calls


async def test_what_was_being_fetched_is_fetched_after_a_restart(tmp_path: Path) -> None:
    async with TelegramServer() as telegram:
        telegram.files.cut.add("file-1")
        async with site(tmp_path, **home(telegram, wait_s=0.1)) as at:
            telegram.send_file("document", PNG * 9, "look", file_name="photo.png")
            await until(at, "SELECT 1 FROM file WHERE attempts > 0")
        telegram.files.cut.clear()
        async with site(tmp_path, **home(telegram)) as at:
            assert await file_rows(at, "kept") == [("photo.png", "image/png", 9 * len(PNG), "")]


async def test_of_a_long_text_file_the_beginning_is_read(tmp_path: Path) -> None:
    """And the model is told that it was cut."""
    async with (
        TelegramServer() as telegram,
        ModelServer() as model,
        site(tmp_path, **home(telegram, model)) as at,
    ):
        telegram.send_file("document", "é".encode() * 300_000, file_name="long.txt", mime_type="text/plain")
        [(message_id,)] = await until(at, "SELECT message_id FROM file WHERE state = 'kept'")
        await telegram.wait_for(lambda: len(texts(telegram)) == 1)
        model.script = Script(Call("read_file", {"file": handle_of(message_id, 1)}), Say("a long one"))
        telegram.say("what is in the file?")
        await telegram.wait_for(lambda: "a long one" in texts(telegram))
        [result] = [one for one in model.requests[-1].messages if one["role"] == "tool"]
        assert result["content"].count("é") == 19_999
        assert "é…" in result["content"]


@pytest.mark.parametrize("field", ["file_name", "mime_type", "file_id"])
async def test_no_field_of_a_file_keeps_its_message_out(tmp_path: Path, field: str) -> None:
    """Half a character, which no store can hold, in any place that whoever sends it chooses."""
    async with TelegramServer() as telegram, site(tmp_path, **home(telegram)) as at:
        odd: dict[str, Any] = {field: "odd \ud800", "file_size": 1 << 63}
        telegram.send_file("document", b"GIF89a", "look at this", **odd)
        await telegram.wait_for(lambda: len(texts(telegram)) == 1)
        assert at.rows("SELECT count(*) FROM message WHERE text LIKE 'look at this%'") == [(1,)]
