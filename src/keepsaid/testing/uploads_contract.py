"""The contract of files that go with replies: they arrive whole, once, behind the words, or words say why not.

Subclass `UploadsContract` with a fixture `sending`: the channel beside a scripted provider. A channel that declares no
uploads (`ChannelAbilities`) is asked for nothing. Source: spec channels, section 2, C14.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, MutableMapping, Sequence
from dataclasses import replace
from typing import Protocol

import pytest

from keepsaid.domain.reply import Delivered, StoredReply
from keepsaid.domain.turn_files import TurnFile
from keepsaid.ports.channel import PartedChannel, abilities_of
from keepsaid.testing.providers.kept_files import OGG, PNG
from keepsaid.testing.providers.mischief import Mischief
from keepsaid.testing.sending_contract import SendingCast, leaked, tried

_TRIES = 6
_NOTES = b"# Notes\r\n\r\nmilk, bread \xe2\x82\xac \x01 --boundary\r\n"
_LARGE = bytes(range(256)) * 12_000

KINDS = {
    "notes.md": ("text/markdown", _NOTES),
    "a dog.png": ("image/png", PNG),
    "voice.ogg": ("audio/ogg", OGG),
    "\u00fcber \u72ac 'quoted'.bin": ("application/octet-stream", _LARGE),
}  # fmt: skip
"""Files by name: their media types and their bytes."""


class UploadsCast(SendingCast, Protocol):
    """A channel that sends files, made with a source that reads `uploads`."""

    @property
    def uploads(self) -> MutableMapping[int, bytes]:
        """The bytes of the files that go with replies, by number; what is not there is gone."""

    def sent_files(self) -> Sequence[tuple[str, bytes]]:
        """The name and the bytes of each file that arrived, in order, as people get them."""

    def script_upload(self, *acts: Mischief) -> None:
        """What happens to the next requests that bring a file; those after them are accepted."""

    @property
    def upload_acts(self) -> Collection[Mischief]:
        """What its provider may do with such a request, beside accepting it."""


class UploadsContract:
    """What a channel does with the files of a reply."""

    @pytest.mark.parametrize("name", KINDS)
    async def test_a_file_arrives_whole_behind_the_words(self, sending: UploadsCast, name: str) -> None:
        """Its bytes and its name, whatever they are."""
        if not abilities_of(sending.channel).uploads:
            return
        kind, content = KINDS[name]
        results = await tried(sending.channel, with_files(sending, "here you are", {name: (kind, content)}))
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert [sent for _, sent in sending.sent_files()] == [content]
        assert [shown for shown, _ in sending.sent_files()] == [name]
        assert sending.sent()[0].strip() == "here you are"

    async def test_files_arrive_in_order_and_without_words_too(self, sending: UploadsCast) -> None:
        """A reply may be files alone: its words are not replaced."""
        if not abilities_of(sending.channel).uploads:
            return
        results = await tried(sending.channel, with_files(sending, "", KINDS))
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert [sent for _, sent in sending.sent_files()] == [content for _, content in KINDS.values()]
        assert "".join(sending.sent()).strip() == ""

    async def test_words_say_that_a_file_is_gone(self, sending: UploadsCast) -> None:
        """It was forgotten between its making and its sending."""
        if not abilities_of(sending.channel).uploads:
            return
        reply = with_files(sending, "here you are", KINDS)
        bodies = await sending.channel.split(reply) if isinstance(sending.channel, PartedChannel) else ()
        sending.uploads.clear()
        results = await tried(sending.channel, reply, bodies=bodies)
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert sending.sent_files() == []
        words = "\n".join(sending.sent())
        assert all(f"{name} could not be sent" in words for name in ("notes.md", "a dog.png"))

    @pytest.mark.parametrize("act", [act for act in Mischief if act is not Mischief.ACCEPT])
    async def test_what_is_told_of_an_upload_is_true(self, sending: UploadsCast, act: Mischief) -> None:
        """Sent again, it is there once, or marked; nothing that did not arrive is confirmed (C4)."""
        if not abilities_of(sending.channel).uploads or act not in sending.upload_acts:
            return
        reply = with_files(sending, "", {"notes.md": ("text/markdown", _NOTES)})
        bodies = await sending.channel.split(reply) if isinstance(sending.channel, PartedChannel) else ()
        sending.script_upload(act)
        [result] = await tried(sending.channel, reply, bodies=bodies)
        assert result.outcome in (Delivered.CONFIRMED, Delivered.RETRY, Delivered.DOUBT)
        assert (result.outcome is not Delivered.CONFIRMED) or sending.sent_files()
        assert (result.outcome is not Delivered.RETRY) or not sending.sent_files()
        doubted = result.outcome is Delivered.DOUBT
        for _ in range(_TRIES):
            if result.outcome is not Delivered.CONFIRMED:
                [result] = await tried(sending.channel, reply, again=doubted, bodies=bodies)
                doubted = doubted or result.outcome is Delivered.DOUBT
        assert result.outcome is Delivered.CONFIRMED
        copies = [content for _, content in sending.sent_files()]
        assert set(copies) == {_NOTES}
        assert len(copies) == 1 or any("repeat" in text for text in sending.sent())

    async def test_an_upload_that_cannot_be_reached_costs_no_try(
        self, sending: UploadsCast, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nothing was sent: the reply waits (C4), and no secret is shown (C21)."""
        if not abilities_of(sending.channel).uploads:
            return
        reply = with_files(sending, "", {"notes.md": ("text/markdown", _NOTES)})
        bodies = await sending.channel.split(reply) if isinstance(sending.channel, PartedChannel) else ()
        with caplog.at_level(logging.DEBUG):
            async with sending.cut_off() as channel:
                [result] = await tried(channel, reply, bodies=bodies)
        assert result.outcome is Delivered.RETRY
        assert leaked(sending.secrets, result, caplog) == []
        assert sending.sent_files() == []

    async def test_what_a_medium_does_not_take_is_named(self, sending: UploadsCast) -> None:
        """A file is left out, with its name in the words, where the medium takes none or none so large."""
        uploads = abilities_of(sending.channel).uploads
        reply = with_files(sending, "here you are", {"notes.md": ("text/markdown", _NOTES)})
        large = replace(reply, files=tuple(replace(one, size=uploads + 1) for one in reply.files))
        results = await tried(sending.channel, large.within(uploads))
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert "notes.md" in " ".join(sending.sent())


def with_files(sending: UploadsCast, text: str, files: dict[str, tuple[str, bytes]]) -> StoredReply:
    """A reply with files, by their names, whose bytes the cast has for its channel."""
    reply = sending.reply(text)
    made = []
    for number, (name, (kind, content)) in enumerate(files.items(), start=1):
        sending.uploads[number] = content
        made.append(TurnFile(reply.turn_id or 1, number, name, kind, len(content), attached=True))
    return replace(reply, files=tuple(made))
