"""Files of the plays with messengers: what is sent with which parcel, what the agent sends, and what is wrong then.

An answer names the files that go with it. So what arrived is held against the words that arrived with it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

import apsw
from tests.crash.messenger_base import Arrival

from keepsaid.config import Home
from keepsaid.domain.files import handle_of
from keepsaid.testing.model_script import Call, Calls, ChatRequest, Say
from keepsaid.testing.providers.kept_files import PNG

REPEAT = "(may be a repeat)"
_NUMBER = re.compile(r"parcel (\d+)\b")
_KEPT = re.compile(r"(?:box-(\d+)\.\w+ )?\([^()]*kept as (msg_\w+/\d+)\)")
_BROUGHT = re.compile(r"\bbrings (\S+)")
_ATTACHED = "The file goes with your answer."
_ENDINGS = ("png", "txt", "bin")
_BRINGS_EVERY, _WRITES_EVERY = 3, 4
_LARGE_BYTES = 300_000
"""More than one piece in the store."""


def file_of(number: int) -> tuple[str, bytes] | None:
    """The name and the bytes of the file that comes with a parcel: a picture, a text, or a large one; for most none."""
    if number % _BRINGS_EVERY:
        return None
    ending = _ENDINGS[number // _BRINGS_EVERY % len(_ENDINGS)]
    inside = f"what is in box {number}".encode()
    if ending == "png":
        inside = PNG + inside
    elif ending == "bin":
        inside = b"\0" + inside + random.Random(number).randbytes(_LARGE_BYTES)
    return f"box-{number}.{ending}", inside


def written(number: int) -> tuple[str, str]:
    """The name and the text of the file that the agent writes for some parcels."""
    return f"answer-{number}.md", f"# The answer to box {number}\n\n" + f"line of {number}\n" * 40


def answering(share: int = 1) -> Callable[[ChatRequest], Say | Calls]:
    """A model that names the parcels that it answers, and sends files: some it writes, some came with them.

    It sends one of `share`: at Matrix each costs five seconds (rate limit of the account).
    """

    def answer(request: ChatRequest) -> Say | Calls:
        asked = request.last("user")
        numbers = _NUMBER.findall(asked)
        if request.messages[-1].get("role") != "tool":
            texts = [written(int(n)) for n in numbers if int(n) % (share * _WRITES_EVERY) == 1]
            kept = [handle for n, handle in _KEPT.findall(asked) if int(n or 0) % (share * _BRINGS_EVERY) == 0]
            calls = [Call("attach_file", {"name": name, "text": text}) for name, text in texts]
            calls += [Call("attach_file", {"file": handle}) for handle in kept]
            if calls:
                return Calls(tuple(calls))
        brought = "".join(f" brings {one}" for one in _attached(request))
        return Say((" and ".join(f"answer to parcel {n}" for n in numbers) or "nothing to say") + brought)

    return answer


def _attached(request: ChatRequest) -> list[str]:
    """The names or handles of the files that go with the answer, as the calls since it was asked say."""
    last = max(at for at, one in enumerate(request.messages) if one.get("role") == "user")
    now = request.messages[last + 1 :]
    done = {str(one.get("tool_call_id")) for one in now if str(one.get("content")).startswith(_ATTACHED)}
    calls = [call for one in now for call in one.get("tool_calls") or ()]
    texts = [str(call["function"]["arguments"]) for call in calls if str(call["id"]) in done]
    return [re.findall(r'"(answer-\d+\.md|msg_\w+/\d+)"', text)[0] for text in texts]


def check_chat(arrived: Sequence[Arrival], said: Sequence[int], boxes: Mapping[str, int] | None = None) -> list[str]:
    """What is wrong with what a chat was sent: something missing, a repeat without a mark, an answer out of order.

    `boxes` are the numbers of the parcels by the handles of their files.
    """
    wrong, first = list[str](), list[int]()
    seen = set[str]()
    expected, brought = list[str](), list[str]()
    for one in arrived:
        text = one.text.replace("\\_", "_")  # as Markdown has it
        plain = text.removeprefix(REPEAT).lstrip("\n")
        marked = text != plain
        if plain in seen and not marked:
            wrong.append(f"repeated without a mark: {plain}")
        if plain and plain not in seen:
            seen.add(plain)
            first += map(int, _NUMBER.findall(plain))
            expected += (_hash(_content(name, boxes or {})) for name in _BROUGHT.findall(plain))
        digests = [_hash(content) for content in one.files]
        wrong += [f"a file repeated without a mark: {digest}" for digest in digests if digest in brought and not marked]
        brought += (digest for digest in digests if digest not in brought)
    wrong += [] if brought == expected else [f"brought {_named(brought, said)}, not {_named(expected, said)}"]
    return wrong + ([] if first == list(said) else [f"said {list(said)}, answered {first}"])


def _content(name: str, boxes: Mapping[str, int]) -> bytes:
    """The bytes of a file that an answer names."""
    if name in boxes:
        return (file_of(boxes[name]) or ("", b""))[1]
    return written(int(re.findall(r"\d+", name)[0]))[1].encode()


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()


def _named(digests: Sequence[str], said: Sequence[int]) -> list[str]:
    """The names of files by their hashes, as far as they belong to what was said in the chat."""
    files = [file_of(n) or ("", b"") for n in said] + [(written(n)[0], written(n)[1].encode()) for n in said]
    names = {_hash(content): name for name, content in files}
    return [names.get(digest, f"a foreign file {digest}") for digest in digests]


def check_kept(home: Home, *, hands_out: bool) -> tuple[list[str], dict[str, int], int]:
    """What is wrong with the files that came in, the number of the parcel by handle, and how many were left.

    Every file has all of its bytes, or a reason why it has none.
    """
    wrong, boxes, left = list[str](), dict[str, int](), 0
    with apsw.Connection(str(home.store("buffer.db")), flags=apsw.SQLITE_OPEN_READONLY) as db:
        db.set_busy_timeout(60_000)
        for message_id, text in list(db.execute("SELECT id, text FROM message")):
            number = int(_NUMBER.findall(str(text))[0])
            file = file_of(number) if hands_out else None
            rows = list(db.execute("SELECT n, state, reason FROM file WHERE message_id = ?", (message_id,)))
            if len(rows) != (file is not None):
                wrong.append(f"parcel {number} has {len(rows)} files")
            for n, state, reason in rows:
                boxes[handle_of(int(str(message_id)), int(str(n)))] = number
                pieces = db.execute(
                    "SELECT content FROM file_piece WHERE message_id = ? AND n = ? ORDER BY piece", (message_id, n)
                )
                content = b"".join(bytes(one) for (one,) in pieces if isinstance(one, bytes))
                left += state == "left"
                whole = content == (file or ("", b""))[1] if state == "kept" else not content and bool(reason)
                if state not in ("kept", "left") or not whole:
                    wrong.append(f"file of parcel {number}: {state}, {reason}, {len(content)} bytes")
    return wrong, boxes, left
