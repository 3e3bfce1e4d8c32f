"""Files that go with replies: written by the agent, or sent back from where they are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import BASE, Site, site
from tests.unit.test_files import home, words_of
from tests.unit.test_mcp import COMMAND
from tests.unit.test_telegram import texts, until

from keepsaid.adapters.tools.mcp import McpServer
from keepsaid.app.channels import accept, query_server
from keepsaid.config import Home, load
from keepsaid.domain.files import handle_of
from keepsaid.domain.ids import show
from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.kept_files import OGG, PNG
from keepsaid.testing.providers.mischief import Mischief
from keepsaid.testing.providers.telegram import BadRequestError, TelegramServer

_NOTES = {"name": "notes.md", "text": "# Notes\n\nmilk, bread"}
_KEPT = "SELECT message_id FROM file WHERE state = 'kept'"


def files_of(telegram: TelegramServer) -> list[tuple[str, str, bytes]]:
    """The method, the name and the bytes of each file that was sent, in order."""
    return [(one.method, one.file.name, one.file.content) for one in telegram.sent if one.file is not None]


def result_of(model: ModelServer) -> str:
    """What the model read last of a tool."""
    *_, last = (str(one["content"]) for one in model.requests[-1].messages if one["role"] == "tool")
    return last


async def settled(at: Site) -> list[tuple[Any, ...]]:
    """The state and the detail of each reply, once none is on its way."""
    await until(at, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM reply WHERE state IN ('pending', 'sending', 'unknown'))")
    return at.rows("SELECT state, detail FROM reply ORDER BY id")


async def test_the_agent_sends_a_text_that_it_writes(tmp_path: Path) -> None:
    """After the words of its answer, as a message of its own; its name has no folders."""
    script = Script(Call("attach_file", {**_NOTES, "name": "../a/notes.md"}), Say("here you are"))
    async with (
        TelegramServer() as telegram,
        ModelServer(script) as model,
        site(tmp_path, **home(telegram, model)) as at,
    ):
        telegram.say("write it down")
        await telegram.wait_for(lambda: len(telegram.sent) == 2)
        assert texts(telegram) == ["here you are", ""]
        assert files_of(telegram) == [("sendDocument", "notes.md", b"# Notes\n\nmilk, bread")]
        assert "\n[notes.md (text/plain, 20 bytes), goes with your answer]" in result_of(model)
        assert await settled(at) == [("sent", "")]


async def test_an_answer_may_be_a_file_alone(tmp_path: Path) -> None:
    script = Script(Call("attach_file", _NOTES), Say(""))
    async with (
        TelegramServer() as telegram,
        ModelServer(script) as model,
        site(tmp_path, **home(telegram, model)) as at,
    ):
        telegram.say("write it down")
        await telegram.wait_for(lambda: len(telegram.sent) == 1)
        assert [name for _, name, _ in files_of(telegram)] == ["notes.md"]
        assert await settled(at) == [("sent", "")]
        telegram.say("/why")
        await telegram.wait_for(lambda: len(telegram.sent) == 2)


@pytest.mark.parametrize(
    ("kind", "content", "method"),
    [("photo", PNG, "sendPhoto"), ("voice", OGG, "sendVoice"), ("document", b"the code is 4711", "sendDocument")],
    ids=["picture", "voice", "text"],
)
async def test_what_is_kept_is_sent_back(tmp_path: Path, kind: str, content: bytes, method: str) -> None:
    """By its handle, from the same conversation, as what it is."""
    async with TelegramServer() as telegram, ModelServer() as model, site(tmp_path, **home(telegram, model)) as at:
        telegram.send_file(kind, content, "keep this", mime_type="audio/ogg" if kind == "voice" else "text/plain")
        await until(at, _KEPT)
        [request] = await model.wait_for(1)
        handle = words_of(request).partition("kept as ")[2].partition(")")[0]
        model.script = Script(Call("attach_file", {"file": handle}), Say("that one"))
        telegram.say("send it again")
        await telegram.wait_for(lambda: bool(files_of(telegram)))
        assert [(how, sent) for how, _, sent in files_of(telegram)] == [(method, content)]
        model.script = Script(Call("attach_file", {"file": handle}), Say("there is none"))
        telegram.say("send it again", chat=8)
        await telegram.wait_for(lambda: "there is none" in texts(telegram, 8))
        assert "no such file in this conversation" in result_of(model)
        assert len(files_of(telegram)) == 1


async def test_a_picture_that_telegram_refuses_goes_as_a_document(tmp_path: Path) -> None:
    """It begins as one, and is none that can be shown."""
    half = PNG[:8] + b"broken"
    async with TelegramServer() as telegram, ModelServer() as model, site(tmp_path, **home(telegram, model)) as at:
        telegram.refused_methods["sendPhoto"] = BadRequestError(400, "Bad Request: PHOTO_INVALID_DIMENSIONS")
        telegram.send_file("photo", half, "keep this")
        await until(at, _KEPT)
        handle = words_of((await model.wait_for(1))[0]).partition("kept as ")[2].partition(")")[0]
        model.script = Script(Call("attach_file", {"file": handle}), Say("that one"))
        telegram.say("send it again")
        await telegram.wait_for(lambda: bool(files_of(telegram)))
        assert [(how, sent) for how, _, sent in files_of(telegram)] == [("sendDocument", half)]
        assert (await settled(at))[-1] == ("sent", "sent as a document: 400: Bad Request: PHOTO_INVALID_DIMENSIONS")


async def test_words_say_that_a_file_is_refused(tmp_path: Path) -> None:
    script = Script(Call("attach_file", _NOTES), Say("here you are"))
    async with (
        TelegramServer() as telegram,
        ModelServer(script) as model,
        site(tmp_path, **home(telegram, model)) as at,
    ):
        telegram.refused_methods["sendDocument"] = BadRequestError(413, "Request Entity Too Large")
        telegram.say("write it down")
        await telegram.wait_for(lambda: len(telegram.sent) == 2)
        assert texts(telegram) == ["here you are", "[notes.md could not be sent: Telegram answered 413]"]
        assert (await settled(at))[0][0] == "sent"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give `file`, or `name` and `text`"),
        ({"name": "a.txt"}, "give `file`, or `name` and `text`"),
        ({"name": " ", "text": "x"}, "give `file`, or `name` and `text`"),
        ({"name": "a.txt", "text": ""}, "not empty"),
        ({"file": "msg_0000000000000/1"}, "no such file in this conversation"),
        ({"file": "trn_0000000000000/1"}, "no such file in this conversation"),
        ({"file": ["a"]}, "no such file in this conversation"),
    ],
)
async def test_what_cannot_be_attached(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    script = Script(Call("attach_file", given), Say("I could not"))
    async with TelegramServer() as telegram, ModelServer(script) as model, site(tmp_path, **home(telegram, model)):
        telegram.say("send it")
        await telegram.wait_for(lambda: texts(telegram) == ["I could not"])
        assert said in result_of(model)
        assert not files_of(telegram)


async def test_at_most_ten_files_go_with_an_answer(tmp_path: Path) -> None:
    calls = [Call("attach_file", {"name": f"{n}.txt", "text": "x"}) for n in range(11)]
    script = Script(*calls, Say("all"))
    async with TelegramServer() as telegram, ModelServer(script) as model, site(tmp_path, **home(telegram, model)):
        telegram.say("send many")
        await telegram.wait_for(lambda: len(telegram.sent) == 11)
        assert [name for _, name, _ in files_of(telegram)] == [f"{n}.txt" for n in range(10)]
        assert "at most 10 files" in result_of(model)


async def test_a_repeat_is_marked(tmp_path: Path) -> None:
    """No answer came to the upload: it may have arrived, and the words before it did."""
    script = Script(Call("attach_file", _NOTES), Say("here you are"))

    def mischief(method: str, _: int) -> Mischief:
        first = method == "sendDocument" and not any(one.file for one in telegram.sent)
        return Mischief.RESET_AFTER if first else Mischief.ACCEPT

    async with (
        TelegramServer(mischief=mischief) as telegram,
        ModelServer(script) as model,
        site(tmp_path, **home(telegram, model)) as at,
    ):
        telegram.say("write it down")
        await telegram.wait_for(lambda: len(telegram.sent) == 3)
        assert texts(telegram) == ["here you are", "", "(may be a repeat)\n"]
        assert len({sent for _, _, sent in files_of(telegram)}) == 1
        assert (await settled(at))[0][0] == "sent"


async def test_the_files_of_a_forgotten_turn_are_gone(tmp_path: Path) -> None:
    script = Script(Call("attach_file", _NOTES), Say("here you are"))
    async with (
        TelegramServer() as telegram,
        ModelServer(script) as model,
        site(tmp_path, **home(telegram, model)) as at,
    ):
        telegram.say("write it down")
        await telegram.wait_for(lambda: len(telegram.sent) == 2)
        await settled(at)
        assert at.rows("SELECT count(*) FROM turn_file_piece") == [(1,)]
        [(message_id,)] = at.rows("SELECT id FROM message")
        telegram.say(f"/forget {show('message', message_id)} yes")
        await until(at, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM turn_file)")
        assert at.rows("SELECT count(*) FROM turn_file_piece") == [(0,)]


async def test_what_a_tool_makes_is_kept_and_sent(tmp_path: Path) -> None:
    """A picture of a server of tools: the agent attaches it by its handle, and reads the text that came with it."""
    tools = {"mcp": {"desk": {"command": COMMAND, "allow": ["draw"]}}}
    async with TelegramServer() as telegram, ModelServer() as model:
        given = {**home(telegram, model), "tools": tools}
        config, _ = load(Home.at(tmp_path).config_file, {**BASE, **given})
        accept(Home.at(tmp_path), await query_server(Home.at(tmp_path), config, "desk"))
        async with site(tmp_path, **given) as at:
            [server] = at.instance.toolbox.sources
            assert isinstance(server, McpServer)
            await server.there.wait()
            model.script = Script(Call("desk__draw", {"pixels": 4}), Say("a drawing"))
            telegram.say("draw")
            await telegram.wait_for(lambda: texts(telegram) == ["a drawing"])
            drawn, steps = (line.rpartition(" ")[2].rstrip("]") for line in result_of(model).splitlines()[-2:])
            assert "[1.png (image/png, 12 bytes), kept as trn_" in result_of(model)
            model.script = Script(
                Call("read_file", {"file": steps}), Call("attach_file", {"file": drawn}), Say("here it is")
            )
            telegram.say("send it")
            await telegram.wait_for(lambda: len(telegram.sent) == 3)
            assert files_of(telegram) == [("sendPhoto", "1.png", PNG[:8] + bytes(4))]
            read = [str(one["content"]) for one in model.requests[-1].messages if one["role"] == "tool"]
            assert any("with a pen" in text for text in read)


async def test_over_http_a_reply_names_its_files(tmp_path: Path) -> None:
    """Who may read the conversation downloads them, as a file and never as a page."""
    script = Script(Call("attach_file", {"name": "a page.html", "text": "<script>alert(1)</script>"}), Say("here"))
    async with ModelServer(script) as model:
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}
        async with site(tmp_path, models=models) as at:
            message_id = (await at.say("write a page")).json()["id"]
            await at.events(message_id)
            [reply] = (await at.client.get(f"/v1/messages/{message_id}", headers=at.owner)).json()["replies"]
            [file] = reply["files"]
            assert (reply["text"], file["name"], file["bytes"]) == ("here", "a page.html", 25)
            got = await at.client.get(f"/v1/files/{file['file']}", headers=at.owner)
            assert (got.status_code, got.text) == (200, "<script>alert(1)</script>")
            assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20page.html"
            assert got.headers["x-content-type-options"] == "nosniff"
            for handle, status in (("trn_0000000000000/1", 404), ("msg_0000000000000/1", 404), ("what/ever", 422)):
                assert (await at.client.get(f"/v1/files/{handle}", headers=at.owner)).status_code == status


async def test_over_http_files_of_other_channels_are_the_operators(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, ModelServer() as model, site(tmp_path, **home(telegram, model)) as at:
        telegram.send_file("photo", PNG, "keep this")
        [(message_id,)] = await until(at, _KEPT)
        path = f"/v1/files/{handle_of(message_id, 1)}"
        got = await at.client.get(path, headers=at.owner)
        assert (got.content, got.headers["content-type"]) == (PNG, "image/png")
        assert (await at.client.get(path)).status_code == 401
