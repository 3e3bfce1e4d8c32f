"""`keepsaid doctor`: what is well, what is not, and what to do about it."""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from keepsaid.config import Config, Home
from keepsaid.config.home import write_file
from keepsaid.domain.ids import show as show_id
from keepsaid.errors import ConfigError, KeepsaidError, ModelError, installation
from keepsaid.interfaces.cli import program, remote, status
from keepsaid.interfaces.cli.config import checked
from keepsaid.interfaces.cli.console import say, session, show
from keepsaid.text.normal import counted
from keepsaid.values import frozen

Level = Literal["ok", "info", "warn", "fail"]
_PYTHON_OLDEST = (3, 11)
_MEGABYTE = 1_000_000
_FREE_WARN, _FREE_FAIL = 500 * _MEGABYTE, 50 * _MEGABYTE
_WAL_WARN = 256 * _MEGABYTE
_SHOWN_MAX = 5
_RESTORE = "keepsaid data restore BACKUP --to DIR"


Mend = Callable[[], Callable[[], object]]
"""Puts something right, and returns what undoes that."""


@frozen
class DoctorFinding:
    """One thing that was looked at."""

    level: Level
    what: str
    fix: str = ""
    mend: Mend | None = None

    def as_json(self) -> dict[str, str]:
        """The finding without the function that mends it."""
        return {"level": self.level, "what": self.what, "fix": self.fix}


Check = Callable[[Home, Config], Iterator[DoctorFinding]]


def _failed(error: KeepsaidError) -> DoctorFinding:
    return DoctorFinding("fail", f"{error.what}. {error.safe}", _fix(error))


def _fix(error: KeepsaidError) -> str:
    """The hint of an error, which must not be to run the command that runs now."""
    if error.hint != KeepsaidError.hint:
        return error.hint
    return "keepsaid config show models" if isinstance(error, ModelError) else "keepsaid data logs --level error"


def doctor(
    offline: Annotated[bool, typer.Option("--offline", help="Call no model.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Read every row, and rebuild derived data.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Repair file modes and a stale address file, then check again.")
    ] = False,
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a zip for a bug report: no message text, no secrets."),
    ] = None,
) -> None:
    """Check the installation, the stores and everything that needs attention.

    A deep look compares every row with its checksum, lanes with their messages and the full text with the
    memories. While nothing else holds the home, it rebuilds derived data.

    The exit code is 0 when all is well, 5 with warnings, 6 with errors.
    """
    if session().url:
        raise program.Misused("doctor checks this machine; --url names an instance elsewhere", hint="keepsaid status")
    findings = list(_findings(offline=offline))
    if fix and (undoing := [(one.what, one.mend()) for one in findings if one.mend is not None]):
        findings = list(_findings(offline=offline))
        _report_fixes(undoing, {one.what for one in findings})
    if deep:
        findings += _deep()
    levels = [finding.level for finding in findings]
    worst = "fail" if "fail" in levels else "warn" if "warn" in levels else "ok"
    counts = {level: levels.count(level) for level in ("ok", "info", "warn", "fail")}
    sentence = {
        "ok": "All is well.",
        "warn": f"It works; {counted(counts['warn'], 'thing')} to look at.",
        "fail": f"{counted(counts['fail'], 'thing')} must be put right.",
    }[worst]
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:5} {finding.what}")
        lines += [f"      fix: {finding.fix}"] if finding.fix else []
    shape = {"sentence": sentence, "counts": counts, "findings": [finding.as_json() for finding in findings]}
    show(shape, sentence, *lines)
    if bundle is not None:
        from keepsaid.interfaces.cli.report import write_report  # noqa: PLC0415 - needed for a bundle alone

        write_report(bundle, shape)
    if worst != "ok":
        raise typer.Exit(program.ERRORS if worst == "fail" else program.WARNINGS)


def _report_fixes(undoing: list[tuple[str, Callable[[], object]]], still_found: set[str]) -> None:
    """Say what was repaired; what did not help is undone."""
    for what, undo in undoing:
        if what in still_found:
            undo()
        say(f"{'could not repair' if what in still_found else 'repaired'}: {what}")


def _findings(*, offline: bool) -> Iterator[DoctorFinding]:
    yield from _versions()
    try:
        warnings, home, config = checked(), session().home, session().config()
    except KeepsaidError as error:
        yield DoctorFinding("fail", error.what, error.hint)
        return
    yield from (DoctorFinding("warn", warning, f"edit {home.config_file}") for warning in warnings)
    if not warnings:
        there = "" if home.config_file.exists() else " (not there: defaults)"
        yield DoctorFinding("ok", f"config {home.config_file}{there}")
    for check in (_places, _stores, _attention, _space, _runtime, _hooks, _encrypted_rooms):
        yield from check(home, config)
    yield _model(config, offline=offline)


def _versions() -> Iterator[DoctorFinding]:
    from keepsaid.app.stores import store_version  # noqa: PLC0415

    python = platform.python_version()
    if sys.version_info < _PYTHON_OLDEST:
        yield DoctorFinding("fail", f"python {python} is too old", "install Python 3.11 or newer")
        return
    try:
        yield DoctorFinding("ok", f"python {python}, SQLite {store_version()}")
    except KeepsaidError as error:
        yield DoctorFinding("fail", error.what, error.hint)


def _places(home: Home, config: Config) -> Iterator[DoctorFinding]:
    from keepsaid.app.stores import stores_of  # noqa: PLC0415

    folders = [place for place in (home.config, home.data, home.state, home.run) if place.exists()]
    stores = stores_of(home, config)
    files = [file for file in (*stores, home.runtime_file, home.log_file) if file.exists()]
    wrong = list(_too_open(folders, "700")) + list(_too_open(files, "600"))
    yield from wrong
    if not folders:
        yield DoctorFinding("info", f"nothing was made at {home.data.parent} yet", "keepsaid init")
    elif not wrong:
        together = all(folder.parent == home.data.parent for folder in folders)
        which = f"the directories of {home.data.parent}" if together else ", ".join(map(str, folders))
        yield DoctorFinding("ok", f"{which} are private to their owner")


def _too_open(places: list[Path], mode: str) -> Iterator[DoctorFinding]:
    for place in places:
        if place.stat().st_mode & 0o077:
            what, fix = f"{place} can be read by others", f"chmod {mode} {place}"
            yield DoctorFinding("warn", what, fix, partial(_set_mode, place, int(mode, 8)))


def _set_mode(place: Path, mode: int) -> Callable[[], object]:
    before = place.stat().st_mode & 0o777
    place.chmod(mode)
    return partial(place.chmod, before)


def _remove(file: Path) -> Callable[[], object]:
    held = file.read_text("utf-8", "replace")
    file.unlink()
    return partial(write_file, file, held)


def _stores(home: Home, config: Config) -> Iterator[DoctorFinding]:
    from keepsaid.app.stores import integrity, pair_trouble, server_line  # noqa: PLC0415

    try:
        if line := server_line(home, config):
            yield DoctorFinding("ok", line)
    except KeepsaidError as error:
        yield _failed(error)
        return
    trouble = pair_trouble(home, config)
    if trouble is not None:
        yield _failed(trouble)
    for result in asyncio.run(integrity(home, config)):
        if isinstance(result, KeepsaidError):
            yield _failed(result)
        elif result.problems:
            yield DoctorFinding("fail", f"{result.path} is damaged: {result.problems[0]}", _RESTORE)
        else:
            held = (f"{part} {count:,} (schema {result.schemas[part]})" for part, count in result.counts.items())
            log = f", log {result.wal_bytes / _MEGABYTE:.1f} MB"
            level: Level = "warn" if result.wal_bytes > _WAL_WARN else "ok"
            yield DoctorFinding(level, f"{result.path} passes its integrity check: {', '.join(held)}{log}")


def _attention(_home: Home, _config: Config) -> Iterator[DoctorFinding]:
    """Yield what `status` says needs attention; what is wrong with a store itself was found before."""
    try:
        found = session().read(lambda stores: stores.status.read())
    except KeepsaidError:
        return
    if found is not None:
        yield from (DoctorFinding("warn", one.what, one.command) for one in found.concerns() if one.command)


def _deep() -> Iterator[DoctorFinding]:
    from keepsaid.app.stores import deep_looks, pair_trouble, server_name, try_lock_home  # noqa: PLC0415

    home, config = session().home, session().config()
    if server := server_name(home, config):
        yield DoctorFinding("info", f"{server}: its rows are not read one by one", "pg_amcheck looks at its pages")
        return
    if not home.data.exists() or pair_trouble(home, config) is not None:
        return  # to mend a store beside one that is lost could lose more
    with try_lock_home(home, config) as mending:
        looks = asyncio.run(deep_looks(home, config, mend=mending))
    for found in looks:
        if isinstance(found, KeepsaidError):
            yield _failed(found)
            continue
        yield from (DoctorFinding("fail", f"{found.path}: {one}", _RESTORE) for one in found.damage)
        if found.damaged:
            some = ", ".join(show_id("message", one) for one in found.damaged[:_SHOWN_MAX])
            what = f"{counted(len(found.damaged), 'message')} not what was stored: {some}"
            yield DoctorFinding("fail", what, "their rows stay as they are; a backup may hold them whole")
        if found.altered:
            some = ", ".join(found.altered[:_SHOWN_MAX]) + (", ..." if len(found.altered) > _SHOWN_MAX else "")
            what = f"{found.path}: {counted(len(found.altered), 'row')} not what was stored: {some}"
            yield DoctorFinding("fail", what, "they are served nowhere; a backup may hold them whole")
        for one in found.astray:
            fix = "rebuilt" if found.mended else "stop the runtime, then run keepsaid doctor --deep to rebuild it"
            yield DoctorFinding("warn", f"{found.path}: {one}", fix)
        if not (found.damage or found.damaged or found.altered or found.astray):
            rows = f"{counted(found.messages, 'message')} whole, " if found.messages else ""
            yield DoctorFinding("ok", f"{found.path}: {rows}nothing astray")


def _space(home: Home, config: Config) -> Iterator[DoctorFinding]:
    from keepsaid.app.stores import free_space, server_name  # noqa: PLC0415

    free, floor = free_space(home, config), config.buffer.min_free_disk_mb * _MEGABYTE
    level: Level = "fail" if free < max(floor, _FREE_FAIL) else "warn" if free < _FREE_WARN else "ok"
    refused = f"; below {floor / _MEGABYTE:,.0f} MB nothing is taken in" if free < floor else ""
    where = "beside the home, not on the database server" if server_name(home, config) else "where the stores are"
    told = f"{free / 1e9:.1f} GB free {where}{refused}"
    yield DoctorFinding(level, told, "" if level == "ok" else "free some space")


def _runtime(home: Home, _config: Config) -> Iterator[DoctorFinding]:
    life, left = status.life_of(home), remote.recorded(home)
    if life.remote is not None:
        yield DoctorFinding("ok", f"a runtime is up at {life.remote.url} (pid {life.remote.pid})")
    elif left is not None and life.holder == left.pid:
        what = f"process {left.pid} holds this home and does not answer at {left.url}: it hangs, or is just starting"
        yield DoctorFinding("warn", what, f"kill {left.pid}, then keepsaid serve; nothing that is stored is lost")
    elif life.holder is not None:
        yield DoctorFinding("info", life.description, "commands that write wait until it ends")
    elif left is not None:
        what = f"{home.runtime_file} names pid {left.pid}, which was killed"
        yield DoctorFinding("warn", what, "keepsaid doctor --fix", partial(_remove, home.runtime_file))
    else:
        yield DoctorFinding("ok", "no runtime is up")


def _hooks(_home: Home, config: Config) -> Iterator[DoctorFinding]:
    github = config.channels.get("github")
    if github is not None and github.enabled and not github.secret:
        what = "the github hook is closed: it has no secret"
        yield DoctorFinding("info", what, "to open it, set channels.github.secret and start again")
    elif github is not None and github.enabled and config.github.token is None:
        forwards = (
            one for one in config.routes.rules if one.action == "forward" and one.match.get("channel") == "github"
        )
        if (rule := next(forwards, None)) is not None:
            what = f"the rule {rule.name!r} forwards messages of GitHub, where nothing can be sent: they are only kept"
            yield DoctorFinding("warn", what, "to answer them, set github.token and start again")


def _encrypted_rooms(home: Home, config: Config) -> Iterator[DoctorFinding]:
    if "matrix" not in config.listening:
        return
    from keepsaid.app.channel_setup import reads_encrypted_rooms  # noqa: PLC0415
    from keepsaid.app.stores import read_lines  # noqa: PLC0415

    if not reads_encrypted_rooms():
        what = "encrypted rooms of Matrix are not read: the extra matrix-e2ee is missing"
        yield DoctorFinding("info", what, installation("matrix-e2ee"))
        return
    line = next((one for one in read_lines(home) if one.channel == "matrix" and one.reason), None)
    yield DoctorFinding("ok", f"matrix: {line.reason}" if line else "encrypted rooms of Matrix can be read")


def _model(config: Config, *, offline: bool) -> DoctorFinding:
    from keepsaid.app.models import model_named, try_model  # noqa: PLC0415

    name = model_named(config)
    if offline:
        return DoctorFinding("info", f"model {name}: not called (--offline)")
    if name == "none":
        return DoctorFinding("info", "no model is set: answers quote memory", "keepsaid init")
    try:
        return DoctorFinding("ok", f"model {name} replied in {asyncio.run(try_model(config, name)):.1f} s")
    except (ModelError, ConfigError) as error:
        return DoctorFinding("fail", error.what, _fix(error))
