"""Extensions are found by their manifests and sources; nothing of theirs is run to find them."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.unit.extension_cast import BROKEN, HEAD, put, put_broken, put_folder

from keepsaid.app.extending import found_in, secrets_of, with_channels
from keepsaid.config import Config, Home
from keepsaid.config.services import ExtensionConfig
from keepsaid.errors import ExtensionError
from keepsaid.extensions.discovery import GROUP, ExtensionSource, in_folder, in_packages, unique
from keepsaid.extensions.manifest import manifest_of
from keepsaid.extensions.provided import settings_of
from keepsaid.interfaces.cli.new_extensions import KINDS
from keepsaid.interfaces.cli.program import run

RUNS = "raise RuntimeError('this was run')\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("KEEPSAID_HOME", str(tmp_path))
    return Home.at(tmp_path)


def listed(capsys: pytest.CaptureFixture[str], *command: str, code: int = 0) -> str:
    """What a command prints."""
    assert run([*command]) == code, capsys.readouterr()
    return capsys.readouterr().out


def test_listing_runs_nothing(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    put(
        home.extensions,
        "loud",
        RUNS + "@extension(id='loud', version='2')\nclass A:\n    async def send(self, reply): ...\n",
    )
    put_folder(
        home.extensions,
        "folder",
        "id: folder\napi: 1\nentrypoint: main:A\n",
        RUNS + "class A:\n    def needs(self): ...\n",
    )
    put_folder(home.extensions, "scribe", "id: scribe\napi: 1\nagent: {instructions: Write.}\n")
    put_broken(home.extensions)
    told = json.loads(listed(capsys, "--json", "ext", "ls"))["extensions"]
    by_id = {one["id"]: one for one in told}
    assert (by_id["loud"]["version"], by_id["loud"]["provides"], by_id["loud"]["state"]) == ("2", ["channel"], "found")
    assert [by_id[name]["provides"] for name in ("folder", "scribe")] == [["setup"], ["agent"]]
    assert by_id["unparsable"]["reason"] == "the source is not Python: SyntaxError: invalid syntax (line 2)"
    assert "loud" in listed(capsys, "ext", "show", "loud")
    assert set(BROKEN) < set(by_id)


def test_a_class_in_one_file_says_all_that_a_manifest_says(tmp_path: Path) -> None:
    put(
        tmp_path,
        "all",
        '''
        @extension(
            id="all", version="1.2", depends_on=["memory"], config={"path": {"type": "string", "default": "x"}},
            secrets={"token": "ALL_TOKEN"}, channel={"priority": 50},
        )
        class All:
            """Does all.

            At length.
            """

            @tool(kind="pure")
            async def look(self): "Look."

            @context(priority=20)
            async def about(self, claimed): ...

            @on("deploy.*")
            async def deployed(self, event): ...

            @schedule(cron="0 3 * * *")
            async def nightly(self): ...

            @schedule(name="often", every_s=60)
            async def hourly(self): ...

            async def send(self, reply): ...
        ''',
    )
    [found] = in_folder(tmp_path)
    manifest = found.manifest
    assert manifest is not None, found.problem
    assert (manifest.id, manifest.version, manifest.description) == ("all", "1.2", "Does all.")
    assert manifest.provides == ("channel", "context", "schedule", "tool")
    assert [(one.topic, one.method) for one in manifest.events.subscribes] == [("deploy.*", "deployed")]
    assert [(one.name, one.method, one.cron, one.every_s) for one in manifest.schedules] == [
        ("nightly", "nightly", "0 3 * * *", 0),
        ("often", "hourly", "", 60),
    ]
    assert (manifest.secrets, manifest.channel) == ({"token": "ALL_TOKEN"}, {"priority": 50})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"id": "Big"}, "id: String should match pattern"),
        ({"api": 2}, "api: it is written for version 2 of this interface; this keepsaid has 1"),
        ({"entrypoint": "main"}, "entrypoint: String should match pattern"),
        ({"entrypoint": None}, "it has neither an entrypoint nor an agent"),
        ({"entry": "x"}, "entry: there is no such key; did you mean entrypoint?"),
        ({"depends_on": ["x"]}, "it depends on itself"),
        ({"secrets": {"token": "lower"}}, "secrets.token: String should match pattern"),
        ({"events": {"subscribes": [{"topic": "nope"}]}}, "'nope' cannot be subscribed to"),
        ({"events": {"subscribes": [{"topic": "a.b", "handler": "shout"}]}}, "Input should be 'custom'"),
        ({"schedules": [{"name": "x"}]}, "a schedule has either cron or every_s"),
        ({"schedules": [{"name": "x", "cron": "daily"}]}, "'daily'"),
        ({"schedules": [{"name": "x", "every_s": 1}] * 2}, "two schedules have the same name"),
        ({"config": {"a": {"type": "colour"}}}, "config.a.type: Input should be 'string'"),
        ({"agent": {"instructions": ""}}, "agent.instructions: String should have at least 1 character"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said(keys: dict[str, object], said: str) -> None:
    whole = {"id": "x", "api": 1, "entrypoint": "main:A", **keys}
    with pytest.raises(ExtensionError) as raised:
        manifest_of(whole)
    assert said in raised.value.what


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"prot": 1, "host": "h"}, "extensions.x.config.prot: there is no such setting; did you mean port?"),
        ({}, "host: it has to be set"),
        ({"host": 7}, "host: it must be of the type string"),
        ({"host": "h", "port": True}, "port: it must be of the type integer"),
        ({"host": "h", "port": 0}, "port: it must be at least 1"),
        ({"host": "h", "port": 70_000}, "port: it must be at most 65535"),
        ({"host": "h", "mode": "c"}, "mode: it must be one of: a, b"),
        ({"host": 1, "port": "hunter2"}, "(and 1 more)"),
    ],
)
def test_settings_are_checked_without_being_quoted(given: dict[str, object], said: str) -> None:
    port = {"type": "integer", "default": 80, "minimum": 1, "maximum": 65535}
    config = {"host": {"required": True}, "port": port, "mode": {"enum": ["a", "b"]}}
    manifest = manifest_of({"id": "x", "api": 1, "entrypoint": "m:A", "config": config})
    with pytest.raises(ExtensionError) as raised:
        settings_of(manifest, given)
    assert said in raised.value.what
    assert "hunter2" not in raised.value.what
    assert settings_of(manifest, {"host": "h"}) == {"host": "h", "port": 80, "mode": None}


def test_packages_are_found_without_being_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "offered_one.py").write_text(HEAD + RUNS + "@extension(id='one')\nclass One: ...\n", "utf-8")
    package = tmp_path / "offered_two" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text(RUNS, "utf-8")
    (package / "main.py").write_text(RUNS + "class Two:\n    async def invoke(self, task): ...\n", "utf-8")
    (package / "manifest.yaml").write_text("id: two\napi: 1\n", "utf-8")
    points = [
        EntryPoint("one", "offered_one:One", GROUP),
        EntryPoint("two", "offered_two.inner.main:Two", GROUP),
        EntryPoint("gone", "not_installed:Three", GROUP),
    ]
    found = {one.id: one for one in in_packages(points)}
    assert found["gone"].problem == "the module not_installed is not installed"
    two = found["two"].manifest
    assert two is not None, found["two"].problem
    assert (two.entrypoint, two.provides) == ("offered_two.inner.main:Two", ("agent",))
    assert found["one"].manifest is not None


def test_of_two_with_one_id_the_first_stays(tmp_path: Path) -> None:
    put(tmp_path, "a", "@extension(id='same')\nclass A: ...\n")
    put(tmp_path, "b", "@extension(id='same')\nclass A: ...\n")
    first, second = unique(in_folder(tmp_path))
    assert (first.id, first.problem, first.source) == ("same", "", ExtensionSource.FOLDER)
    assert (second.id, second.problem) == ("same@folder:b.py", "its id same is taken: folder a.py")


def test_the_folder_is_let_in_unless_it_is_off_and_channels_get_their_section(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER_TOKEN", "quite-secret")
    source = "@extension(id='pager', channel={'priority': 50, 'trust': 'external'}, secrets={'token': 'PAGER_TOKEN'})"
    put(home.extensions, "pager", f"{source}\nclass A:\n    async def send(self, reply): ...\n")
    put(home.extensions, "off", "@extension(id='off')\nclass A: ...\n")
    config = Config(extensions={"off": ExtensionConfig(enabled=False)})
    found = found_in(home, config)
    assert [(one.id, one.enabled) for one in found] == [("off", False), ("pager", True)]
    channel = with_channels(config, found).channels["pager"]
    assert (channel.priority, channel.trust) == (50, "external")
    assert secrets_of(found) == ("quite-secret",)


def test_one_is_switched_off_and_on_in_the_file(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    put(home.extensions, "pager", "@extension(id='pager')\nclass A: ...\n")
    home.config_file.write_text("# mine\nlog: {level: debug}\n", "utf-8")
    listed(capsys, "ext", "disable", "pager")
    assert "pager" in listed(capsys, "ext", "ls")
    assert home.config_file.read_text("utf-8") == (
        "# mine\nlog: {level: debug}\nextensions:\n  pager:\n    enabled: false\n"
    )
    assert not found_in(home, Config(extensions={"pager": ExtensionConfig(enabled=False)}))[0].enabled
    listed(capsys, "ext", "enable", "pager")
    assert home.config_file.read_text("utf-8").endswith("    enabled: true\n")
    listed(capsys, "ext", "disable", "nobody", code=1)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_for_a_beginner_passes_the_check(
    kind: str, home: Home, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    listed(capsys, "ext", "new", kind, "my-first")
    listed(capsys, "ext", "new", kind, "my-first", code=1)
    told = listed(capsys, "ext", "check", "my-first")
    assert told.count("ok") == 5
    assert not caplog.records, "nothing but it and what it depends on is tried"
    [manifest] = [one.manifest for one in in_folder(home.extensions)]
    assert manifest is not None
    declared = {"subscriber": manifest.events.subscribes, "agent": manifest.agent}
    assert declared.get(kind) or kind in manifest.provides


def test_what_is_built_in_is_not_checked_here(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    listed(capsys, "ext", "check", "memory", code=1)


def test_what_depends_on_memory_is_checked_with_a_stand_in(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    source = """
    @extension(id='leans', depends_on=['memory', 'memory_consolidator', 'http'])
    class A:
        async def initialize(self, context):
            assert list(context.get_extension('memory').tools(None)) == []
    """
    put(home.extensions, "leans", source)
    assert listed(capsys, "ext", "check", "leans").count("ok") == 5


def test_an_agent_is_checked_for_the_tools_it_names(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = "id: desk\napi: 1\nagent: {instructions: Do it., tools: [roll, fly]}\n"
    put_folder(home.extensions, "desk", manifest)
    assert "its agent has no tool roll, fly" in listed(capsys, "ext", "check", "desk", code=6)
    put(
        home.extensions,
        "wings",
        "@extension(id='wings')\nclass A:\n    @tool\n    async def fly(self):\n        'Fly.'\n",
    )
    put_folder(home.extensions, "desk", manifest.replace("roll, ", "") + "depends_on: [wings]\n")
    assert listed(capsys, "ext", "check", "desk").count("ok") == 5


SENDS = """
from pathlib import Path

@extension(id='pager', channel={})
class A:
    async def send(self, reply):
        Path(__file__).with_name("sent").write_text(reply.lane.conversation)
"""


def test_a_channel_sends_only_where_the_check_is_told_to(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    put(home.extensions, "pager", SENDS)
    sent = home.extensions / "sent"
    listed(capsys, "ext", "check", "pager")
    assert not sent.exists()
    listed(capsys, "ext", "check", "pager", "--send-to", "test-room")
    assert sent.read_text("utf-8") == "test-room"


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "hangs_start"])
def test_the_check_says_what_is_broken(name: str, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    source, _, said = BROKEN[name]
    file = put(home.extensions, name, source)
    assert said in listed(capsys, "ext", "check", str(file), code=6)
