"""Counts are the tokenizer's own, on every text, in pieces or whole."""

from __future__ import annotations

import random
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rs_bpe.bpe import openai

from pagein.errors import ConfigurationError
from pagein.tokens.encodings import (
    _CACHED_MAX_CHARS,
    ENCODINGS,
    PIECE_MAX_CHARS,
    Encoding,
    load_tokenizer,
    replace_surrogates,
    split_pieces,
)

SECOND = {"o200k_base": openai.o200k_base, "cl100k_base": openai.cl100k_base}
"""Another implementation, by other people, with its own copy of the two vocabularies."""

ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz   etaoin", "ABCxyz_.,;:!?'\"()[]{}<>=+-*/\\|&^%$#@~`", "0123456789.,-:T ",
    " \t\n\r\u00a0\u3000", "äöüßéèñçøåłőžšțİıſ", "привет как дела Ёжик", "天地玄黄宇宙洪荒日月盈昃，。", "ねこが好きですカタカナー",
    "고양이가좋아요한국어", "مرحباכתבעברית", "नमस्तेমবাংলাதமிழ்ไทยမြန်မာ", "😀👍🏽👨‍👩‍👧🇩🇪❤️✅", "\0\x01\x1b\x7f\ufeff\u200b\u2028",
    "'s 't 're 've 'm 'll 'd 'S 'LL",
)  # fmt: skip


def random_texts(count: int, seed: int) -> list[str]:
    """Texts of mixed scripts: the same each time."""
    choose = random.Random(seed)
    return [
        "".join(choose.choice(choose.choice(ALPHABETS)) for _ in range(choose.randint(1, 60))) for _ in range(count)
    ]


@pytest.mark.parametrize("name", SECOND)
def test_three_thousand_mixed_texts_count_as_in_a_second_tokenizer(name):
    counter, second = Encoding(name), SECOND[name]()
    for text in random_texts(3_000, 11):
        assert counter.text(text) == second.count(text), ascii(text)


@pytest.mark.parametrize("name", SECOND)
@given(text=st.text(st.characters(exclude_categories=("Cs",)), max_size=200))
def test_any_text_counts_as_in_a_second_tokenizer(name, text):
    assert Encoding(name).text(text) == SECOND[name]().count(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", SECOND)
def test_long_texts_count_as_in_a_second_tokenizer_although_they_are_cut(name):
    text = "\n".join(f"{i}: the answer to {random_texts(1, i)[0]} is here, see line {i * 7}" for i in range(9_000))
    assert len(list(split_pieces(text))) > 2
    assert Encoding(name).text(text) == SECOND[name]().count(text)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["-", " ", "ab", "天地", "aB3"])
def test_a_run_without_a_safe_cut_is_wrong_by_less_than_half_a_percent(unit):
    text = unit * (600_000 // len(unit))
    true = SECOND["o200k_base"]().count(text)
    assert abs(Encoding("o200k_base").text(text) - true) <= 0.005 * true + 1


@given(text=st.text(max_size=40), times=st.integers(1, 200_000))
def test_pieces_are_the_text_and_no_piece_is_long(text, times):
    long = (text * times)[: 3 * PIECE_MAX_CHARS]
    cut = list(split_pieces(long))
    assert "".join(cut) == long
    assert max(map(len, cut)) <= PIECE_MAX_CHARS


def test_a_piece_ends_where_no_token_is_parted():
    text = "word " * 200_000
    for piece in list(split_pieces(text))[:-1]:
        assert piece.endswith("word")


@pytest.mark.parametrize("special", ["<|endoftext|>", "<|im_start|>", "<|fim_prefix|>", "<|endofprompt|>"])
def test_special_tokens_count_as_the_text_they_are(special):
    assert Encoding("o200k_base").text(special) == SECOND["o200k_base"]().count(special) > 1


def test_a_lone_surrogate_counts_as_the_replacement_character_and_a_pair_as_its_character():
    counter = Encoding("o200k_base")
    assert counter.text("a\ud83db") == counter.text("a\ufffdb")
    assert counter.text("\ud83d\ude00") == counter.text("\U0001f600")
    assert replace_surrogates("\ude00\ud83d") == "\ufffd\ufffd"


def test_an_unknown_encoding_is_refused_and_the_known_ones_are_named():
    with pytest.raises(ConfigurationError, match="o200k_base"):
        Encoding("p50k_base")


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_of_the_list_is_in_the_wheel(name):
    assert 2 <= Encoding(name).text("Hello, world") <= 6


def test_making_a_counter_loads_nothing():
    code = (
        "import sys; from pagein.tokens import windows; windows.counter_for('gpt-4o'); windows.budget_for('claude-opus-5');"
        "assert not {'splintr', 'numpy'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_many_large_blobs_do_not_stay_in_the_cache():
    counter, choose = Encoding("o200k_base"), random.Random(3)
    for _ in range(5):
        counter.text("".join(choose.choices("abcdefghijklmnopqrstuvwxyz", k=_CACHED_MAX_CHARS + 1)))
        assert load_tokenizer("o200k_base").cache_len == 0


def test_threads_that_empty_the_cache_agree_with_those_that_use_it():
    texts = [*random_texts(200, 5), "word and " * 9_000]
    expected = [Encoding("o200k_base").text(text) for text in texts]
    wrong: list[str] = []

    def count() -> None:
        for text, true in zip(texts, expected, strict=True):
            if Encoding("o200k_base").text(text) != true:
                wrong.append(text)

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.slow
def test_fifty_megabytes_are_counted():
    text = "The build failed on line 42 of settings.py, because it was empty. " * 760_000
    assert len(text) > 50_000_000
    assert Encoding("o200k_base").text(text) > 10_000_000
