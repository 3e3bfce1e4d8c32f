"""Files in the body of a message over HTTP: on disk before the answer, once, whole, and used as those of messengers."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import Site, refused, site
from tests.unit.test_files import user_parts, words_of
from tests.unit.test_telegram import until

from keepsaid.app.instance import Outside
from keepsaid.domain.fetching import AWAIT_MS, NOT_BROUGHT, PIECE_BYTES
from keepsaid.domain.ids import show
from keepsaid.interfaces.http.messages import inbound_of
from keepsaid.interfaces.http.sent_files import read_files
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.kept_files import OGG, PNG

_LARGE = bytes(range(256)) * 2_500
_KEPT = "SELECT name, kind, size FROM file WHERE state = 'kept' ORDER BY n"


def file(name: str, content: bytes, kind: str | None = None) -> dict[str, str]:
    """A file as it stands in a body."""
    told = {"name": name, "content": b64encode(content).decode()}
    return told if kind is None else {**told, "type": kind}


async def send(at: Site, *files: object, text: str = "look at this", key: str = "k1", **more: Any) -> Any:
    """Ann sends files."""
    body = {"text": text, "sender": "ann", "conversation": "room", "files": list(files), **more}
    return await at.put(body, {"Idempotency-Key": key})


def models_of(model: ModelServer) -> dict[str, Any]:
    return {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}


async def content_of(at: Site, message_id: str, number: int) -> bytes:
    return (await at.client.get(f"/v1/files/{message_id}/{number}", headers=at.owner)).content


async def test_a_model_is_shown_a_picture_and_reads_a_text(tmp_path: Path) -> None:
    """By the road of files of messengers; what the body holds of them is their hashes."""
    async with ModelServer(Script(Say("a small dog"))) as model, site(tmp_path, models=models_of(model)) as at:
        answer = await send(at, file("dog.png", PNG), file("a.txt", b"the code is 4711", "text/plain"))
        assert (answer.status_code, answer.json()["intake"]) == (201, "stored")
        number = answer.json()["id"]
        [request] = await model.wait_for(1)
        assert [one["type"] for one in user_parts(request)].count("image_url") == 1
        assert f"a.txt (text/plain, 16 bytes, kept as {number}/2)" in words_of(request)
        assert await content_of(at, number, 1) == PNG
        [(payload,)] = at.rows("SELECT payload FROM message")
        assert json.loads(payload)["files"][1] == {
            "name": "a.txt",
            "type": "text/plain",
            "bytes": 16,
            "sha256": sha256(b"the code is 4711").hexdigest(),
        }
        await at.settled(number)
        model.script = Script(Call("read_file", {"file": f"{number}/2"}), Say("4711"))
        await at.settled((await at.say("what is in the file?")).json()["id"])
        [result] = [one for one in model.requests[-1].messages if one["role"] == "tool"]
        assert "the code is 4711" in result["content"]
        await at.settled((await at.say("a word without files", "elsewhere")).json()["id"])
        [asked] = [one for one in model.requests if "a word without files" in words_of(one)]
        assert "read_file" not in asked.tool_names


async def test_what_is_said_in_a_recording_is_part_of_the_message(tmp_path: Path) -> None:
    async with ModelServer() as speech:
        speech.words = "my dog is called Rex"
        files = {"transcriber": "endpoint", "transcriber_url": speech.url, "transcriber_key": "k"}
        async with site(tmp_path, files=files) as at:
            await send(at, file("voice.ogg", OGG, "audio/ogg"), text="")
            assert await until(at, "SELECT words FROM file WHERE state = 'kept'") == [("my dog is called Rex",)]
            assert OGG in speech.recordings[0]


async def test_a_large_file_is_on_disk_when_the_answer_comes(tmp_path: Path) -> None:
    """All of its pieces, whether or not its message is routed yet."""
    clock = VirtualClock()
    async with site(tmp_path, outside=Outside(clock=clock), buffer={"window_ms": 60_000}) as at:
        number = (await send(at, file("big.bin", _LARGE))).json()["id"]
        assert at.rows("SELECT state, ref, size FROM file") == [("waiting", "brought", len(_LARGE))]
        assert b"".join(row[0] for row in at.rows("SELECT content FROM file_piece ORDER BY piece")) == _LARGE
        assert len(_LARGE) > 2 * PIECE_BYTES
        assert (await at.client.get(f"/v1/files/{number}/1", headers=at.owner)).status_code == 422
        await clock.advance(60_000)
        await until(at, "SELECT 1 FROM batch")
        await clock.advance(60_000)
        assert await until(at, _KEPT) == [("big.bin", "application/octet-stream", len(_LARGE))]
        assert await content_of(at, number, 1) == _LARGE


async def test_a_type_is_that_of_the_bytes_and_a_name_fit_to_store(tmp_path: Path) -> None:
    """Neither a lie nor a long name keeps the message out."""
    async with site(tmp_path) as at:
        lies = file("cat\0" * 99 + ".png", b"MZ\x90\x00 a program", "image/png"), file("empty", b"", "what/ever; x=1")
        assert (await send(at, *lies)).status_code == 201
        assert await until(at, "SELECT count(*) FROM file WHERE state = 'kept' HAVING count(*) = 2")
        (name, kind, size), (_, other, nothing) = at.rows(_KEPT)
        assert (len(name) <= 200, "\0" in name, kind, size) == (True, False, "application/x-msdownload", 14)
        assert (other, nothing) == ("what/ever", 0)


_REFUSED: list[tuple[object, int, str]] = [
    ([{"name": "a.txt", "content": "abc"}], 400, "the content of files[0] ('a.txt') is not base64"),
    ([{"name": "a.txt", "content": "YWJj\nYWJj"}], 400, "is not base64"),
    ([{"name": "a.txt", "content": "ü==="}], 400, "is not base64"),
    ([file("a.txt", b"x")] * 11, 400, "the message has 11 files; 10 are allowed"),
    ([file("a.txt", b"x"), file("b.bin", bytes(1_001))], 413, "the file files[1] ('b.bin') has 1,001 bytes; 1,000"),
    ([{"name": "a.txt"}], 422, "the field 'content' of files[0] is missing"),
    ([{"name": " ", "content": ""}], 422, "files[0] needs a name"),
    ([{"name": 7, "content": ""}], 422, "the field 'name' of files[0] must be text, not a number"),
    ([{"name": "a", "type": [], "content": ""}], 422, "the field 'type' of files[0] must be text, not a list"),
    (
        [{"name": "a", "content": "", "url": "x"}],
        400,
        "unknown field 'url' in files[0]; known: name",
    ),
    (["a.txt"], 422, "files[0] must be an object with name and content, not a text"),
    ({"a.txt": "YQ=="}, 422, "the field 'files' must be a list of objects, not an object"),
]


@pytest.mark.parametrize(("given", "status", "said"), _REFUSED)
async def test_what_is_refused_is_named_and_nothing_is_stored(
    tmp_path: Path, given: object, status: int, said: str
) -> None:
    async with site(tmp_path, files={"bytes_max": 1_000}) as at:
        body = {"text": "hello", "sender": "ann", "conversation": "room", "files": given}
        assert said in refused(await at.put(body), status)["title"]
        assert at.rows("SELECT count(*) FROM message") == [(0,)]


async def test_no_files_are_no_files(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        for given in ("null", "[]"):
            body = f'{{"text": "hello", "sender": "ann", "conversation": "room", "files": {given}}}'.encode()
            assert (await at.put(body)).status_code == 201
        assert at.rows("SELECT count(*) FROM file") == [(0,)]


async def test_files_can_be_named_alone(tmp_path: Path) -> None:
    """As those of messengers, where the settings say so."""
    script = Script(Say("I see no picture"))
    async with ModelServer(script) as model, site(tmp_path, models=models_of(model), files={"fetch": False}) as at:
        assert (await send(at, file("dog.png", PNG))).status_code == 201
        [request] = await model.wait_for(1)
        assert "dog.png (not kept: files.fetch is false)" in words_of(request)
        assert at.rows("SELECT count(*) FROM file_piece") == [(0,)]


async def test_a_key_stands_for_its_bytes(tmp_path: Path) -> None:
    """The same again is a duplicate, in any order of fields; other bytes are a conflict."""
    async with site(tmp_path) as at:
        first = await send(at, file("dog.png", PNG))
        again = await at.put(
            {"files": [file("dog.png", PNG)], "conversation": "room", "sender": "ann", "text": "look at this"},
            {"Idempotency-Key": "k1"},
        )
        assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
        refused(await send(at, file("dog.png", PNG + b"x")), 409)
        refused(await send(at, file("cat.png", PNG)), 409)
        refused(await send(at), 409)
        assert at.rows("SELECT count(*) FROM file") == [(1,)]


async def stored_alone(at: Site, *files: object, key: str = "k1") -> str:
    """Store a message as the server does that dies before it writes the bytes of its files; returns its id."""
    fields = {"text": "look at this", "sender": "ann", "conversation": "room", "files": list(files)}
    sent = read_files(fields, 20_000_000)
    inbound = replace(inbound_of(at.instance.config, fields, sent.payload, key), files=sent.files)
    return show("message", (await at.instance.receive(inbound)).id)


async def test_a_retry_brings_what_a_crash_cut_off(tmp_path: Path) -> None:
    """The same message, once, with its files whole; the turn waited for them."""
    files = file("dog.png", PNG), file("big.bin", _LARGE)
    async with site(tmp_path, answering=False) as at:
        number = await stored_alone(at, *files)
    async with ModelServer(Script(Say("a small dog"))) as model, site(tmp_path, models=models_of(model)) as at:
        again = await send(at, *files)
        assert (again.status_code, again.json()["id"]) == (200, number)
        [request] = await model.wait_for(1)
        assert [one["type"] for one in user_parts(request)].count("image_url") == 1
        assert [await content_of(at, number, n) for n in (1, 2)] == [PNG, _LARGE]
        assert at.rows("SELECT count(*) FROM message") == [(1,)]


async def test_without_a_retry_the_turn_goes_on_and_the_file_is_left(tmp_path: Path) -> None:
    """With a reason in words; a retry that comes after all still brings it."""
    script, clock = Script(Say("I have no picture")), VirtualClock()
    async with ModelServer(script) as model:
        given: dict[str, Any] = {"models": models_of(model), "files": {"wait_s": 0}}
        async with site(tmp_path, outside=Outside(clock=clock), **given) as at:
            number = await stored_alone(at, file("dog.png", PNG))
            [request] = await model.wait_for(1)
            assert "dog.png (not there yet)" in words_of(request)
            await clock.advance(AWAIT_MS)
            assert await until(at, "SELECT reason FROM file WHERE state = 'left'") == [(NOT_BROUGHT,)]
            assert (await send(at, file("dog.png", PNG))).status_code == 200
            assert await until(at, _KEPT) == [("dog.png", "image/png", len(PNG))]
            assert await content_of(at, number, 1) == PNG


async def test_two_requests_at_once_bring_one_file(tmp_path: Path) -> None:
    """One of them may be asked to come again; the file is whole."""
    async with site(tmp_path) as at:
        answers = await asyncio.gather(*(send(at, file("big.bin", _LARGE)) for _ in range(4)))
        assert {one.status_code for one in answers} <= {200, 201, 503}
        assert (await send(at, file("big.bin", _LARGE))).status_code == 200
        [(message_id,)] = await until(at, "SELECT message_id FROM file WHERE state = 'kept'")
        assert await content_of(at, show("message", message_id), 1) == _LARGE
        assert at.rows("SELECT count(*) FROM message") == [(1,)]
