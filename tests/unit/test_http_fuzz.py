"""Fuzzing in short: some thousand requests to every route, none of which is answered with an error of the server."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from random import Random

import pytest
from tests.unit.fuzz_cast import SECRET, Fuzzer, Tally, Target, fuzz
from tests.unit.http_cast import Site, site

from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.openai.routes import OpenAIEndpoint
from keepsaid.interfaces.http.routes import routes

_AWAY = {"base_url": "http://127.0.0.1:9", "model": "m"}
"""A provider at a port where nothing listens: it cannot be reached, and no call leaves the machine."""


def targets_of(one: Site) -> list[Target]:
    """Every route of a server."""
    gate, stopping = Gate("127.0.0.1", "x", None), asyncio.Event()
    found = [*routes(one.instance, gate, stopping), *OpenAIEndpoint(one.instance, gate, stopping).routes()]
    return [Target(route.path, ("GET", "HEAD") if route.method == "GET" else (route.method,)) for route in found]


@pytest.mark.parametrize("seed", [1, 2])
async def test_four_thousand_odd_requests_break_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    caplog.set_level(logging.ERROR)
    tally = Tally()
    keys, openai = {"ann": {"token": "a" * 40}}, {"proxies": {"away": _AWAY}}
    async with site(tmp_path, channels={"github": {"secret": SECRET}}, keys=keys, openai=openai) as one:
        targets = targets_of(one)
        assert len(targets) > 45
        token = one.owner["Authorization"].removeprefix("Bearer ")
        fuzzer = Fuzzer(targets, token, Random(seed))
        await fuzz((one.address.host, one.address.port), fuzzer, 3_400, tally)
        assert (await one.client.get("/healthz")).status_code == 200
    assert tally.wrong == []
    assert sum(tally.statuses.values()) == 3_400
    assert tally.statuses[201] > 30
    assert tally.statuses[200] > 100
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
