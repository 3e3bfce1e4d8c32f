"""Requests to remember something are understood in twelve languages; questions, and talk of memory, are none."""

from __future__ import annotations

import time

import pytest

from keepsaid.domain.statements import asks_to_remember


@pytest.mark.parametrize(
    "said",
    [
        "Remember that my boat is called Wanda",
        "Merk dir bitte, dass mein Boot Wanda heißt.",
        "Bitte merke dir: mein Boot heißt Wanda",
        "Hallo! Vergiss nicht, dass mein Boot Wanda heißt",
        "Merken Sie sich, dass mein Boot Wanda heißt",
        "Rappelle-toi que mon bateau s'appelle Wanda",
        "S’il te plaît, souviens-toi qu’il s’appelle Wanda",
        "N'oublie pas que mon bateau s'appelle Wanda.",
        "Recuerda que mi barco se llama Wanda",
        "Por favor, no olvides que mi barco se llama Wanda",
        "Acuérdate de que mi barco se llama Wanda",
        "Lembra-te de que o meu barco se chama Wanda",
        "Lembre-se que meu barco se chama Wanda",
        "Não te esqueças que o meu barco se chama Wanda",
        "Ricordati che la mia barca si chiama Wanda",
        "Per favore, ricorda che la mia barca si chiama Wanda",
        "Запомни, что моя лодка называется Ванда",
        "Пожалуйста, не забудь: моя лодка называется Ванда",
        "请记住我的船叫万达",
        "你好。请记住：我的船叫万达。",
        "別忘了我的船叫萬達",
        "私の船はワンダだと覚えておいてください。",
        "私の船の名前はワンダです、覚えてね",
        "覚えておいて、私の船はワンダです",
        "Onthoud alsjeblieft dat mijn boot Wanda heet",
        "Czy możesz zapamiętać, że moja łódź to Wanda?",
        "Prosze zapamietaj, ze moja łódź to Wanda",
        "내 배 이름은 완다라고 기억해 줘",
        "My boat is called Wanda. Please remember that.",
        "Mein Boot heißt Wanda. Merk dir das!",
        "我的船叫万达。请记住这一点。",
        "Remember my boat is called Wanda",
    ],
)
def test_it_is_a_request(said: str) -> None:
    assert asks_to_remember(said)


@pytest.mark.parametrize(
    "said",
    [
        "Do you remember that my boat is called Wanda?",
        "Merkst du dir, dass mein Boot Wanda heißt?",
        "Mein Boot heißt Wanda",
        "Ich merke mir, dass mein Boot Wanda heißt",
        "Merk dir nicht, dass mein Boot Wanda heißt",
        "Je me rappelle que mon bateau s'appelle Wanda",
        "Tu te souviens que mon bateau s'appelle Wanda ?",
        "¿Recuerdas que mi barco se llama Wanda?",
        "No recuerdes que mi barco se llama Wanda",
        "Lembras-te que o meu barco se chama Wanda?",
        "Ti ricordi che la mia barca si chiama Wanda?",
        "Ты помнишь, что моя лодка называется Ванда?",
        "我的船叫万达",
        "你记得我的船叫万达吗",
        "私の船はワンダだと覚えていますか",
        "覚えてください",
        "Remember that night in Rome?",
        "I wish I could remember that",
        "Remember my birthday",
        "Write this: hello world in Python",
        "Er sagte: Merk dir das",
        "Erinnere mich morgen an den Zahnarzt",
        "Anoté que la caldera se revisó",
        "빵 사는 거 잊지 마",
        "别忘了买牛奶",
        "Merk dir",
        "",
    ],
)
def test_it_is_no_request(said: str) -> None:
    assert not asks_to_remember(said)


def test_a_long_text_is_read_in_linear_time() -> None:
    def spent(text: str) -> float:
        begun = time.thread_time()
        asks_to_remember(text)
        return time.thread_time() - begun

    for piece in ("bitte ", "を", "请", " ", "merk dir bitte", "、覚えて", "って覚えて"):
        short, long = min(spent(piece * 2_000) for _ in range(3)), spent(piece * 20_000)
        assert long < 40 * short + 0.2, piece
