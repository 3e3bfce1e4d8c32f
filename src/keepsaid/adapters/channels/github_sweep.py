"""Redelivery: GitHub is asked to deliver again what did not arrive. It never does so by itself."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from keepsaid.adapters.channels.github_api import ApiAnswer, ApiRequest, ApiUnreachable, GitHubApi
from keepsaid.config.home import write_file
from keepsaid.ports.runtime import Clock
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.github")
_PAGE, _PAGES_MAX = 100, 50
_NEXT = re.compile(r'<([^<>]*)>;[ ]?rel="next"')
_RETENTION_MS = 3 * 86_400_000
"""GitHub keeps deliveries for three days."""

_OVERLAP_MS = 3_600_000
"""How far before the last sweep the next one looks: a delivery is listed some time after it was made."""

_REQUESTS_MAX = 5
"""How often one delivery is requested: what is refused every time will be refused again."""


@frozen
class SweptHook:
    """A webhook of a repository or an organisation, by its path in the API."""

    name: str

    @property
    def deliveries(self) -> str:
        place, _, number = self.name.rpartition("/")
        return f"/{'repos' if '/' in place else 'orgs'}/{place}/hooks/{number}/deliveries"


@frozen
class SweepRecord:
    """What was done for one hook: all until `until` (milliseconds UTC) was looked at; requests by delivery GUID."""

    until: int = 0
    requests: Mapping[str, int] = field(default_factory=dict)


class RedeliverySweep:
    """Looks for failed deliveries of the hooks every `every_s` seconds, and has GitHub deliver them again.

    A delivery that arrives twice is stored once, by its GUID. Where it stands is in a file: after a crash, at most one
    request is repeated.
    """

    def __init__(self, api: GitHubApi, hooks: Sequence[str], clock: Clock, file: Path, every_s: float = 900.0) -> None:
        self._api = api
        self._hooks = tuple(map(SweptHook, hooks))
        self._clock = clock
        self._file = file
        self._every_ms = int(every_s * 1_000)

    async def work(self) -> int:
        """Sweep every hook; returns when the next sweep is due (milliseconds UTC)."""
        for hook in self._hooks:
            try:
                await self._sweep(hook)
            except ApiUnreachable as error:
                _log.warning("deliveries of %s cannot be listed: %s", hook.name, error)
        await self._api.close()
        return self._clock.due_ms() + self._every_ms

    async def _sweep(self, hook: SweptHook) -> None:
        now = self._clock.now_ms()
        record = self._read().get(hook.name, SweepRecord())
        since = max(record.until - _OVERLAP_MS, now - _RETENTION_MS)
        if (listed := await self._listed(hook, since)) is None:
            return
        arrived = {str(one.get("guid")) for one in listed if _is_ok(one)}
        requests = {guid: count for guid, count in record.requests.items() if guid not in arrived}
        failed = {str(one.get("guid")): one for one in listed if str(one.get("guid")) not in arrived}
        for guid, one in failed.items():
            if requests.get(guid, 0) >= _REQUESTS_MAX or not isinstance(one.get("id"), int):
                continue
            requests[guid] = requests.get(guid, 0) + 1
            self._write(hook, SweepRecord(record.until, requests))
            answer = await self._api.call(ApiRequest("POST", f"{hook.deliveries}/{one['id']}/attempts"))
            if answer.status != 202:
                _refusal(hook, answer)
                return
            _log.info(
                "delivery requested again", extra={"hook": hook.name, "delivery": guid, "request": requests[guid]}
            )
        self._write(hook, SweepRecord(now, {guid: count for guid, count in requests.items() if guid in failed}))

    async def _listed(self, hook: SweptHook, since: int) -> list[Mapping[str, object]] | None:
        """The deliveries since a time, latest first; None where they cannot be listed."""
        found: list[Mapping[str, object]] = []
        query = {"per_page": str(_PAGE)}
        for _ in range(_PAGES_MAX):
            answer = await self._api.call(ApiRequest("GET", hook.deliveries, query=query))
            if answer.status != 200 or not isinstance(answer.json, list):
                _refusal(hook, answer)
                return None
            page = [one for one in answer.json if isinstance(one, dict)]
            found += [one for one in page if _at(one) >= since]
            cursor = _cursor_in(answer.headers.get("link", ""))
            if not cursor or not page or _at(page[-1]) < since:
                break
            query = {"per_page": str(_PAGE), "cursor": cursor}
        return found

    def _read(self) -> dict[str, SweepRecord]:
        """What is known of each hook; a file that cannot be read says nothing."""
        try:
            told = json.loads(self._file.read_text("utf-8"))
            return {str(name): SweepRecord(int(one["until"]), _counts(one["requests"])) for name, one in told.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def _write(self, hook: SweptHook, record: SweepRecord) -> None:
        told = {**self._read(), hook.name: record}
        shown = {name: {"until": one.until, "requests": dict(one.requests)} for name, one in told.items()}
        with suppress(OSError):  # then the next sweep looks at the same deliveries again
            write_file(self._file, json.dumps(shown))


def _cursor_in(link: str) -> str:
    """The cursor of the next page in a Link header; "" for none."""
    following = _NEXT.search(link)
    cursors = parse_qs(urlsplit(following[1]).query).get("cursor", []) if following else []
    return cursors[0] if cursors else ""


def _counts(told: Mapping[str, object]) -> dict[str, int]:
    return {str(guid): int(str(count)) for guid, count in told.items()}


def _is_ok(delivery: Mapping[str, object]) -> bool:
    status = delivery.get("status_code")
    return isinstance(status, int) and 200 <= status < 400


def _at(delivery: Mapping[str, object]) -> int:
    """When a delivery was made, milliseconds UTC; 0 where that cannot be read."""
    try:
        at = datetime.fromisoformat(str(delivery.get("delivered_at")))
    except ValueError:
        return 0
    return (at - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1) if at.tzinfo else 0


def _refusal(hook: SweptHook, answer: ApiAnswer) -> None:
    what = "GitHub refused a sweep of %s: HTTP %d %s (github.token needs write access to webhooks)"
    _log.warning(what, hook.name, answer.status, answer.message)
