"""The stage: a home, the runtime that is killed on it, and the processes around it, all on loopback, all ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import IO, Any, Self
from urllib.parse import urlsplit

import apsw
from tests.crash.evidence import Store
from tests.crash.load import SECRET

ROOT = Path(__file__).resolve().parents[2]
_LOOK_S = 0.02
_READY_S = 30.0
_STOP_S = 10.0
_TAIL_CHARS = 6_000

Process = subprocess.Popen[str]

_OPEN = """
    SELECT (SELECT count(*) FROM lane WHERE batched < head)
      + (SELECT count(*) FROM batch WHERE state IN ('queued', 'leased'))
      + (SELECT count(*) FROM reply WHERE state IN ('sending', 'unknown') OR (state = 'pending' AND url IS NOT NULL))
      + (SELECT count(*) FROM episode_due)
"""
_COMMITTED = "SELECT count(*) FROM turn WHERE state = 'committed'"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the judge said."""

    exit_code: int
    violations: list[str]
    counts: dict[str, int]


class Lines:
    """Counts the lines of a file that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._lines = 0

    def count(self) -> int:
        """How many there are now."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
            self._read += len(new)
            self._lines += new.count(b"\n")
        return self._lines


class Stage:
    """Everything the play needs in one folder; a context manager that leaves no process behind."""

    def __init__(self, folder: Path, seed: int, data: Path | None = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.told = folder / "load.jsonl"
        self.posted = folder / "replies.jsonl"
        self.acknowledged = Lines(self.told)
        self._seed = seed
        self._data = data
        self._ending = ExitStack()
        self._url = ""

    def __enter__(self) -> Self:
        """Start the model and the receiver, and write the config that names them."""
        with ExitStack() as failing:
            failing.push(self._ending)
            for ledger in (self.told, self.posted):
                ledger.touch()
            model = self._listening("model")
            self._url = self._listening("receiver", "--ledger", str(self.posted))
            config = self.home / "config" / "config.yaml"
            config.parent.mkdir(parents=True)
            config.write_text(json.dumps(settings(model, self._url), indent=2), "utf-8")
            failing.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill what still runs."""
        self._ending.close()

    def serve(self) -> Process:
        """Start the runtime; it need not be ready yet."""
        return self._start("serve", ["keepsaid", "serve", "--port", "0"], self._log("serve"))

    def ready(self, server: Process) -> None:
        """Wait until the runtime has left its address in its home and takes messages."""
        runtime = self.home / "run" / "runtime.json"

        def listens() -> bool:
            with suppress(FileNotFoundError):
                return bool(json.loads(runtime.read_text("utf-8"))["pid"] == server.pid)
            return False

        self.until(listens, server, _READY_S, "the server listens")

    def load(self) -> Process:
        """Start the load."""
        places = ["--home", str(self.home), "--ledger", str(self.told), "--reply-url", self._url]
        data = [] if self._data is None else ["--data", str(self._data)]
        arguments = ["tests.crash.load", *places, "--seed", str(self._seed), *data]
        return self._start("load", arguments, self._log("load"))

    def committed(self) -> int | None:
        """How many turns are committed; None while the store cannot be read."""
        return self.number(_COMMITTED)

    def drain(self, server: Process, within_s: float) -> None:
        """Wait until nothing is open: all is routed, answered, sent and remembered; what stays open is the judge's."""
        deadline = monotonic() + within_s
        self.until(lambda: self.number(_OPEN) == 0 or monotonic() > deadline, server, 2 * within_s, "nothing is open")

    def until(self, reached: Callable[[], bool], process: Process, within_s: float, what: str) -> None:
        """Wait for a condition while a process runs; fails when the process ends before, or when it takes too long."""
        deadline = monotonic() + within_s
        while not reached():
            assert monotonic() < deadline, f"not within {within_s:g} s: {what}\n{self.logs()}"
            self.let(process, _LOOK_S)

    def let(self, process: Process, seconds: float) -> None:
        """Let a process run for some time; fails when it ends by itself."""
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(seconds)
            raise AssertionError(f"a process ended by itself ({code})\n{self.logs()}")

    def stop(self, process: Process, within_s: float = _STOP_S) -> None:
        """End a process gracefully; fails when it takes too long or says that something went wrong."""
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not stopped within {within_s:g} s\n{self.logs()}") from None
        assert code == 0, f"ended with {code}\n{self.logs()}"

    def judged(self) -> Judgement:
        """What a judge says, in a process of its own."""
        return judged(self.told, self.posted, self.home)

    def logs(self) -> str:
        """The ends of the logs, to explain a failure."""
        files = [*sorted(self.folder.glob("*.log")), *sorted(self.home.glob("state/*.log"))]
        return "\n".join(f"{file.name}:\n{file.read_text('utf-8', 'replace')[-_TAIL_CHARS:]}" for file in files)

    def complaints(self) -> list[str]:
        """What the server's log says of errors; being killed is none."""
        lines = (line for file in self.home.glob("state/*.log") for line in file.read_text("utf-8").splitlines())
        # The last line may have been cut short by a kill.
        return [line for line in lines if '"level": "error"' in line or '"level": "critical"' in line]

    def number(self, sql: str) -> int | None:
        """What a statement says of the operational store; None while it cannot be read."""
        try:
            with Store(self.home / "data" / "buffer.db") as store:
                return int(store.rows(sql)[0][0])
        except apsw.Error:
            return None

    def _listening(self, part: str, *options: str) -> str:
        arguments = ["tests.crash.cast", part, "--seed", str(self._seed), *options]
        player = self._start(part, arguments, subprocess.PIPE)
        assert player.stdout is not None, "its output is a pipe"
        return str(json.loads(player.stdout.readline())["url"])

    def _log(self, name: str) -> IO[str]:
        return self._ending.enter_context((self.folder / f"{name}.log").open("a", encoding="utf-8"))

    def _start(self, name: str, arguments: list[str], out: IO[str] | int) -> Process:
        errors = out if out is not subprocess.PIPE else self._log(name)
        environment = {**environ(), "KEEPSAID_HOME": str(self.home)}
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments], cwd=ROOT, env=environment, stdout=out, stderr=errors, text=True
        )
        self._ending.enter_context(process)
        self._ending.callback(process.kill)
        return process


def environ() -> dict[str, str]:
    """This process's environment, with the package to be found and nothing set that changes it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KEEPSAID_")}
    return {**kept, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


def judged(told: Path, posted: Path, home: Path) -> Judgement:
    """What a judge says, in a process of its own, of these ledgers and the databases of a stopped server."""
    command = [sys.executable, "-m", "tests.crash.judge"]
    command += ["--load", str(told), "--replies", str(posted), "--home", str(home)]
    done = subprocess.run(command, cwd=ROOT, env=environ(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 1), done.stderr
    said = json.loads(done.stdout)
    return Judgement(done.returncode, said["violations"], said["counts"])


def settings(model_url: str, reply_url: str) -> dict[str, Any]:
    """The config: a scripted model, pushed replies, short windows, and a rule of each kind."""
    rules = [
        {"name": "pulls", "match": {"channel": "github", "event": "pull_request.opened"}, "action": "forward"},
        {
            "name": "comments",
            "match": {"channel": "github", "event": "issue_comment.*"},
            "action": "spawn",
            "task": "Look at {{count}} remarks on {{payload.issue.title}}: {{text}}",
        },
        {"name": "rest", "match": {"channel": "github"}, "action": "drop", "reason": "nobody asked for it"},
    ]
    return {
        "models": {"chat": "openai/scripted", "base_url": model_url, "api_key": "none needed"},
        "buffer": {"window_ms": 50},
        "routes": {"rules": rules},
        "channels": {
            "http": {"reply_hosts": [urlsplit(reply_url).netloc]},
            "github": {"secret": SECRET, "window_ms": 100, "quiet_ms": 100, "max_wait_ms": 500},
        },
    }
