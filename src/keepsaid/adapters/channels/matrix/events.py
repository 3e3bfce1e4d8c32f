"""Matrix: the event of a room as a message, an edit, a deletion or a reaction.

Source: Matrix specification v1.16, client-server API, modules "Instant messaging", "Rich replies", "Threading",
"Event replacements", "Event annotations and reactions".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from keepsaid.adapters.channels.matrix.files import is_address
from keepsaid.adapters.channels.matrix.sealed import sealed_ref
from keepsaid.adapters.channels.media.fields import MediaObject, attached, lines, sized
from keepsaid.domain.message import EDITED, REACTION, Attachment, IgnoredUpdate, MediaMessage
from keepsaid.values import frozen

ROOM = "matrix:"
"""The beginning of the name of a conversation; after it comes the id of the room."""

MESSAGE, STICKER, REACTED, REDACTION = "m.room.message", "m.sticker", "m.reaction", "m.room.redaction"
POLLS = ("m.poll.start", "org.matrix.msc3381.poll.start")
REPLACES, THREAD, ANNOTATES = "m.replace", "m.thread", "m.annotation"
DELETED = "[deleted]"
"""The text that replaces that of a message which was deleted."""

_FILES = {"m.file": "file", "m.image": "photo", "m.audio": "audio", "m.video": "video"}
_SIZE_MAX = (1 << 53) - 1
"""The largest number that Matrix knows; what a file is said to hold is written by its sender."""

_BY_BOT = "m.notice"
_WORDS = (None, "m.text", "m.emote", _BY_BOT)
_NOTICES = {
    "m.server_notice": "a notice of the homeserver",
    "m.key.verification.request": "a request to verify a device",
}
_QUOTED = ("> <@", "> * <@")
"""The beginning of a reply whose text repeats the message that it answers, as clients before 2024 write it."""


@frozen
class RelatedEvent:
    """An event that a later one refers to: who sent it, the thread it is in, and the message it reacts to, if any.

    `kind` is the type of the event.
    """

    sender: str
    topic: str | None = None
    target: str | None = None
    kind: str = MESSAGE


@frozen
class MatrixPlace:
    """The room of an event, as its members see it: its title, whether it is direct, and the name of the sender."""

    room: str
    direct: bool = False
    title: str = ""
    sender_name: str = ""


def target_of(event: Mapping[str, object]) -> str | None:
    """The id of the event that an edit or a redaction refers to; None for any other event. Raises InputError."""
    given = MediaObject(event)
    if given.text("type") == REDACTION:
        content = given.inside("content")
        if "redacts" in given:
            return given.id("redacts")
        return content.id("redacts") if content is not None and "redacts" in content else None
    relation = _relation(given.inside("content"))
    return relation.id("event_id") if relation is not None and relation.text("rel_type") == REPLACES else None


def related_event(event: Mapping[str, object]) -> RelatedEvent:
    """An event as later ones refer to it. Raises InputError."""
    given = MediaObject(event)
    relation = _relation(given.inside("content"))
    kind = relation.text("rel_type") if relation is not None else None
    target = relation.id("event_id") if relation is not None and kind == ANNOTATES else None
    return RelatedEvent(given.id("sender"), _thread(relation), target, given.text("type") or "")


def read(
    source: Mapping[str, object], place: MatrixPlace, target: RelatedEvent | None = None
) -> MediaMessage | IgnoredUpdate:
    """The message in an event of a room; `target` is the event that an edit or a redaction refers to, if it is known.

    A thread is a topic, named by the id of its first message, which stands in the room itself. Raises InputError.
    """
    event = MediaObject(source)
    kind = event.text("type")
    if kind == REDACTION:
        return _redaction(event, place, target)
    if kind == REACTED:
        return _reaction(event, place)
    if kind not in (MESSAGE, STICKER, *POLLS):
        return IgnoredUpdate(f"{kind or 'an event without a type'} is not a message")
    content = event.needed("content")
    relation = _relation(content)
    if relation is not None and relation.text("rel_type") == REPLACES:
        return _edit(event, content, place, target)
    words = _said(kind, content)
    if isinstance(words, IgnoredUpdate):
        return words
    said = _made(event, place, words, _thread(relation), _reply_to(relation))
    return replace(said, files=tuple(_files(kind, content)))


def _made(event: MediaObject, place: MatrixPlace, text: str, topic: str | None, reply_to: str | None) -> MediaMessage:
    number, content = event.id("event_id"), event.inside("content")
    return MediaMessage(
        conversation=f"{ROOM}{place.room}",
        sender=event.id("sender"),
        text=text,
        provider_id=number,
        delivery=f"{ROOM}{number}",
        name=place.sender_name,
        direct=place.direct,
        topic=topic,
        reply_to=reply_to,
        conversation_name=place.title,
        by_bot=content is not None and content.text("msgtype") == _BY_BOT,
    )


def _edit(
    event: MediaObject, content: MediaObject, place: MatrixPlace, target: RelatedEvent | None
) -> MediaMessage | IgnoredUpdate:
    """The new text of a message, in the thread of the message; one that another person sent counts for nothing."""
    if target is not None and target.sender != event.id("sender"):
        return IgnoredUpdate("only the sender of a message may edit it")
    words = _said(event.text("type"), content.needed("m.new_content"))
    if isinstance(words, IgnoredUpdate):
        return words
    said = _made(event, place, words, target.topic if target is not None else None, None)
    files = tuple(_files(event.text("type"), content.needed("m.new_content")))
    return replace(said, provider_id=content.needed("m.relates_to").id("event_id"), event=EDITED, files=files)


def _redaction(event: MediaObject, place: MatrixPlace, target: RelatedEvent | None) -> MediaMessage | IgnoredUpdate:
    """A deleted message as an edit by its sender, whoever deleted it; a reaction that was taken back as one without."""
    if target is None:
        return IgnoredUpdate("what was deleted is not known")
    if target.kind == REACTED:
        if target.target is None:
            return IgnoredUpdate("to which message the reaction was is not known")
        said = _made(event, place, "", None, target.target)
        return replace(said, sender=target.sender, provider_id="", event=REACTION)
    if target.kind not in (MESSAGE, STICKER, *POLLS):
        return IgnoredUpdate("what was deleted is not a message")
    said = _made(event, place, DELETED, target.topic, None)
    number = event.id("redacts") if "redacts" in event else event.needed("content").id("redacts")
    return replace(said, sender=target.sender, provider_id=number, event=EDITED)


def _reaction(event: MediaObject, place: MatrixPlace) -> MediaMessage | IgnoredUpdate:
    """An emoji that somebody gave a message."""
    relation = _relation(event.needed("content"))
    if relation is None or relation.text("rel_type") != ANNOTATES:
        return IgnoredUpdate("the reaction is to no message")
    said = _made(event, place, relation.first(("key",)), None, relation.id("event_id"))
    return replace(said, provider_id="", event=REACTION)


def _said(kind: str | None, content: MediaObject) -> str | IgnoredUpdate:
    """What the content of a message says, and what is attached to it."""
    if kind == STICKER:
        return attached("sticker", *_facts(content), content.text("url"))
    if kind in POLLS:
        return attached("poll", *_poll(content)) if _has_poll(content) else (content.text("body") or "[poll]")
    form = content.text("msgtype")
    if form in _NOTICES:
        return IgnoredUpdate(_NOTICES[form])
    if form is None and "body" not in content:
        return IgnoredUpdate("the message was deleted, or has no words")
    text = _own_words(content)
    if form in _FILES:
        text = lines(_caption(content), attached(_FILES[form], *_facts(content), _address(content)))
    elif form == "m.location":
        text = lines(text, attached("location", content.text("geo_uri")))
    elif form == "m.emote":
        text = f"* {text}"
    return text if text.strip() else IgnoredUpdate("the message has no words and nothing that could be named")


def _files(kind: str | None, content: MediaObject) -> Iterator[Attachment]:
    """What can be fetched: at `url`, or where it is encrypted, at the one in `file`."""
    form = "sticker" if kind == STICKER else _FILES.get(content.text("msgtype") or "")
    url = _address(content) or ""
    if form is None or not is_address(url):
        return
    if "url" not in content and (file := content.inside("file")) is not None:
        url = sealed_ref(file)
        if not url:
            return
    info = content.inside("info")
    told, size = (info.text("mimetype") or "", info.number("size") or 0) if info is not None else ("", 0)
    yield Attachment(content.first(("filename", "body")) or form, told, url, min(max(0, int(size)), _SIZE_MAX))


def _own_words(content: MediaObject) -> str:
    """The text of a message without the copy of what it answers, which older clients write above it."""
    text = content.text("body") or ""
    relation = _relation(content)
    if relation is None or _answered(relation) is None or not text.startswith(_QUOTED):
        return text
    rest = text.split("\n")
    first = next((n for n, line in enumerate(rest) if not line.startswith(">")), len(rest))
    return "\n".join(rest[first:]).removeprefix("\n")


def _caption(content: MediaObject) -> str:
    """What is said of a file: its body, where that is not its name."""
    name = content.text("filename")
    return _own_words(content) if name is not None and name != content.text("body") else ""


def _facts(content: MediaObject) -> tuple[str | None, ...]:
    """The name, the type and the size of a file."""
    info = content.inside("info")
    named = content.text("filename") or content.text("body")
    return (named, info.text("mimetype"), sized(info.number("size"))) if info is not None else (named,)


def _address(content: MediaObject) -> str | None:
    """The address of a file at its server, `mxc://...`; one that is encrypted has its own there."""
    file = content.inside("file")
    return content.text("url") or (file.text("url") if file is not None else None)


def _has_poll(content: MediaObject) -> bool:
    return any(name in content for name in POLLS)


def _poll(content: MediaObject) -> Iterator[str]:
    """The question of a poll, and its answers."""
    poll = next(one for name in POLLS if (one := content.inside(name)) is not None)
    for one in (poll.inside("question"), *poll.objects("answers")):
        if one is not None:
            yield one.first(("org.matrix.msc1767.text", "body")) or _texts(one)


def _texts(one: MediaObject) -> str:
    return next((part.text("body") or "" for part in one.objects("m.text")), "")


def _relation(content: MediaObject | None) -> MediaObject | None:
    return content.inside("m.relates_to") if content is not None else None


def _thread(relation: MediaObject | None) -> str | None:
    """The first message of the thread, if it is one."""
    return relation.id("event_id") if relation is not None and relation.text("rel_type") == THREAD else None


def _reply_to(relation: MediaObject | None) -> str | None:
    """The message that this one answers. In a thread, clients without threads are shown an answer that is none."""
    if relation is None or (relation.text("rel_type") == THREAD and relation.flag("is_falling_back")):
        return None
    return _answered(relation)


def _answered(relation: MediaObject) -> str | None:
    answered = relation.inside("m.in_reply_to")
    return answered.id("event_id") if answered is not None and "event_id" in answered else None
