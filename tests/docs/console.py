"""Commands of the documentation: read from its blocks, run by bash, page by page."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.docs.markdown import Block, Page

WITHIN_S = 1_200.0
"""A page that takes so long hangs; a busy machine may well need a minute for the longest."""

_EXITS = re.compile(r"\s+# exits ([0-9]+)$")
_ADDRESS = "127.0.0.1:7448"
_SERVE = "keepsaid serve"
_SEVERAL = re.compile(r"\s*(\s)")
_DIFFERS = (
    (re.compile(r"\b(msg|bat|trn|rep|tsk|mem)_[0-9a-z]{13}\b"), r"\1_ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DAY"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s)\b"), "SPAN"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "VERSION"),
    (re.compile(r"\bbulletin \d[\d,]* \|\s+"), ""),  # it is written beside the turns, when there is time for it
    (re.compile(r"\b([a-z]+) \d[\d,]*(?= \||  +about| tokens)"), r"\1 TOKENS"),
    (re.compile(r"\(\d+(\.\d+)?\)"), "(SCORE)"),
    (re.compile(r"\b\d+% of the previous prompt can be cached, [\d,]+ of [\d,]+ bytes"), "SHARE"),
)
"""What differs from run to run or with every adjustment, and what stands for it when outputs are compared."""

_GOES_ON = re.compile(r"\n {12}(?=\S)")
"""A line is broken where a time has more digits."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command: the exit code it must have, what it must print, if that is said, and where it runs."""

    text: str
    line: int
    code: int = 0
    output: str | None = None
    at_server: bool = False

    def fault(self, ran: Ran | None) -> str:
        """What is wrong with how it ran; empty when nothing is."""
        if ran is None:
            return f"line {self.line}: was never reached: {self.text}"
        if ran.code != self.code:
            return f"line {self.line}: exits {ran.code}, not {self.code}: {self.text}\n{ran.output}"
        if self.output is not None and masked(ran.output) != masked(self.output):
            return f"line {self.line}: {self.text}\nprints\n{ran.output}not\n{self.output}"
        return ""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and what it printed on both streams."""

    code: int
    output: str


def masked(output: str) -> str:
    """An output without what differs from run to run, and without what only aligns columns or goes on with a line."""
    output = _GOES_ON.sub(" ", output)
    for pattern, stands_for in _DIFFERS:
        output = pattern.sub(stands_for, output)
    return "\n".join(_SEVERAL.sub(r"\1", line.rstrip()) for line in output.strip("\n").split("\n"))


def commands(page: Page) -> Iterator[Command]:
    """The commands of a page, in order; `keepsaid serve` is what the test has started already."""
    for block in page.blocks:
        if block.info.split()[:1] == ["console"]:
            for command in commands_of(block):
                if not (command.at_server and command.text.startswith(_SERVE)):
                    yield command


def commands_of(block: Block) -> Iterator[Command]:
    """The commands of a block: lines after `$ `, as long as a backslash or a quote goes on; the rest is output."""
    marks = block.info.split()[1:]
    lines = list(enumerate(block.lines, start=block.line))
    assert lines, "an empty block"
    assert lines[0][1].startswith("$ "), f"line {block.line}: a console block begins with a command"
    while lines:
        number, line = lines.pop(0)
        text = line.removeprefix("$ ")
        while text.endswith("\\") or text.count("'") % 2:
            text += "\n" + lines.pop(0)[1]
        told = []
        while lines and not lines[0][1].startswith("$ "):
            told.append(lines.pop(0)[1])
        exits = _EXITS.search(text)
        code = int(exits.group(1)) if exits else 0
        output = "\n".join(told) if "exact" in marks else None
        yield Command(_EXITS.sub("", text), number, code, output, "server" in marks)


@dataclass(frozen=True, slots=True)
class Shell:
    """Where commands run: their environment, and the home and address of a server that listens."""

    environment: Mapping[str, str]
    server_home: Path
    address: str

    def run(self, wanted: list[Command], folder: Path) -> list[Ran | None]:
        """Run commands one after the other in one shell; None for one that was not reached."""
        script = ["set -u -o pipefail"]
        for n, command in enumerate(wanted):
            home = self.server_home if command.at_server else folder / "home"
            text = command.text.replace(_ADDRESS, self.address)
            script += [f"export KEEPSAID_HOME='{home}'", "{", text, f"}} >'{folder}/{n}.out' 2>&1 </dev/null"]
            script.append(f"echo $? >'{folder}/{n}.code'")
        place = folder / "place"
        place.mkdir()
        subprocess.run(
            ["bash", "-c", "\n".join(script)],
            cwd=place,
            env=dict(self.environment),
            capture_output=True,
            timeout=WITHIN_S,
            check=False,
        )
        return [_ran(folder, n) for n in range(len(wanted))]


def _ran(folder: Path, n: int) -> Ran | None:
    code = folder / f"{n}.code"
    if not code.exists():
        return None
    return Ran(int(code.read_text("utf-8")), (folder / f"{n}.out").read_text("utf-8", "replace"))
