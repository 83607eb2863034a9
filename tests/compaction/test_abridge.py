"""A long result is abridged by its structure: JSON, diffs, tables and logs."""

import json

import pytest

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.context.compaction.abridge import abridge
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")


def within(tokens):
    return lambda text: COUNTER.text(text) <= tokens


USERS = [{"id": n, "name": f"user_{n}", "note": "long words " * 40, "tags": ["a", "b"]} for n in range(200)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("tokens", [2_000, 500, 150])
def test_json_stays_json_and_counts_what_is_left_out(indent, tokens):
    text = json.dumps({"users": USERS, "total": 200}, indent=indent)
    short = abridge(text, within(tokens))
    assert COUNTER.text(short) <= tokens
    value = json.loads(short)
    assert value["total"] == 200
    *shown, more = value["users"]
    assert [user["id"] for user in shown] == list(range(len(shown)))
    assert more == f"... {200 - len(shown)} items more"
    assert shown[0]["note"].endswith("characters more")
    assert shown[0]["tags"] in (["a", "b"], ["a", "... 1 items more"])


def test_keys_of_a_large_object_are_counted():
    value = json.loads(abridge(json.dumps({f"key_{n}": n for n in range(500)}), within(300)))
    count = len(value) - 1
    assert value["..."] == f"{500 - count} keys more"
    assert value["key_0"] == 0


def test_json_that_is_deep_or_has_half_a_character_is_abridged():
    deep = "[" * 400 + "1" + "]" * 400
    assert "1 items deeper" in abridge(deep, within(200))
    short = abridge('["\\ud83d", ' + ", ".join(map(str, range(900))) + "]", within(200))
    assert short.encode()
    assert json.loads(short)[0] == "\ud83d"


def a_diff():
    for file in range(4):
        yield f"diff --git a/f{file}.py b/f{file}.py\nindex 1..2 100644\n--- a/f{file}.py\n+++ b/f{file}.py"
        for hunk in range(3):
            yield f"@@ -{hunk * 50},20 +{hunk * 50},20 @@ def function_{hunk}():"
            yield from (f" unchanged line number {n}" for n in range(12))
            yield from (f"-old line {n} of {hunk}\n+new line {n} of {hunk}" for n in range(8))


@pytest.mark.parametrize("tokens", [1_500, 700, 500])
def test_a_diff_keeps_the_headers_of_files_and_hunks(tokens):
    text = "\n".join(a_diff())
    short = abridge(text, within(tokens)).splitlines()
    assert COUNTER.text("\n".join(short)) <= tokens
    for file in range(4):
        assert {f"--- a/f{file}.py", f"+++ b/f{file}.py"} <= set(short)
    assert sum(line.startswith("@@ ") for line in short) == 12
    left_out = sum(int(line.split()[1]) for line in short if line.endswith("lines left out"))
    notes = sum(line.endswith("lines left out") for line in short)
    assert len(short) - notes + left_out == len(text.splitlines())


def test_changed_lines_of_a_diff_stay_before_unchanged_ones():
    short = abridge("\n".join(a_diff()), within(1_500))
    assert "+new line 0 of 0" in short
    assert "unchanged" not in short


@pytest.mark.parametrize("separator", [" | ", ",", "\t"])
def test_a_table_keeps_its_header_and_whole_rows(separator):
    header = separator.join(("id", "name", "amount"))
    rows = [separator.join((str(n), f"name {n}", str(n * 7))) for n in range(300)]
    short = abridge("\n".join([header, "---|---|---", *rows] if "|" in separator else [header, *rows]), within(300))
    first, *others = short.splitlines()
    assert first == header
    (note,) = [line for line in others if line.endswith("rows left out")]
    shown = [line for line in others if line in rows]
    assert rows[0] in shown
    assert rows[-1] in shown
    assert int(note.split()[1]) == 300 - len(shown)
    assert COUNTER.text(short) <= 300


def test_a_log_keeps_its_ends_and_each_kind_of_error_once():
    lines = [f"2026-11-22 10:00:{n % 60:02} INFO request {n} served" for n in range(400)]
    lines[100] = "2026-11-22 10:01:40 ERROR connection refused by 10.0.0.1"
    lines[150] = "2026-11-22 10:02:30 ERROR connection refused by 10.0.0.2"
    lines[222] = "2026-11-22 10:03:42 ERROR disk is not found"
    short = abridge("\n".join(lines), within(400)).splitlines()
    assert short[0] == lines[0]
    assert short[-1] == lines[-1]
    assert lines[100] in short
    assert lines[150] not in short
    assert lines[222] in short
    left_out = sum(int(line.split()[1]) for line in short if line.endswith("lines left out"))
    assert left_out + sum(line in lines for line in short) == 400


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words\n" * 100,
        "{broken",
        "[1, 2",
        "def f(a, b, c):\n    return a, b, c\n" * 50,
        "@@ no diff @@\n" * 30,
    ],
)
def test_other_texts_have_no_structure(text):
    assert abridge(text, lambda form: True) is None


def test_what_does_not_fit_by_its_structure_is_for_the_caller():
    assert abridge(json.dumps({"key " * 400: 1}), within(50)) is None
    assert abridge("[" * 5_000 + "]" * 5_000, within(50)) is None


def test_a_result_in_a_run_is_abridged_and_its_handle_gives_it_back():
    text = json.dumps(USERS)
    call = ToolCall("c", "search", "{}")
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        memory.record(TaskStep("Look."))
        memory.record(ActionStep(None, (call,), (Observation("c", text),)))
        content = next(row["content"] for row in memory.to_messages() if row["role"] == "tool")
        body, gap, _ = content.rsplit("\n", 2)
        assert json.loads(body)[-1].endswith("items more")
        assert "characters left out: s1.0" in gap
        assert memory.view().tokens <= 4_000
        assert str(memory.expand("s1.0")) == text
        assert memory.verify().ok
