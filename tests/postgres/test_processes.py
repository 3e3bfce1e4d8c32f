"""Several processes at one database: real ones, each in a home of its own, killed, frozen and stopped."""

from __future__ import annotations

import shutil
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.acceptance.program import WITHIN_S, Program, Running
from tests.postgres.proxy import between
from tests.postgres.server import empty

from keepsaid.adapters.postgres.connection import PostgresPlace

_CONFIG = "models: {chat: none}\nbuffer: {window_ms: 0}\nchannels: {library: {window_ms: 0}}\n"


class Fleet:
    """Homes whose settings name one database, each with a process that serves in a role."""

    def __init__(
        self,
        place: PostgresPlace,
        folder: Path,
        *roles: str,
        leader: PostgresPlace | None = None,
        redis: str = "",
        config: str = _CONFIG,
    ) -> None:
        self._roles = roles
        urls = [(leader or place).url, *[place.url] * (len(roles) - 1)]
        relay = {"KEEPSAID_STORE__REDIS": redis} if redis else {}
        self.homes = [Program(folder / f"home{n}", {"KEEPSAID_STORE__URL": url, **relay}) for n, url in enumerate(urls)]
        first, *others = self.homes
        first.configure(config)
        first.run("memory", "add", "My desk is blue")
        for other in others:
            shutil.copytree(first.home, other.home)
        self._closing = ExitStack()
        self.running: list[Running] = []

    def __enter__(self) -> Fleet:
        with ExitStack() as starting:
            for home, role in zip(self.homes, self._roles, strict=True):
                self.running.append(starting.enter_context(home.serving("--role", role)))
            self._closing = starting.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def processes(self) -> list[dict[str, Any]]:
        """The running processes, as any home shows them."""
        found: list[dict[str, Any]] = self.homes[-1].run("status", "--json").json["processes"]
        return found

    def leader(self, *, of: int) -> int:
        """The place of the process that leads, once there are so many."""
        pids = [running.process.pid for running in self.running]
        while True:
            found = self.processes()
            leading = [one for one in found if one["leads"]]
            if len(found) == of and leading:
                [leader] = leading
                return pids.index(int(leader["owner"].rsplit("-", 2)[1]))

    def say(self, n: int, text: str) -> dict[str, Any]:
        """Send a message to one of them, and wait until it is settled."""
        sent = self.homes[n].run("inbox", "send", text, "--json").json
        return self.running[n].settled(sent["id"])


@pytest.fixture
def fleet(place: PostgresPlace, tmp_path: Path) -> Fleet:
    empty(place)
    return Fleet(place, tmp_path, "all", "all", "all")


def said(fleet: Fleet) -> dict[str, str]:
    """The state of each message, by its text."""
    told = fleet.homes[-1].run("inbox", "ls", "--limit", "100", "--json").json["messages"]
    assert len({one["text"] for one in told}) == len(told)
    return {one["text"]: one["state"] for one in told}


def test_each_answers_what_any_was_sent_and_one_leads(fleet: Fleet) -> None:
    """After the leader was killed, another one leads, and what the dead one held is answered."""
    with fleet:
        first = fleet.leader(of=3)
        for n in range(3):
            story = fleet.say(n, f"what colour is my desk? {n}")
            assert story["state"] == "done"
            assert len(story["replies"]) == 1
        fleet.running[first].process.kill()
        fleet.running[first].process.wait(WITHIN_S)
        second = fleet.leader(of=2)
        assert second != first
        for n in {0, 1, 2} - {first}:
            assert fleet.say(n, f"and after the kill? {n}")["state"] == "done"
    assert set(said(fleet).values()) == {"done"}


def test_one_that_was_frozen_until_it_was_taken_for_dead_stops_and_writes_nothing(fleet: Fleet) -> None:
    with fleet:
        frozen = fleet.leader(of=3)
        process = fleet.running[frozen].process
        process.send_signal(signal.SIGSTOP)
        assert fleet.leader(of=2) != frozen
        process.send_signal(signal.SIGCONT)
        told, _ = process.communicate(timeout=WITHIN_S)
        assert process.returncode != 0
        assert "others took over its work" in told
        for n in {0, 1, 2} - {frozen}:
            assert fleet.say(n, f"still there? {n}")["state"] == "done"


def test_one_that_the_network_cuts_off_is_replaced_and_ends_when_it_is_back(
    place: PostgresPlace, tmp_path: Path
) -> None:
    """Meanwhile it acknowledges nothing, and the others answer everything once."""
    empty(place)
    with (
        tempfile.TemporaryDirectory(prefix="keepsaid-px-") as folder,
        between(place, Path(folder)) as (proxy, behind),
        Fleet(place, tmp_path, "all", "all", "all", leader=behind) as fleet,
    ):
        assert fleet.leader(of=3) == 0
        proxy.is_away = True
        refused = fleet.homes[0].run("inbox", "send", "is anybody there?", code=None)
        assert (refused.code != 0, "KS-DB-AWAY" in refused.err) == (True, True)
        while httpx2.get(f"{fleet.running[0].url}/readyz", trust_env=False).status_code == 200:
            pass
        assert "a runtime is up" in fleet.homes[0].run("doctor", code=None).out
        assert fleet.leader(of=2) != 0
        for n in (1, 2):
            assert fleet.say(n, f"still there? {n}")["state"] == "done"
        proxy.is_away = False
        process = fleet.running[0].process
        told, _ = process.communicate(timeout=WITHIN_S)
        assert process.returncode != 0
        assert "others took over its work" in told
        assert said(fleet) == {"still there? 1": "done", "still there? 2": "done"}


def test_one_that_is_stopped_hands_over_at_once(fleet: Fleet) -> None:
    with fleet:
        first = fleet.leader(of=3)
        process = fleet.running[first].process
        process.terminate()
        assert process.wait(WITHIN_S) == 0
        assert fleet.leader(of=2) != first


def test_a_door_takes_in_what_a_worker_answers_and_neither_leads(place: PostgresPlace, tmp_path: Path) -> None:
    """Without one that leads, the status says so."""
    empty(place)
    with Fleet(place, tmp_path, "door", "worker", "all") as fleet:
        assert fleet.leader(of=3) == 2
        assert fleet.say(0, "is anybody there?")["state"] == "done"
        fleet.running[2].process.kill()
        fleet.running[2].process.wait(WITHIN_S)
        assert fleet.say(0, "and now?")["state"] == "done"
        while len(fleet.processes()) > 2:
            pass
        ran = fleet.homes[0].run("status", code=None)
        assert "no process leads" in ran.out
        told = fleet.homes[0].run("memory", "forget", "--filter", "My desk is blue", "--yes")
        assert "the rest goes when a process leads" in told.err


def test_one_that_was_killed_is_silent_until_another_takes_its_work(place: PostgresPlace, tmp_path: Path) -> None:
    empty(place)
    with Fleet(place, tmp_path, "all") as fleet:
        assert fleet.leader(of=1) == 0
        fleet.running[0].process.kill()
        fleet.running[0].process.wait(WITHIN_S)
        while not (silent := [one for one in fleet.processes() if one["silent"]]):
            pass
        [killed] = silent
        assert not killed["leads"]
        told = fleet.homes[0].run("status", code=None).out
        assert f"process {killed['owner']} was killed, or lost the database" in told
        assert "no process leads" in told
        assert str(place) in told
        with fleet.homes[0].serving():
            assert [one["leads"] for one in fleet.processes()] == [True]
            assert "this process leads" in fleet.homes[0].run("data", "logs", "--level", "info").out


def test_a_worker_takes_no_messages_and_says_so(place: PostgresPlace, tmp_path: Path) -> None:
    empty(place)
    with Fleet(place, tmp_path, "worker", "all") as fleet:
        worker, whole = (running.url for running in fleet.running)
        body = {"text": "hello", "sender": "ann", "conversation": "c1"}
        refused = httpx2.post(f"{worker}/v1/messages", json=body, trust_env=False)
        assert (refused.status_code, "is a worker" in refused.json()["title"]) == (404, True)
        assert httpx2.post(f"{whole}/v1/messages", json=body, trust_env=False).status_code == 201
        ready = [httpx2.get(f"{url}/readyz", trust_env=False).status_code for url in (worker, whole)]
        assert ready == [503, 200]


def test_only_processes_that_share_a_database_have_roles(tmp_path: Path) -> None:
    alone = Program(tmp_path)
    alone.configure(_CONFIG)
    refused = alone.run("serve", "--role", "worker", code=None)
    assert refused.code != 0
    assert "share a database" in refused.err
    assert "is not one of: all, worker, door" in alone.run("serve", "--role", "king", code=None).err
