"""The start of a command: it loads what it uses, and help of the whole program loads no command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.waits import HANG_S

import keepsaid
from keepsaid.interfaces.cli.commands import GROUPS, tree
from keepsaid.interfaces.cli.program import shared

_READING = (
    "keepsaid.engine", "keepsaid.pipeline", "keepsaid.extensions", "keepsaid.interfaces.http", "keepsaid.app.instance",
    "keepsaid.app.models", "keepsaid.adapters.models", "keepsaid.adapters.channels", "keepsaid.adapters.tools",
    "keepsaid.adapters.redaction", "httpx2", "mcp", "numpy", "openai", "prompt_toolkit", "pydantic_ai",
    "pydantic_settings", "rich", "starlette", "tokenizers", "uvicorn",
)  # fmt: skip
"""What a command does not load that only reads the stores."""

_HELP = (*_READING, "keepsaid.config", "keepsaid.domain.commits", "keepsaid.interfaces.cli.memory", "apsw", "pydantic")
"""What help does not load."""

NONE: Mapping[str, str] = {}

_PROGRAM = """
import sys
from keepsaid.interfaces.cli.program import run
try:
    code = run(sys.argv[2:])
finally:
    print(sorted(set(sys.argv[1].split()) & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


def started(home: Path, *words: str, heavy: Sequence[str] = (), given: Mapping[str, str] = NONE) -> tuple[str, str]:
    """What a command prints in a process of its own, and which of the modules `heavy` it loaded."""
    named = {name: value for name, value in os.environ.items() if not name.startswith("KEEPSAID_")}
    sources = str(Path(keepsaid.__file__).parents[1])
    environment = {**named, "PYTHONPATH": sources, "KEEPSAID_HOME": str(home), **given}
    call = [sys.executable, "-c", _PROGRAM, " ".join(heavy), *words]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, check=True, timeout=HANG_S)
    return done.stdout, done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that holds a memory."""
    made = tmp_path_factory.mktemp("start")
    started(made, "memory", "add", "the kettle is in the blue boat")
    return made


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("status",), "Not running"),
        (("memory", "search", "kettle"), "the kettle is in the blue boat"),
        (("inbox", "ls"), ""),
    ],
)
def test_a_command_that_reads_loads_no_engine_no_pipeline_and_no_models(
    home: Path, words: tuple[str, ...], printed: str
) -> None:
    out, loaded = started(home, *words, heavy=_READING)
    assert printed in out
    assert loaded == "[]"


def test_help_of_the_program_loads_no_command(tmp_path: Path) -> None:
    out, loaded = started(tmp_path, "--help", heavy=_HELP)
    assert "Show whether keepsaid runs" in out
    assert loaded == "[]"


def test_a_shell_is_offered_the_commands_below_a_command(tmp_path: Path) -> None:
    asked = {"_KEEPSAID_COMPLETE": "complete_bash", "COMP_WORDS": "keepsaid memory s", "COMP_CWORD": "2"}
    assert "search" in started(tmp_path, given=asked)[0].split()


def test_help_of_the_program_has_the_first_sentence_of_each_command() -> None:
    built = tree([], shared).commands
    for name, sentence in {name: one for names in GROUPS.values() for name, one in names.items()}.items():
        assert " ".join((built[name].help or "").split()).startswith(f"{sentence}.")
