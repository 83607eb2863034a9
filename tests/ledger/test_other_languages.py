"""Statements in languages other than English are recognised, and small talk is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pagein import AgentMemory
from pagein.context.ledger.binding_words import guess_language
from pagein.context.ledger.run_ledger import RunLedger
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
        ("Mandarin and kanji: 漢字 is one word.", "English"),
        ("Ask Mr. de la Cruz or Dr. van den Berg before you send anything.", "English"),
        ("Her blood type is O negative.", "English"),
        ("Завжди використовуй метричну систему.", "Ukrainian"),
        ("به تنظیمات دست نزن", "Persian"),
    ],
)
def test_a_short_sentence_is_read_in_its_language(text, language):
    assert guess_language(text) == language


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_newer_form_replaces_the_older_one_and_a_lifted_rule_leaves(language):
    for line in SECTIONS[f"{language} changes"]:
        ledger = RunLedger()
        for position, text in enumerate(line.split(" | ")):
            ledger.learn(position, text, "user")
        assert [item.statement.text for item in ledger.items.values()] == [text]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_other_people_always_or_never_do_is_no_rule_and_what_they_must_not_is(language):
    for line in SECTIONS[f"{language} others"]:
        habit, rule = line.split(" | ")
        assert not find_statements(habit, "user"), habit
        assert find_statements(rule, "user"), rule


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_that_is_pasted_or_quoted_makes_no_rule(language):
    (line,) = SECTIONS[f"{language} pasted"]
    intro, rule = line.split(" | ")
    for text in (f"{intro}\n\n{rule}\n{rule}", f'{intro} "{rule}"', f"> {rule}\n> {rule}", f"`{rule}`"):
        assert not find_statements(text, "user"), text
    assert find_statements(rule, "user")[0].is_safety


@pytest.mark.parametrize("language", LANGUAGES)
def test_ten_statements_are_in_view_after_two_hundred_turns(language):
    binds, talk = SECTIONS[f"{language} binds"][:10], SECTIONS[f"{language} talk"]
    with AgentMemory.open(":memory:", budget=2_000) as memory:
        messages = []
        for turn in range(200):
            said = binds[turn] if turn < len(binds) else f"{talk[turn % len(talk)]} ({turn})"
            answer = {"role": "assistant", "content": f"{talk[(turn + 1) % len(talk)]} ({turn})"}
            messages += [{"role": "user", "content": said}, answer]
            if turn % 10 == 9:
                memory.record_messages(messages, whole=False)
                messages = []
                request = memory.to_messages()
                assert memory.report().tokens <= 2_000
        assert memory.report().out
    shown = json.dumps(request, ensure_ascii=False)
    assert [text for text in binds if text not in shown] == []


@pytest.mark.parametrize(
    "text",
    [
        'git commit -m "no se toca"',
        "https://example.de/die/das/und/nicht/ohne/immer.html",
        "ERROR 2024-01-01 conexión rechazada por el servidor",
        "12 rue de la Paix, 75002 Paris",
    ],
)
def test_code_logs_and_addresses_are_no_language(text):
    assert not find_statements(text, "user")


@pytest.mark.parametrize(
    "text", ["Antworte höchstens in drei Sätzen.", "预算最多三千二百欧元。", "Не длиннее трёх страниц."]
)
def test_a_limit_may_have_its_number_in_words(text):
    assert [statement.kind for statement in find_statements(text, "user")] == ["limit"]
