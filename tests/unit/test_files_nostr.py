"""Files of Nostr: fetched from any public server that their sender chose, checked, decrypted, and shown."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from tests.unit.http_cast import Site, site
from tests.unit.nostr_cast import AGENT, SECRET, pool_of
from tests.unit.test_files import file_rows, user_parts, words_of
from tests.unit.test_telegram import line_that_is, until

from keepsaid.adapters.channels.nostr.channel import NostrChannel
from keepsaid.adapters.channels.nostr.files import NostrFiles, attachment_of
from keepsaid.adapters.channels.nostr.keys import FILE
from keepsaid.adapters.channels.nostr.people import NostrPeople
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.adapters.channels.public_address import NotPublic, may_be_public, public_address
from keepsaid.adapters.system.machine import SystemClock
from keepsaid.app.instance import Outside
from keepsaid.domain.line import LineState
from keepsaid.domain.message import Attachment
from keepsaid.errors import FileRefused, FileUnavailable
from keepsaid.ports.channel import FileChannel
from keepsaid.testing.listening import MemoryInbox
from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.kept_files import PNG
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_files import NostrFileServer, SealedFile
from keepsaid.testing.providers.nostr_people import NostrPerson

_FREE = Rate(0.0), Rate(0.0)
ANN = NostrPerson("ann", lambda: int(time.time()))


class StoredPlaces(MemoryInbox):
    """The cursors of a home, once it runs."""

    home: Site | None = None

    async def cursors(self, account: str) -> Mapping[str, str]:
        assert self.home is not None
        return await self.home.instance.operations.cursors("nostr", account)


@dataclass
class Servers:
    """A relay, a server of files, and the model."""

    relay: NostrRelayServer
    host: NostrFileServer
    model: ModelServer
    places: StoredPlaces = field(default_factory=StoredPlaces)

    def channel(self) -> NostrChannel:
        """The channel of the account; the server of files is on this machine, and asked all the same."""
        pool, pace = pool_of(SystemClock(), self.relay.url), SendingPace(SystemClock(), *_FREE)
        return NostrChannel(pool, NostrPeople(AGENT, self.places), pace, files=NostrFiles((self.host.url,)))

    def home(self, **files: Any) -> dict[str, Any]:
        """The settings of the home that reads at the relay."""
        known = [{"channel": "nostr", "account": AGENT, "sender": ANN.public}]
        named = {"secret_key": SECRET, "relays": [self.relay.url], "lookup_relays": [], "name": "keepsaid"}
        models = {"chat": "openai/scripted", "base_url": self.model.url, "api_key": "k"}
        return {"nostr": named, "owner": known, "models": models, "files": files}

    async def send(self, sealed: SealedFile, url: str = "", **other: str) -> None:
        """Ann sends a file; `other` are tags of her message."""
        tags = sealed.tags_with(**other)
        await self.relay.store(ANN.write(url or sealed.url, AGENT, kind=FILE, tags=tags)[1])


@asynccontextmanager
async def servers(*steps: Any) -> AsyncIterator[Servers]:
    """The servers, whose model follows a script."""
    async with NostrRelayServer() as relay, NostrFileServer() as host, ModelServer(Script(*steps)) as model:
        await relay.store(ANN.relay_list(relay.url))
        yield Servers(relay, host, model)


@asynccontextmanager
async def reading(root: Path, at: Servers, *, answering: bool = True, **files: Any) -> AsyncIterator[Site]:
    """A home that reads at the relay."""
    outside = Outside(channels={"nostr": at.channel()})
    async with site(root, answering=answering, outside=outside, **at.home(**files)) as running:
        at.places.home = running
        await line_that_is(running, LineState.UP)
        yield running


def logs_in(folder: Path) -> list[str]:
    """The logs of a home."""
    return [one.read_text("utf-8") for one in folder.rglob("*.log*")]


async def fetched(ref: str, files: NostrFiles | None = None) -> bytes:
    """A file, by what it is fetched by."""
    async with closing(files or NostrFiles()) as opened:
        return b"".join([piece async for piece in opened.pieces(ref)])


@asynccontextmanager
async def closing(files: NostrFiles) -> AsyncIterator[NostrFiles]:
    """The files, closed at the end."""
    try:
        yield files
    finally:
        await files.close()


def ref_of(sealed: SealedFile, url: str = "", **other: str) -> str:
    """What a file is fetched by."""
    return attachment_of(url or sealed.url, {one[0]: one[1] for one in sealed.tags_with(**other)}).ref


async def test_a_model_is_shown_a_picture(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its bytes as they were before they were encrypted; its key is in no log, and not shown to the model."""
    caplog.set_level(logging.DEBUG)
    async with servers(Say("a small dog")) as at, reading(tmp_path, at) as home:
        await at.send(sealed := at.host.seal(PNG))
        [request] = await at.model.wait_for(1)
        [picture] = [one for one in user_parts(request) if one["type"] == "image_url"]
        assert picture["image_url"]["url"] == f"data:image/png;base64,{b64encode(PNG).decode()}"
        assert await file_rows(home, "kept") == [("file", "image/png", len(PNG), "")]
        await at.relay.wait_for(lambda: ANN.read_texts(at.relay) == ["a small dog"])
        assert sealed.key not in str(request.messages)
        assert sealed.key not in caplog.text
    assert not any(sealed.key in text for text in logs_in(tmp_path))


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("too large", "it is larger than 0.002 MB"),
        ("lies", "it is larger than 0.002 MB"),
        ("gone", "the server of the file answered 404"),
        ("moved", "the server of the file answered 302"),
        ("another", "the server of the file has another file there"),
        ("changed", "it cannot be decrypted"),
        ("key", "it cannot be decrypted"),
        ("private", "its server is not https:// at a public address"),
    ],
)
async def test_what_is_not_fetched_is_named_with_its_reason(tmp_path: Path, trouble: str, said: str) -> None:
    """No address that was not to be asked is asked."""
    async with servers(Say("a pity")) as at, reading(tmp_path, at, bytes_max=2_000) as home, NostrFileServer() as other:
        sealed = at.host.seal(bytes(3_000) if trouble in ("too large", "lies") else PNG)
        url, tags = "", {"size": "10"} if trouble == "lies" else {}
        kept = at.host.files.contents[sealed.name]
        if trouble == "gone":
            at.host.files.gone.add(sealed.name)
        elif trouble == "moved":
            at.host.files.moved[sealed.name] = f"{other.url}/{sealed.name}"
        elif trouble == "another":
            at.host.files.contents[sealed.name] = kept + b"."
        elif trouble == "changed":
            at.host.files.contents[sealed.name] = changed = bytes([kept[0] ^ 1]) + kept[1:]
            tags["x"] = sha256(changed).hexdigest()
        elif trouble == "key":
            tags["decryption_key"] = "0" * 64
        elif trouble == "private":
            url = f"{other.url}/{sealed.name}".replace("http:", "https:")
        await at.send(sealed, url, **tags)
        [request] = await at.model.wait_for(1)
        assert "file (not kept: " in words_of(request)
        [(_, _, _, reason)] = await file_rows(home, "left")
        assert said in reason
        assert sealed.name not in reason
        assert other.files.asked == {}


@pytest.mark.parametrize(
    "url",
    [
        "http://files.example/1",
        "https://127.0.0.1/1",
        "https://127.1/1",
        "https://0x7f.0.0.1/1",
        "https://10.0.0.1/1",
        "https://169.254.169.254/latest",
        "https://[::1]/1",
        "https://[::ffff:127.0.0.1]/1",
        "https://localhost/1",
        "https://printer.local/1",
        "https://ann@files.example/1",
        "https://files.example:port/1",
        "https://[/1",
        "file:///etc/passwd",
        "",
    ],
)
async def test_what_is_not_public_is_not_asked(url: str) -> None:
    """Whatever way it is written."""
    with pytest.raises(NotPublic):
        await public_address(url, "https")
    with pytest.raises(FileRefused, match="its server is not https:// at a public address"):
        await fetched(ref_of(SealedFile("", url, "", _TAGS)))


_TAGS = (("encryption-algorithm", "aes-gcm"), ("decryption-key", "1" * 64), ("decryption-nonce", "2" * 24))


async def test_a_public_address_is_one() -> None:
    assert await public_address("https://93.184.215.14:8443/1", "https") == "93.184.215.14"
    assert may_be_public("https://files.example/1", "https")
    assert not may_be_public("https://files.example/1", "wss")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"encryption_algorithm": "aes-cbc"}, "it is not encrypted by AES-GCM"),
        ({"encryption_algorithm": ""}, "it is not encrypted by AES-GCM"),
        ({"decryption_key": "1" * 32}, "its message has no key that fits it"),
        ({"decryption_key": ""}, "its message has no key that fits it"),
        ({"decryption_nonce": "no nonce"}, "its message has no key that fits it"),
    ],
)
async def test_what_cannot_be_decrypted_is_not_asked_for(other: dict[str, str], said: str) -> None:
    async with NostrFileServer() as host:
        sealed = host.seal(PNG)
        with pytest.raises(FileRefused, match=said):
            await fetched(ref_of(sealed, **other), NostrFiles((host.url,)))
        assert host.files.asked == {}


async def test_keys_are_read_as_apps_write_them() -> None:
    """In hexadecimal of any case or in Base64, with a nonce of 12 or 16 bytes, and without a hash."""
    async with NostrFileServer() as host:
        sealed = host.seal(PNG)
        key = bytes.fromhex(sealed.key)
        for other in ({"decryption_key": b64encode(key).decode()}, {"decryption_key": sealed.key.upper()}, {"x": ""}):
            assert await fetched(ref_of(sealed, **other), NostrFiles((host.url,))) == PNG
        host.files.contents[sealed.name] = AESGCM(key).encrypt(key[:16], PNG, None)
        long = ref_of(sealed, decryption_nonce=key[:16].hex(), x="")
        assert await fetched(long, NostrFiles((host.url,))) == PNG


async def test_more_than_20_mb_are_not_read() -> None:
    async with NostrFileServer() as host:
        sealed = host.seal(PNG)
        host.files.contents[sealed.name] = bytes(20_000_017)
        with pytest.raises(FileRefused, match="it is larger than 20 MB"):
            await fetched(ref_of(sealed), NostrFiles((host.url,)))


async def test_without_the_package_that_decrypts_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with NostrFileServer() as host:
        sealed = host.seal(PNG)
        monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
        with pytest.raises(FileRefused, match="the package cryptography, which decrypts it, is not installed"):
            await fetched(ref_of(sealed), NostrFiles((host.url,)))
        assert host.files.asked == {}


async def test_a_server_that_is_away_may_be_there_later() -> None:
    async with NostrFileServer() as host:
        sealed = host.seal(PNG)
        host.files.cut.add(sealed.name)
        with pytest.raises(FileUnavailable, match="the server of the file cannot be reached"):
            await fetched(ref_of(sealed), NostrFiles((host.url,)))
    with pytest.raises(FileUnavailable, match="the server of the file cannot be reached"):
        await fetched(ref_of(sealed), NostrFiles((host.url,)))


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What a server proves with that it has a name, and what a client believes it by."""
    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(named, named, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / f"{name}.pem"
    file.write_bytes(private + made.public_bytes(pem))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=made.public_bytes(pem).decode())


async def test_the_address_that_was_checked_is_dialled_and_has_to_prove_its_name(tmp_path: Path) -> None:
    """The name is looked up once: nobody can let it mean another machine in between."""
    looked_up: list[str] = []

    async def find(url: str, scheme: str) -> str:
        looked_up.append(url)
        return "127.0.0.1"

    theirs, believed = certificate(tmp_path, "files.example")
    async with NostrFileServer() as host, tls_before(host, theirs) as port:
        sealed = host.seal(PNG)
        files = NostrFiles(find_address=find, make_client=lambda: httpx2.AsyncClient(verify=believed, trust_env=False))
        url = f"https://files.example:{port}/{sealed.name}"
        assert await fetched(ref_of(sealed, url), files) == PNG
        assert looked_up == [url]
        assert host.files.headers[sealed.name]["host"] == f"files.example:{port}"
        with pytest.raises(FileUnavailable, match="the server of the file cannot be reached"):
            await fetched(ref_of(sealed, f"https://other.example:{port}/{sealed.name}"), files)
        assert host.files.asked == {sealed.name: 1}


@asynccontextmanager
async def tls_before(host: NostrFileServer, context: ssl.SSLContext) -> AsyncIterator[int]:
    """The port of a server that speaks TLS, and passes on what comes."""

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            behind, before = await asyncio.open_connection("127.0.0.1", int(host.url.rpartition(":")[2]))
            before.write(await reader.readuntil(b"\r\n\r\n"))
            head = await behind.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
            writer.write(head + await behind.readexactly(length))
            await writer.drain()
            before.close()
        writer.close()

    server = await asyncio.start_server(passed, "127.0.0.1", ssl=context)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def test_files_of_another_account_are_refused() -> None:
    channel = NostrChannel(
        pool_of(SystemClock()), NostrPeople(AGENT, MemoryInbox()), SendingPace(SystemClock(), *_FREE)
    )
    assert isinstance(channel, FileChannel)
    with pytest.raises(FileRefused, match="the account npub1 is not set up here any more"):
        channel.fetch("npub1", Attachment("one"))
    await channel.close()


async def test_what_was_not_fetched_is_fetched_after_a_restart(tmp_path: Path) -> None:
    async with servers(Say("it is not there yet")) as at:
        sealed = at.host.seal(PNG)
        at.host.files.cut.add(sealed.name)
        async with reading(tmp_path, at, wait_s=0.1) as home:
            await at.send(sealed)
            await until(home, "SELECT 1 FROM file WHERE attempts > 0")
        at.host.files.cut.clear()
        async with reading(tmp_path, at) as home:
            assert await file_rows(home, "kept") == [("file", "image/png", len(PNG), "")]


def test_what_a_file_is_fetched_by_is_not_shown() -> None:
    """It holds the key."""
    assert "secret" not in repr(Attachment("one", ref="secret"))
