"""Every block of README and docs does what it says: commands and programs run, settings load."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Container, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.acceptance import asking
from tests.acceptance.program import ROOT, Program, warm_place
from tests.docs.console import WITHIN_S, Command, Ran, Shell, commands, commands_of, masked
from tests.docs.markdown import Block, Page, documents
from tests.docs.settings import fault_of, variables
from tests.tidy.source import expect_none

LANGUAGES = {
    "console",
    "console exact",
    "console server",
    "console server exact",
    "python",
    "python pytest",
    "python extension",
    "yaml",
    "yaml server",
    "javascript",
    "python worker",
    "javascript worker",
    "json",
    "text",
    "mermaid",
}
_COMMANDS = ("$ ", "keepsaid ", "curl ")
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto")
_EXT_CHECK = ("-m", "keepsaid", "ext", "check")
_AT_ONCE = 4

PAGES = {page.name: page for page in documents()}
PROGRAMS = {
    f"{page.name}:{block.line}": block
    for page in PAGES.values()
    for block in page.blocks
    if block.info.startswith(("python", "javascript")) and not block.info.endswith("worker")
}
NODE = shutil.which("node")
SPOKEN = {name: list(commands(page)) for name, page in PAGES.items() if any(commands(page))}

_PATIENT = {"KEEPSAID_MEMORY__DEADLINE_MS": "10000"}
"""What the pages show came to mind in time; on a busy machine it would not always."""


def blocks(*languages: str) -> list[tuple[Page, Block]]:
    """The blocks in some languages."""
    return [(page, block) for page in PAGES.values() for block in page.blocks if block.info in languages]


class Stage:
    """A server that listens, and what the documentation runs, under way: what the tests that were chosen ask for."""

    def __init__(self, shell: Shell, folder: Path, pool: ThreadPoolExecutor, chosen: Container[object]) -> None:
        self.commands: dict[str, Future[list[Ran | None]]] = {}
        self.programs: dict[str, Future[subprocess.CompletedProcess[str]]] = {}
        # What takes longest goes first.
        for name, wanted in sorted(SPOKEN.items(), key=lambda item: -len(item[1])):
            if name in chosen:
                self.commands[name] = pool.submit(shell.run, wanted, _made(folder / name))
        for name, block in PROGRAMS.items():
            if name in chosen and (NODE or block.info != "javascript"):
                self.programs[name] = pool.submit(run_program, block, shell, _made(folder / name))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def run_program(block: Block, shell: Shell, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python block on a home of its own, or a JavaScript block beside the server."""
    in_python = block.info != "javascript"
    file = folder / ("test_block.py" if in_python else "block.mjs")
    file.write_text(block.text, "utf-8")
    how = {"python pytest": _PYTEST, "python extension": _EXT_CHECK}.get(block.info, ())
    runner = [sys.executable, *how] if in_python else [NODE or "node"]
    return subprocess.run(
        [*runner, str(file)],
        cwd=folder,
        env={**shell.environment, "KEEPSAID_HOME": str(folder / "home"), "KEEPSAID_URL": f"http://{shell.address}"},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Everything that was chosen is started at once; each test waits for its part."""
    folder = tmp_path_factory.mktemp("docs")
    bin_ = _made(folder / "bin")
    shim = bin_ / "keepsaid"
    asks = f'exec "{sys.executable}" -I -S "{asking.__file__}" "{warm_place()}"'
    shim.write_text(f'#!/bin/sh\n{asks} "$@"\n', "utf-8")
    shim.chmod(0o755)
    (bin_ / "python3").symlink_to(sys.executable)
    [(_, settings)] = blocks("yaml server")
    server = Program(
        folder / "server", {**variables(settings.text), **_PATIENT, "PATH": f"{bin_}:{os.environ['PATH']}"}
    )
    server.configure(settings.text)
    with server.serving(is_cold=True) as running, ThreadPoolExecutor(_AT_ONCE) as pool:
        shell = Shell(server.environment, server.home, urlsplit(running.url).netloc)
        yield Stage(shell, folder / "pages", pool, chosen(request.session.items))


def chosen(tests: list[pytest.Item]) -> set[object]:
    """The pages and programs that tests are run for."""
    return {
        test.callspec.params.get("name")
        for test in tests
        if isinstance(test, pytest.Function) and hasattr(test, "callspec")
    }


def test_blocks_are_in_languages_that_are_tried() -> None:
    strange = [
        f"{name}:{block.line}: {block.info!r}"
        for name, page in PAGES.items()
        for block in page.blocks
        if block.info not in LANGUAGES
    ]
    assert strange == []


def test_a_drawing_says_what_it_is_and_closes_its_brackets() -> None:
    for _, block in blocks("mermaid"):
        first, *lines = block.text.splitlines()
        assert first.split()[0] in ("flowchart", "sequenceDiagram", "stateDiagram-v2")
        assert lines
        assert all(block.text.count(one) == block.text.count(other) for one, other in ("[]", "()", "{}"))
        assert block.text.count('"') % 2 == 0


def test_no_command_stands_in_a_text() -> None:
    hidden = [f"{page.name}:{block.line}" for page, block in blocks("text") if hides_commands(block)]
    assert hidden == []


def hides_commands(block: Block) -> bool:
    """Whether a text block holds what should be run."""
    return any(line.startswith(_COMMANDS) for line in block.lines)


@pytest.mark.parametrize("name", SPOKEN)
def test_commands(stage: Stage, name: str) -> None:
    if shutil.which("curl") is None and any("curl " in one.text for one in SPOKEN[name]):
        pytest.skip("curl is not installed")
    ran = stage.commands[name].result()
    expect_none(filter(None, (one.fault(how) for one, how in zip(SPOKEN[name], ran, strict=True))))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(stage: Stage, name: str) -> None:
    if PROGRAMS[name].info == "javascript" and NODE is None:
        pytest.skip("node is not installed")
    done = stage.programs[name].result()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("page", "block"), [pytest.param(*one, id=f"{one[0].name}:{one[1].line}") for one in blocks("yaml", "yaml server")]
)
def test_settings(page: Page, block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("KEEPSAID_"):
            monkeypatch.delenv(name)
    for name, value in variables(block.text).items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "config.yaml"
    file.write_text(block.text, "utf-8")
    assert fault_of(file) == "", f"{page.name}:{block.line}"


def test_json() -> None:
    for page, block in blocks("json"):
        assert json.loads(block.text) is not None, f"{page.name}:{block.line}"


# The rules can fail


def test_rule_commands_of_a_block() -> None:
    block = Block("console server exact", 7, ("$ one \\", "  two", "said", "", "$ three  # exits 4"))
    assert list(commands_of(block)) == [
        Command("one \\\n  two", 7, 0, "said\n", at_server=True),
        Command("three", 11, 4, "", at_server=True),
    ]
    assert next(commands_of(Block("console", 1, ("$ one", "two")))).output is None


def test_rule_faults() -> None:
    command = Command("say", 3, 2, "mem_38fvd66q600ee  said  in 4 ms\n")
    assert command.fault(Ran(2, "mem_38fvd66zj00ee said in 17.5 s\n")) == ""
    layers = "policy TOKENS | message TOKENS about TOKENS tokens"
    assert masked("policy 121 | message 7   about 1,160 tokens") == layers
    assert masked("text #1 (0.5)  memory 2") == "text #1 (SCORE) memory 2"
    assert command.fault(Ran(2, "mem_38fvd66zj00ee said in ms\n")).startswith("line 3: say\nprints")
    assert command.fault(Ran(0, "")).startswith("line 3: exits 0, not 2: say")
    assert command.fault(None) == "line 3: was never reached: say"


def test_rule_a_shell_reports_what_it_reached(tmp_path: Path) -> None:
    shell = Shell({"PATH": os.environ["PATH"]}, tmp_path / "server", "127.0.0.1:9")
    wanted = [Command("a=1", 1), Command("echo $a $KEEPSAID_HOME 127.0.0.1:7448; false", 2, 0, None, at_server=True)]
    wanted += [Command("exit 3", 3), Command("true", 4)]
    ran = shell.run(wanted, tmp_path)
    assert ran == [Ran(0, ""), Ran(1, f"1 {tmp_path / 'server'} 127.0.0.1:9\n"), None, None]


def test_rule_programs(tmp_path: Path) -> None:
    shell = Shell({"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src")}, tmp_path, "")
    run = partial(run_program, shell=shell)
    assert run(Block("python", 1, ("import os", "assert os.environ['KEEPSAID_HOME']")), folder=_made(tmp_path / "a"))
    assert run(Block("python", 1, ("raise SystemExit(3)",)), folder=_made(tmp_path / "b")).returncode == 3
    failing = Block("python pytest", 1, ("async def test_it():", "    assert 1 == 2"))
    assert "1 failed" in run(failing, folder=_made(tmp_path / "c")).stdout


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("log: {level: debug}", ""),
        ("bufer: {window_ms: 5}", "unknown key bufer"),
        ("models: {chat: gpt}", "is not one of"),
        ("routes: {rules: [{name: a, action: drop, match: {chanel: x}}]}", "there is no field 'chanel'"),
        ("routes: {rules: [{name: a, action: drop, match: {payload.a.b: x, channel: [y]}}]}", ""),
    ],
)
def test_rule_settings(text: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text, "utf-8")
    found = fault_of(file)
    assert fault in found
    assert bool(found) == bool(fault)


def test_rule_hidden_commands() -> None:
    assert hides_commands(Block("text", 1, ("see:", "keepsaid status")))
    assert not hides_commands(Block("text", 1, ("make run   # starts keepsaid",)))
