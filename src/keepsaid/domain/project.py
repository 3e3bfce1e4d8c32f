"""Projects: the names of repositories and folders that coding agents work in (spec: doors, section c).

A project is part of the name of a sender: one sender in two projects is two people to memory, until the owner joins
them. So the scope of a project is that of a person, which every read checks in SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

from keepsaid.domain.principal import Principal
from keepsaid.text.normal import digest

_NAME = re.compile(r"[\w.~+-]+(?:/[\w.~+-]+)*")
_NAME_CHARS_MAX = 200
_SECTION = re.compile(r'\[\s*remote\s+"((?:[^"\\]|\\.)*)"\s*\]', re.IGNORECASE)
_SETTING = re.compile(r"url\s*=\s*(.*)", re.IGNORECASE)
_SSH = re.compile(r"(?:[^@/\s]+@)?(\[[^\]]+\]|[^:/\s\[\]]{2,}):(?!//)(.+)")
"""`user@host:path`, as git writes an address of SSH; a drive of one letter is not a host."""

_DIGITS = 12


def remote_project(url: str) -> str:
    """Return the project of a remote: host and path, alike for https and SSH, without user, password and port.

    A remote without a host, such as a folder, is named by its hash.
    """
    whole = url.strip()
    short = _SSH.fullmatch(whole)
    host, path = (short[1], short[2]) if short else _host_and_path(whole)
    path = re.sub("/{2,}", "/", path).strip("/").removesuffix(".git").rstrip("/")
    name = f"{host.strip('[]').lower()}/{path}"
    if host and path and len(name) <= _NAME_CHARS_MAX and _NAME.fullmatch(name) and ".." not in name.split("/"):
        return name
    return f"remote-{_hash(host.lower(), path or _without_user(whole))}"


def folder_project(folder: str) -> str:
    """Return the project of a folder without a remote: its last name, and a hash of its whole path."""
    last = re.sub(r"[^\w.~+-]+", "-", folder.rstrip("/").rpartition("/")[2])[:40].strip("-") or "folder"
    return f"{last}-{_hash(folder)}"


def remote_in(config: str) -> str:
    """Return the URL of `origin` in the text of a `.git/config`, else of the first remote; "" if there is none."""
    found: dict[str, str] = {}
    for name, url in _remotes(config):
        found.setdefault(name, url)
    return found.get("origin") or next(iter(found.values()), "")


def in_project(who: Principal, project: str) -> Principal:
    """Return the caller as the sender that it is in a project. The owner, and the operator, are the same everywhere."""
    return who if who.everything else replace(who, sender=f"{who.sender}@{project}")


def _remotes(config: str) -> Iterator[tuple[str, str]]:
    remote: str | None = None
    for line in map(str.strip, config.splitlines()):
        if line.startswith("["):
            section = _SECTION.match(line)
            remote = section[1] if section else None
            line = line[section.end() :].strip() if section else ""  # noqa: PLW2901 - a setting may follow its heading
        if remote is not None and (setting := _SETTING.match(line)) and (url := _value(setting[1])):
            yield remote, url


def _value(written: str) -> str:
    """The value of a setting: without quotes, and without the comment behind it."""
    if written.startswith('"'):
        return written[1:].partition('"')[0].strip()
    return re.split(r"\s[#;]", written, maxsplit=1)[0].strip()


def _host_and_path(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.path
    except ValueError:
        return "", ""


def _without_user(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//", url)


def _hash(*parts: str) -> str:
    return digest(*parts).hex()[:_DIGITS]
