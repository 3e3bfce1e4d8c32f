"""A mail as a message: its sender and their proof, its thread, its words; mail of programs is answered by nobody."""

from __future__ import annotations

import pytest
from tests.unit.email_cast import ACCOUNT, ALICE, read

from keepsaid.adapters.channels.email.threads import EmailThreads
from keepsaid.adapters.channels.email.trust import MailTrust
from keepsaid.adapters.channels.email.updates import in_thread
from keepsaid.domain.message import AUTOMATIC, UNREADABLE
from keepsaid.ports.channel import Incoming
from keepsaid.testing.listening import MemoryInbox
from keepsaid.testing.providers.email_imap import mail_from
from keepsaid.testing.providers.email_smtp import USER

CHECKED = MailTrust(frozenset(("mx.example.org",)))
_PASS = "mx.example.org; spf=pass smtp.mailfrom=x; dmarc=pass (p=none; sp=none) header.from=example.net"


def mail(number: str = "m1@example.net", sender: str = ALICE, **headers: str) -> bytes:
    return mail_from(sender, "hello", number, **headers)


async def threads_of() -> EmailThreads:
    threads = EmailThreads(USER, MemoryInbox())
    await threads.load()
    return threads


def placed(raw: bytes, threads: EmailThreads) -> Incoming:
    return in_thread(read(raw), ACCOUNT, threads)[0]


@pytest.mark.parametrize(
    ("results", "is_verified"),
    [
        (_PASS, True),
        (_PASS.upper(), True),
        ("mx.example.org 1; dmarc=pass", True),
        ("", False),
        ("mx.evil.example; dmarc=pass header.from=example.net", False),
        ("mx.example.org; dmarc=fail header.from=example.net", False),
        ("mx.example.org; dmarc=pass header.from=evil.example", False),
        ("mx.example.org; spf=pass; dkim=pass", False),
        ('mx.example.org; spf=fail reason="; dmarc=pass"', False),
        ("mx.example.org; spf=fail (; dmarc=pass ;)", False),
        ("mx.example.org; none", False),
    ],
)
def test_a_sender_is_verified_by_the_own_server_alone(results: str, is_verified: bool) -> None:
    raw = mail(**({"Authentication_Results": results} if results else {}))
    message = read(raw, CHECKED).message
    assert message.sender == (ALICE if is_verified else f"unverified/{ALICE}")
    assert message.conversation == f"email:{message.sender}"


def test_only_the_first_results_of_the_own_server_count() -> None:
    """A sender can write such a header too; that of the server is above it."""
    forged = b"Authentication-Results: mx.example.org; dmarc=pass\r\n" + mail()
    raw = b"Authentication-Results: mx.example.org; dmarc=fail\r\n" + forged
    assert read(raw, CHECKED).message.sender == f"unverified/{ALICE}"
    assert read(forged, CHECKED).message.sender == ALICE


def test_a_mail_with_two_senders_proves_nothing() -> None:
    raw = b"From: boss@example.net\r\n" + mail(Authentication_Results=_PASS)
    assert read(raw, CHECKED).message.sender.startswith("unverified/")
    raw = b"From: group: alice@example.net;\r\n" + mail(sender="", Authentication_Results=_PASS).partition(b"\r\n")[2]
    assert read(raw, CHECKED).message.sender == f"unverified/{ALICE}"
    raw = mail(sender=f"{ALICE}, bob@example.net", Authentication_Results=_PASS)
    assert read(raw, CHECKED).message.sender == f"unverified/{ALICE}"


def test_a_name_proves_nothing_and_an_address_has_one_form() -> None:
    message = read(mail(sender='"boss@example.org" <Alice@Example.NET>')).message
    assert (message.sender, message.name) == (ALICE, "boss@example.org")


@pytest.mark.parametrize("sender", ["", "nobody", '"a b"@example.net', "ä@example.net", "<>"])
def test_a_mail_without_a_sender_is_kept_as_it_came(sender: str) -> None:
    raw = b"From: " + sender.encode() + b"\r\nTo: agent@example.org\r\n\r\nhello\r\n"
    message = read(raw).message
    assert (message.event, message.payload) == (UNREADABLE, raw)
    assert message.external_id is not None
    assert message.external_id.startswith("email:body:")


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto_Submitted": "auto-replied"},
        {"Auto_Submitted": "auto-generated; x=y"},
        {"Precedence": "Bulk"},
        {"Precedence": "junk"},
        {"Precedence": "list"},
        {"List_Id": "<list.example.net>"},
        {"Return_Path": "<>"},
        {"X_Auto_Response_Suppress": "OOF, AutoReply"},
        {"Sender": "help@example.org"},
    ],
)
def test_mail_of_programs_and_lists_is_kept_and_not_answered(headers: dict[str, str]) -> None:
    raw = mail(**headers)
    message = read(raw).message
    assert (message.event, message.payload, message.external_id) == (AUTOMATIC, raw, "email:m1@example.net")
    assert message.text.startswith("[not answered: ")


def test_own_mails_are_not_answered_and_mails_of_people_are() -> None:
    assert read(mail(sender=USER)).message.event == AUTOMATIC
    assert read(mail(sender="Help@Example.org")).message.event == AUTOMATIC
    plain = mail(Auto_Submitted="no", Precedence="normal", Return_Path=f"<{ALICE}>", X_Auto_Response_Suppress="None")
    assert read(plain).message.event == ""


def test_the_key_is_the_message_id_or_a_hash() -> None:
    assert read(mail("M1@Example.NET")).message.external_id == "email:M1@example.net"
    one, other = read(mail("")).message, read(mail("") + b"more").message
    assert one.external_id != other.external_id
    assert one == read(mail("")).message
    assert one.provider_id is not None
    assert one.provider_id.endswith("@example.org")
    assert str(read(mail("x" * 300 + "@example.net")).message.external_id).startswith("email:body:")


@pytest.mark.parametrize(
    ("headers", "direct", "addressed"),
    [
        ({}, True, True),
        ({"To": f"{USER}, bob@example.net"}, False, True),
        ({"Cc": "bob@example.net"}, False, True),
        ({"To": "bob@example.net", "Cc": USER}, False, False),
        ({"To": "bob@example.net", "Cc": USER, "In_Reply_To": "<k1f.0@example.org>"}, False, True),
        ({"To": f"help@example.org, {ALICE}"}, True, True),
        ({"To": "undisclosed-recipients:;"}, True, True),
    ],
)
def test_who_else_reads_a_mail_is_known(headers: dict[str, str], direct: bool, addressed: bool) -> None:
    message = read(mail(**headers)).message
    assert (message.direct, message.addressed) == (direct, addressed)


async def test_a_thread_is_one_lane_and_subjects_never_join() -> None:
    threads = await threads_of()
    first = placed(mail("m1@Example.net"), threads)
    second = placed(mail("m2@example.net", References="<m1@Example.net>", In_Reply_To="<m1@Example.net>"), threads)
    third = placed(mail("m3@example.net", In_Reply_To="<m2@example.net>"), threads)
    other = placed(mail("m4@example.net"), threads)
    assert [one.topic for one in (first, second, third, other)] == [*["m1@example.net"] * 3, "m4@example.net"]
    assert (third.reply_to, third.provider_id) == ("m2@example.net", "m3@example.net")


async def test_an_answer_to_a_mail_of_the_agent_finds_its_thread() -> None:
    threads = await threads_of()
    first = placed(mail("m1@example.net"), threads)
    thread = threads.find(ALICE, first.topic, None)
    assert thread is not None
    await threads.keep_sent(thread, ["k1.0@example.org"])
    answer = placed(mail("m2@example.net", In_Reply_To="<k1.0@Example.org>"), threads)
    assert answer.topic == "m1@example.net"
    assert answer.reply_to == "k1.0@example.org"


async def test_an_answer_in_a_thread_that_the_agent_began_is_placed_by_what_it_answers() -> None:
    threads = await threads_of()
    answer = placed(mail("m2@example.net", In_Reply_To="<k9.0@example.org>"), threads)
    later = placed(mail("m3@example.net", References="<k9.0@example.org> <m2@example.net> <ka.0@example.org>"), threads)
    assert (answer.topic, answer.reply_to) == (None, "k9.0@example.org")
    assert (later.topic, later.reply_to) == (None, "ka.0@example.org")
    assert threads.find(ALICE, None, "m3@example.net") is not None


async def test_nobody_joins_the_thread_of_another_person() -> None:
    """Whoever knows an id can name it."""
    threads = await threads_of()
    mine = placed(mail("m1@example.net"), threads)
    theirs = placed(mail("e1@evil.example", "eve@evil.example", References="<m1@example.net>"), threads)
    assert mine.conversation != theirs.conversation
    found = threads.find(ALICE, "m1@example.net", None)
    assert found is not None
    assert found.ids == ("m1@example.net",)


async def test_threads_are_kept_by_cursors_and_the_one_that_rested_longest_goes_first() -> None:
    inbox = MemoryInbox()
    threads = EmailThreads(USER, inbox, kept_max=3)
    await threads.load()
    for number in ("a@x.example", "b@x.example", "c@x.example", "a@x.example", "d@x.example"):
        message, cursors = in_thread(read(mail(number)), ACCOUNT, threads)
        await inbox.put_all([message], cursors)
    assert len(inbox.stored) == 3
    again = EmailThreads(USER, inbox, kept_max=3)
    await again.load()
    known = [again.find(ALICE, f"{name}@x.example", None) is not None for name in "abcd"]
    assert known == [True, False, True, True]
    inbox.stored["thread:0"] = "[broken"
    inbox.stored["thread:1"] = '{"person": 1}'
    await EmailThreads(USER, inbox).load()


def test_long_references_keep_their_root_and_their_end() -> None:
    references = " ".join(f"<r{n}@example.net>" for n in range(2_000))
    ids = read(mail("m9@example.net", References=references, In_Reply_To="<r1999@example.net>")).references
    assert ids[0] == "r0@example.net"
    assert len(ids) <= 101
