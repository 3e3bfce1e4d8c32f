"""Remote: the running instance of a home, asked over loopback HTTP with the token it left there."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode, urlsplit

from keepsaid import errors
from keepsaid.interfaces.cli.console import say, session
from keepsaid.interfaces.problems import object_in, problem_in
from keepsaid.values import frozen

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance
    from keepsaid.config import Home

T = TypeVar("T")
_ASK_S = 30.0
_UNAUTHORISED = 401
_LIVENESS_S = 2.0
_BUSY_S = 5.0
_BUSY_POLL_S = 0.05


@frozen
class Remote:
    """Where a runtime listens, the operator's token, its process (0 elsewhere) and the model it answers with."""

    url: str
    token: str
    pid: int
    model: str = "not known"

    def get(self, path: str, **query: str) -> Any:
        """Ask; returns the JSON of the answer. Raises NotRunning, or the error the runtime answered with."""
        return self._call("GET", f"{path}?{urlencode(query)}" if query else path)

    def post(self, path: str, body: bytes = b"{}", key: str | None = None) -> Any:
        """Tell; `key` is the Idempotency-Key. Raises NotRunning, or the error the runtime answered with."""
        return self._call("POST", path, body, {"Idempotency-Key": key} if key else {})

    def answers(self) -> bool:
        """Whether the process lives, answers as one of ours, and knows the token."""
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except OSError:
            pass  # it lives and is somebody else's
        try:
            told = self._call("GET", "/v1/replies?channel=&conversation=", timeout_s=_LIVENESS_S)
        except errors.StoreUnreachable:
            return True  # it says itself that its database is away
        except errors.KeepsaidError:
            return False
        return "replies" in told

    def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        timeout_s: float = _ASK_S,
    ) -> Any:
        from http.client import HTTPConnection, HTTPException, HTTPSConnection  # noqa: PLC0415 - needs a runtime

        try:
            place = urlsplit(self.url)
            kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
            connection = kind(place.hostname or "", place.port, timeout=timeout_s)
        except (HTTPException, ValueError) as error:
            raise errors.NotRunning(f"{self.url!r} is not the address of a runtime") from error
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **(headers or {})}
        try:
            connection.request(method, f"{place.path}{path}", body, sent)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, HTTPException, ValueError) as error:
            hint = errors.NotRunning.hint if self.pid else "start it there, or correct --url"
            raise errors.NotRunning(f"nothing answers at {self.url} ({type(error).__name__})", hint=hint) from error
        finally:
            connection.close()
        if response.status >= 400:
            said = problem_in(answer, response.status)
            said.hint = _EXPORT if response.status == _UNAUTHORISED and not self.pid else said.hint
            raise said
        if (told := object_in(answer)) is None:
            raise errors.NotRunning(f"the server at {self.url} is not a keepsaid runtime")
        return told


def recorded(home: Home) -> Remote | None:
    """What the runtime file of a home says, whether or not it still holds."""
    try:
        told = json.loads(home.runtime_file.read_text("utf-8"))
        remote = Remote(str(told["url"]), str(told["token"]), int(told["pid"]))
        return replace(remote, model=str(told.get("model", remote.model))) if remote.pid > 0 else None
    except (OSError, ValueError, OverflowError, KeyError, TypeError):
        return None


def running(home: Home) -> Remote | None:
    """The runtime of a home, if one lives and answers."""
    remote = recorded(home)
    return remote if remote is not None and remote.answers() else None


_VARIABLE = "KEEPSAID_TOKEN"
_EXPORT = f"export {_VARIABLE}=..., the server.operator_token of that instance"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def elsewhere() -> Remote | None:
    """The instance that --url names; None without --url. Raises InputError for no address, and where no token is."""
    if not (url := session().url.rstrip("/")):
        return None
    try:
        place = urlsplit(url)
        whole = place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
    except ValueError:
        whole = False
    if not whole or place.query or place.fragment:
        raise errors.InputError(
            f"--url {url!r} is not an address such as https://example.org", safe="Nothing was done."
        )
    if not (token := os.environ.get(_VARIABLE, "").strip()):
        what = f"--url needs the operator token in {_VARIABLE}"
        raise errors.InputError(what, safe="Nothing was done.", hint=_EXPORT)
    if place.scheme == "http" and place.hostname not in _LOOPBACK:
        say(f"warning: the token and all text go to {place.hostname} unencrypted; use https, or a private network")
    return Remote(url, token, 0)


def either(remotely: Callable[[Remote], T], locally: Callable[[Instance], Awaitable[T]]) -> tuple[T, bool]:
    """Write through the running instance, else under the lock of the home; and whether one was running.

    A process that holds the lock and does not answer yet is starting, or is a command like this one: it is
    waited for a few seconds, then HomeBusy is raised. With --url only that instance is asked.
    """
    if (other := elsewhere()) is not None:
        return remotely(other), True
    home, config = session().home, session().config()

    async def here() -> T:
        from keepsaid.app.opening import opened  # noqa: PLC0415 - writing beside a runtime needs none of it

        async with opened(home, config) as instance:
            return await locally(instance)

    until = time.monotonic() + _BUSY_S
    while True:
        if (remote := running(home)) is not None:
            return remotely(remote), True
        try:
            return asyncio.run(here()), False
        except errors.HomeBusy:
            if time.monotonic() > until:
                raise
            time.sleep(_BUSY_POLL_S)


def post(path: str, fields: dict[str, Any] | None = None, key: str | None = None) -> tuple[dict[str, Any], bool]:
    """Post to a route of the running instance, else to the same route of one that is opened for it; and which it was.

    `key` is the Idempotency-Key. Raises the error that the route answers with, and HomeBusy.
    """
    body = json.dumps(fields or {}).encode()
    headers = {"Idempotency-Key": key} if key else {}

    async def here(instance: Instance) -> dict[str, Any]:
        from keepsaid.interfaces.http.server import call  # noqa: PLC0415 - beside a runtime nobody needs it

        status, answer = await call(instance, path, body, headers)
        if status >= 400:
            raise problem_in(answer, status)
        return dict(json.loads(answer))

    return either(lambda remote: dict(remote.post(path, body, key)), here)
