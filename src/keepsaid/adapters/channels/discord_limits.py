"""Rate limits of Discord's REST interface: buckets from response headers, 429 answers, and a breaker for refusals."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Final

from keepsaid.ports.runtime import Clock

_KEPT_MAX = 2_000
"""Routes and buckets that are remembered; beyond, those that are free are forgotten."""

REFUSALS_MAX: Final = 1_000
"""Refused requests in ten minutes after which no more are sent; Discord bans an address at 10,000."""

_REFUSALS_WITHIN_MS = 600_000
_REFUSED = (401, 403, 429)
_LONGEST_S = 86_400.0


class DiscordLimits:
    """When a route may be called again, milliseconds of the steady clock.

    A route is a method and a path with the id of its channel. Routes that Discord puts in one bucket share its limit.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[str, str] = {}
        self._free_at: dict[str, float] = {}
        self._all_free_at = 0.0
        self._refusals: deque[float] = deque(maxlen=REFUSALS_MAX)

    def wait_ms(self, route: str) -> float:
        """Milliseconds until the route may be called; 0 for now."""
        free_at = max(self._all_free_at, self._free_at.get(self._buckets.get(route, route), 0.0))
        return max(0.0, free_at - self._clock.monotonic_ms())

    @property
    def is_broken(self) -> bool:
        """Whether 1,000 requests were refused within ten minutes, so that no more may be sent."""
        now = self._clock.monotonic_ms()
        while self._refusals and self._refusals[0] <= now - _REFUSALS_WITHIN_MS:
            self._refusals.popleft()
        return len(self._refusals) >= REFUSALS_MAX

    def note(self, route: str, status: int, headers: Mapping[str, str]) -> None:
        """Take the limits from an answer; the names of its headers are lower-case."""
        now = self._clock.monotonic_ms()
        if status in _REFUSED and headers.get("x-ratelimit-scope") != "shared":
            self._refusals.append(now)
        if (bucket := headers.get("x-ratelimit-bucket")) is not None:
            self._buckets[route] = f"{bucket}:{route.rpartition(' ')[2]}"
        if headers.get("x-ratelimit-remaining") == "0":
            after = seconds(headers.get("x-ratelimit-reset-after"))
            self._hold(self._buckets.get(route, route), now + 1_000 * (after or 0.0))
        self._trim(now)

    def hold(self, route: str, ms: float, *, everywhere: bool = False) -> None:
        """Do not call a route for `ms` milliseconds; with `everywhere`, call nothing."""
        until = self._clock.monotonic_ms() + ms
        if everywhere:
            self._all_free_at = max(self._all_free_at, until)
        else:
            self._hold(self._buckets.get(route, route), until)

    def _hold(self, name: str, until: float) -> None:
        self._free_at[name] = max(self._free_at.get(name, 0.0), until)

    def _trim(self, now: float) -> None:
        if len(self._free_at) > _KEPT_MAX:
            self._free_at = {name: at for name, at in self._free_at.items() if at > now}
        if len(self._buckets) > _KEPT_MAX:
            self._buckets = {route: one for route, one in self._buckets.items() if one in self._free_at}


def seconds(given: object) -> float | None:
    """A number of seconds as Discord writes it, a day at most; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    try:
        found = float(given)
    except (ValueError, OverflowError):
        return None
    return min(found, _LONGEST_S) if math.isfinite(found) and found >= 0 else None
