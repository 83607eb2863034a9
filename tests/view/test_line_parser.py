"""The line parser: a line parses alike however often, and in whatever order, it comes."""

import json
import random

from hypothesis import given
from hypothesis import strategies as st

from pagein import ActionStep, Observation, TaskStep, ToolCall
from pagein.context.salience import lines as reading
from pagein.context.salience.lines import LineParser, has_context, is_failure, stems, strip_line_number
from pagein.context.salience.tracker import SalienceTracker
from pagein.events.identifiers import identifiers, words

PIECES = (
    "error", "Exception", "fail", "s", "ed", "ure", " ", "not found", "no such", "_", "1", "é", "\u017f", "reFu\u017fed",
    "Invalid", "cannot", "\u0130", "\u212a", "fatal", ".", "src/a.py", "userId", "HTTPError", "\u65e5\u672c", "\n", "\t",
)  # fmt: skip


def draw_lines(count, seed=1):
    draw = random.Random(seed)
    return ["".join(draw.choice(PIECES) for _ in range(draw.randint(0, 7))) for _ in range(count)]


def test_a_line_reads_like_an_error_exactly_where_the_pattern_says_so():
    for line in draw_lines(5_000):
        assert is_failure(line) == (reading._FAILURE.search(line) is not None), line


def test_stems_are_the_beginnings_of_the_words_in_any_script():
    for line in draw_lines(5_000):
        assert stems(line) == [word[:5] for word in words(line)], line


def test_a_reader_says_of_a_text_what_its_lines_say():
    reader = LineParser()
    for text in draw_lines(500) * 2:
        read = reader.parse_text(text)
        assert [line.raw for line in read] == text.splitlines()
        for line in read:
            assert (line.key, line.names) == (strip_line_number(line.raw), tuple(identifiers(line.raw)))
            assert line.names_with_context == {name for name in line.names if has_context(line.raw, name)}
        assert [name for line in read for name in line.names] == list(identifiers(text))


def test_a_line_of_many_names_and_few_words_is_read_in_time_linear_in_it(monkeypatch):
    # JSON of 1.8 MB in one line took 5 s: its two words were looked for anew beside each name, in all of the line.
    read = []
    monkeypatch.setattr(reading, "words", lambda text: read.append(len(text)) or words(text))
    characters = []
    for rows in (2_000, 8_000):
        read.clear()
        line = json.dumps([{"id": row, "key": f"item_{row}"} for row in range(rows)])
        assert not LineParser().parse_line(line).names_with_context
        characters.append(sum(read))
    assert characters[1] < 6 * characters[0]


def test_a_reader_forgets_what_it_read_long_ago_and_reads_it_again(monkeypatch):
    monkeypatch.setattr(reading, "CACHE_MAX_CHARS", 2_000)
    reader = LineParser()
    first = reader.parse_line("first_name here")
    for number in range(200):
        reader.parse_line(f"line_{number} " * 10)
    cached = len(reader._lines) + len(reader._older_lines)
    assert cached < 60
    assert reader.parse_line("first_name here") == first


def turn(number, draw):
    result = "\n".join(f"noise_{draw.randrange(900)} stands in file_{number}.py" for _ in range(60))
    call = ToolCall("a", "sh", f'{{"command": "cat file_{number}.py"}}')
    return ActionStep(f"I look at thing_{number}.", (call,), (Observation("a", result),))


def test_what_is_learnt_ahead_is_what_is_learnt_when_it_is_asked_for():
    draw = random.Random(3)
    steps = [TaskStep("Find noise_7."), *(turn(number, draw) for number in range(60))]
    lazy, ahead, eager = SalienceTracker(), SalienceTracker(), SalienceTracker()
    for position, step in enumerate(steps):
        for memo in (lazy, ahead, eager):
            memo.learn_step(position, step)
        ahead.learn_ahead(position % 5)
        earlier = ahead.names_before(eager.names)
        assert earlier == eager.names_before(eager.names)
        newest, one_before = f"file_{position - 1}.py", f"file_{position - 2}.py"
        assert (newest in earlier, one_before in earlier) == (False, position >= 2)
        if position % 7 == 6:
            assert ahead.names == lazy.names
            assert ahead.lines == lazy.lines
            assert ahead.name_chances() == lazy.name_chances()
    assert ahead.lines == lazy.lines


@given(st.text("aZ_09./~+- ", max_size=40))
def test_an_ascii_text_has_the_same_identifiers_as_in_a_text_that_is_not(text):
    assert identifiers(text) == identifiers(f"{text} \u2014")
    assert list(words(text)) == list(words(f"{text} \u2014"))
