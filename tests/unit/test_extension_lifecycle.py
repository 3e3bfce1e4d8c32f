"""Extensions are let in and out in order; what is broken is quarantined with its phase, and the others go on."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.unit.extension_cast import BROKEN, QUICK, lifecycle, put, put_broken, put_folder, standing
from tests.waits import HANG_S

from keepsaid.domain.event import Event
from keepsaid.errors import ExtensionError
from keepsaid.extensions.discovery import in_folder
from keepsaid.extensions.lifecycle import Lifecycle, PhaseLimits
from keepsaid.extensions.loaded import Phase, State
from keepsaid.extensions.loading import ordered
from keepsaid.testing.recording_runtime import RecordingRuntime

STEPS = """
LOG = []

@extension(id='{id}', depends_on={needs})
class Steps:
    async def initialize(self, context):
        self.context = context
        self.context.log.name
        self.log('initialize')

    async def start(self):
        self.log('start')

    async def stop(self):
        self.log('stop')

    def log(self, what):
        import keepsaid.extensions
        keepsaid.extensions.__dict__.setdefault('TEST_LOG', []).append(f'{{self.context.id}}.{{what}}')
"""


@pytest.fixture
def log() -> list[str]:
    """What extensions write down of themselves."""
    import keepsaid.extensions  # noqa: PLC0415 - its dictionary is the one place they and the test both see

    made: list[str] = []
    keepsaid.extensions.__dict__["TEST_LOG"] = made
    return made


async def test_they_begin_in_order_and_end_the_other_way_round(tmp_path: Path, log: list[str]) -> None:
    put(tmp_path / "x", "one", STEPS.format(id="zebra", needs=[]))
    put(tmp_path / "x", "two", STEPS.format(id="yak", needs=["zebra"]))
    put(tmp_path / "x", "three", STEPS.format(id="ape", needs=["yak", "zebra"]))
    life = lifecycle(tmp_path / "x", RecordingRuntime())
    await life.begin()
    await life.end()
    begun = [f"{name}.{step}" for step in ("initialize", "start") for name in ("zebra", "yak", "ape")]
    assert log == [*begun, "ape.stop", "yak.stop", "zebra.stop"]
    assert set(standing(life).values()) == {State.STOPPED}


async def test_all_that_are_broken_are_quarantined_and_the_others_work(tmp_path: Path) -> None:
    put_broken(tmp_path / "x")
    put(tmp_path / "x", "good", "@extension(id='good')\nclass A:\n    async def start(self): self.up = True\n")
    life = lifecycle(tmp_path / "x", RecordingRuntime())
    await life.begin()
    assert [guest.id for guest in life.active] == ["good"]
    assert life.active[0].made.up
    for name, (_, phase, said) in BROKEN.items():
        fault = life.guests[name].fault
        assert fault is not None
        assert (fault.phase, said in fault.reason) == (phase, True), fault
    fault = life.guests["fails_initialize"].fault
    assert fault is not None
    assert "ValueError: no luck" in fault.trace
    assert "initialize" in fault.trace


async def test_what_depends_on_a_broken_one_says_why_it_is_not_there(tmp_path: Path) -> None:
    put(tmp_path / "x", "a", BROKEN["fails_initialize"][0])
    put(tmp_path / "x", "b", "@extension(id='b', depends_on=['fails_initialize'])\nclass A: ...\n")
    put(tmp_path / "x", "c", "@extension(id='c', depends_on=['b'])\nclass A: ...\n")
    life = lifecycle(tmp_path / "x", RecordingRuntime())
    await life.begin()
    faults = {id_: guest.fault for id_, guest in life.guests.items()}
    assert faults["b"] is not None
    assert faults["b"].phase is Phase.DEPENDENCIES
    why = "it depends on fails_initialize: it is quarantined (initialize: ValueError: no luck)"
    assert faults["b"].reason == why
    assert faults["c"] is not None
    assert faults["c"].reason == f"it depends on b: it is quarantined (dependencies: {why})"


async def test_an_import_that_hangs_is_given_up_and_holds_up_nobody(tmp_path: Path) -> None:
    source = "import threading\nthreading.Event().wait(30)\n@extension(id='hung')\nclass A: ...\n"
    put(tmp_path / "x", "hung", source)
    put(tmp_path / "x", "good", "@extension(id='good')\nclass A: ...\n")
    life = lifecycle(tmp_path / "x", RecordingRuntime(), limits=PhaseLimits(1.0))
    await asyncio.wait_for(life.begin(), HANG_S)
    assert standing(life) == {"good": State.ACTIVE, "hung": State.QUARANTINED}
    assert life.guests["hung"].fault is not None
    assert life.guests["hung"].fault.phase is Phase.IMPORT


async def test_one_that_does_not_heed_being_broken_off_is_left_behind(tmp_path: Path) -> None:
    put(
        tmp_path / "x",
        "deaf",
        """
        import asyncio

        @extension(id='deaf')
        class A:
            async def stop(self):
                while not self.enough.is_set():
                    try:
                        await self.enough.wait()
                    except asyncio.CancelledError:
                        pass

            async def start(self):
                self.enough = asyncio.Event()
        """,
    )
    life = lifecycle(tmp_path / "x", RecordingRuntime())
    await life.begin()
    await asyncio.wait_for(life.end(), HANG_S)
    [guest] = life.guests.values()
    assert guest.fault is not None
    assert (guest.fault.phase, guest.fault.reason) == (Phase.STOP, f"it took longer than {QUICK.stop_s:g} s")
    guest.made.enough.set()


async def test_one_that_is_three_times_unwell_is_stopped_with_what_depends_on_it(tmp_path: Path) -> None:
    sick = """
    @extension(id='sick')
    class A:
        well = True
        async def health(self): return self.well
    """
    put(tmp_path / "x", "sick", sick)
    put(tmp_path / "x", "next", "@extension(id='next', depends_on=['sick'])\nclass A: ...\n")
    put(tmp_path / "x", "other", "@extension(id='other')\nclass A: ...\n")
    lobby = RecordingRuntime()
    life = lifecycle(tmp_path / "x", lobby)
    await life.begin()
    made = life.guests["sick"].made
    for well in (False, False, True, False, False):
        made.well = well
        await life.look()
    assert len(life.active) == 3
    await life.look()
    assert [guest.id for guest in life.active] == ["other"]
    fault = life.guests["next"].fault
    assert fault is not None
    assert fault.reason.startswith("it depends on sick: it is quarantined (health: ")
    assert lobby.changes[-2:] == [("sick", "quarantined"), ("next", "quarantined")]


async def test_only_what_a_manifest_depends_on_can_be_had(tmp_path: Path) -> None:
    put(tmp_path / "x", "base", "@extension(id='base')\nclass A:\n    word = 'hello'\n")
    put(
        tmp_path / "x",
        "user",
        """
        @extension(id='user', depends_on=['base'])
        class A:
            async def initialize(self, context):
                self.word = context.get_extension('base').word
                self.context = context
        """,
    )
    life = lifecycle(tmp_path / "x", RecordingRuntime())
    await life.begin()
    user = life.guests["user"].made
    assert user.word == "hello"
    with pytest.raises(ExtensionError, match="asked for other, which its manifest does not depend on"):
        user.context.get_extension("other")
    await life.end()
    with pytest.raises(ExtensionError, match="base is not there: it is stopped"):
        user.context.get_extension("base")


async def test_one_that_has_to_be_set_up_waits_without_being_broken(tmp_path: Path) -> None:
    source = "@extension(id='new')\nclass A:\n    def needs(self): return ['pair the device']\n"
    put(tmp_path / "x", "new", source)
    put(tmp_path / "x", "user", "@extension(id='user', depends_on=['new'])\nclass A: ...\n")
    life = lifecycle(tmp_path / "x", RecordingRuntime())
    await life.begin()
    assert (life.guests["new"].state, life.guests["new"].needs) == (State.UNREADY, ("pair the device",))
    fault = life.guests["user"].fault
    assert fault is not None
    assert fault.reason == "it depends on new: it has to be set up first: pair the device"


async def test_names_of_tools_are_taken_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        put(
            tmp_path / "x",
            name,
            f"@extension(id='{name}')\nclass A:\n    @tool\n    async def roll(self):\n        'Roll.'\n",
        )
    life = lifecycle(tmp_path / "x", RecordingRuntime())
    await life.begin()
    fault = life.guests["b"].fault
    assert fault is not None
    assert (fault.phase, fault.reason) == (Phase.PROVIDE, "the tool roll is a's")


async def test_folders_have_modules_of_their_own(tmp_path: Path) -> None:
    for name in ("red", "blue"):
        manifest = f"id: {name}\napi: 1\nentrypoint: main:Paint\n"
        place = put_folder(
            tmp_path / "x", name, manifest, "from .colour import NAME\n\nclass Paint:\n    name = NAME\n"
        )
        (place / "colour.py").write_text(f"NAME = '{name}'\n", "utf-8")
    life = lifecycle(tmp_path / "x", RecordingRuntime())
    await life.begin()
    assert {guest.made.name for guest in life.active} == {"red", "blue"}
    assert "main" not in sys.modules


async def test_subscriptions_begin_once_it_is_active_and_keep_their_names(tmp_path: Path) -> None:
    put_folder(
        tmp_path / "x",
        "watch",
        """
        id: watch
        api: 1
        entrypoint: main:Watch
        events:
          subscribes:
            - {topic: deploy.finished, handler: notify_user}
            - {topic: deploy.failed}
        """,
        """
        from keepsaid.extensions import on

        class Watch:
            async def initialize(self, context):
                self.heard = []
                await context.subscribe('own.topic', self.on_event)

            async def on_event(self, event):
                self.heard.append(event.topic)

            @on('memory.*')
            async def remembered(self, event): ...
        """,
    )
    lobby = RecordingRuntime()
    life = lifecycle(tmp_path / "x", lobby)
    await life.begin()
    assert sorted(lobby.told_of) == [
        "extension:watch:deploy.failed:on_event",
        "extension:watch:deploy.finished:notify_user",
        "extension:watch:memory.*:remembered",
        "extension:watch:own.topic",
    ]
    _, notify = lobby.told_of["extension:watch:deploy.finished:notify_user"]
    await notify(Event(7, "deploy.finished", {"text": "Done."}, "", 0))
    await notify(Event(8, "deploy.finished", {"build": 4}, "", 0))
    assert lobby.notices == [("watch", "Done.", "7"), ("watch", 'deploy.finished: {"build": 4}', "8")]
    _, tell = lobby.told_of["extension:watch:deploy.failed:on_event"]
    await tell(Event(9, "deploy.failed", {}, "", 0))
    assert life.active[0].made.heard == ["deploy.failed"]


async def test_what_is_off_is_not_imported(tmp_path: Path) -> None:
    put(tmp_path / "x", "off", "raise SystemExit\n@extension(id='off')\nclass A: ...\n")
    found = in_folder(tmp_path / "x")
    life = Lifecycle(
        [one.__class__(one.id, one.source, one.place, one.manifest, enabled=False) for one in found],
        lifecycle(tmp_path / "y", RecordingRuntime())._deps,
    )
    await life.begin()
    assert standing(life) == {"off": State.OFF}


def test_order_is_by_waves_and_names_every_fault() -> None:
    order = ordered({"d": ["c"], "c": ["a", "b"], "b": [], "a": []})
    assert order.waves == (("a", "b"), ("c",), ("d",))
    order = ordered({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"], "e": [], "f": ["off"]}, {"off": "it is off"})
    assert order.waves == (("e",),)
    assert order.faults["a"] == "it depends on itself: a -> b -> c -> a"
    assert order.faults["c"] == "it depends on itself: c -> a -> b -> c"
    assert order.faults["d"] == "it depends on a, which cannot be let in"
    assert order.faults["f"] == "it depends on off: it is off"
