"""Files out on Matrix: addresses before uploads, homeservers without them, refusals, and encrypted rooms."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.contract.matrix_provider_cast import EncryptedMatrixCast, MatrixCast

from keepsaid.domain.reply import Delivered
from keepsaid.errors import ChannelError
from keepsaid.ports.channel import PartedChannel
from keepsaid.testing.providers.kept_files import PNG
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.sending_contract import tried
from keepsaid.testing.uploads_contract import with_files

_DOG = {"dog.png": ("image/png", PNG)}
BOTH = pytest.mark.parametrize("cast", [MatrixCast, EncryptedMatrixCast], ids=["plain", "encrypted"])


@BOTH
async def test_a_picture_is_shown_as_one(cast: type[MatrixCast]) -> None:
    """Its event says what it is; in an encrypted room the homeserver has neither its bytes nor its name."""
    async with cast() as at:
        await tried(at.channel, with_files(at, "", _DOG))
        assert at.sent_files() == [("dog.png", PNG)]
        [sent] = at.matrix.sent
        if cast is MatrixCast:
            assert (sent.content["msgtype"], sent.content["info"]) == ("m.image", {"mimetype": "image/png", "size": 67})
        else:
            assert "dog.png" not in json.dumps(sent.content)
            assert PNG not in at.matrix.media.files.contents.values()


@BOTH
async def test_every_try_has_the_same_address(cast: type[MatrixCast]) -> None:
    """It is made when the reply is split: what is uploaded again is there already."""
    async with cast() as at:
        reply = with_files(at, "", _DOG)
        assert isinstance(at.channel, PartedChannel)
        bodies = await at.channel.split(reply)
        at.matrix.mischief = one_after_the_other(Mischief.RESET_AFTER, method="upload")
        [first] = await tried(at.channel, reply, bodies=bodies)
        assert (first.outcome, first.outage, at.matrix.sent) == (Delivered.RETRY, True, [])
        [second] = await tried(at.channel, reply, bodies=bodies)
        assert second.outcome is Delivered.CONFIRMED
        assert len(at.matrix.media.files.contents) == 1
        assert at.sent_files() == [("dog.png", PNG)]


@BOTH
async def test_a_homeserver_without_addresses_gets_the_file_first(cast: type[MatrixCast]) -> None:
    async with cast() as at:
        at.matrix.media.makes_addresses = False
        results = await tried(at.channel, with_files(at, "here", _DOG))
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert at.sent_files() == [("dog.png", PNG)]


@BOTH
async def test_words_say_what_the_homeserver_does_not_take(cast: type[MatrixCast]) -> None:
    async with cast() as at:
        at.matrix.media.bytes_max = 5
        results = await tried(at.channel, with_files(at, "here", _DOG))
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert results[-1].detail == "a file was not sent: the homeserver answers M_TOO_LARGE"
        words, instead = at.sent()
        assert (words, instead.startswith("[dog.png could not be sent:")) == ("here", True)


async def test_a_homeserver_that_is_away_costs_no_try_at_the_split() -> None:
    async with MatrixCast() as at:
        reply = with_files(at, "here", _DOG)
        assert isinstance(at.channel, PartedChannel)
        at.matrix.mischief = one_after_the_other(*[Mischief.FAIL] * 3, method="upload")
        with pytest.raises(ChannelError, match="cannot be looked up"):
            await at.channel.split(reply)


async def test_a_file_stays_in_its_thread() -> None:
    async with MatrixCast() as at:
        threaded = at.reply_in_topic("here")
        assert threaded is not None
        files = with_files(at, "", _DOG).files
        await tried(at.channel, replace(threaded, files=files))
        assert len(set(at.topics())) == 1
        assert at.topics()[0].startswith("$")
