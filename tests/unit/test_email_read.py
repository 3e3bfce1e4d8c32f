"""The words of a mail: plain text or HTML without what is quoted at its end, and hostile mails in bounded time."""

from __future__ import annotations

import random
import time
from email.message import EmailMessage
from email.policy import SMTP

import pytest
from tests.unit.email_cast import ALICE, read

from keepsaid.adapters.channels.email.html_text import text_of_html
from keepsaid.adapters.channels.email.quoted import without_quoted_tail
from keepsaid.domain.message import UNREADABLE
from keepsaid.testing.providers.email_smtp import USER

_HEAD = f"From: {ALICE}\r\nTo: {USER}\r\nMessage-ID: <m1@example.net>\r\nMIME-Version: 1.0\r\n"


def built() -> EmailMessage:
    mail = EmailMessage(SMTP)
    mail["From"], mail["To"], mail["Message-ID"] = ALICE, USER, "<m1@example.net>"
    return mail


def text(raw: bytes) -> str:
    message = read(raw).message
    assert message.event == ""
    return message.text


def raw_mail(kind: str, body: bytes, *headers: str) -> bytes:
    head = "".join(f"{line}\r\n" for line in (f"Content-Type: {kind}", *headers))
    return f"{_HEAD}{head}\r\n".encode() + body


def test_plain_text_goes_before_html_and_attachments_are_named() -> None:
    mail = built()
    mail["Subject"] = "Plän"
    mail.set_content("look at this\n\n-- \nAlice")
    mail.add_alternative("<p>look at <b>that</b></p>", subtype="html")
    mail.add_attachment(b"x" * 2_104, maintype="application", subtype="pdf", filename="plän.pdf")
    inner = built()
    inner["Subject"] = "Inner"
    mail.add_attachment(inner)
    assert text(mail.as_bytes()).split("\n") == [
        "Subject: Plän",
        "look at this",
        "[file: plän.pdf, application/pdf, 2,104 bytes]",
        "[mail: Inner]",
    ]


def test_html_is_read_where_there_is_no_plain_text() -> None:
    mail = built()
    mail.set_content(" \n")
    mail.add_alternative("<p>look at <b>that</b></p>", subtype="html")
    assert text(mail.as_bytes()) == "look at that"


def test_an_attached_text_is_named_and_not_read() -> None:
    mail = built()
    mail.set_content("see the file")
    mail.add_attachment("secret plans", filename="plans.txt")
    assert text(mail.as_bytes()) == "see the file\n[file: plans.txt, text/plain, 14 bytes]"


@pytest.mark.parametrize(
    ("charset", "body", "shown"),
    [
        ("iso-8859-1", b"gr\xfc\xdfe", "grüße"),
        ("utf-8", "grüße".encode(), "grüße"),
        ("us-ascii", "grüße".encode(), "grüße"),
        ("utf-8", b"gr\xfce\x00", "gr\ufffde"),
        ("no-such-charset", b"hello", "hello"),
        ("base64", b"hello", "hello"),
        ("punycode", b"hello", "hello"),
        ("shift_jis", "こんにちは".encode("shift_jis"), "こんにちは"),
    ],
)
def test_any_charset_is_read(charset: str, body: bytes, shown: str) -> None:
    assert text(raw_mail(f"text/plain; charset={charset}", body)) == shown


def test_a_mail_without_words_says_so() -> None:
    assert text(raw_mail("text/plain", b"")) == "(no words)"


def test_a_subject_on_several_lines_is_decoded() -> None:
    raw = raw_mail("text/plain", b"hello", "Subject: =?utf-8?b?UGzDpG5l?=\r\n for today")
    assert text(raw) == "Subject: Pläne for today\nhello"


_HTML = [
    ("a<br>b<p>c</p>d", "a\nb\n\nc\n\nd"),
    ("<style>p{}</style><script>alert('</p>')</script>a", "a"),
    ("<SCRIPT>x</ScRiPt >a<script>unclosed", "a"),
    ("a<!-- <b>hidden</b> -->b", "ab"),
    ("a &lt;b&gt; &amp;amp; &#8364;&nbsp;x", "a <b> &amp; € x"),
    ("<ul><li>one</li><li>two</li></ul>", "• one\n• two"),
    ("<a href='https://x.example/y'>here</a>", "here (https://x.example/y)"),
    ("<a href='https://x.example'>x.example</a>", "x.example"),
    ("<a href='javascript:x'>here</a>", "here"),
    ("a<blockquote>b<br>c</blockquote>d", "a\n\n> b\n> c\n\nd"),
    ("1 < 2 and <b title='>'>x</b>", "1 < 2 and x"),
    ("<pre>a\n  b</pre>", "a\n  b"),
    ("<table><tr><td>a</td><td>b</td></tr></table>", "a b"),
    ("a <b>b</b> c", "a b c"),
    ("&#" + "9" * 5_000 + ";", "&#" + "9" * 5_000 + ";"),
    ("<", "<"),
    ("a<b", "a"),
]


@pytest.mark.parametrize(("source", "shown"), _HTML)
def test_html_becomes_words(source: str, shown: str) -> None:
    assert text_of_html(source) == shown


_INTROS = [
    "On Tue, 3 Nov 2026 at 10:00, Agent <agent@example.org> wrote:",
    "On Tue, 3 Nov 2026 at 10:00, Agent\n<agent@example.org> wrote:",
    "Am Di., 3. Nov. 2026 um 10:00 Uhr schrieb Agent <agent@example.org>:",
    "Le mar. 3 nov. 2026 à 10:00, Agent <agent@example.org> a écrit :",
    "El mar, 3 nov 2026 a las 10:00, Agent (<agent@example.org>) escribió:",
    "Il giorno mar 3 nov 2026 alle ore 10:00 Agent <agent@example.org> ha scritto:",
    "Em ter., 3 de nov. de 2026 às 10:00, Agent <agent@example.org> escreveu:",
]


_FORWARDED = "---------- Forwarded message ---------\nFrom: a\nhello"


@pytest.mark.parametrize("intro", _INTROS)
def test_a_quoted_tail_is_cut(intro: str) -> None:
    assert without_quoted_tail(f"yes\n\n{intro}\n> is it so?\n>> or so?\n\n") == "yes"
    assert without_quoted_tail(f"yes\n\n{intro}\n\nis it so?\n") == "yes"
    assert without_quoted_tail(f"yes\r\n\r\n{intro}\r\n> is it so?\r\n\r\n-- \r\nAlice") == "yes"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("yes\n\n-----Original Message-----\nFrom: a\nhello", "yes"),
        ("ja\n\n-----Ursprüngliche Nachricht-----\nVon: a\nhallo", "ja"),
        ("oui\n\n----- Message d'origine -----\nbonjour", "oui"),
        ("yes\n\n________________________________\nFrom: a\nSent: Monday\nTo: b\nhello", "yes"),
        ("ja\n\nVon: a\nGesendet: Montag\nhallo", "ja"),
        ("yes\n> quoted\n\n", "yes"),
        ("yes\n-- \nAlice\n+49 1", "yes"),
        ("yes\n--\nAlice", "yes"),
        # answers between the lines, and below them, stay with what they answer
        ("On 3 Nov, a@b wrote:\n> one?\nyes\n> two?\nno", "On 3 Nov, a@b wrote:\n> one?\nyes\n> two?\nno"),
        ("> one?\nyes", "> one?\nyes"),
        ("> only quoted", "> only quoted"),
        ("-- \nAlice", "--\nAlice"),
        ("On Monday Bob wrote:\nnothing", "On Monday Bob wrote:\nnothing"),
        ("--- a/file\n+++ b/file", "--- a/file\n+++ b/file"),
        (_FORWARDED, _FORWARDED),
        ("a\n-- \n" + "line\n" * 20, ("a\n--\n" + "line\n" * 20).strip("\n")),
        ("", ""),
    ],
)
def test_only_a_tail_is_cut(source: str, shown: str) -> None:
    assert without_quoted_tail(source) == shown


def test_the_whole_mail_is_the_payload() -> None:
    raw = raw_mail("text/plain", b"yes\r\n\r\n> quoted")
    message = read(raw).message
    assert (message.text, message.payload) == ("yes", raw)


def _nested(depth: int) -> bytes:
    body = b"Content-Type: text/plain\r\n\r\ndeep\r\n"
    for n in range(depth):
        edge = b"b%d" % n
        head = b'Content-Type: multipart/mixed; boundary="%b"\r\n\r\n' % edge
        body = head + b"--" + edge + b"\r\n" + body + b"\r\n--" + edge + b"--\r\n"
    return _HEAD.encode() + body


def _parts(count: int) -> bytes:
    part = b"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n"
    return raw_mail('multipart/mixed; boundary="b"', part * count + b"--b--\r\n")


@pytest.mark.parametrize(
    ("raw", "is_read"),
    [(_nested(10), True), (_nested(11), False), (_nested(90), False), (_parts(99), True), (_parts(101), False)],
)
def test_parts_and_depth_are_limited(raw: bytes, is_read: bool) -> None:
    message = read(raw).message
    assert (message.event == "") is is_read
    assert message.payload == raw


_HOSTILE = {
    "many parts": _parts(300_000),
    "many lines": _HEAD.encode() + b"\r\n" + b"a\n" * 600_000,
    "long header": raw_mail("text/plain", b"x", "Subject: " + "(" * 1_000_000),
    "long type": raw_mail("text/plain; " + "x=" * 500_000, b"x"),
    "comments in the type": raw_mail("text/plain; " + "(" * 100_000, b"x"),
    "many addresses": raw_mail("text/plain", b"x", "Cc: " + "a@b.example," * 100_000),
    "many headers": raw_mail("text/plain", b"x", *["X: y"] * 200_000),
    "open comments": raw_mail("text/html", b"<!--" * 400_000),
    "open tags": raw_mail("text/html", b"<a " * 600_000),
    "open quotes": raw_mail("text/html", b"<a b='" * 300_000),
    "less than": raw_mail("text/html", b"<" * 300_000),
    "scripts": raw_mail("text/html", b"<script></scrip" * 100_000),
    "deep html": raw_mail("text/html", b"<blockquote>" * 150_000),
    "links": raw_mail("text/html", b"<a href=http://x >" * 100_000),
    "entities": raw_mail("text/html", b"&#9" * 400_000 + b"&#" + b"9" * 100_000),
    "intros": raw_mail("text/plain", b"On 1 wrote:\n" * 100_000),
    "half intros": raw_mail("text/plain", b"On 1\n" * 100_000),
    "signatures": raw_mail("text/plain", b"--\nx\n" * 100_000),
    "quotes": raw_mail("text/plain", b">" * 1_000_000 + b"\n>" * 100_000),
    "ids": raw_mail("text/plain", b"x", "References: " + "<" * 500_000, "In-Reply-To: " + "<a" * 300_000),
    "results": raw_mail("text/plain", b"x", "Authentication-Results: " + "(;" * 400_000),
    "encoded words": raw_mail("text/plain", b"x", "Subject: " + "=?utf-8?q?a?= " * 50_000),
    "binary": bytes(range(256)) * 4_000,
    "nothing": b"",
    "no end": _HEAD.encode() + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: multipart/mixed",
    "bad base64": raw_mail("text/plain", b"=" * 100_000, "Content-Transfer-Encoding: base64"),
    "bad encoding": raw_mail("text/plain", b"x", "Content-Transfer-Encoding: \x01"),
    "surrogates": raw_mail("text/plain", b"x", "Subject: \u0141").replace(b"\xc5\x81", b"\xff\xfe"),
    "empty addresses": b"From: ,,,\r\nTo: ;;;\r\nCc: <@,:@>\r\n\r\nx",
    "message in message": raw_mail("message/rfc822", (_HEAD + "Content-Type: message/rfc822\r\n\r\n").encode() * 200),
    "partial": raw_mail("message/delivery-status", b"a: b\r\n\r\n" * 200),
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_no_mail_takes_long_or_is_lost(name: str) -> None:
    raw = _HOSTILE[name]
    start = time.process_time()
    message = read(raw).message
    assert time.process_time() - start < 4.0
    assert message.payload == raw
    assert message.external_id
    assert message.event in ("", UNREADABLE)
    message.text.encode("utf-8")
    assert "\0" not in message.text


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_mail_is_read_or_kept(seed: int) -> None:
    """Bytes are lost, doubled and changed, in headers of every kind."""
    chance = random.Random(seed)
    mail = built()
    mail["Subject"], mail["Cc"] = "Pläne für heute", '"Bob, B." <bob@example.net>, group: a@b.example;'
    mail["References"] = "<m0@example.net> <k1.0@example.org>"
    mail["Authentication-Results"] = "mx.example.org; dmarc=pass (p=none) header.from=example.net"
    mail.set_content("hello\n> quoted")
    mail.add_alternative("<p>hello</p>", subtype="html")
    mail.add_attachment(b"x", maintype="image", subtype="png", filename="ü" * 80 + ".png")
    whole = mail.as_bytes()
    for _ in range(25):
        raw = bytearray(whole)
        for _ in range(chance.randrange(1, 30)):
            at = chance.randrange(len(raw))
            raw[at : at + chance.randrange(0, 4)] = bytes(
                chance.choices(b"\r\n\t :;,<>()[]@\"=?\\\x00\xff*'%-a", k=chance.randrange(4))
            )
        message = read(bytes(raw)).message
        assert message.payload == bytes(raw)
        message.text.encode("utf-8")
