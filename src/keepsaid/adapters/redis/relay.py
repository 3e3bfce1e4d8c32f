"""Wake-ups by way of Redis. It keeps nothing: lost, late or made-up ones cost time, and no result depends on them."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from keepsaid.errors import ConfigError
from keepsaid.text.normal import without_logins

_log = logging.getLogger("keepsaid.store")
_LIMIT_S = 0.25
"""What Redis does not answer within this time goes by the database."""

_AGAIN_S = 5.0
"""How long it is left alone after that."""

_HEALTH_S = 15
"""How often a line is asked whether it is still there."""

_LOOK_S, _PAUSE_S = 0.2, 0.01
"""How long one wait lasts, and how long is rested between two lots of wake-ups, however many there are."""

_PAYLOAD_MAX, _LOT_MAX = 1_000, 1_000

_WRONG = (redis.RedisError, OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError)
"""What goes wrong with a server that is away, or says what none should, which the client reads as it can."""


class RedisRelay:
    """A channel of Redis for each database; see `Relay`."""

    def __init__(self, url: str) -> None:
        """Prepare; nothing is connected yet. Raises ConfigError for a URL that cannot be read."""
        try:
            self._redis = redis.Redis.from_url(
                url,
                socket_timeout=_LIMIT_S,
                socket_connect_timeout=_LIMIT_S,
                health_check_interval=_HEALTH_S,
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            raise ConfigError(f"store.redis cannot be read: {error}", hint="keepsaid config set store.redis") from error
        self._name = without_logins(url.partition("?")[0])
        self._token = secrets.token_hex(8)
        self._channel = ""
        self._rests_until = 0.0
        self._is_away = False
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, group: str, hear: Callable[[str], None], missed: Callable[[], None]) -> None:
        self._channel = f"keepsaid:{group}"
        self._thread = threading.Thread(target=self._run, args=(hear, missed), name="keepsaid-redis", daemon=True)
        self._thread.start()

    def send(self, names: str) -> bool:
        if time.monotonic() < self._rests_until:
            return False
        try:
            heard = self._redis.publish(self._channel, f"{self._token} {names}")
        except _WRONG as error:
            self._rests_until = time.monotonic() + _AGAIN_S
            self._tell_away(error)
            return False
        self._is_away = False
        return isinstance(heard, int) and heard > 1  # by itself and another

    def describe(self) -> str:
        try:
            self._redis.ping()
        except _WRONG as error:
            return f"{self._name} does not answer ({type(error).__name__}); wake-ups go by the database"
        return f"{self._name} carries wake-ups"

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        self._redis.close()

    def _run(self, hear: Callable[[str], None], missed: Callable[[], None]) -> None:
        """Listen until the end; a line that broke is made again."""
        while not self._closing.is_set():
            try:
                with self._redis.pubsub() as line:  # type: ignore[no-untyped-call]
                    line.subscribe(self._channel)
                    self._check_subscribed(line)
                    missed()
                    self._is_away = False
                    while not self._closing.is_set():
                        if names := self._next_lot(line):
                            hear(",".join(sorted(names)))
            except _WRONG as error:
                self._tell_away(error)
                self._closing.wait(_AGAIN_S)

    def _check_subscribed(self, line: Any) -> None:
        """Raise unless the server says that it will tell: what was published before may be lost."""
        message = line.get_message(timeout=_LIMIT_S)
        if message is None or message.get("type") != "subscribe":
            raise redis.TimeoutError("no answer to SUBSCRIBE")

    def _next_lot(self, line: Any) -> set[str]:
        """The wake-ups that came, after a rest if they are many; nothing when none came in a while."""
        names, message = set[str](), line.get_message(timeout=_LOOK_S)
        came = message is not None
        for _ in range(_LOT_MAX):
            if message is None:
                break
            names |= self._read(message.get("data"))
            message = line.get_message(timeout=0.0)
        if came:
            self._closing.wait(_PAUSE_S)
        return names

    def _read(self, told: object) -> set[str]:
        """The wake-ups of another process in a message; none in one that is not of our making."""
        if not isinstance(told, bytes) or len(told) > _PAYLOAD_MAX or not told.isascii():
            return set()
        token, _, names = told.decode("ascii").partition(" ")
        return set() if token == self._token else set(names.split(","))

    def _tell_away(self, error: Exception) -> None:
        """Say once that wake-ups go by the database."""
        if not self._is_away:
            _log.warning("%s does not answer (%s); wake-ups go by the database", self._name, type(error).__name__)
        self._is_away = True
