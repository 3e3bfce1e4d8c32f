"""Topics: the words that say what a text is about, and what small talk and plain questions leave."""

from __future__ import annotations

from keepsaid.text.languages import function_words, telling_letters
from keepsaid.text.patterns import lazy
from keepsaid.text.words import fold, root, spelled

_CLAUSES = lazy(r"[^\w\s'’-]")
_SMALL_TALK = """
good morning|good afternoon|good evening|good night|good day|have a good one|have a nice day|have a great day
how are you doing today|how are you doing|how are you today|how are you|how is it going|how s it going|what s up
hello there|hi there|hey there|hello everyone|hi everyone|hello all|hi all|good to see you|nice to meet you
long time no see|see you later|see you soon|see you tomorrow|see you|talk to you later|talk soon
thank you so much|thank you very much|thank you|thanks a lot|many thanks|sounds good|got it|no problem|of course
you re welcome|well done|good job|all right|never mind
hello|hi|hey|bye|goodbye|thanks|thx|ok|okay|yes|yeah|yep|yup|nope|nah|please|sorry|welcome|sure|alright|cheers
good|great|cool|nice|fine|perfect|awesome|wow|lol|haha|hmm|oh|ah|well
"""
_PHRASES = frozenset(tuple(phrase.split()) for line in _SMALL_TALK.split("\n") for phrase in line.split("|") if phrase)
_LONGEST = max(len(phrase) for phrase in _PHRASES)
_GREETINGS = frozenset({"morning", "afternoon", "evening", "night", "everyone", "everybody", "folks"})

_LEANING_WORDS = """
why how which who whom whose what when where that those this these it its one ones other others them they he she him
her there then else more
"""
_LEANING = frozenset(_LEANING_WORDS.split())
_ASKING = frozenset(["why", "how", "which", "who", "whom", "whose", "what", "when", "where", "and", "but", "or"])
_QUESTION_MARKS = ("?", "？", "؟")


def topic(text: str) -> frozenset[str]:
    """The stems of the words that can say what a text is about: no function words, no small talk.

    Empty for "good morning", for a bare "Morning, everyone!" and for text without words.
    """
    said, grammar = [fold(word) for word in spelled(telling_letters(text))], function_words(text)
    telling = {word for word in _without_small_talk(said) if word not in grammar}
    if len(said) <= 3 and telling <= _GREETINGS:
        return frozenset()
    return frozenset(root(word) for word in telling)


def leans(text: str) -> bool:
    """Return whether a text is a question about what was said before it, as "why that one?" is and "thanks" is not."""
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


def is_small_talk(word: str) -> bool:
    """Whether a folded word is small talk by itself: "thanks", "wow"."""
    return (word,) in _PHRASES or word in _GREETINGS


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
