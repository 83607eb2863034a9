"""The terms of texts and of queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.search.tokenizer import (
    MAX_TERM_CHARS,
    TermMatcher,
    beginnings,
    query_terms,
    surface_forms,
    terms,
    without_accents,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("get_user_by_id", {"get_user_by_id", "get", "user", "by", "id"}),
        ("getUserById", {"getuserbyid", "get", "user"}),
        ("HTTPServerError", {"httpservererror", "http", "server", "error"}),
        ("src/a/test_b.py", {"src/a/test_b.py", "test_b.py", "test", "b", "py"}),
        (r"C:\logs\run.txt", {"run.txt", "run", "txt", "log"}),
        ("E1234", {"e1234", "1234"}),
        ("sha256", {"sha256", "256"}),
        ("v2.1.3-rc1", {"v2.1.3-rc1", "rc1", "rc"}),
        ("well-known", {"well-known", "well", "know"}),
        ("user@example.org", {"user@example.org", "exampl", "org"}),
        ("Caroline's failures", {"carolin", "failur"}),
        ("ﬁle №5", {"file", "no5"}),
        ("Ünïcode", {"unicod"}),
        ("हिन्दी में", {"हिन्दी", "में"}),
        ("قَهْوَة", {"قَهْوَة"}),
        ("中文搜索test", {"中", "中文", "文搜", "搜索", "test"}),
    ],
)
def test_names_are_kept_whole_and_in_part(text, expected):
    assert expected <= set(terms(text))


def test_a_question_loses_its_stop_words_and_keeps_its_names():
    assert query_terms("What is the value of max_rows in the config?", 9) == (
        "valu",
        "max_rows",
        "max",
        "row",
        "config",
    )
    assert query_terms("who are you", 9) == ("who", "are", "you")
    assert query_terms("the an of", 2) == ("the", "an")


def test_a_digit_and_a_capital_that_stand_alone_are_asked_for():
    assert query_terms("What did I say about chapter 7 and plan B?", 9) == ("say", "chapter", "7", "plan", "b")
    assert query_terms("I don't know E4711 of 2.1", 9) == ("know", "e4711", "4711", "2.1")


def test_irregular_forms_and_numbers_meet_their_word():
    assert set(query_terms("Which three books did they buy?", 9)) <= set(terms("I bought 3 books"))


def test_of_a_long_question_names_come_first():
    words = " ".join(f"{letter}{other}ly" for letter in "abcdefgh" for other in "klmnopqr")
    assert query_terms(f"{words} E4711", 3)[:2] == ("e4711", "4711")


def test_how_a_term_was_put_is_told():
    assert surface_forms("Running get_rows", query_terms("Running get_rows", 9)) == {
        "run": "running",
        "get_rows": "get_rows",
        "get": "get",
        "row": "row",
    }


@given(st.text(max_size=300))
def test_terms_are_of_one_piece_and_what_is_asked_is_what_is_stored(text):
    stored = list(terms(text))
    assert all(0 < len(term) <= MAX_TERM_CHARS and not term.isspace() and " " not in term for term in stored)
    assert not any(set('"=\0\n\t') & set(term) for term in stored)
    assert set(query_terms(without_accents(text), 1_000)) <= {*stored, *beginnings(text)}
    assert not any(set('"=\0\n\t ') & set(term) for term in beginnings(text))


@pytest.mark.parametrize("unit", ["a", "_", "a_", "aB", "中", "/a", "a.", "1a", "-", " a"])
def test_a_text_has_no_more_terms_than_characters(unit):
    text = unit * (200_000 // len(unit))  # what is not linear would not end
    assert sum(len(term) for term in terms(text)) <= 3 * len(text)


@given(st.text("aZ_09./\\:@#+- \n", max_size=40))
def test_an_ascii_text_has_the_same_terms_as_in_a_text_that_is_not(text):
    assert list(terms(f"{text} ")) == list(terms(f"{text} \u2014"))


@pytest.mark.parametrize(
    ("stored", "query"),
    [
        ("the café", "cafe"),
        ("the cafe", "CAFÉ"),
        ("Hauptstraße 5", "hauptstrasse"),
        ("Łódź", "lodz"),
        ("smørrebrød", "smorrebrod"),
    ],
)
def test_accents_of_latin_letters_do_not_matter(stored, query):
    assert set(query_terms(query, 9)) & set(terms(stored))


def test_a_query_has_its_accents_too_for_an_index_that_was_written_with_them():
    assert query_terms("the café", 9) == ("cafe", "café")


def test_the_word_that_was_found_is_shown_as_it_was_asked():
    assert surface_forms("Cafés", ["cafe"]) == {"cafe": "cafés"}


def test_letters_of_other_scripts_stay():
    assert list(terms("йод λόγος")) == ["йод", "λόγος"]


@pytest.mark.parametrize(("text", "term"), [("第7埠頭はどこですか", "7"), ("제7장을 요약해", "7"), ("บทที่7", "7")])
def test_a_digit_between_letters_without_spaces_is_looked_for(text, term):
    assert term in query_terms(text, 64)
    assert term in set(terms(text))


def test_a_digit_of_a_word_is_looked_for_with_the_word_alone():
    assert "2" not in query_terms("日本語のv2を使う", 64)


@pytest.mark.parametrize(
    "text",
    [
        "My cat sleeps on the roof.",
        "def read(path): return open(path, encoding=utf8)",
        "2026-11-26 10:00:01 ERROR E12",
        "",
    ],
)
def test_english_and_code_have_no_beginnings(text):
    assert beginnings(text) == ()


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("Minun kissani nukkuu", "kiss~"),
        ("Unsere Häuser stehen am Fluss", "haus~"),
        ("Моя кошка спит", "кошк~"),
        ("הסירה והחתול", "סיר~"),
        ("إلى السوق والقِطّ", "سوق~"),
        ("मेरी बिल्ली", "बिल~"),
    ],
)
def test_the_words_of_another_language_have_beginnings(text, term):
    assert term in beginnings(text)


def test_a_word_that_was_found_by_its_beginning_is_shown_as_it_was_asked():
    assert surface_forms("kissat", ["kiss~"]) == {"kiss~": "kissat"}


def test_a_line_is_found_by_the_beginning_of_its_words():
    assert TermMatcher(query_terms("kissat", 9)).terms_in("Missä kissani on?") == {"kis~", "kiss~"}


@pytest.mark.parametrize("unit", ["a", "я", "ب", "ab ", "é", "\u064b"])
def test_beginnings_are_no_longer_than_the_text(unit):
    text = unit * (200_000 // len(unit))
    assert sum(map(len, beginnings(text))) <= 4 * len(text)
