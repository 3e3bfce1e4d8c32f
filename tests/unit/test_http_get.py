"""The tool `http_get`: listed hosts alone, whatever the DNS and redirects say; text alone, cut where it is long."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.unit.task_cast import pull, until, working

from keepsaid.adapters.tools.http_get import http_get
from keepsaid.config.services import ToolsConfig
from keepsaid.domain.allowed_hosts import RequestedUrl, entry_for, parse_allowed_host, parse_target
from keepsaid.domain.message import Trust
from keepsaid.errors import ToolError
from keepsaid.ports.model import Tool
from keepsaid.testing.listener import ListeningServer
from keepsaid.testing.model_http import Connection
from keepsaid.testing.model_script import Call, Say, Script

PAGES = {
    "/plain": (200, "text/plain; charset=latin-1", "caf\xe9".encode("latin-1")),
    "/page": (200, "text/html", b"<h1>Tides</h1><script>steal()</script><p>High at <b>noon</b></p>"),
    "/long": (200, "text/plain", b"x" * 5_000),
    "/image": (200, "image/png", b"\x89PNG"),
    "/moved": (302, "/plain", b""),
    "/away": (302, "http://elsewhere.test/plain", b""),
    "/round": (302, "/round", b""),
}


class Site(ListeningServer):
    """Pages on a loopback port; `hosts` are the headers it got."""

    def __init__(self) -> None:
        super().__init__(self._serve, 0)
        self.hosts: list[str] = []

    @property
    def port(self) -> int:
        return self._listener.port

    async def _serve(self, connection: Connection) -> None:
        request = await connection.receive()
        self.hosts.append(request.headers["host"])
        status, kind, body = PAGES.get(request.path, (404, "text/plain", b"none"))
        extra = {"connection": "close"} | ({"location": kind} if status == 302 else {})
        await connection.send(status, body, "text/plain" if status == 302 else kind, extra)
        await connection.close()


@asynccontextmanager
async def reading(
    *hosts: str, at: Sequence[str] = ("127.0.0.1",), bytes_max: int = 1_000_000
) -> AsyncIterator[tuple[Tool, Site]]:
    """The tool with these hosts, `{port}` filled in; every name is at these addresses."""

    async def resolving(_host: str, _port: int) -> Sequence[str]:
        return at

    async with Site() as site:
        listed = tuple(one.format(port=site.port) for one in hosts)
        yield http_get(ToolsConfig(http_hosts=listed, http_bytes_max=bytes_max), resolving), site


async def test_a_page_of_a_listed_host_is_read_as_text() -> None:
    async with reading("http://tides.test:{port}") as (tool, site):
        base = f"http://tides.test:{site.port}"
        assert await tool.run({"url": f"{base}/plain"}) == "caf\xe9"
        assert await tool.run({"url": f"{base}/page"}) == "Tides\nHigh at noon"
        assert await tool.run({"url": f"{base}/moved"}) == "caf\xe9"
        assert set(site.hosts) == {f"tides.test:{site.port}"}
        assert (tool.output, tool.needs) == (Trust.EXTERNAL, Trust.KNOWN)


async def test_what_is_long_is_cut() -> None:
    async with reading("http://tides.test:{port}", bytes_max=1_000) as (tool, site):
        text = await tool.run({"url": f"http://tides.test:{site.port}/long"})
        assert text == "x" * 1_000 + "\n[cut after 1,000 bytes]"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/image", "not text"),
        ("/none", "HTTP 404"),
        ("/away", "not in tools.http_hosts"),
        ("/round", "more than 5 redirects"),
    ],
)
async def test_what_cannot_be_read_says_why(path: str, why: str) -> None:
    async with reading("http://tides.test:{port}") as (tool, site):
        with pytest.raises(ToolError, match=why):
            await tool.run({"url": f"http://tides.test:{site.port}{path}"})


@pytest.mark.parametrize(
    "url",
    [
        "http://tides.test/",
        "https://other.test:{port}/",
        "http://user@tides.test:{port}/",
        "http://tides.test:{port}@other.test/",
        "file:///etc/passwd",
        "http://tides.test.other.test:{port}/",
    ],
)
async def test_other_urls_are_refused_before_anything_is_sent(url: str) -> None:
    async with reading("http://tides.test:{port}") as (tool, site):
        with pytest.raises(ToolError):
            await tool.run({"url": url.format(port=site.port)})
        assert site.hosts == []


async def test_a_name_below_a_pattern_must_not_be_private() -> None:
    """Nor one of several addresses; a name that is listed itself may."""
    async with reading("http://*.tides.test:{port}", at=("8.8.8.8", "127.0.0.1")) as (tool, site):
        with pytest.raises(ToolError, match="must not be read"):
            await tool.run({"url": f"http://north.tides.test:{site.port}/plain"})
        assert site.hosts == []


@pytest.mark.parametrize(
    ("entry", "address", "refused"),
    [
        ("*.a.test", "10.1.2.3", True),
        ("*.a.test", "::ffff:10.1.2.3", True),
        ("*.a.test", "64:ff9b::a01:203", True),
        ("*.a.test", "8.8.8.8", False),
        ("a.test", "10.1.2.3", False),
        ("a.test", "169.254.169.254", True),
        ("a.test", "fe80::1%eth0", True),
        ("http://169.254.169.254", "169.254.169.254", False),
        ("[fe80::1]", "fe80::1", False),
    ],
)
def test_addresses_behind_names(entry: str, address: str, refused: bool) -> None:
    assert parse_allowed_host(entry).refuses(address) is refused


def test_an_exact_entry_goes_before_a_pattern() -> None:
    both = [parse_allowed_host("*.a.test"), parse_allowed_host("b.a.test")]
    target = parse_target("https://B.a.test?q=1#top")
    assert target == RequestedUrl("https", "b.a.test", 443, "/?q=1")
    assert entry_for(target, both) == both[1]
    assert entry_for(parse_target("https://a.test/"), both) is None


@pytest.mark.parametrize("host", ["", "a b", "ftp://a.test", "a.test/path", "a.test:0", "*", "a.*.test"])
def test_an_entry_that_is_not_a_host_is_refused(host: str) -> None:
    with pytest.raises(ValidationError, match="is not a host"):
        ToolsConfig(http_hosts=(host,))


async def test_a_rule_gives_its_worker_the_tool(tmp_path: Path) -> None:
    """Only by listing it: without, what an outsider wrote would choose what is fetched."""
    async with Site() as site:
        url = f"http://127.0.0.1:{site.port}"
        script = Script(Call("http_get", {"url": f"{url}/plain"}), Say("read"))
        async with working(tmp_path / "a", script, rule={"tools": ["http_get"]}, pages=[url]) as (instance, model):
            await instance.receive(pull())
            await until(instance, "completed")
            assert (await model.wait_for(2))[1].last("tool") == "caf\xe9"
        async with working(tmp_path / "b", Script(Say("done")), pages=[url]) as (instance, model):
            await instance.receive(pull())
            await until(instance, "completed")
            assert "http_get" not in json.dumps((await model.wait_for(1))[0].tool_names)
