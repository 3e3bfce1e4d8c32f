"""The reserve of the disk: below the floor nothing is taken in, answers go on, and intake resumes by itself."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from tests.unit.http_cast import Site, refused, site
from tests.waits import HANG_S

from keepsaid.adapters.system.machine import DiskSpace
from keepsaid.app.instance import Outside
from keepsaid.errors import DiskReserve
from keepsaid.pipeline.intake import DiskSpaceGuard
from keepsaid.testing.webhooks import payload, sign

SECRET = "a fine secret"  # gitleaks:allow
FLOOR_MB = 64
PLENTY = 10_000_000_000


class Tank:
    """A disk with as much space as a test says."""

    def __init__(self) -> None:
        self.free = PLENTY
        self.looks = 0

    def free_bytes(self) -> int:
        self.looks += 1
        return self.free


async def until_taken(running: Site, text: str) -> None:
    """Send a message until it is stored."""
    began = monotonic()
    while (await running.say(text, key=text)).status_code != 201:
        assert monotonic() - began < HANG_S, "intake did not resume"
        await running.instance.clock.wait(asyncio.Event(), 100)


async def until_refused(running: Site, text: str) -> None:
    """Knock until intake has stopped."""
    began = monotonic()
    while (await running.say(text)).status_code == 201:
        assert monotonic() - began < HANG_S, "intake did not stop"
        await running.instance.clock.wait(asyncio.Event(), 100)


async def test_below_the_floor_intake_refuses_and_resumes_by_itself(tmp_path: Path) -> None:
    tank = Tank()
    channels = {"github": {"secret": SECRET}}
    async with site(tmp_path, outside=Outside(space=tank), channels=channels) as running:
        await until_taken(running, "before")
        tank.free = FLOOR_MB * 1_000_000 - 1
        await until_refused(running, "more")
        stored = running.rows("SELECT count(*) FROM message")
        response = await running.say("too much", key="k")
        told = refused(response, 503)
        assert (told["code"], response.headers["retry-after"]) == ("KS-DB-RESERVE", "5")
        assert "not stored" in told["safe"]
        body = json.dumps(payload("issues", 1)).encode()
        headers = {"x-github-event": "issues", "x-github-delivery": "g", "x-hub-signature-256": sign(SECRET, body)}
        hook = await running.client.post(
            "/hooks/github", content=body, headers={"content-type": "application/json", **headers}
        )
        refused(hook, 503)
        assert (await running.client.get("/readyz")).status_code == 503
        assert (await running.client.get("/healthz")).status_code == 200
        assert running.rows("SELECT count(*) FROM message") == stored
        tank.free = FLOOR_MB * 1_000_000
        await until_taken(running, "k")
        assert (await running.client.get("/readyz")).status_code == 200


async def test_answers_go_on_below_the_floor(tmp_path: Path) -> None:
    tank = Tank()
    async with site(tmp_path, outside=Outside(space=tank), buffer={"window_ms": 1_500}) as running:
        told = (await running.say("what is left is for answers")).json()
        tank.free = 0
        running.instance.reserve.look()
        story = await running.settled(told["id"])
        assert story["state"] == "done"
        assert running.rows("SELECT state FROM reply") == [("sent",)]


async def test_the_disk_is_not_looked_at_for_every_message(tmp_path: Path) -> None:
    tank = Tank()
    async with site(tmp_path, outside=Outside(space=tank), answering=False) as running:
        before = tank.looks
        for n in range(20):
            assert (await running.say(f"say {n}")).status_code == 201
        assert tank.looks - before < 10


def test_stop_and_go_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    tank = Tank()
    reserve = DiskSpaceGuard(tank, FLOOR_MB)
    for free in (PLENTY, 1_000_000, 500_000, PLENTY, PLENTY):
        tank.free = free
        reserve.look()
    told = [(record.levelname, record.getMessage().partition(":")[0]) for record in caplog.records]
    assert told == [("WARNING", "intake stops"), ("WARNING", "intake goes on")]
    assert {getattr(record, "code", None) for record in caplog.records} == {DiskReserve.code}


def test_without_a_floor_everything_is_taken() -> None:
    tank = Tank()
    tank.free = 0
    reserve = DiskSpaceGuard(tank, 0)
    reserve.look()
    reserve.check()


def test_a_folder_that_is_not_there_yet_is_on_the_disk_of_its_parent(tmp_path: Path) -> None:
    assert DiskSpace(tmp_path / "a" / "b").free_bytes() > 0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 80 MB, where one may be mounted."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=80m", "none", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True, capture_output=True)


async def test_a_real_disk_that_fills_up_stops_intake_before_it_is_full(small: Path) -> None:
    async with site(small / "home") as running:
        await until_taken(running, "there is room")
        filler = small / "filler"
        filler.write_bytes(b"x" * 30_000_000)
        await until_refused(running, "less than the floor is left")
        refused(await running.say("nothing more"), 503)
        filler.unlink()
        await until_taken(running, "there is room again")
