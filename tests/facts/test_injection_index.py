"""The index that ``format_memory_for_injection`` keeps: read once, changed in place, never seen in the text."""

import json
import random

import pytest

from pagein.facts import format_memory_for_injection, injection
from pagein.tokens.encodings import Encoding

WORDS = "tests python docker flights hotels tabs spaces coffee tea rome milan kids school budget train garden".split()  # noqa: SIM905
CATEGORIES = ["preference", "knowledge", "context", "correction", "constraint"]


def facts(number, seed):
    draw = random.Random(seed)
    return [
        {
            "content": f"{' '.join(draw.choices(WORDS, k=6))} {item % 90}",
            "category": draw.choice(CATEGORIES),
            "confidence": draw.choice([0.5, 0.7, 0.9]),
        }
        for item in range(number)
    ]


def afresh(*arguments):
    injection._kept_indexes.cache_clear()
    return format_memory_for_injection(*arguments)


@pytest.mark.parametrize("number", [40, 700])
def test_what_was_asked_before_never_shows(number):
    """Edits of every kind, with an index that is kept and with one that is new."""
    draw = random.Random(number)
    data = {"facts": facts(number, number)}
    for turn in range(8):
        context = " ".join(draw.choices(WORDS, k=3))
        expected = afresh(json.loads(json.dumps(data)), 300, context)
        injection._kept_indexes.cache_clear()
        format_memory_for_injection({"facts": facts(number, number)}, 300, "tea")
        assert format_memory_for_injection(data, 300, context) == expected
        assert format_memory_for_injection(data, 300, context) == expected
        edit(data["facts"], draw.randrange(len(data["facts"])), turn)


def edit(rows, at, turn):
    match turn % 4:
        case 0:
            rows.pop(at)
        case 1:
            rows.insert(at, {"content": f"new {turn} coffee", "category": "correction"})
        case 2:
            rows[at].update(confidence=0.1)
        case _:
            rows.reverse()


def test_only_what_is_new_is_read(monkeypatch):
    data = {"facts": facts(200, 1)}
    afresh(data, 300, "tea")
    read = []
    add = injection._FactIndex._add
    monkeypatch.setattr(injection._FactIndex, "_add", lambda self, *row: read.append(row) or add(self, *row))
    format_memory_for_injection(json.loads(json.dumps(data)), 300, "flights")
    assert read == []
    data["facts"].append({"content": "Moved to Lyon", "category": "knowledge"})
    assert "Lyon" in format_memory_for_injection(data, 300, "Lyon")
    assert len(read) == 1


def test_memories_of_two_users_stay_apart_and_few_are_kept():
    for seed in range(2 * injection.MAX_INDEXES):
        mine = {"facts": [{"content": f"secret {seed} of one user", "category": "knowledge"}]}
        text = format_memory_for_injection(mine, 300, "secret")
        assert text == afresh(mine, 300, "secret")
        assert text.count("secret") == 1
    for seed in range(2 * injection.MAX_INDEXES):
        format_memory_for_injection({"facts": facts(5, seed)}, 300, "tea")
    assert len(injection._kept_indexes()._indexes) <= injection.MAX_INDEXES


def test_another_counter_counts_anew():
    data = {"facts": facts(60, 3)}
    narrow, wide = Encoding("o200k_base"), Encoding("cl100k_base")
    for counter in (narrow, wide, narrow):
        text = format_memory_for_injection(data, 200, "tea", counter=counter)
        assert counter.text(text) <= 200
