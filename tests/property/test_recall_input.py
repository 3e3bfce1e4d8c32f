from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.memory_stage import Stage, stage

from keepsaid.domain.memory import GLOBAL, Kind, NewMemory
from keepsaid.domain.message import Trust
from keepsaid.text.languages import STOPWORDS, telling_letters
from keepsaid.text.normal import digest
from keepsaid.text.stems import stem
from keepsaid.text.topics import topic
from keepsaid.text.words import fold, place, root, spelled
from keepsaid_testkit.contracts.memories import AUDIT, HERE, OWNER_HERE, by_words, keys, sample

NASTY = {
    "empty": "",
    "blank": " \t\r\n",
    "NUL": "cat\0dog",
    "only NUL": "\0",
    "high surrogate": "\ud800",
    "low surrogate": "cat \udfff dog",
    "quotes": '"""" "cat',
    "single quotes": "'; DROP TABLE memory; --",
    "star": "*",
    "prefix": "cat* dog*",
    "caret": "^cat",
    "column": "body : cat speaker:dog {body speaker} : cat",
    "operators": "AND OR NOT NEAR",
    "near": "NEAR(cat dog, 5) NEAR/2",
    "brackets": "((((((((((",
    "closing": "cat) OR (dog",
    "minus": "-cat - dog --",
    "plus": "cat + dog",
    "emoji": "😀 👨‍👩‍👧 🇵🇹",
    "rtl": "مرحبا بالعالم \u202ecat\u202c שלום",
    "combining": "e\u0301\u0302\u0303 Z̷̢a̸l̴g̵o̶ \u0301",
    "chinese": "我的猫叫什么名字",
    "thai": "แมวของฉันชื่ออะไร",
    "turkish": "İstanbul ıssız",
    "sharp s": "STRASSE straße ſtraſſe",
    "private use": "\ue000\U0010fffd",
    "noncharacters": "\ufffe\uffff\U0010ffff",
    "one long word": "x" * 100_000,
    "long text": "the cat sat on the mat " * 4_400,
    "many words": " ".join(f"word{n}" for n in range(10_000)),
    "many known words": " ".join(f"known{n}" for n in range(10_000)),
    "many quotes": '"' * 100_000,
    "many marks": "a" + "\u0301" * 50_000,
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("recall")) as scene:
        scene.keep(*(sample(f"known{n}", f"the cat knows known{n}") for n in range(200)))
        yield scene


@pytest.mark.parametrize("name", NASTY)
def test_nasty_queries_raise_nothing(scene: Stage, name: str) -> None:
    assert len(scene.run(by_words(scene.store, OWNER_HERE, NASTY[name], 5))) <= 5


@pytest.mark.parametrize("name", NASTY)
def test_nasty_texts_can_be_kept_and_asked_for(scene: Stage, name: str) -> None:
    text = NASTY[name]
    (id_,) = scene.keep(sample(f"nasty:{name}", text, speaker=text[:100]))
    memory = scene.run(scene.store.get(AUDIT, id_))
    assert memory is not None
    assert "\0" not in memory.text
    assert memory.text.encode().decode() == memory.text


@given(query=st.text() | st.text(alphabet="\"'*():^-+{}[]\\/,.; \0\ud800aé", max_size=40))
def test_any_text_is_a_legal_query(scene: Stage, query: str) -> None:
    hits = scene.run(by_words(scene.store, OWNER_HERE, query, 5))
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert list(hits) == sorted(hits, key=lambda hit: (-hit.score, -hit.memory.new.said_at, -hit.memory.id))


LETTERS = st.characters(min_codepoint=0x21, max_codepoint=0x5FF, categories=("Lu", "Ll", "Lo", "Nd"))
WORDS = st.text(alphabet=LETTERS, min_size=1, max_size=20).filter(
    lambda word: unicodedata.normalize("NFC", word).casefold() not in STOPWORDS
)


@given(word=WORDS, before=st.text(alphabet=" .,;\"'()-*\n", max_size=3), after=st.text(max_size=20))
def test_a_quoted_word_of_a_memory_is_found(scene: Stage, word: str, before: str, after: str) -> None:
    key = f"word:{digest(word, before, after).hex()}"
    text = f"{after} {before}{word} {after}"
    new = NewMemory(key, Kind.EPISODE, text, GLOBAL, Trust.OWNER, HERE, said_at=9)
    scene.keep(new)
    assert key in keys(scene.run(by_words(scene.store, OWNER_HERE, f'"{word}"', 10_000)))


@given(text=st.text())
def test_any_text_has_words_and_a_topic(text: str) -> None:
    found = spelled(text)
    assert all(text[place(text, n) :].startswith(word) for n, word in enumerate(found))
    assert topic(text) <= set(map(root, spelled(telling_letters(text)))), "where words have no spaces, of what tells"
    assert all(root(word) == stem(fold(word)) for word in found)
    assert all(root(word)[0] == fold(word)[0] for word in found), "injection looks no further at other words"


ENDINGS = """
    s es ies sses ed ing eed ated bled ized ational tional ization ation ator alism iveness fulness ousness aliti
    iviti biliti logi bli icate ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent
    sion tion ou ism ate iti ous ive ize e y ll lle
"""


@given(
    start=st.text(alphabet="abeiouytsznlwxcr", max_size=6),
    endings=st.lists(st.sampled_from(ENDINGS.split()), max_size=3),
)
def test_stems_are_those_of_the_full_text(start: str, endings: list[str]) -> None:
    word = start + "".join(endings)
    porter = apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61"])
    tokens = porter(word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False)
    assert tokens == ([(stem(word),)] if word else [])
    assert stem(word)[:1] == word[:1]
