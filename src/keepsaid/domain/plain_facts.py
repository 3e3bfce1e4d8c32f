"""Plain facts: a sentence that says one thing of its speaker, as "I live in Oslo", in twelve languages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from keepsaid.domain.attribute_values import ValueKind, is_plain, kind_of
from keepsaid.text.patterns import lazy
from keepsaid.values import frozen

_VALUE_CHARS_MAX, _READ_CHARS_MAX = 200, 600

LEAD = (
    r"(?:(?:please|also|and|so|oh|hey|hi|hello|well|ok|okay|by the way|btw|fyi|just|actually|just so you know"
    r"|for the record)[,:]?\s+){0,3}"
)
"""What may stand before a sentence in English."""

PARTNERS = ("wife", "husband", "partner", "girlfriend", "boyfriend", "family")
"""With whom one says "we": "my wife and I"."""

_WE = rf"(?:i|we|my\s+(?:{'|'.join(PARTNERS)})\s+and\s+i)"
_HAVE = rf"{_WE}(?:\s+have|['’]ve)?(?:\s+(?:just|recently|now|finally|since|both))?"
_AM = rf"{_WE}(?:\s+(?:am|are)|['’](?:m|re))(?:\s+(?:now|currently|both))?"
_SINCE = r"(?=\S.*\s(?:since|for)\s)"
_FRIENDS = r"(?:everyone|everybody|people|(?:my\s+)?friends|most people)"
_ENGLISH = (
    (rf"{LEAD}{_WE}\s+(?:(?:now|currently|both)\s+)?live\s+in\s+", "lives in"),
    (rf"{LEAD}{_AM}\s+(?:living|based)\s+in\s+", "lives in"),
    (rf"{LEAD}{_HAVE}\s+(?:lived|been\s+living)\s+in\s+{_SINCE}", "lives in"),
    (rf"{LEAD}{_HAVE}\s+(?:moved|relocated)\s+(?:back\s+|over\s+)?(?:here\s+)?to\s+", "lives in"),
    (rf"{LEAD}i\s+(?:(?:now|currently)\s+)?work\s+(?:at|for)\s+", "works at"),
    (rf"{LEAD}i(?:\s+have|['’]ve)\s+been\s+working\s+(?:at|for)\s+{_SINCE}", "works at"),
    (rf"{LEAD}i(?:\s+have|['’]ve)?(?:\s+just)?\s+started\s+working\s+(?:at|for)\s+", "works at"),
    (rf"{LEAD}(?:you\s+(?:can|may)\s+|{_FRIENDS}\s+)?calls?\s+me\s+", "name"),
)
_MY = lazy(
    rf"{LEAD}my\s+(?P<attribute>[a-z][\w'’-]*(?:\s+[\w'’-]+){{0,3}}?)(?:\s+(?:is|are)|(?<=name)['’]s)"
    r"(?:\s+now)?(?P<called>\s+(?:called|named))?\s+(?P<value>\S.*)",
    re.IGNORECASE,
)
_TALK_WORDS = """
answer apologies apology bad belief bet concern doubt experience fault favor favour fear feeling feelings goal guess
guesses hope hopes idea impression intention issue mistake one opinion plan point pleasure problem
question questions reason regards suggestion suspicion thinking thought thoughts understanding view wish worry
life day days week month weekend morning afternoon evening night head brain heart mind stomach back leg legs knee feet
foot eye eyes ear ears nose throat tooth teeth body soul world luck mood patience hand hands tongue turn treat take
fate destiny inbox appointment meeting flight train bus exam interview deadline shift
house kitchen room desk place bedroom garden internet battery screen connection jam cup middle weakness strength
achilles kingdom love crush spirit religion jury lips word money foot dream vote nightmare advice conclusion verdict
"""
_TALK = frozenset(_TALK_WORDS.split())
"""What is said with "my" in talk, and says nothing lasting of anybody."""

_LEADING = frozenset(["next", "only", "whole", "entire", "bad", "last", "other", "current", "spirit"])
_VAGUE = frozenset(["favourite", "favorite", "favourites", "favorites"])

_NO_VALUE = lazy(
    r"(?:not|n't|never|no longer|that|whether|if|why|how|when|what|which|who|to|too|so|very|still|also|being|going|gone"
    r"|here|there|fine|ok|okay|good|bad|great|done|ready|it|this|these|those|you|your|yours|mine)\b",
    re.IGNORECASE,
)
_ENDS = lazy(
    r"(?:;|\s[-–—]\s|,?\s(?:but|because|since|so|which|who|where|while|although|though|if|when|until|unless)\s"
    r"|,\s(?:and\s|i\b|my\b|we\b|you\b|he\b|she\b|it\b|not\b)|\sand\s(?!a half)(?=[a-z]|I\b))",
)
_AFTERWARDS = lazy(
    r"(?:,? (?:now|currently|again|alone|already|too|these days|at the moment|at present|for now|please|thanks"
    r"|instead|btw|by the way|from now on|full[- ]time|part[- ]time|by myself|yesterday|today|recently|for good"
    r"|in (?:january|february|march|april|may|june|july|august|september|october|november|december)|in the \w+"
    r"|(?:a|an|one|two|three|four|five|ten|some|\d+) (?:days?|weeks?|months?|years?) ago"
    r"|last (?:week|month|year|summer|winter|spring|autumn)|in (?:19|20)\d\d"
    r"|(?:with|since|for (?:the|a|an|two|three|four|five|ten|many|some|\d+)) .{1,200}"
    r"|as (?:a|an|the) .{1,200}|from .{1,200})|, (?:near|close to|next to|by|right|just) .{1,200}"
    r"| ?\([^()]{0,200}\))$",
    re.IGNORECASE,
)

_WITH_ARTICLE = "Schweiz|Türkei|Slowakei|Ukraine|Mongolei|USA|Niederlande|Nähe"
"""German names of countries that have an article."""

_PLACES = {
    "de": (
        (
            r"(?:ich\ wohne|wir\ wohnen|ich\ lebe|wir\ leben)\ (?:seit\ \S+\ )?(?:jetzt\ |nun\ |zurzeit\ )?"
            rf"in\ (?!(?:der|den|dem|das)\ (?!{_WITH_ARTICLE}))"
        ),
        r"ich\ bin\ (?:gerade\ )?nach\ (?P<value>.{1,80}?)\ (?:um)?gezogen",
    ),
    "es": (r"(?:yo\ )?(?:ahora\ )?vivo\ (?:ahora\ )?en\ ", r"me\ (?:he\ mudado|mud[eé])\ a\ "),
    "pt": (
        r"(?:eu\ )?(?:agora\ )?(?:moro|vivo)\ (?:agora\ )?(?:em|no|na)\ ",
        r"(?:eu\ )?mudei(?:-me|\ me)?\ (?:para|pra)\ (?:o\ |a\ )?",
    ),
    "fr": (r"(?:j['’]habite|je\ vis)\ (?:maintenant\ )?(?:à|au|aux|en)\ ", r"j['’]ai\ déménagé\ (?:à|au|aux|en)\ "),
    "it": (
        r"(?:io\ )?(?:ora\ )?(?:abito|vivo)\ (?:ora\ |adesso\ )?(?:a|in|ad)\ ",
        r"mi\ sono\ trasferit[oa]\ (?:a|in|ad)\ ",
    ),
    "nl": (r"ik\ (?:woon|leef)\ (?:nu\ )?in\ ", r"ik\ ben\ (?:net\ )?naar\ (?P<value>.{1,80}?)\ verhuisd"),
    "pl": (r"(?:teraz\ )?mieszkam\ (?:teraz\ )?we?\ ", r"przeprowadzi[łl][ae]?m\ się\ do\ "),
    "ru": (r"я\ (?:сейчас\ |теперь\ )?живу\ во?\ ", r"я\ переехала?\ в\ "),
    "zh": (r"我(?:现在|現在)?(?:住在|生活在)", r"我(?:刚|剛)?(?:搬到了?|搬去了?)"),
    "ja": (
        r"(?:私は|僕は|俺は)?(?:今は?)?(?P<value>[^、。私僕俺今]{1,40}?)に(?:住んでいます|住んでいる|住んでる|住んでます)",
        r"(?:私は|僕は|俺は)?(?P<value>[^、。私僕俺]{1,40}?)(?:に|へ)引っ越しました",
    ),
    "ko": (
        (
            r"(?:저는\ |나는\ )?(?:지금\ )?(?P<value>\S{1,40}(?:\ \S{1,40})?)에\ "
            r"(?:살아요|삽니다|살고\ 있어요|살고\ 있습니다|살아)"
        ),
        r"(?:저는\ |나는\ )?(?P<value>\S{1,40}?)(?:으로|로)\ 이사(?:했어요|했습니다|왔어요|갔어요)",
    ),
}
_NAMES = {
    "de": r"(?:ich\ heiße|ich\ heisse|mein\ name\ ist)\ ",
    "es": r"(?:me\ llamo|mi\ nombre\ es)\ ",
    "pt": r"(?:(?:eu\ )?me\ chamo|chamo-me|(?:o\ )?meu\ nome\ é)\ ",
    "fr": r"(?:je\ m['’]appelle|mon\ nom\ est)\ ",
    "it": r"(?:mi\ chiamo|il\ mio\ nome\ è)\ ",
    "nl": r"(?:ik\ heet|mijn\ naam\ is)\ ",
    "pl": r"(?:nazywam\ się|mam\ na\ imię)\ ",
    "ru": r"(?:меня\ зовут|моё\ имя|мое\ имя)\ ",
    "zh": r"(?:我叫|我的名字是|我名叫)",
    "ja": r"(?:私の名前は)(?P<value>[^、。]{1,40}?)(?:です|だ)",
    "ko": r"(?:제|내)\ 이름은\ (?P<value>\S{1,40}?)(?:입니다|이에요|예요|이야|야)",
}
_WORK = {
    "de": r"ich\ arbeite\ (?:jetzt\ )?(?:bei|für)\ (?:der\ |dem\ )?",
    "es": r"(?:ahora\ )?trabajo\ (?:ahora\ )?(?:en|para)\ (?:la\ |el\ )?",
    "pt": r"(?:eu\ )?(?:agora\ )?trabalho\ (?:agora\ )?(?:na|no|em|para\ a|para\ o)\ ",
    "fr": r"je\ travaille\ (?:maintenant\ )?(?:chez|pour|à)\ ",
    "it": r"(?:ora\ )?lavoro\ (?:ora\ )?(?:per|presso|da|alla|in)\ ",
    "nl": r"ik\ werk\ (?:nu\ )?(?:bij|voor)\ ",
    "pl": r"pracuję\ (?:teraz\ )?(?:w|dla)\ ",
    "ru": r"я\ работаю\ (?:сейчас\ )?в\ (?:компании\ )?",
    "zh": r"我(?:现在|現在)?在(?P<value>[^,，。]{1,40}?)(?:工作|上班)",
    "ja": r"(?:私は|僕は)?(?P<value>[^、。私僕]{1,40}?)で働いて(?:います|いる|ます|る)",
    "ko": r"(?:저는\ |나는\ )?(?P<value>\S{1,40}?)에서\ (?:일해요|일합니다|일하고\ 있어요|근무해요)",
}
_ABROAD_ENDS = lazy(
    r"[,;。，、！]|\s[-–—]\s|\s(?:und|aber|y|pero|e|mas|et|mais|ma|en|maar|i|ale|и|но)\s(?=\w)"
    r"|\s(?:mit|seit|con|desde|hace|com|há|avec|depuis|met|sinds|od|с|со|da|dal|il y a|l['’]an|l['’]année)\s"
)


def _whole(lead: str) -> str:
    return lead if "(?P<value>" in lead else rf"{lead}(?P<value>\S.*)"


_IN_ENGLISH = tuple((lazy(_whole(lead), re.IGNORECASE), attribute) for lead, attribute in _ENGLISH)
_ABROAD = tuple(
    (lazy(_whole(lead), re.IGNORECASE | re.VERBOSE), attribute)
    for attribute, leads in (
        ("lives in", [one for pair in _PLACES.values() for one in pair]),
        ("name", list(_NAMES.values())),
        ("works at", list(_WORK.values())),
    )
    for lead in leads
)


_CALLED = lazy(r"an?\s+(?:[\w'-]+\s+){1,3}called\s+(?P<name>\S.*)", re.IGNORECASE)


@frozen
class PlainFact:
    """What a sentence says of its speaker."""

    attribute: str
    value: str


def plain_fact(sentence: str) -> PlainFact | None:
    """What a sentence says of its speaker, without a model; None for talk, idioms and what will not last."""
    return next(_found(sentence.strip().rstrip(".!。！ ")), None)


def _found(sentence: str) -> Iterator[PlainFact]:
    lower = sentence[:1].islower()
    for pattern, attribute in _IN_ENGLISH:
        if found := pattern.fullmatch(sentence):
            yield from _fact(attribute, found["value"], lower=lower)
            return
    for pattern, attribute in _ABROAD:
        if found := pattern.fullmatch(sentence):
            yield from _fact(attribute, _ABROAD_ENDS.split(found["value"], maxsplit=1)[0], lower=False)
            return
    if (found := _MY.fullmatch(sentence)) is not None:
        attribute = _named(found["attribute"].lower())
        words = attribute.split()
        is_leading = words[0] in _LEADING and attribute != "last name"
        if words[-1] not in _TALK and not is_leading and attribute not in _VAGUE:
            named = bool(found["called"]) or attribute != found["attribute"].lower()
            takes_lower = named or attribute.endswith("name") or kind_of(attribute) is ValueKind.PLACE
            yield from _fact(attribute, found["value"], lower=lower and takes_lower, named=named)


def _fact(attribute: str, value: str, *, lower: bool, named: bool = False) -> Iterator[PlainFact]:
    if len(value) > _READ_CHARS_MAX or _NO_VALUE.match(value):
        return
    bare = _AFTERWARDS.sub("", _ENDS.split(value, maxsplit=1)[0])
    kept = _AFTERWARDS.sub("", bare).strip().rstrip(".!,;:").strip()
    if (so_called := _CALLED.fullmatch(kept)) is not None:
        kept = so_called["name"]
    if kind_of(attribute) is ValueKind.PLACE:
        kept = re.sub(r"^in\s+", "", kept)
    if len(kept) <= _VALUE_CHARS_MAX and is_plain(attribute, kept, lower=lower, named=named):
        yield PlainFact(attribute, kept)


def _named(attribute: str) -> str:
    """An attribute without the name in it: "dog's name" is "dog"."""
    return re.sub(r"['’]s\s+name$", "", attribute)
