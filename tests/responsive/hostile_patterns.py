"""Hostile texts: each pattern, repeated, has slowed down some regular expression or parser."""

from __future__ import annotations

PATTERNS = {
    "dates": "in May 2025 before the trip on 2025-06-01 last week ",
    "before": "before before the ",
    "open bracket": "[",
    "nested brackets": "[[a] ",
    "nested parentheses": "((a) ",
    "templates": "{{ task:x.result }} ",
    "double quote": '"',
    "single quote": "'",
    "backslash": "\\",
    "escapes": "\\u0041\\n",
    "combining marks": "a" + "\u0300\u0316" * 20,
    "zero width": "\u200b\u200d\u2060",
    "emoji": "👩‍👩‍👧‍👦",
    "digits": "1",
    "decimal digits": "1.234,56 ",
    "letters": "a",
    "words": "lorem ipsum dolor ",
    "letters and exclamation": "aaaa!",
    "dots": ".",
    "sentences": "My name is Ann. My dog is Rex! Remember to call. ",
    "hyphens": "-",
    "underscores": "_",
    "camel": "aB",
    "URL": "https://user:pw@host.example/a?b=c&d=e ",
    "mail": "a.b@c.example ",
    "fence": "```py\nx\n```\n",
    "headings": "# a\n\n- b\n> c\n",
    "front matter": "---\n",
    "labels": "[Relevant to this message]\n[Status] ",
    "spaces": " ",
    "lines": "\n",
    "spaces before line ends": "   \n",
    "JSON": '{"a": [1, "b", {"c": null}]}, ',
    "JSON arrays": "[1,",
    "YAML": "a: &b [*b, *b]\n",
    "angle brackets": "<@U1|a> <!x",
    "base64": "QUJDREVGR0hJSktMTU5PUA==",
    "hexadecimal": "deadbeef",
    "keys": "sk-proj-abc ghp_ AKIA xoxb- ",
    "passwords": "password: token = secret ",
    "Hangul": "한국어",
    "jamo": "\u1112\u1161\u11ab",
    "Cyrillic": "привет через дней ",
    "Thai": "สวัสดีครับ",
    "Chinese": "我喜欢吃苹果。",
    "lone surrogates": "\ud800a",
    "NUL": "\0",
    "topics": "a.b.*.",
    "identifiers": "msg_0000000000000 ",
    "coordinates": "52.5 N, 13.4 E ",
}
"""What is repeated, by name."""


BEGINNINGS = {
    "number and spaces": ("1", " "),
    "number and tabs": ("-1", "\t"),
    "number and commas": ("1", ","),
    "number, letter and spaces": ("52 N", " "),
    "letter and lines": ("a", "\n"),
    "letter and marks": ("a", "\u0300\u0316"),
    "option and number signs": ("option ", "#"),
    "fact and spaces": ("My name is", " "),
    "fact and hyphens": ("My name is x", " - "),
    "request and spaces": ("remember", " "),
    "date and spaces": ("in", " "),
    "command and spaces": ("/widen mem_1", " "),
    "angle brackets alone": ("hello ", "<"),
    "angle bracket and bars": ("<", "|"),
    "key and value": ("password", "="),
    "template and spaces": ("{{", " "),
    "front matter and lines": ("---\n", "a: b\n"),
}
"""What stands before a repeated text, and the text."""


def repeated(name: str, chars: int, end: str = "") -> str:
    """So many characters of a pattern, and an end that makes the text a new one."""
    beginning, pattern = BEGINNINGS[name] if name in BEGINNINGS else ("", PATTERNS[name])
    return beginning + (pattern * (chars // len(pattern) + 1))[:chars] + end


NAMES = (*PATTERNS, *BEGINNINGS)
"""The names of all texts."""
