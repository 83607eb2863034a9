"""Statements in languages other than English are recognised, and small talk is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pagein.context.ledger.binding_words import guess_language
from pagein.context.ledger.statements import find_statements

SECTIONS = {
    head.split()[0] + " " + head.split()[1]: [line for line in rest.splitlines() if line]
    for head, _, rest in (
        section.partition("\n")
        for section in Path(__file__).with_name("other_languages.txt").read_text("utf-8").split("## ")[1:]
    )
}
LANGUAGES = sorted({name.split()[0] for name in SECTIONS})


@pytest.mark.parametrize("language", LANGUAGES)
def test_nearly_all_that_binds_is_found_and_hardly_any_small_talk(language):
    missed = [text for text in SECTIONS[f"{language} binds"] if not find_statements(text, "user")]
    taken = [text for text in SECTIONS[f"{language} talk"] if find_statements(text, "user")]
    assert len(missed) <= 2, missed
    assert len(taken) <= 1, taken


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Fındığa alerjim var.", "Turkish"),
        ("Prefiero listas a textos largos.", "Spanish"),
        ("\u0141ukasz handles payroll.", "English"),
        ("Meet me at the caf\u00e9 on Monday.", "English"),
        ("Budget: 700 per person", "English"),
    ],
)
def test_a_short_sentence_is_read_in_its_language(text, language):
    assert guess_language(text) == language


@pytest.mark.parametrize(
    "text", ["Antworte höchstens in drei Sätzen.", "预算最多三千二百欧元。", "Не длиннее трёх страниц."]
)
def test_a_limit_may_have_its_number_in_words(text):
    assert [statement.kind for statement in find_statements(text, "user")] == ["limit"]
