"""The stage: a home, the runtime that is killed on it, and the processes around it, all on loopback, all ended."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import MappingProxyType, TracebackType
from typing import IO, Any, Self
from urllib.parse import urlsplit

from keepsaid.values import frozen
from keepsaid_testkit.crash.evidence import Ledgers, numbers
from keepsaid_testkit.crash.fork import Events, Fork, Nursery, Running, StageError, nursery
from keepsaid_testkit.crash.load_requests import SECRET, ReplyUrls
from keepsaid_testkit.crash.logs import Logs
from keepsaid_testkit.crash.order import LEASE_MS, Order
from keepsaid_testkit.crash.player import Player, Start
from keepsaid_testkit.crash.process import environ, running

_LOOK_S = 0.01
_READY_S = 180.0
_STOP_S = 60.0
"""Ends a play that hangs. How fast a stop must be is for tests/crash/test_stop.py to say."""
_LOOK_BACK_S = 3.0
_DRAINED_S = 3_600.0
_TURNS_MAX = 4
"""Few turns at once, so that a kill makes few suspects, which are worked on one by one."""

_COMPACTION = {"messages": 4, "keep": 2, "retry_s": 0.01, "window_tokens": 1_000, "emergency": 0.9}
"""Lanes are summarised every few messages, and now and then a prompt does not fit."""

_RECALL_MS = 5_000
"""Memory is recalled before each turn however busy the machine is: what was shown to none cannot be judged."""

_APPROVAL_HOURS = 0.0002
"""A call that waits for its owner expires within a second, if that is not decided before."""

_COLLECTION = {
    "every_s": 0.2,
    "tries": 1,
    "retry_s": 0.05,
    "daily_call_limit": 1_000_000,
    "model_tokens_a_day": 1_000_000_000,
}
"""Sessions are read at once and as long as a play goes on: thousands of lives would use up what is for a day."""

SERVE = ("serve", "--port", "0")
NOWHERE: Mapping[str, int] = MappingProxyType({})


@frozen
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


@frozen
class Scenario:
    """The settings of a crash test: the program to run, its load and its faults.

    `program` is what a process runs (MODULE:FUNCTION, see forkserver) and `preload` the modules that it imports.
    `thinking_s` is the model's maximum response time, `pause_s` each sender's pause between messages, `trouble`
    the share of replies that fail, `fault` a known fault built into every process, `data` a folder with real
    conversations and payloads to send as well. `lease_ms` is how long a process may work without renewing its
    lease. Only if `can_fill` is set can its disk become full. `store_url` is where its stores are, "" for files.
    """

    program: str
    preload: tuple[str, ...] = ()
    seed: int = 0
    thinking_s: float = 0.05
    trouble: float = 0.1
    pause_s: float = 0.15
    fault: str = ""
    data: Path | None = None
    lease_ms: int = LEASE_MS
    can_fill: bool = False
    store_url: str = ""


class Sandbox:
    """The home, runtime and helper processes of a crash test in one folder.

    A context manager; it leaves no process behind.
    """

    def __init__(self, folder: Path, cast: Scenario, forks: Nursery | None = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.ledgers = Ledgers(folder / "load.jsonl", folder / "replies.jsonl", folder / "effects.jsonl")
        self.logs = Logs(folder, self.home)
        self.acknowledged = Lines(self.ledgers.load)
        self._cast = cast
        seed = ("--seed", str(cast.seed))
        trouble = ("--trouble", str(cast.trouble), "--ledger", str(self.ledgers.replies))
        self.model = Player(self._pipe("model"), "model", (*seed, "--thinking", str(cast.thinking_s)))
        self.receiver = Player(self._pipe("receiver"), "receiver", (*seed, *trouble))
        self.full = folder / "full"
        """While this file exists, the disk of lives that can find it full is."""
        self._ending = ExitStack()
        self._logs: dict[str, IO[bytes]] = {}
        self._doors = ReplyUrls("", "")
        self._forks = forks
        self._last: Fork | None = None
        self._load: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the model, the receiver and, if none is given, a fork server, and write the config that names them."""
        with ExitStack() as failing:
            failing.push(self._ending)
            for ledger in (self.ledgers.load, self.ledgers.replies, self.ledgers.effects):
                ledger.touch()
            model = self._ending.enter_context(self.model).urls["url"]
            urls = self._ending.enter_context(self.receiver).urls
            self._doors = ReplyUrls(urls["url"], urls["closed"])
            config = self.home / "config" / "config.yaml"
            config.parent.mkdir(parents=True)
            told = settings(model, self._doors)
            if self._cast.store_url:
                told["store"] = {"url": self._cast.store_url}
            config.write_text(json.dumps(told, indent=2), "utf-8")
            if self._forks is None:
                forks = nursery(self._cast.program, self._cast.preload, self._log("forks"))
                self._forks = self._ending.enter_context(forks)
            failing.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill what still runs."""
        if self._last is not None:
            self._last.kill()
        self._ending.close()

    def fork(self, aims: Mapping[str, int] = NOWHERE, arguments: tuple[str, ...] = SERVE) -> Fork:
        """Begin a life, which kills itself at the first of its `aims`: points and passes; it need not be ready yet."""
        assert self._forks is not None, "the stage is entered"
        self._last = self._forks.fork(self._order(arguments, aims))
        return self._last

    def start_process(self) -> Fork:
        """Start a runtime in a new process, imports included, as a user starts it. It may not be ready yet."""
        process = self._start("alone", self._command(self._order(SERVE)), subprocess.PIPE)
        return Fork(Events(process), process.send_signal, process.pid)

    def _command(self, order: Order) -> list[str]:
        given = ["--program", self._cast.program, "--began", str(monotonic()), "--order", order.line()]
        return ["keepsaid_testkit.crash.child", *given]

    def _order(self, arguments: tuple[str, ...], aims: Mapping[str, int] = NOWHERE) -> Order:
        log, effects = str(self.folder / "serve.log"), str(self.ledgers.effects)
        cast, full = self._cast, str(self.full) if self._cast.can_fill else ""
        return Order(arguments, str(self.home), log, effects, dict(aims), cast.fault, cast.lease_ms, full)

    def order_in(self, home: Path) -> Order:
        """The order for a life that serves in another home, beside that of the stage."""
        return replace(self._order(SERVE), home=str(home), log=str(self.folder / f"{home.name}.log"))

    def ready(self, server: Running) -> None:
        """Wait until the runtime has left its address in its home and takes messages."""
        self.until(lambda: listens(self.home, server.pid), server, _READY_S, "the server listens")

    def load(self) -> subprocess.Popen[bytes]:
        """Start the load."""
        cast = self._cast
        places = ["--home", str(self.home), "--ledger", str(self.ledgers.load), "--reply-url", self._doors.url]
        places += ["--closed-url", self._doors.closed, "--pause", str(cast.pause_s), "--seed", str(cast.seed)]
        data = [] if cast.data is None else ["--data", str(cast.data)]
        self._load = self._start("load", ["keepsaid_testkit.crash.load", *places, *data], self._log("load"))
        return self._load

    def signal_load(self, number: signal.Signals) -> None:
        """Tell the load something, if it has begun: SIGUSR1 lets a crowd speak up beside it, SIGTSTP hushes it."""
        if self._load is not None:
            self._load.send_signal(number)

    def drain(self, server: Running, within_s: float) -> None:
        """Wait until nothing is open: all is routed, answered, sent and remembered.

        As long as less and less is open it may take longer; what stays open is the judge's.
        """
        deadline, least = monotonic() + within_s, sys.maxsize

        def is_over() -> bool:
            nonlocal deadline, least
            left = self.number("open")
            if left is not None and left < least:
                deadline, least = monotonic() + within_s, left
            return left == 0 or monotonic() > deadline

        self.until(is_over, server, _DRAINED_S, "nothing is open")

    def until(self, reached: Callable[[], bool], process: Running, within_s: float, what: str) -> None:
        """Wait for a condition while a process runs; fails when the process ends before, or when it takes too long."""
        deadline = monotonic() + within_s
        while not reached():
            if monotonic() > deadline:
                raise StageError(f"not within {within_s:g} s: {what}\n{self.logs.tails()}")
            self.let(process, _LOOK_S)

    def let(self, process: Running, seconds: float) -> None:
        """Let a process run for some time; fails when it ends by itself."""
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(seconds)
            raise StageError(f"a process ended by itself ({code})\n{self.logs.tails()}")

    def stop(self, process: Running, within_s: float = _STOP_S) -> None:
        """End a process gracefully; fails when it takes too long or says that something went wrong."""
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGUSR2)  # it writes to its log what holds it
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_BACK_S)
            raise StageError(f"not stopped within {within_s:g} s\n{self.logs.tails()}") from None
        if code:
            raise StageError(f"ended with {code}\n{self.logs.tails()}")

    def number(self, statement: str) -> int | None:
        """What a statement of `evidence.sql` says of the operational store; None while it cannot be read."""
        found = numbers(self.home, statement)
        return None if found is None else found[0][0]

    def run_command(self, name: str, arguments: list[str]) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """Run the program with other arguments in a second process, on a disk that has space."""
        order = replace(self._order(tuple(arguments)), full="", log=str(self.folder / f"{name}.log"))
        return running(self._command(order), self._log(name), self._log(name))

    def _pipe(self, name: str) -> Start:
        return lambda arguments: running(arguments, subprocess.PIPE, self._log(name))

    def _log(self, name: str) -> IO[bytes]:
        if name not in self._logs:
            self._logs[name] = self._ending.enter_context((self.folder / f"{name}.log").open("ab"))
        return self._logs[name]

    def _start(self, name: str, arguments: list[str], out: IO[bytes] | int) -> subprocess.Popen[bytes]:
        errors = out if not isinstance(out, int) else self._log(name)
        return self._ending.enter_context(running(arguments, out, errors))


def judged(ledgers: Ledgers, home: Path) -> Judgement:
    """What a judge says, in a process of its own, of these ledgers and the databases of a stopped server."""
    command = [sys.executable, "-m", "keepsaid_testkit.crash.judge", "--home", str(home)]
    command += ["--load", str(ledgers.load), "--replies", str(ledgers.replies), "--effects", str(ledgers.effects)]
    done = subprocess.run(command, env=environ(), capture_output=True, text=True, timeout=600, check=False)  # noqa: S603
    if not done.stdout:
        raise StageError(f"the judge failed:\n{done.stderr}")
    said = json.loads(done.stdout)
    return Judgement(done.returncode, said["violations"], said["counts"])


def own_address() -> str:
    """An address of this machine at which no other play listens, where it has many.

    The port of a server that dies is free: what is sent there must not arrive at that of a play beside.
    """
    if sys.platform != "linux":
        return "127.0.0.1"
    return ".".join(("127", *(str(1 + secrets.randbelow(254)) for _ in range(3))))


def settings(model_url: str, doors: ReplyUrls) -> dict[str, Any]:
    """The config: a scripted model, pushed replies, short windows, and a rule of each kind; no comment is taken."""
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
    nobody = urlsplit(doors.closed)
    return {
        "server": {"host": own_address()},
        "models": {"chat": "openai/scripted", "base_url": model_url, "api_key": "none needed"},
        "buffer": {"window_ms": 30, "warn_count": 1},
        "compaction": _COMPACTION,
        "collection": _COLLECTION,
        "sessions": {"sleep_s": 0.1, "end_s": 0.5},
        "turns": {"concurrent_max": _TURNS_MAX},
        "tools": {"approval_hours": _APPROVAL_HOURS},
        "memory": {"embedder": "hashed", "deadline_ms": _RECALL_MS},
        "routes": {"rules": rules},
        "github": {"token": "ghs-of-a-crash-play", "api_url": f"{nobody.scheme}://{nobody.netloc}"},
        "channels": {
            "http": {"busy": "steer", "reply_hosts": [urlsplit(url).netloc for url in (doors.url, doors.closed)]},
            "github": {"busy": "interrupt", "secret": SECRET, "window_ms": 100, "quiet_ms": 100, "max_wait_ms": 500},
        },
    }


def listens(home: Path, pid: int) -> bool:
    """Whether the runtime of a home has left its address there, and takes messages."""
    with suppress(FileNotFoundError):
        return bool(json.loads((home / "run" / "runtime.json").read_text("utf-8"))["pid"] == pid)
    return False
