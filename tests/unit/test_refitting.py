"""Refitting: extensions follow their changed settings by a reload, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.extension_cast import put
from tests.unit.test_reload import rule, write

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Home
from keepsaid.errors import ConfigError
from keepsaid.extensions.loaded import Phase, State

FOLLOWS = """
@extension(id='{id}', config={{'sides': {{'type': 'integer', 'default': 6, 'maximum': 100}}}})
class A:
    seen = None
    async def initialize(self, context): self.context, self.seen = context, []
    async def reconfigure(self, config):
        sides = config['sides']
        if sides == 13 or (self.id == 'stubborn' and sides == 6): raise ValueError('unlucky')
        self.seen.append(sides)
    id = '{id}'
"""
STAYS = "@extension(id='rigid', config={'sides': {'type': 'integer', 'default': 6}})\nclass A: ...\n"


def sides(**of: Any) -> dict[str, Any]:
    """The config of extensions, by id."""
    return {"extensions": {name: {"config": {"sides": number}} for name, number in of.items()}}


def seen(instance: Instance, name: str) -> tuple[Sequence[int], int]:
    """What an extension was given while it worked, and what its context says."""
    guest = instance.extending.lifecycle.guests[name]
    assert guest.context is not None
    return guest.made.seen, guest.context.config["sides"]


def home_of(tmp_path: Path, *names: str) -> Home:
    """A home with extensions that follow."""
    home = Home.at(tmp_path)
    for name in names:
        put(home.extensions, name, FOLLOWS.format(id=name))
    return home


async def test_an_extension_takes_over_its_settings_while_it_works(tmp_path: Path) -> None:
    home = home_of(tmp_path, "dice")
    put(home.extensions, "rigid", STAYS)
    async with opened(home, write(home)) as instance:
        await instance.start(answering=False)
        write(home, sides(dice=20, rigid=20))
        done = await instance.reloading.reload()
        assert (done.changed, done.restart) == (("extensions.dice.config.sides",), ("extensions.rigid.config.sides",))
        assert seen(instance, "dice") == ([20], 20)
        assert (await instance.reloading.reload()).changed == ()
        write(home)
        assert (await instance.reloading.reload()).changed == ("extensions.dice.config.sides",)
        assert seen(instance, "dice") == ([20, 6], 6)
        write(home, {"extensions": {"dice": {"enabled": False}}})
        assert (await instance.reloading.reload()).restart == ("extensions.dice.enabled",)


@pytest.mark.parametrize(
    ("second", "why"), [("many", "must be of the type integer"), (101, "at most 100"), (13, "second .* unlucky")]
)
async def test_one_that_cannot_take_its_settings_stops_all_of_it(tmp_path: Path, second: object, why: str) -> None:
    home = home_of(tmp_path, "first", "second")
    async with opened(home, write(home)) as instance:
        await instance.start(answering=False)
        course = instance.flow.settings
        write(home, rule("first"), sides(first=8, second=second))
        with pytest.raises(ConfigError, match=why) as refused:
            await instance.reloading.reload()
        assert "stay in force" in refused.value.safe
        assert instance.flow.settings is course
        assert [seen(instance, name)[1] for name in ("first", "second")] == [6, 6]
        assert seen(instance, "first")[0] in ([], [8, 6])
        write(home, rule("first"), sides(first=8, second=9))
        done = await instance.reloading.reload()
        assert done.changed == (
            *("extensions.first.config.sides", "extensions.second.config.sides"),
            "routes.rules",
        )
        assert [seen(instance, name)[1] for name in ("first", "second")] == [8, 9]


async def test_one_that_does_not_take_its_former_settings_back_is_quarantined(tmp_path: Path) -> None:
    home = home_of(tmp_path, "stubborn", "zealous")
    async with opened(home, write(home)) as instance:
        await instance.start(answering=False)
        write(home, sides(stubborn=8, zealous=13))
        with pytest.raises(ConfigError, match="zealous"):
            await instance.reloading.reload()
        guests = instance.extending.lifecycle.guests
        assert (guests["stubborn"].state, guests["zealous"].state) == (State.QUARANTINED, State.ACTIVE)
        assert guests["stubborn"].fault is not None
        assert guests["stubborn"].fault.phase is Phase.SETTINGS
