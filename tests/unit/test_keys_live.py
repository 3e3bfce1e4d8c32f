"""Keys of a running instance follow the config file: added ones are let in, removed ones refused, without a restart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from tests.unit.http_cast import BASE, Site, site
from tests.waits import HANG_S

from keepsaid.app.keys import LOOK_MS, KeyRing
from keepsaid.config import Home, load
from keepsaid.testing.clock import VirtualClock

ANN, BOB = {"token": "a" * 40}, {"token": "b" * 40}


def write(home: Home, keys: Mapping[str, Any] | str) -> None:
    """Put a whole config file in place of the one before, as editors do."""
    home.config.mkdir(parents=True, exist_ok=True)
    new = home.config_file.with_suffix(".new")
    new.write_text(keys if isinstance(keys, str) else yaml.safe_dump({**BASE, "keys": keys}), "utf-8")
    new.replace(home.config_file)


def ring(home: Home, clock: VirtualClock, learned: list[str]) -> KeyRing:
    return KeyRing(home, load(home.config_file)[0], clock, learned.append)


async def test_the_file_is_followed_once_a_second(tmp_path: Path) -> None:
    home, clock, learned = Home.at(tmp_path), VirtualClock(), list[str]()
    write(home, {"ann": ANN})
    keys = ring(home, clock, learned)
    await keys.look()
    write(home, {"bob": BOB})
    await keys.look()
    assert list(keys.by_name) == ["ann"], "a second has not passed"
    await clock.advance(LOOK_MS)
    await asyncio.gather(keys.look(), keys.look())
    assert (list(keys.by_name), list(keys.by_token), learned) == (["bob"], ["b" * 40], ["b" * 40])


@pytest.mark.parametrize("broken", ["keys: [", "keys: {ann: {token: short}}", "", None])
async def test_a_file_that_cannot_be_used_keeps_the_keys_and_is_named_once(
    tmp_path: Path, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """An empty file is one that lost its content, and a missing one is about to be replaced."""
    home, clock = Home.at(tmp_path), VirtualClock()
    write(home, {"ann": ANN})
    keys = ring(home, clock, [])
    if broken is None:
        home.config_file.unlink()
    else:
        write(home, broken)
    for _ in range(3):
        await clock.advance(LOOK_MS)
        await keys.look()
    assert list(keys.by_name) == ["ann"]
    assert sum("stay in force" in line for line in caplog.messages) == 1
    write(home, {"bob": BOB})
    await clock.advance(LOOK_MS)
    await keys.look()
    assert list(keys.by_name) == ["bob"]


async def test_a_key_of_a_channel_that_does_not_run_yet_waits_for_the_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home, clock = Home.at(tmp_path), VirtualClock()
    write(home, {"ann": ANN})
    keys = ring(home, clock, [])
    with caplog.at_level(logging.INFO, "keepsaid.config"):
        write(home, yaml.safe_dump({**BASE, "channels": {"shop": {}}, "keys": {"bob": {**BOB, "channel": "shop"}}}))
        await clock.advance(LOOK_MS)
        await keys.look()
    assert not keys.by_name
    assert any("keys of a channel that needs a restart: bob" in line for line in caplog.messages)
    assert not any("b" * 40 in line for line in caplog.messages)


async def status(here: Site, key: Mapping[str, str], way: str) -> int:
    """How a call with a key is answered: of HTTP, MCP, the OpenAI endpoint or that of mem0."""
    sent = {"Authorization": f"Bearer {key['token']}", "Accept": "application/json, text/event-stream"}
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    calls = {
        "http": ("POST", "/v1/context", {"conversation": "c", "text": "hello"}),
        "mcp": ("POST", "/mcp", listed),
        "openai": ("GET", "/v1/models", None),
        "mem0": ("GET", "/compat/mem0/memories", None),
    }
    method, path, body = calls[way]
    answer: httpx2.Response = await here.client.request(method, path, json=body, headers=sent)
    return answer.status_code


@pytest.mark.parametrize("way", ["http", "mcp", "openai", "mem0"])
async def test_every_face_takes_the_key_that_is_added_and_refuses_the_one_that_is_removed(
    tmp_path: Path, way: str
) -> None:
    home = Home.at(tmp_path)
    write(home, {"ann": ANN})
    async with asyncio.timeout(HANG_S), site(tmp_path) as here:
        assert (await status(here, ANN, way), await status(here, BOB, way)) == (200, 401)
        write(home, {"bob": BOB})
        while await status(here, BOB, way) != 200:
            pass
        assert await status(here, ANN, way) == 401


async def test_a_reload_of_all_settings_takes_the_keys(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    write(home, {"ann": ANN})
    async with site(tmp_path) as here:
        write(home, {"bob": BOB})
        answer = await here.client.post("/v1/config/reload", headers=here.owner)
        assert (answer.json()["changed"], answer.json()["restart"]) == (["keys.ann", "keys.bob"], [])
        assert (await status(here, BOB, "http"), await status(here, ANN, "http")) == (200, 401)
