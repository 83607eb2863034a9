"""A client that clears or shortens old messages in its own list: the run goes on in its own branch, and what was recorded stays."""

import json
from itertools import product

import pytest

from pagein import AgentMemory
from pagein.events.steps import ActionStep, as_text
from pagein.formats import format_named
from pagein.formats.registry import FORMATS
from pagein.testing.conversations import items_to_messages

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


def said(role, content):
    return {"role": role, "content": content}


def call(*numbers, **arguments):
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": json.dumps({"n": number, **arguments})}}
        for number in numbers
    ]  # fmt: skip
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(number, content):
    return {"role": "tool", "tool_call_id": f"c{number}", "content": content}


def picture(text):
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    return said("user", [{"type": "text", "text": text}, image])


def talk(turns=6):
    """Turns of a user's words, a call with a result, and an answer."""
    for number in range(turns):
        text = f"Line {number} of the file.\n" * (30 if number % 3 else 1)
        yield from (said("user", f"Read {number}."), call(number, why="x" * 400), result(number, text))
        yield said("assistant", f"It has {number} herons.")


def to_format(rows, form):
    """Messages of OpenAI as the list of another format."""
    messages = items_to_messages(format_named("openai").parse(rows))
    return next(value for value in format_named(form).render(messages).values() if isinstance(value, list))


CLEARED = {
    "cleared": lambda _: "[cleared]",
    "Claude": lambda _: "[Old tool result content cleared]",
    "a sentence": lambda _: "Tool output was removed to save context.",
    "its file": lambda _: "<persisted-output>/tmp/results/x.txt</persisted-output>",
    "in German": lambda _: "Altes Ergebnis, gelöscht",
    "its beginning": lambda text: text[: len(text) // 3] + "\u2026",
    "nothing": lambda _: "",
}


def clear(rows, how, keep):
    """The list with all results but the last ``keep`` cleared."""
    old = [at for at, row in enumerate(rows) if row["role"] == "tool"][:-keep]
    return [row | {"content": how(row["content"])} if at in old else row for at, row in enumerate(rows)]


@pytest.fixture(params=["one process", "reopened", "small budget"])
def hand_over(request, tmp_path):
    """Hand over lists in turn; return the memory."""
    budget = 700 if request.param == "small budget" else 40_000

    def run(lists, **options):
        memory = AgentMemory.open(tmp_path / "run.db", budget=budget, **options)
        for rows in lists:
            if request.param == "reopened":
                memory.close()
                memory = AgentMemory.open(tmp_path / "run.db", budget=budget, **options)
            memory.record_messages(rows)
            memory.to_messages()
        return memory

    return run


@pytest.mark.parametrize(
    ("how", "form"), sorted({(how, "openai") for how in CLEARED} | {*product(("cleared", "nothing"), FORMATS)})
)
def test_cleared_results_are_no_edit_and_the_full_ones_are_recalled(hand_over, form, how):
    rows = [*talk()]
    stops = [at + 1 for at, row in enumerate(rows) if row["role"] != "assistant"]
    lists = [to_format(clear(rows[:stop], CLEARED[how], keep=2), form) for stop in stops]

    with hand_over(lists, format=form) as memory:
        assert [branch.name for branch in memory.branches()] == ["main"]
        assert [type(step) for step in memory.steps].count(ActionStep) == 11
        results = [as_text(step.observations[0].content) for step in memory.steps if getattr(step, "tool_calls", ())]
        assert [text.strip() for text in results] == [row["content"].strip() for row in rows if row["role"] == "tool"]
        assert any("Line 1 of the file." in hit.text for hit in memory.recall("Line 1 of the file"))


def test_each_result_is_named_once():
    memory, rows = AgentMemory.open(":memory:", budget=40_000), [*talk()]
    for stop in range(1, len(rows) + 1):
        memory.record_messages(clear(rows[:stop], CLEARED["cleared"], keep=2))
    assert memory.repairs == tuple(
        f"the list has s{at}.0 shorter than recorded, cleared or respelled: what was recorded stays"
        for at in (1, 5, 9, 13)
    )


def test_parallel_results_out_of_order_are_cleared_one_by_one(hand_over):
    rows = [
        said("user", "Read."),
        call(1, 2, 3),
        result(2, "two " * 90),
        result(1, "one " * 90),
        result(3, "three " * 90),
    ]
    cleared = [rows[0], rows[1], result(1, "[cleared]"), result(2, "[cleared]"), rows[4]]
    rest = [said("assistant", "Read."), said("user", "Again."), call(4), result(4, "four")]
    memory = hand_over([rows, [*rows, *rest[:2]], [*cleared, *rest[:2]], [*cleared, *rest]])
    assert len(memory.branches()) == 1
    assert sorted(as_text(result.content).split()[0] for result in memory.steps[1].observations) == [
        "one",
        "three",
        "two",
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_shortened_arguments_and_dropped_images_are_no_edit(hand_over, form):
    rows = [*talk(2), picture("See."), said("assistant", "A dot."), said("user", "Good.")]
    short = [*rows[:1], call(0, why="x..."), *rows[2:8], said("user", "See.\n[image removed]"), *rows[9:]]
    bare = [*rows[:8], said("user", "See."), *rows[9:]]
    lists = [to_format(some, form) for some in (rows[:10], [*short[:11]], bare, [*bare, said("assistant", "Yes.")])]
    with hand_over(lists, format=form) as memory:
        assert len(memory.branches()) == 1
        assert as_text(memory.steps[-1].content) == "Yes."
        assert len(memory.steps) == 2 * 3 + 4


EDITS = {
    "words of the user": (0, said("user", "Read 0, all of it.")),
    "fewer words of the user": (0, said("user", "Read")),
    "an answer": (3, said("assistant", "None.")),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_somebody_changed_is_an_edit(hand_over, edit):
    rows, (at, row) = [*talk(2)], EDITS[edit]
    memory = hand_over([rows, [*rows[:at], row, *rows[at + 1 :], said("user", "And now?")]])
    assert len(memory.branches()) == 2
    assert as_text(memory.steps[-1].content) == "And now?"


@pytest.mark.parametrize("text", ["Line 7.", "removed", "", "[1, 2]"])
@pytest.mark.parametrize("rest", [[], [said("assistant", "Oh.")]], ids=["nothing behind it", "an answer behind it"])
def test_another_last_result_is_an_edit_unless_an_answer_follows(hand_over, text, rest):
    rows = [*talk(2)][:-1]
    memory = hand_over([rows, [*rows[:-1], result(1, text), *rest]])
    assert len(memory.branches()) == (1 if rest else 2)
    assert as_text(memory.steps[4].observations[0].content) == text


def test_a_result_in_other_words_of_the_same_length_is_shown_with_these(hand_over):
    rows = [*talk(2)]
    memory = hand_over([rows, [*rows[:2], result(0, "Line 7 of the file.\n"), *rows[3:], said("user", "And now?")]])
    assert len(memory.branches()) == 1
    assert as_text(memory.steps[1].observations[0].content) == "Line 7 of the file.\n"
    assert "Line 7 of the file." in str(memory.to_messages())


def test_a_last_result_that_is_cleared_behind_its_answer_is_no_edit(hand_over):
    rows = [*talk(2)]
    memory = hand_over([rows[:-1], [*rows[:-2], result(1, "[cleared]"), rows[-1], said("user", "Next.")]])
    assert len(memory.branches()) == 1
    assert as_text(memory.steps[4].observations[0].content).startswith("Line 1 of the file.")
