"""Channels and messages of the scripted Discord: ids with the time in them, nonces, refusals and rate limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from keepsaid.testing.providers.discord_shapes import channel_shape, member_shape, message_shape, user_shape
from keepsaid.testing.providers.forms import UploadedFile
from keepsaid.text.emoji import is_emoji
from keepsaid.values import frozen

_EPOCH_MS: Final = 1_420_070_400_000
_NONCE_MS = 300_000
_CHARS_MAX, _NONCE_CHARS_MAX, _PAGE_MAX = 2_000, 25, 100
_DIRECT = 1
_REACTIONS_MAX = 20


class DiscordFault(Exception):
    """What Discord refuses: the HTTP status, its own code, its words, and the seconds to wait."""

    def __init__(self, status: int, code: int, what: str, retry_after: float | None = None) -> None:
        super().__init__(what)
        self.status = status
        self.code = code
        self.retry_after = retry_after

    def as_json(self) -> dict[str, Any]:
        """The body of the answer."""
        told = {"message": str(self), "code": self.code}
        return told if self.retry_after is None else {**told, "retry_after": self.retry_after, "global": False}


@frozen
class DiscordSent:
    """A message that the bot sent, the parameters of the request, and its files as they were uploaded."""

    id: str
    channel: str
    text: str
    parameters: Mapping[str, Any]
    files: tuple[UploadedFile, ...] = ()


class DiscordMessages:
    """What is written where. `gone` maps channels to what is said of sending there.

    A nonce is remembered for `nonce_ms`. `rate` is how many messages a channel takes in how many seconds. Answering a
    message is refused with `refuses_references`. `reactions` has the emoji that the bot gave each message; with
    `reacts_blocked` it may give none.
    With `refuses_reading` no single message is shown. `refused_files` is what is said of every file, if anything.
    """

    def __init__(self, bot: str, now_ms: Callable[[], int]) -> None:
        self.sent: list[DiscordSent] = []
        self.gone: dict[str, DiscordFault] = {}
        self.reactions: dict[str, list[str]] = {}
        self.reacts_blocked = False
        self.rate = (1_000, 5.0)
        self.nonce_ms = _NONCE_MS
        self.refuses_references = False
        self.refuses_reading = False
        self.refused_files: DiscordFault | None = None
        self._bot = bot
        self._now_ms = now_ms
        self._channels: dict[str, dict[str, Any]] = {}
        self._written: dict[str, list[dict[str, Any]]] = {}
        self._nonces: dict[str, tuple[int, dict[str, Any]]] = {}
        self._spent: dict[str, list[int]] = {}
        self._number = 0

    def add_channel(self, told: dict[str, Any]) -> None:
        """Add a channel, thread or direct conversation."""
        self._channels[told["id"]] = channel_shape(told)
        self._written[told["id"]] = []

    def channels(self, kinds: tuple[int, ...]) -> list[dict[str, Any]]:
        """The channels of some types."""
        return [one for one in self._channels.values() if one["type"] in kinds]

    def channel(self, number: str) -> dict[str, Any]:
        """A channel; raises DiscordFault for one that is gone."""
        if number in self.gone:
            raise self.gone[number]
        if number not in self._channels:
            raise DiscordFault(404, 10_003, "Unknown Channel")
        return self._channels[number]

    def direct_with(self, person: str) -> dict[str, Any]:
        """The direct conversation with a person."""
        for one in self.channels((_DIRECT,)):
            if [two["id"] for two in one["recipients"]] == [person]:
                return one
        raise DiscordFault(400, 50_033, "Invalid Recipient(s)")

    def write(self, channel: str, text: str, sender: str, **fields: Any) -> dict[str, Any]:
        """A person writes a message."""
        person = user_shape(sender, f"person{sender}", f"Person {sender}")
        return self._add(channel, {"author": person, "content": text} | fields)

    def edit(self, number: str, text: str) -> dict[str, Any]:
        """A person changes a message."""
        found = next(one for page in self._written.values() for one in page if one["id"] == number)
        self._number += 1
        stamp = f"2026-11-27T10:00:{self._number % 60:02}.000000+00:00"
        found.update(content=text, edited_timestamp=stamp)
        return found

    def create(
        self,
        channel: str,
        given: Mapping[str, Any],
        kept: Sequence[Mapping[str, Any]] = (),
        files: Sequence[UploadedFile] = (),
    ) -> tuple[dict[str, Any], bool]:
        """The bot sends a message with files, which are `kept`: the first one of its nonce, and whether it is new."""
        place = self.channel(channel)
        content, nonce = given.get("content"), given.get("nonce")
        self._check(given, has_files=bool(files))
        if given.get("enforce_nonce") and isinstance(nonce, str):
            at, first = self._nonces.get(nonce, (0, None))
            if first is not None and self._now_ms() - at <= self.nonce_ms:
                return first, False
        bot = user_shape(self._bot, "scripted_bot", is_bot=True)
        told: dict[str, Any] = {"author": bot, "content": str(content or "").strip(), "attachments": list(kept)}
        told |= {"nonce": nonce} if nonce is not None else {}
        told |= self._answering(place, given.get("message_reference"))
        made = self._add(place["id"], told)
        if isinstance(nonce, str):
            self._nonces[nonce] = (self._now_ms(), made)
        self.sent.append(DiscordSent(made["id"], channel, made["content"], dict(given), tuple(files)))
        return made, True

    def react(self, channel: str, number: str, emoji: str) -> bool:
        """The bot gives a message an emoji; False if it had it. Raises DiscordFault for what the real one refuses."""
        if all(one["id"] != number for one in self._written[self.channel(channel)["id"]]):
            raise DiscordFault(404, 10_008, "Unknown Message")
        if not is_emoji(emoji):
            raise DiscordFault(400, 10_014, "Unknown Emoji")
        if self.reacts_blocked:
            raise DiscordFault(403, 90_001, "Reaction was blocked")
        given = self.reactions.setdefault(number, [])
        if emoji not in given and len(given) >= _REACTIONS_MAX:
            raise DiscordFault(400, 30_010, "Maximum number of reactions reached (20)")
        if is_new := emoji not in given:
            given.append(emoji)
        return is_new

    def listed(self, channel: str, after: int, limit: int) -> list[dict[str, Any]]:
        """The oldest messages after an id, newest first, without their nonces."""
        found = [one for one in self._written[self.channel(channel)["id"]] if int(one["id"]) > after]
        page = found[: min(limit, _PAGE_MAX)]
        return [{name: value for name, value in one.items() if name != "nonce"} for one in reversed(page)]

    def read(self, channel: str, number: str) -> dict[str, Any]:
        """A message of a channel; raises DiscordFault for one that was deleted."""
        found = [one for one in self._written[self.channel(channel)["id"]] if one["id"] == number]
        if not found or self.refuses_reading:
            raise DiscordFault(404, 10_008, "Unknown Message")
        return found[0]

    def as_dispatched(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """A message as the gateway has it: with the server, if it is in one."""
        guild = self._channels[told["channel_id"]].get("guild_id")
        return {**told, **({"guild_id": guild, "member": member_shape()} if guild is not None else {})}

    def limit(self, name: str, channel: str, headers: dict[str, str]) -> None:
        """Count a request of a route in a channel, and fill in the headers; raises DiscordFault beyond its rate."""
        most, within_s = self.rate
        now, route = self._now_ms(), f"{name} {channel}"
        spent = [at for at in self._spent.get(route, []) if at > now - 1_000 * within_s]
        reset_s = (spent[0] + 1_000 * within_s - now) / 1_000 if spent else within_s
        headers |= {"x-ratelimit-bucket": name.replace(" ", ""), "x-ratelimit-limit": str(most)}
        headers |= {
            "x-ratelimit-remaining": str(max(0, most - len(spent) - 1)),
            "x-ratelimit-reset-after": f"{reset_s}",
        }
        if len(spent) >= most:
            headers["x-ratelimit-scope"] = "user"
            raise DiscordFault(429, 0, "You are being rate limited.", reset_s)
        self._spent[route] = [*spent, now]

    def _answering(self, place: Mapping[str, Any], reference: Mapping[str, Any] | None) -> dict[str, Any]:
        """What a message has of the one that it answers; nothing where that is not in the channel."""
        number = str(reference["message_id"]) if reference is not None else ""
        answered = next((one for one in self._written[place["id"]] if one["id"] == number), None)
        if answered is None:
            return {}
        at = {"type": 0, "channel_id": place["id"], "message_id": number}
        at |= {"guild_id": place["guild_id"]} if "guild_id" in place else {}
        return {"type": 19, "message_reference": at, "referenced_message": dict(answered)}

    def _check(self, given: Mapping[str, Any], *, has_files: bool) -> None:
        """Raise DiscordFault for a message that the real one would refuse."""
        content, nonce = given.get("content"), given.get("nonce")
        if has_files and self.refused_files is not None:
            raise self.refused_files
        if has_files and content is None:
            content = ""
        if not isinstance(content, str) or not (content.strip() or has_files):
            raise DiscordFault(400, 50_006, "Cannot send an empty message")
        if len(content) > _CHARS_MAX:
            raise DiscordFault(400, 50_035, "Invalid Form Body: content must be 2000 or fewer in length.")
        if isinstance(nonce, str) and len(nonce) > _NONCE_CHARS_MAX:
            raise DiscordFault(400, 50_035, "Invalid Form Body: nonce must be 25 or fewer in length.")
        if self.refuses_references and "message_reference" in given:
            raise DiscordFault(400, 50_035, "Invalid Form Body: message_reference")

    def _add(self, channel: str, told: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        number = str((max(0, self._now_ms() - _EPOCH_MS) << 22) + self._number)
        place = self._channels[channel]
        made = message_shape({"id": number, "channel_id": channel, **told}, self._now_ms())
        self._written[channel].append(made)
        place["last_message_id"] = number
        return made
