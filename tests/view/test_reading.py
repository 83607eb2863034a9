"""What a line says is found out once, and is the same however often, and in what order, it is asked."""

import random

from pagein import ActionStep, Observation, TaskStep, ToolCall
from pagein.context.salience import lines as reading
from pagein.context.salience.lines import Reader, bare, fails, grounds, stems
from pagein.context.salience.tracker import Memo
from pagein.events.identifiers import identifiers, words

PIECES = (
    "error", "Exception", "fail", "s", "ed", "ure", " ", "not found", "no such", "_", "1", "é", "\u017f", "reFu\u017fed",
    "Invalid", "cannot", "\u0130", "\u212a", "fatal", ".", "src/a.py", "userId", "HTTPError", "\u65e5\u672c", "\n", "\t",
)  # fmt: skip


def drawn(count, seed=1):
    draw = random.Random(seed)
    return ["".join(draw.choice(PIECES) for _ in range(draw.randint(0, 7))) for _ in range(count)]


def test_a_line_reads_like_an_error_exactly_where_the_pattern_says_so():
    for line in drawn(5_000):
        assert fails(line) == (reading._FAILS.search(line) is not None), line


def test_stems_are_the_beginnings_of_the_words_in_any_script():
    for line in drawn(5_000):
        assert stems(line) == [word[:5] for word in words(line)], line


def test_a_reader_says_of_a_text_what_its_lines_say():
    reader = Reader()
    for text in drawn(500) * 2:
        read = reader.text(text)
        assert [each.raw for each in read] == text.splitlines()
        for each in read:
            assert (each.key, each.names) == (bare(each.raw), tuple(identifiers(each.raw)))
            assert each.grounded == {name for name in each.names if grounds(each.raw, name)}
        assert [name for each in read for name in each.names] == list(identifiers(text))


def test_a_reader_forgets_what_it_read_long_ago_and_reads_it_again(monkeypatch):
    monkeypatch.setattr(reading, "ROOM", 2_000)
    reader = Reader()
    first = reader.line("first_name here")
    for number in range(200):
        reader.line(f"line_{number} " * 10)
    held = len(reader._lines) + len(reader._before)
    assert held < 60
    assert reader.line("first_name here") == first


def turn(number, draw):
    seen = "\n".join(f"noise_{draw.randrange(900)} stands in file_{number}.py" for _ in range(60))
    call = ToolCall("a", "sh", f'{{"command": "cat file_{number}.py"}}')
    return ActionStep(f"I look at thing_{number}.", (call,), (Observation("a", seen),))


def test_what_is_learnt_ahead_is_what_is_learnt_when_it_is_asked_for():
    draw = random.Random(3)
    steps = [TaskStep("Find noise_7."), *(turn(number, draw) for number in range(60))]
    asked, ahead = Memo(), Memo()
    for position, step in enumerate(steps):
        for memo in (asked, ahead):
            memo.learn_step(position, step)
        ahead.learn_ahead(position % 5)
        if position % 7 == 6:
            assert ahead.names == asked.names
            assert ahead.lines == asked.lines
            assert ahead.name_chances() == asked.name_chances()
    assert ahead.lines == asked.lines
