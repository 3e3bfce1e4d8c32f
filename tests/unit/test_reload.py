"""Reload: rules and agent follow the config while it works; all of it or nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.http_cast import site
from tests.waits import HANG_S

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.app.serving import Prepared
from keepsaid.config import Config, Home, load
from keepsaid.config.file import changed, taken, within
from keepsaid.domain.views import Story
from keepsaid.errors import ConfigError
from keepsaid.testing.builders import said

SETTINGS: dict[str, Any] = {"models": {"chat": "none"}, "buffer": {"window_ms": 0}}


def rule(name: str, action: str = "drop", **match: str) -> dict[str, Any]:
    """Routes of one rule."""
    return {"routes": {"rules": [{"name": name, "action": action, "match": match}]}}


def write(home: Home, *parts: dict[str, Any]) -> Config:
    """The config file; returns it read."""
    home.config.mkdir(parents=True, exist_ok=True)
    whole: dict[str, Any] = dict(SETTINGS)
    for part in parts:
        whole |= part
    home.config_file.write_text(yaml.safe_dump(whole), "utf-8")
    return load(home.config_file)[0]


async def judged(instance: Instance, message_id: int) -> Story:
    """A message once its batch is decided."""
    async with asyncio.timeout(HANG_S):
        while True:
            story = await instance.operations.story(message_id)
            if story is not None and story.batch is not None:
                return story
            await asyncio.sleep(0)


async def test_rules_change_under_load_and_each_message_is_judged_by_one_version(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    async with opened(home, write(home, rule("first"))) as instance:
        await instance.start()
        ids: list[int] = []

        async def talk(room: int) -> None:
            for n in range(30):
                received = await instance.receive(said(f"{n}", room=f"room {room}", channel="http"))
                ids.append(received.id)
                if not room and n == 15:
                    write(home, rule("second"))
                    done = await instance.reloading.reload()
                    assert (done.changed, done.restart) == (("routes.rules",), ())

        await asyncio.gather(*(talk(room) for room in range(4)))
        stories = [await judged(instance, one) for one in ids]
        verdicts = {(s.batch.verdict.rule, s.batch.verdict.version) for s in stories if s.batch is not None}
        assert sorted(name for name, _ in verdicts) == ["first", "second"]
        assert len({version for _, version in verdicts}) == 2
        later = await judged(instance, (await instance.receive(said("later", channel="http"))).id)
        assert later.batch is not None
        assert later.batch.verdict.rule == "second"
        told = [one for one in await instance.telling.journal.latest(500) if one.topic == "config.reloaded"]
        assert [one.payload for one in told] == [{"changed": ["routes.rules"], "restart": []}]


@pytest.mark.parametrize(
    "broken",
    ["routes: {rules: [{name: x, action: fly}]}", "routes: [", "buffer: {window_ms: -1}", "models: {api_key: ${NO_X}}"],
)
async def test_a_broken_file_changes_nothing_and_says_why(tmp_path: Path, broken: str) -> None:
    home = Home.at(tmp_path)
    async with opened(home, write(home, rule("first"))) as instance:
        course = instance.flow.settings
        home.config_file.write_text(broken, "utf-8")
        with pytest.raises(ConfigError) as refused:
            await instance.reloading.reload()
        assert "stay in force" in refused.value.safe
        assert instance.flow.settings is course
        home.config_file.unlink()
        with pytest.raises(ConfigError, match="not there any more"):
            await instance.reloading.reload()
        write(home, rule("second"))
        assert (await instance.reloading.reload()).changed == ("routes.rules",)
        assert (await instance.reloading.reload()).changed == ()


class Picky:
    """A part that refuses what it is shown."""

    keys = ("lanes.infer",)

    def __init__(self) -> None:
        self.seen: list[bool] = []

    async def prepare(self, config: Config) -> Prepared:
        if not config.lanes.infer:
            raise ConfigError("it must stay on")
        return Prepared(self.apply, ("but think twice",))

    async def apply(self) -> None:
        self.seen.append(True)


async def test_parts_follow_all_or_none(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    async with opened(home, write(home, {"lanes": {"infer": True}})) as instance:
        part = Picky()
        instance.reloading.add(part)
        write(home, rule("first"), {"lanes": {"infer": False}})
        course = instance.flow.settings
        with pytest.raises(ConfigError, match="it must stay on"):
            await instance.reloading.reload()
        assert (instance.flow.settings is course, part.seen) == (True, [])
        write(home, rule("first"), {"lanes": {"infer": True}})
        done = await instance.reloading.reload()
        assert (done.changed, done.warnings, part.seen) == (("routes.rules",), ("but think twice",), [True])


async def test_another_agent_answers_and_its_broken_skills_are_named(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    async with opened(home, write(home)) as instance:
        folder = home.agent("other")
        (folder / "skills" / "bad").mkdir(parents=True)
        (folder / "skills" / "bad" / "SKILL.md").write_text("nothing", "utf-8")
        (folder / "SOUL.md").write_text("Be kind.", "utf-8")
        write(home, {"agent": "other"})
        done = await instance.reloading.reload()
        assert done.changed == ("agent",)
        assert [line.startswith("skill bad is left out: ") for line in done.warnings] == [True]


async def test_what_needs_a_restart_is_named_and_not_followed(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    async with opened(home, write(home)) as instance:
        more = {"buffer": {"window_ms": 7}, "server": {"port": 7}, "channels": {"x": {}, "http": {"unmatched": "drop"}}}
        write(home, more)
        done = await instance.reloading.reload()
        assert done.changed == ("channels.http.unmatched",)
        assert done.restart == ("buffer.window_ms", "channels.x", "server.port")
        assert instance.reloading.config.buffer.window_ms == 0
        instance.reloading.given = ("server.port",)
        assert (await instance.reloading.reload()).restart == ("buffer.window_ms", "channels.x")


def test_settings_are_compared_and_taken_by_key() -> None:
    before, after = Config(), Config(agent="other", log={"level": "debug"})
    assert list(changed(before, after)) == [("agent",), ("log", "level")]
    both = taken(before, after, lambda key: within(key, ("agent",)))
    assert (both.agent, both.log.level) == ("other", "info")
    assert list(changed(both, after)) == [("log", "level")]


async def test_over_http_the_owner_alone_may_ask(tmp_path: Path) -> None:
    async with site(tmp_path) as running:
        assert (await running.client.post("/v1/config/reload")).status_code == 401
        home = running.home
        write(home, rule("first"))
        told = await running.client.post("/v1/config/reload", headers=running.owner)
        assert told.status_code == 200
        assert "routes.rules" in told.json()["changed"]
        home.config_file.write_text("routes: 7", "utf-8")
        refused = await running.client.post("/v1/config/reload", headers=running.owner)
        assert (refused.status_code, refused.json()["code"]) == (422, "KS-CFG")
