"""Statements found by rules: what somebody says outright is to be remembered, in English and other languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from keepsaid.domain.learning import NAME_CHARS_MAX, TEXT_CHARS_MAX, Statement
from keepsaid.domain.memory import IMPORTANCE, Kind, NewMemory
from keepsaid.domain.plain_facts import LEAD, plain_fact
from keepsaid.text.patterns import lazy
from keepsaid.values import frozen

_PLEASE = r"""
    (?:(?:bitte|also|und|ach|hallo|hey|ok|okay|et|alors|salut|bonjour|s['’]il\ (?:te|vous)\ pla[iî]t|y|oye|hola
    |por\ favor|e|ei|olá|ciao|per\ favore|per\ piacere|пожалуйста|и|а|ну|привет)[,:!]?\s+){0,3}
    """
_THAT = {
    "de": r"(?:\ bitte)?(?:\s*[,:]\s*(?:dass\s+)?|\s+dass\s+)",
    "fr": r"(?:\ bien)?(?:\s+que\s+|\s+qu['’]\s*|\s*[:,]\s*(?:que\s+|qu['’])?)",
    "es": r"(?:\s+que\s+|\s*[:,]\s*(?:que\s+)?)",
    "pt": r"(?:\s+(?:de\s+)?que\s+|\s*[:,]\s*(?:que\s+)?)",
    "it": r"(?:\s+(?:di\s+)?che\s+|\s*[:,]\s*(?:che\s+)?)",
    "ru": r"(?:,?\ пожалуйста)?(?:\s*,?\s*что\s+|\s*[:,]\s*)",
}
_REMEMBER = {
    "de": r"""
        merke?\ (?:dir|euch) | merken\ sie\ sich | denke?\ (?:bitte\ )?(?:daran|dran) | denken\ sie\ daran
        | vergiss\ (?:bitte\ )?nicht | vergessen\ sie\ (?:bitte\ )?nicht | erinnere\ dich(?:\ daran)?
        | notiere?(?:\ dir)? | notieren\ sie(?:\ sich)? | behalte(?:\ im\ kopf)?
        """,
    "fr": r"""
        rappelle[\ -]toi | rappelez[\ -]vous | souviens[\ -]toi | souvenez[\ -]vous | (?:n['’])?oubliez?\ pas
        | retiens | retenez | notez? | mémorisez? | gardez?\ en\ (?:tête|mémoire)
        """,
    "es": r"""
        recuerd(?:a|e|en) | acuérd(?:ate|ese)(?:\ de)? | no\ (?:te\ |se\ )?olvid(?:es|e)(?:\ de)?
        | ten(?:ga)?\ en\ cuenta | anot[ae] | apunt[ae] | memori(?:za|ce)
        """,
    "pt": r"""
        lembr[ae](?:[\ -](?:te|se))? | não\ (?:te\ |se\ )?esqueç(?:as|a) | anot[ae] | memori(?:za|ze)
        | ten?ha\ em\ mente | tem\ em\ mente
        """,
    "it": r"""
        ricord(?:a|ati|i) | si\ ricordi | non\ dimentic(?:are|arti|hi) | tieni\ (?:a\ mente|presente)
        | annot(?:a|ati|i) | memorizza
        """,
    "ru": r"""
        запомни(?:те)? | помни(?:те)? | не\ забудь(?:те)? | не\ забывай(?:те)? | имей(?:те)?\ в\ виду
        | запиши(?:те)?
        """,
}
_ASKING = "|".join(f"(?:(?:{told}){_THAT[tongue]})" for tongue, told in _REMEMBER.items())
_ASKS = lazy(rf"{_PLEASE}(?:{_ASKING})\S.*", re.IGNORECASE | re.VERBOSE)
_ASKS_IN_CHINESE = lazy(
    r"(?:请|請|麻烦|麻煩|帮我|幫我|你要|您要|[,，\s]){0,3}"
    r"(?:记住|記住|记得|記得|记一下|記一下|记下|記下|别忘了|別忘了|不要忘记|不要忘記|别忘记|別忘記)[,，:：\s]*\S.*"
)
_ASKS_IN_JAPANESE = lazy(
    r"(?:.*\S[をと、,\s]|.*って)\s*(?:(?:覚え|おぼえ)て(?:おいて|いて)?|忘れないで|わすれないで|(?:メモ|記憶)して(?:おいて)?)"
    r"(?:ください|下さい|くれ|ほしい|ね|よ)*"
    r"|(?:覚えて(?:おいて|いて)?|忘れないで)(?:ください|下さい|ね|よ)*[、,:：\s]\s*\S.*"
)
_SENTENCE = lazy(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")
_SENTENCES_MAX = 200
_SENTENCE_CHARS_MAX = 2_000
_QUESTION = ("?", "？", "吗", "嗎", "か")


def asks_in_other_language(text: str) -> bool:
    """Whether a message asks outright in German, French, Spanish, Portuguese, Italian, Russian, Chinese or Japanese."""
    pieces = (" ".join(piece.split())[:_SENTENCE_CHARS_MAX] for piece in _SENTENCE.split(text, _SENTENCES_MAX))
    return any(map(_asks, pieces))


def _asks(sentence: str) -> bool:
    said = sentence.rstrip(".!。！ ")
    if not said or said.endswith(_QUESTION):
        return False
    return bool(_ASKS.fullmatch(said) or _ASKS_IN_CHINESE.fullmatch(said) or _ASKS_IN_JAPANESE.fullmatch(said))


CONFIDENCE = 0.9
_CHARS_MAX = 20_000

_ENGLISH_SENTENCE = lazy(r"(?<=[.!?])(?<!\bDr\.)(?<!\bMrs\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bSt\.)(?<!\b[A-Z]\.)\s+|\n+")
_ENGLISH_REMEMBER = lazy(
    rf"{LEAD}(?:remember|do not forget|don['’]t forget|keep in mind|note)"
    r"\s*(?:that\s+|[:,]\s*(?:that\s+)?)(?P<what>\S.*)",
    re.IGNORECASE,
)
_REMEMBER_TO = lazy(rf"{LEAD}(?:remember|do not forget|don['’]t forget)\s+to\s+(?P<what>\S.*)", re.IGNORECASE)
_TODO = lazy(rf"{LEAD}(?:to[- ]?do|task)\s*:\s*(?P<what>\S.*)", re.IGNORECASE)


@frozen
class LooseStatement:
    """A statement before it has a place: `about` says that its subject is the speaker."""

    kind: Kind
    text: str
    about: bool = False
    attribute: str = ""
    value: str = ""

    def by(self, speaker: str, position: int) -> Statement:
        """The statement as somebody made it in a record."""
        subject = speaker[:NAME_CHARS_MAX] if self.about else ""
        text = f"{subject or 'The speaker'}: {self.text}" if self.about else self.text
        slot = (subject, self.attribute, self.value) if subject and self.attribute else (subject, "", "")
        importance = IMPORTANCE[self.kind]
        return Statement(
            self.kind, text[:TEXT_CHARS_MAX], *slot, importance=importance, confidence=CONFIDENCE, records=(position,)
        )


def extract_statements(text: str) -> tuple[LooseStatement, ...]:
    """Return what a message states outright, in order, without repetitions."""
    return tuple(dict.fromkeys(one for sentence in _sentences(text) for one in _extract_sentence(sentence)))


def with_slot(memory: NewMemory) -> NewMemory:
    """A memory whose text plainly states one fact about its speaker, with the slot that it fills; else as it is."""
    stated = [one for one in extract_statements(memory.text) if one.attribute]
    if len(stated) != 1 or memory.attribute or not memory.speaker_id:
        return memory
    [found] = stated
    return replace(
        memory, subject=memory.speaker, subject_id=memory.speaker_id, attribute=found.attribute, value=found.value
    )


def asks_to_remember(text: str) -> bool:
    """Whether a message asks outright, in a language that is known here, that something be remembered."""
    read = text[:_CHARS_MAX]
    in_english = any(_REMEMBER_TO.fullmatch(one) or _ENGLISH_REMEMBER.fullmatch(one) for one in _sentences(read))
    return in_english or asks_in_other_language(read)


def _sentences(text: str) -> Iterator[str]:
    pieces = (" ".join(piece.split()) for piece in _ENGLISH_SENTENCE.split(text[:_CHARS_MAX], _SENTENCES_MAX))
    return (piece for piece in pieces if piece and not piece.endswith("?"))


def _extract_sentence(sentence: str) -> Iterator[LooseStatement]:
    for pattern in (_REMEMBER_TO, _TODO):
        if found := pattern.fullmatch(sentence):
            yield LooseStatement(Kind.TODO, _bare(found["what"]), attribute="")
            return
    if found := _ENGLISH_REMEMBER.fullmatch(sentence):
        what = _bare(found["what"])
        yield _fact(what) or LooseStatement(Kind.FACT, what, about=True)
        return
    if fact := _fact(sentence):
        yield fact


def _fact(sentence: str) -> LooseStatement | None:
    """A fact about the speaker; None where the sentence states none."""
    found = plain_fact(sentence)
    if found is None:
        return None
    return LooseStatement(_kind(found.attribute), _bare(sentence), True, found.attribute, found.value)


def _kind(attribute: str) -> Kind:
    if attribute in ("name", "full name", "first name", "last name", "pronouns"):
        return Kind.IDENTITY
    return Kind.PREFERENCE if attribute.startswith(("favourite", "favorite", "preferred")) else Kind.FACT


def _bare(text: str) -> str:
    """Without the punctuation around it."""
    return text.strip().rstrip(".!,;:").strip()
