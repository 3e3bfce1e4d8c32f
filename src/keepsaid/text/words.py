"""Words: tokens, stop words, stems (Porter) and rarity of text; and the chunks that are indexed of a long text."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from math import ceil, log

from keepsaid.text.patterns import lazy
from keepsaid.values import frozen

_LENGTH_MAX = 64
_ENDING_MAX = 7

_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "logi": "log", "bli": "ble",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate",
    "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive",
    "biliti": "ble",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = dict.fromkeys(
    (
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate",
        "iti", "ous", "ive", "ize",
    ),
    "",
)  # fmt: skip


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The stem of a folded word; words that are short, very long or not English come back as they are."""
    if not 3 <= len(word.encode("utf-8", "surrogatepass")) <= _LENGTH_MAX:
        return word
    word = _past(_plural(word))
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = f"{word[:-1]}i"
    for endings, above in ((_STEP_2, 0), (_STEP_3, 0), (_STEP_4, 1)):
        word = _replaced(word, endings, above)
    return _tidied(word)


def _plural(word: str) -> str:
    if not word.endswith("s") or word.endswith("ss"):
        return word
    long_ending = (word.endswith("ies") and len(word) > 3) or (word.endswith("sses") and len(word) > 4)
    return word[:-2] if long_ending else word[:-1]


def _past(word: str) -> str:
    if word.endswith("eed") and len(word) > 3:
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ing", "ed"):
        bare = word.removesuffix(ending)
        if bare != word and bare:
            return _mended(bare) if _has_vowel(bare) else word
    return word


def _mended(bare: str) -> str:
    """A word that lost -ed or -ing gets back the e, or loses the double letter, that the ending cost or brought."""
    if len(bare) > 2 and bare.endswith(("at", "bl", "iz")):
        return f"{bare}e"
    last = bare[-1]
    if len(bare) > 1 and last == bare[-2] and last not in "aeioulsz":
        return bare[:-1]
    return f"{bare}e" if _measure(bare) == 1 and _ends_short(bare) else bare


def _replaced(word: str, endings: dict[str, str], above: int) -> str:
    """The word with its longest listed ending replaced, if what stands before it has a measure above `above`."""
    sizes = range(min(_ENDING_MAX, len(word) - 1), 1, -1)
    if not (ending := next((word[-size:] for size in sizes if word[-size:] in endings), "")):
        return word
    bare = word[: -len(ending)]
    if _measure(bare) <= above or (ending == "ion" and bare[-1] not in "st"):
        return word
    return bare + endings[ending]


def _tidied(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _shape(word: str) -> str:
    """Consonants and vowels: `c` and `v`; a y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """How often a vowel is followed by a consonant."""
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return any(letter in "aeiou" for letter in word) or "y" in word[1:]


def _ends_short(word: str) -> bool:
    """Whether the word ends consonant, vowel, consonant, the last not w, x or y."""
    return word[-1:] not in ("w", "x", "y") and _shape(word).endswith("cvc")


_STOPWORDS = """
a about actually after again ah all alright also am an and any anybody anyone anything are aren as at awesome be because
been before being but by bye can cannot could couldn d did didn do does doesn doing don done down during each either
else ever every everybody everyone everything few for from further get gets getting go goes going gone got had hadn haha
has hasn have haven having he hello her here hers herself hey hi him himself his hmm how i if in into is isn it its
itself just let ll lol m many maybe me might mightn mine more most much must mustn my myself needn neither no nor not
nothing now o of off oh ok okay on once one only onto or other our ours ourselves out over own per please quite re
really s same shall shan she should shouldn since so some somebody someone something such sure t than thank thanks that
the their theirs them themselves then there these they this those though through to too under until up upon us ve very
was wasn we well were weren what when where whether which while who whom whose why will with without won would wouldn
wow y yeah yep yes yet you your yours yourself yourselves
"""
STOPWORDS = frozenset(_STOPWORDS.split())
"""English words that queries drop: grammar, interjections, and the pieces apostrophes leave (`don` and `t`)."""

_SMALL_TALK = """
good morning|good afternoon|good evening|good night|good day|have a good one|have a nice day|have a great day
how are you doing today|how are you doing|how are you today|how are you|how is it going|how s it going|what s up
hello there|hi there|hey there|hello everyone|hi everyone|hello all|hi all|good to see you|nice to meet you
long time no see|see you later|see you soon|see you tomorrow|see you|talk to you later|talk soon
thank you so much|thank you very much|thank you|thanks a lot|many thanks|sounds good|got it|no problem|of course
you re welcome|well done|good job|all right|never mind
hello|hi|hey|bye|goodbye|thanks|thx|ok|okay|yes|yeah|yep|yup|nope|nah|please|sorry|welcome|sure|alright|cheers
great|cool|nice|fine|perfect|awesome|wow|lol|haha|hmm|oh|ah|well
"""
_PHRASES = frozenset(tuple(phrase.split()) for line in _SMALL_TALK.split("\n") for phrase in line.split("|") if phrase)
_LONGEST = max(len(phrase) for phrase in _PHRASES)
_GREETINGS = frozenset({"morning", "afternoon", "evening", "night", "everyone", "everybody", "folks"})

_WORD = lazy(r"[^\W_]+")
_CLAUSES = lazy(r"[^\w\s'’-]")
_APART = "".join(letter if letter.isalnum() else " " for letter in map(chr, range(128)))
_KEPT_CHARS_MAX = 64
_SLICE = 256


def fold(word: str) -> str:
    """A word without case and accents.

    A long one is decomposed in slices, because sorting its combining marks takes time quadratic in their number.
    """
    if word.isascii():
        return word.lower()
    if len(word) > _SLICE:
        return "".join(fold(word[at : at + _SLICE]) for at in range(0, len(word), _SLICE))
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def spelled(text: str) -> list[str]:
    """The words of a text in order, as they stand there."""
    return text.translate(_APART).split() if text.isascii() else _WORD.findall(text)


def place(text: str, n: int) -> int:
    """Where word `n` of a text starts, counted from 0."""
    return next(islice(_WORD.finditer(text), n, None)).start()


def root(word: str) -> str:
    """What the forms of one word have in common, however it is written: the stem of the folded word."""
    return _root(word) if len(word) <= _KEPT_CHARS_MAX else fold(word)


@lru_cache(20_000)
def _root(word: str) -> str:
    return stem(fold(word))


_LEANING_WORDS = """
why how which who whom whose what when where that those this these it its one ones other others them they he she him
her there then else more
"""
_LEANING = frozenset(_LEANING_WORDS.split())
_ASKING = frozenset(["why", "how", "which", "who", "whom", "whose", "what", "when", "where", "and", "but", "or"])
_QUESTION_MARKS = ("?", "？", "؟")


def topic(text: str) -> frozenset[str]:
    """The stems of the words that can say what a text is about: no stopwords, no English small talk.

    Empty for "good morning", for a bare "Morning, everyone!" and for text without words.
    """
    said = [fold(word) for word in spelled(text)]
    telling = {word for word in _without_small_talk(said) if word not in STOPWORDS}
    if len(said) <= 3 and telling <= _GREETINGS:
        return frozenset()
    return frozenset(root(word) for word in telling)


def leans(text: str) -> bool:
    """Whether a text asks about what was said before it, with no word of its own: "why that one?" but not "thanks"."""
    if topic(text):
        return False
    rest = _without_small_talk([fold(word) for word in spelled(text)])
    asks = text.rstrip().endswith(_QUESTION_MARKS) or (bool(rest) and rest[0] in _ASKING)
    return asks and not _LEANING.isdisjoint(rest)


_PLAIN_WORDS_MAX = 12
_WONDERING = frozenset(["who", "whom", "whose", "what", "which", "when", "where", "why", "how"])
_JOINING = frozenset(["because", "since", "and", "but", "so", "as", "that", "now", "if", "though", "although", "while"])


def only_asks(text: str) -> bool:
    """Whether a text is one plain question that can state nothing: "who is my dentist?".

    It names nobody and no number, and has no second clause; what is not plainly so may state something.
    """
    text = text.strip()
    words = spelled(text)
    if not text.endswith(_QUESTION_MARKS) or not 1 < len(words) <= _PLAIN_WORDS_MAX:
        return False
    plain = all(word.islower() for word in words[1:] if word != "I")
    one = _CLAUSES.search(text.rstrip("".join(_QUESTION_MARKS))) is None
    return plain and one and fold(words[0]) in _WONDERING and _JOINING.isdisjoint(words)


def _without_small_talk(said: list[str]) -> list[str]:
    rest: list[str] = []
    at = 0
    while at < len(said):
        sizes = range(min(_LONGEST, len(said) - at), 0, -1)
        length = next((size for size in sizes if tuple(said[at : at + size]) in _PHRASES), 0)
        if not length:
            rest.append(said[at])
        at += length or 1
    return rest


UNSEEN = 500
"""The extra pieces assumed when word rarity is computed: in a small store, rarity says little."""


@frozen
class DocumentFrequencies:
    """In how many pieces the words of a text occur, by stem; `pieces` is the number of all pieces."""

    pieces: int = 0
    among: Mapping[str, int] = field(default_factory=dict)

    def idf(self, stem: str) -> float:
        """Return the inverse document frequency of a stem: the log of pieces without it against pieces with it."""
        having, all_ = min(self.among.get(stem, 0), self.pieces) + 1, self.pieces + UNSEEN
        return log(1 + (all_ - having + 0.5) / (having + 0.5))


WHOLE_CHARS_MAX = 1_000
"""A text of at most this number of characters is one piece."""

_PIECE_CHARS = 800
_PIECE_CHARS_MIN = 400
_PIECES_MAX = 256
_BREAKS = ("\n\n", "\n", ". ", " ")

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_UNSPACED = lazy(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Scripts that set no spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese; and Korean, whose words
carry endings."""


def pieces(text: str) -> list[str]:
    """The text in pieces that say something each, cut where a paragraph, a sentence or at least a word ends."""
    if len(text) <= WHOLE_CHARS_MAX:
        return [text]
    found: list[str] = []
    at = 0
    while len(text) - at > WHOLE_CHARS_MAX and len(found) < _PIECES_MAX - 1:
        places = ((text.rfind(mark, at + _PIECE_CHARS_MIN, at + _PIECE_CHARS), mark) for mark in _BREAKS)
        end = next((place + len(mark) for place, mark in places if place >= 0), at + _PIECE_CHARS)
        found.append(text[at:end])
        at = end
    found.append(text[at:])
    return found


_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, which are those that dates can name."""


def said_words(at: int) -> str:
    """The words a person could name a time with: `8 May 2023 Monday`, UTC; none for an unknown or impossible one."""
    if at == 0 or not _FIRST_MS <= at <= _LAST_MS:
        return ""
    day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year} {_DAYS[day.weekday()]}"


def grams(text: str, *, letters: bool = False) -> list[str]:
    """Neighbouring letters in pairs, of every run of a script that sets no spaces; one that stands alone as it is.

    With `letters` every letter too: so texts are indexed, for a question may be of one letter.
    """
    if text.isascii():
        return []
    found: list[str] = []
    for run in _UNSPACED.findall(text):
        bare = [letter for letter in run if not unicodedata.category(letter).startswith("M")]
        if letters or len(bare) == 1:
            found += bare
        found += [one + other for one, other in pairwise(bare)]
    return found


ALIKE = 0.75
"""Word sets that share more than this of all their words say the same (seed 002)."""

WORDS_MIN = 5
"""Of texts with fewer words nothing is said by what they share."""

_LOOKED_UP_MAX = 64
_DIGITS = lazy(r"\d")
_TURNING = frozenset(["no", "not", "never", "without", "none", "nor", "neither", "cannot", "t", "before", "after"])
"""Words that turn a sentence round; `t` is what `don't` leaves."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text, without case and accents."""
    return frozenset(fold(word) for word in spelled(text))


def say_the_same(one: str, other: str) -> bool:
    """Whether two texts have the same words in the same order, or more than ALIKE of five words or more in common.

    Texts that differ in a number, or in a word that turns a sentence round, do not say the same.
    """
    if [fold(word) for word in spelled(one)] == [fold(word) for word in spelled(other)]:
        return True
    first, second = word_set(one), word_set(other)
    if min(len(first), len(second)) < WORDS_MIN or len(first & second) <= ALIKE * len(first | second):
        return False
    return not any(word in _TURNING or _DIGITS.search(word) for word in first ^ second)


def telling(text: str) -> list[str]:
    """Words of which any text that says the same as this one has at least one, the rarest first by their look.

    Of a set of n words, one that shares more than three quarters lacks less than n / 4 of them.
    """
    words = word_set(text)
    ranked = sorted(words, key=lambda word: (word in STOPWORDS, -len(word), word))
    return ranked[: min(ceil(len(words) * (1 - ALIKE)), _LOOKED_UP_MAX)]
