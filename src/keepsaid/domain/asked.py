"""Requests to remember something, in languages beside English: how a sentence that makes one begins, or ends.

A sentence that no pattern here matches does not count as a request. Neither does a question.
"""

from __future__ import annotations

import re

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
_ASKS = re.compile(rf"{_PLEASE}(?:{_ASKING})\S.*", re.IGNORECASE | re.VERBOSE)
_ASKS_IN_CHINESE = re.compile(
    r"(?:请|請|麻烦|麻煩|帮我|幫我|你要|您要|[,，\s]){0,3}"
    r"(?:记住|記住|记得|記得|记一下|記一下|记下|記下|别忘了|別忘了|不要忘记|不要忘記|别忘记|別忘記)[,，:：\s]*\S.*"
)
_ASKS_IN_JAPANESE = re.compile(
    r"(?:.*\S[をと、,\s]|.*って)\s*(?:(?:覚え|おぼえ)て(?:おいて|いて)?|忘れないで|わすれないで|(?:メモ|記憶)して(?:おいて)?)"
    r"(?:ください|下さい|くれ|ほしい|ね|よ)*"
    r"|(?:覚えて(?:おいて|いて)?|忘れないで)(?:ください|下さい|ね|よ)*[、,:：\s]\s*\S.*"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")
_SENTENCES_MAX = 200
_SENTENCE_CHARS_MAX = 2_000
_QUESTION = ("?", "？", "吗", "嗎", "か")


def asks_beside_english(text: str) -> bool:
    """Whether a message asks outright in German, French, Spanish, Portuguese, Italian, Russian, Chinese or Japanese."""
    pieces = (" ".join(piece.split())[:_SENTENCE_CHARS_MAX] for piece in _SENTENCE.split(text, _SENTENCES_MAX))
    return any(map(_asks, pieces))


def _asks(sentence: str) -> bool:
    said = sentence.rstrip(".!。！ ")
    if not said or said.endswith(_QUESTION):
        return False
    return bool(_ASKS.fullmatch(said) or _ASKS_IN_CHINESE.fullmatch(said) or _ASKS_IN_JAPANESE.fullmatch(said))
