"""A long result is abridged by its structure: JSON, diffs, tables and logs."""

import json
import re

import pytest

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.abridge import abridge
from pagein.context.compaction.clips import clip_results
from pagein.testing.promises import fold_entries
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")


def entry_of(text):
    step = ActionStep(None, (ToolCall("c", "run", "{}"),), (Observation("c", text),))
    entries = InMemoryLog().append([TaskStep("Look."), step], after=0, at=0.0)
    return fold_entries(entries, COUNTER).view(100_000).run[-1]


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


PODS = [f"{name}-{n}f8b   1/1     Running   0    {n}d" for n in range(30) for name in ("api", "checkout-worker")]
PODS[23] = "api-11f8b   0/1     CrashLoopBackOff   17 (2m ago)    3d"
BOX = "+----+-------+-------+"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\n".join(["NAME   READY   STATUS   RESTARTS   AGE", *PODS]), ("NAME   READY", PODS[23], " rows left out")),
        (
            "\n".join(
                [
                    BOX,
                    "| id | name  | state |",
                    BOX,
                    *(f"| {n} | a {n} | open |" for n in range(90)),
                    BOX,
                    "90 rows in set",
                ]
            ),
            (BOX + "\n| id | name", "| 0 | a 0", "90 rows in set", " rows left out"),
        ),
        (
            " id | name | state\n----+------+------\n"
            + "\n".join(f"  {n} | a{n} | {'lost' if n == 41 else 'open'}" for n in range(90)),
            (" id | name", " 41 | a41 | lost", " rows left out"),
        ),
        (
            "id,name,city\n" + "\n".join(f'{n},"Ruiz, Ana",Berlin' for n in range(120)),
            ("id,name,city", " rows left out"),
        ),
    ],
)
def test_tables_as_programs_print_them_keep_the_header_and_the_row_that_differs(text, shown):
    short = abridge(text, within(180))
    assert COUNTER.text(short) <= 180
    assert [part for part in shown if part not in short] == []


FRAMES = [f"    at frame_{n} (lib/{n}.js:{n})" for n in range(80)]
PASSED = [f"tests/test_{n}.py::test_{n} PASSED" for n in range(150)]


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ([*PASSED[:70], "tests/test_a.py::test_a FAILED", *PASSED[70:]], ("test_a FAILED",)),
        (["=== FAILURES ===", *FRAMES, "E       assert 502 == 200", *FRAMES, "1 failed in 3s"], ("assert 502", "1 failed")),
        ([f"ok part {n}" for n in range(90)] + ["--- FAIL: TestWindow", "    w_test.go:8: got 3, want 5"] + PASSED, ("got 3",)),
        ([*PASSED, "thread 'a::b' panicked at src/a.rs:2:9:", "  left: 1", " right: 2", *FRAMES], ("panicked", "right: 2")),
        (["/srv/a.js", "  1:2  warning  semi"] * 30 + ["/srv/b.js", "  7:3  error  no-var"] + FRAMES, ("/srv/b.js", "no-var")),
        ([f"10:00:{n % 60:02} \u4fe1\u606f {n}" for n in range(90)] + ["10:01:00 \u9519\u8bef \u5931\u8d25"] + PASSED, ("\u5931\u8d25",)),
        ([f"open(a, b, {n})" for n in range(60)] + ["open(a, b, c) = ENOENT"] + [f"read({n}, x, 8)" for n in range(40)], ("ENOENT",)),
        ([f'{{"level": "info", "n": {n}, "to": "a"}}' for n in range(99)] + ['{"level": "error", "n": 9, "to": "a"}'] + PASSED[:9], ('"error"',)),
    ],
)  # fmt: skip
def test_the_error_in_the_middle_of_an_output_stays(lines, shown):
    short = abridge("\n".join(lines), within(250))
    assert COUNTER.text(short) <= 250
    assert [part for part in shown if part not in short] == []
    left_out = sum(int(line.split()[1]) for line in short.splitlines() if line.endswith("s left out"))
    assert left_out + sum(line in lines for line in short.splitlines()) == len(lines)


@pytest.mark.parametrize("tokens", [600, 200])
def test_json_between_other_lines_and_the_item_that_differs(tokens):
    rows = [{"id": n, "state": "done", "note": "x" * 40} for n in range(90)]
    rows[50]["state"] = "failed"
    short = abridge("HTTP/2 200\n\n" + json.dumps({"jobs": rows, "next": "/p2"}) + "\n(0.2 s)", within(tokens))
    head, body, end = short.split("\n\n")[0], short.split("\n\n")[1].splitlines()[0], short.splitlines()[-1]
    value = json.loads(body)
    assert (head, end, value["next"]) == ("HTTP/2 200", "(0.2 s)", "/p2")
    shown = [row for row in value["jobs"] if isinstance(row, dict)]
    assert 50 in [row["id"] for row in shown]
    gaps = [int(row.split()[1]) for row in value["jobs"] if isinstance(row, str)]
    assert sum(gaps) + len(shown) == 90


@pytest.mark.parametrize(
    "wrap", [lambda text: {"exit_code": 1, "stdout": text}, lambda text: [{"type": "text", "text": text}]]
)
def test_the_output_in_json_is_abridged_by_its_own_structure(wrap):
    value = wrap("\n".join([*PASSED, "tests/test_a.py::test_a FAILED", *FRAMES]))
    short = json.loads(abridge(json.dumps(value), within(250)))
    text = short["stdout"] if isinstance(short, dict) else short[0]["text"]
    assert short == wrap(text)
    assert "test_a FAILED" in text
    assert "lines left out" in text


def a_page(link, text, field):
    """A page with a menu of 60 links, 12 offers and a footer of 40 links."""
    offers = [
        (text.format(f"Offer {n} with a long description of it, {'word ' * 60}"), link.format(200 + n, f"Buy {n}"))
        for n in range(12)
    ]
    return [
        *(link.format(n, f"Menu {n}") for n in range(60)),
        field.format(99, "Search"),
        *(line for offer in offers for line in offer),
        *(link.format(300 + n, f"Footer {n}") for n in range(40)),
    ]


PAGES = {
    "webarena": ("\t[{}] link '{}'", "\tStaticText '{}'", "[{}] textbox '{}' required: False"),
    "browser-use": ("[{}]<a {}/>", "{}", "[{}]<input {}/>"),
    "marks": ("- [{}] <a>{}</a>", "- {}", "- [{}] <input placeholder='{}'/>"),
    "playwright": ('  - link "{1}" [ref=e{0}]', "  - text: {}", '- textbox "{1}" [ref=e{0}]'),
    "devtools": ('uid=3_{} link "{}"', "StaticText {}", 'uid=3_{} textbox "{}"'),
}


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_keeps_its_elements_and_counts_rows_of_links(kind):
    lines = a_page(*PAGES[kind])
    short = abridge("\n".join(lines), within(900))
    assert COUNTER.text(short) <= 900
    shown = short.splitlines()
    assert lines[60] in shown, "the field between the menu and the offers"
    assert all(line in shown for line in lines if "Buy" in line)
    assert sum("description" in line for line in shown) == 12
    assert sum("lines left out" in line for line in shown) == 2
    assert abridge("\n".join(lines), within(200)).splitlines()[0] == shown[0]


def test_a_diff_that_cannot_keep_its_hunks_names_its_files_and_counts_the_lines():
    text = "\n".join(a_diff())
    short = abridge(text, within(100)).splitlines()
    assert [f"diff --git a/f{file}.py b/f{file}.py" for file in range(4)] == short[::2]
    assert len(short[::2]) + sum(int(line.split()[1]) for line in short[1::2]) == len(text.splitlines())


def test_a_deleted_comment_is_no_header_and_a_commit_is():
    hunk = "@@ -1,40 +1,40 @@\n" + "\n".join("--- old note\n+++ new note" for _ in range(40))
    text = (
        f"commit {'a' * 40}\nAuthor: Ana\n\n    Notes.\n\ndiff --git a/m.sql b/m.sql\n--- a/m.sql\n+++ b/m.sql\n{hunk}"
    )
    short = abridge(text, within(150)).splitlines()
    assert {f"commit {'a' * 40}", "    Notes.", "+++ b/m.sql"} <= set(short)
    assert short.count("--- old note") < 40


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
    deep = abridge("[" * 5_000 + "]" * 5_000, within(50))
    assert deep is None or within(50)(deep)  # from Python 3.13 on it is read


def test_what_is_abridged_again_counts_what_left_before():
    lines = [f"2026-11-22 10:00:{n % 60:02} INFO request {n} served" for n in range(400)]
    lines[211] = "2026-11-22 10:03:31 ERROR disk is full"
    text = "\n".join(lines)
    for tokens in (1_500, 600, 200):
        (stub,) = clip_results(entry_of(text), tokens, COUNTER)
        text = stub.text
        shown = [line for line in text.splitlines() if line in lines]
        left_out = sum(int(line.split()[1]) for line in text.splitlines() if line.endswith(" lines left out"))
        assert len(shown) + left_out == 400
        assert lines[211] in shown
        (gap,) = re.findall(r"\[\.\.\. ([\d,]+) characters left out", text)
        assert abs(int(gap.replace(",", "")) + sum(len(line) + 1 for line in shown) - len("\n".join(lines))) < 8


def test_json_abridged_again_counts_what_left_before():
    value = {"rows": [{"id": n, "note": "x" * 900} for n in range(300)], **{f"k{n}": n for n in range(200)}}
    short = json.loads(abridge(abridge(json.dumps(value), within(2_000)), within(300)))
    rows = [row if isinstance(row, dict) else int(row.split()[1]) for row in short["rows"]]
    assert sum(1 if isinstance(row, dict) else row for row in rows) == 300
    assert len(short) - 1 + int(short["..."].split()[0]) == 201
    assert len(rows[0]["note"].split("...")[0]) + int(rows[0]["note"].split()[1]) == 900


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
