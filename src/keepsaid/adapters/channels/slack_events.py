"""Slack as a channel that is called: Slack posts each event, and posts it again unless it is stored here.

Slack signs each request with the secret of the app, and the time of it: whoever does not have the secret cannot write
one, and nobody can repeat an old one.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import parse_qsl

from keepsaid.adapters.channels.backoff import LineBackoff
from keepsaid.adapters.channels.slack_api import SlackRefused, SlackUnreachable
from keepsaid.adapters.channels.slack_line import SlackAccount, SlackLine, SlackTrouble
from keepsaid.adapters.channels.slack_updates import SlackBot, incoming_of_command, incoming_of_event, unreadable
from keepsaid.errors import ChannelError, Forged
from keepsaid.ports.channel import HookAnswer, InboundSink, Incoming
from keepsaid.ports.runtime import Clock
from keepsaid.text import json_reader

_TIME, _SIGNATURE = "x-slack-request-timestamp", "x-slack-signature"
_FORM = "application/x-www-form-urlencoded"
_SKEW_S = 300
_FIELDS_MAX = 100
_CHALLENGE_CHARS_MAX = 1_000
_VERIFYING = b'"url_verification"'
"""In the body of the request that Slack sends when somebody enters the URL there; the bot may not be known yet."""

_LOOK_MS = 300_000


def signature_of(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a request, as Slack makes it: HMAC-SHA256 of its time and its body."""
    signed = b"v0:" + timestamp.encode("utf-8", "surrogatepass") + b":" + body
    return "v0=" + hmac.digest(secret.encode(), signed, "sha256").hex()


class SlackHook:
    """Reads the events and slash commands that Slack posts; `secret` is the signing secret of the app."""

    name = "slack"

    def __init__(self, account: SlackAccount, secret: str, clock: Clock) -> None:
        self._account = account
        self._secret = secret
        self._clock = clock
        self._bot: SlackBot | None = None

    async def prepare(self, headers: Mapping[str, str], body: bytes) -> None:
        """Prove that Slack calls, and look up who the bot is: mentions name it. Raises Forged and ChannelError."""
        self._prove(headers, body)
        try:
            self._bot = await self._account.bot()
        except (SlackRefused, SlackUnreachable) as error:
            if _VERIFYING in body:
                return
            raise ChannelError("Slack does not say who its bot is", hint="see the line: keepsaid status") from error

    def read(self, headers: Mapping[str, str], body: bytes) -> Incoming | HookAnswer | None:
        """The message in a request; the answer to the request that Slack sends when somebody enters the URL there.

        None where it holds neither. `headers` are lower-case. Raises Forged, and ChannelError before `prepare`.
        """
        self._prove(headers, body)
        if headers.get("content-type", "").partition(";")[0].strip().lower() == _FORM:
            return self._command(body)
        try:
            payload = json_reader.read_json(body)
        except json_reader.Unreadable:
            payload = None
        if not isinstance(payload, dict):
            return self._unreadable(body)
        if payload.get("type") == "url_verification":
            challenge = payload.get("challenge")
            proof = challenge if isinstance(challenge, str) else ""
            return HookAnswer(proof[:_CHALLENGE_CHARS_MAX].encode("utf-8", "replace"), "text/plain; charset=utf-8")
        if payload.get("type") != "event_callback":
            return None
        return incoming_of_event(payload, self._known_bot())

    def _known_bot(self) -> SlackBot:
        if self._bot is None:
            raise ChannelError("It is not known yet who the bot of Slack is", hint="see the line: keepsaid status")
        return self._bot

    def _command(self, body: bytes) -> Incoming | None:
        """The slash command in a form; None for what people press in messages."""
        try:
            form = dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_FIELDS_MAX))
        except ValueError:
            return self._unreadable(body)
        return incoming_of_command(form, self._known_bot()) if "command" in form else None

    def _unreadable(self, body: bytes) -> Incoming:
        return unreadable(body, f"slack:body:{sha256(body).hexdigest()}", self._known_bot())

    def _check_time(self, headers: Mapping[str, str]) -> str:
        """The time of a request, as it is signed; raises Forged for one that is not of the last five minutes."""
        timestamp = headers.get(_TIME, "")
        is_number = timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12
        if not is_number or abs(self._clock.now_ms() / 1_000 - int(timestamp)) > _SKEW_S:
            raise Forged("The request has no time of the last five minutes", hint="check the clock of this machine")
        return timestamp

    def _prove(self, headers: Mapping[str, str], body: bytes) -> None:
        wanted = signature_of(self._secret, self._check_time(headers), body)
        given = headers.get(_SIGNATURE, "")
        if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode()):
            raise Forged("The request is not signed by Slack", hint="compare slack.signing_secret with the app's")


class SlackCalls:
    """Shows the line of a bot whose events Slack posts, until it is cancelled: whether its token is accepted."""

    def __init__(self, account: SlackAccount, line: SlackLine) -> None:
        self._account = account
        self._line = line

    async def listen(self, _inbox: InboundSink) -> None:
        """Look every five minutes; the messages come in by the hook."""
        backoff = LineBackoff(self._line.clock)
        self._line.connecting()
        while True:
            self._account.forget()
            try:
                await self._account.bot()
            except SlackTrouble as error:
                await self._line.wait_out(error, backoff)
                continue
            backoff.up()
            self._line.up()
            await self._line.clock.wait(asyncio.Event(), _LOOK_MS)
