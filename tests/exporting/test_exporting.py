"""A session as a file: out of any store and into any other unchanged; what was tampered with stays outside."""

import contextlib
import json
import os
import shutil
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein import AgentMemory, AutoCheckpoint, Observation, TaskStep
from pagein.backends.memory import InMemoryLog
from pagein.backends.postgres.log import PostgresLog
from pagein.backends.sqlite.log import SQLiteLog
from pagein.cli import main
from pagein.errors import ConfigurationError, LogError, LogTooNew, LogUnreadable
from pagein.events.entries import Compaction, Observed, Pin, Replacement, Stub, Undo, Unpin
from pagein.events.steps import ActionStep, Image, Text, ToolCall
from pagein.formats import FORMATS as FORMAT_NAMES
from pagein.formats import validate
from pagein.log.export import find_wrong_reference
from pagein.memory.export import export_messages, export_session, import_session, read_session, transcript
from pagein.testing.logs import NOON
from pagein.testing.strategies import HAZARDS, ONE_OF_EACH, PICTURE, bodies, bodies_with_text_everywhere

FORMATS = Path(__file__).parent.parent / "formats"


@pytest.fixture
def stores(tmp_path, postgres, schema):
    """Opens a session in a store by the store's kind."""
    with contextlib.ExitStack() as stack:
        openers = {
            "memory": InMemoryLog,
            "sqlite": lambda **names: SQLiteLog(tmp_path / "run.db", **names),
            "postgres": lambda **names: PostgresLog(postgres.url, schema=schema, **names),
        }
        yield lambda kind, **names: stack.enter_context(contextlib.closing(openers[kind](**names)))


def filled(log):
    large = [TaskStep((Image(PICTURE * 3, "image/png"), Text("x" * 50_000))), Pin("y" * 40_000)]
    for number, batch in enumerate(([*ONE_OF_EACH], large, large, [Pin("last")])):
        log.append(batch, after=log.head(), at=NOON - number)
    return log


@pytest.mark.parametrize("source", ["memory", "sqlite", "postgres"])
@pytest.mark.parametrize("target", ["memory", "sqlite", "postgres"])
def test_a_session_moves_from_any_store_to_any_other_unchanged(stores, tmp_path, source, target):
    names = {"session": "s/'\"\N{SNOWMAN}", "tenant": "acme"}
    log = filled(stores(source, **names))
    entries = list(log.read())
    done = export_session(log, tmp_path / "run.jsonl")
    assert (done.entries, done.digest) == (len(entries), entries[-1].digest)
    if source == target != "memory":
        names["tenant"] = "copy"  # the store has that session already
    moved = stores(target, **names)
    back = import_session(tmp_path / "run.jsonl", moved)
    assert moved.verify().ok
    assert [(e.position, e.at, e.body) for e in moved.read()] == [(e.position, e.at, e.body) for e in entries]
    if names["tenant"] == "acme":
        assert list(moved.read()) == entries
        assert back == done
    # What was restored is a session like any other: it is written on, and leaves again.
    moved.append([Pin("on")], after=len(entries), at=NOON)
    assert moved.verify().ok


def test_a_blob_stands_in_the_file_once(tmp_path):
    export_session(filled(InMemoryLog()), tmp_path / "run.jsonl")
    lines = (tmp_path / "run.jsonl").read_bytes().splitlines()
    names = [json.loads(line)["blob"] for line in lines if line.startswith(b'{"blob":')]
    assert len(names) == len(set(names)) == 3 + sum(1 for name in names[3:])
    assert (tmp_path / "run.jsonl").stat().st_size < 4 * (3 * len(PICTURE) + 90_000)


def test_any_session_comes_back(tmp_path):
    @given(st.lists(bodies(), max_size=4), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
    def check(batch, name):
        log, back = InMemoryLog(session=name), InMemoryLog(session=name)
        log.append(batch, after=0, at=NOON)
        export_session(log, tmp_path / "any.jsonl")
        if find_wrong_reference(log.read(), log.head()):
            with pytest.raises(LogUnreadable, match="entry"):
                import_session(tmp_path / "any.jsonl", back)
            return
        import_session(tmp_path / "any.jsonl", back)
        assert list(back.read()) == list(log.read())

    check()


OUT_OF_RANGE = {
    "a call there is not": Observed(0, 1, Observation("c", "x")),
    "a call that fills the memory": Observed(0, 10**12, Observation("c", "x")),
    "a call below 0": Observed(0, -1, Observation("c", "x")),
    "an action there is not": Observed(9, 0, Observation("c", "x")),
    "a stub of a call there is not": Compaction(
        (Replacement(0, 1, (Stub("observation", 3, "x", "mask"),)),), "p", "r", 2, 1
    ),
    "steps that are to come": Compaction((Replacement(0, 10**9, (), "x"),), "p", "r", 2, 1),
    "a range that ends before it begins": Compaction((Replacement(1, 1, (), "x"),), "p", "r", 2, 1),
    "a compaction there is not": Undo(5),
    "a pin below 0": Unpin(-3),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_what_names_a_place_there_is_not_is_refused(tmp_path, name):
    log, back = InMemoryLog(), InMemoryLog()
    log.append([ActionStep("", (ToolCall("c", "bash", "{}"),)), OUT_OF_RANGE[name]], after=0, at=NOON)
    export_session(log, tmp_path / "run.jsonl")
    with pytest.raises(LogUnreadable, match="entry 1 "):
        import_session(tmp_path / "run.jsonl", back)
    assert back.head() == 0


def test_hazardous_text_is_in_one_line_and_comes_back(tmp_path):
    log, back = InMemoryLog(), InMemoryLog()
    for hazard in HAZARDS:
        log.append(bodies_with_text_everywhere(hazard), after=log.head(), at=NOON)
    export_session(log, tmp_path / "run.jsonl")
    import_session(tmp_path / "run.jsonl", back)
    assert list(back.read()) == list(log.read())


# What is refused


def tampered(lines):
    """Ways to change a file, by what was done."""
    half = len(lines) // 2
    first = next(n for n, line in enumerate(lines) if line.startswith(b'{"position":0'))
    blob = next(n for n, line in enumerate(lines) if line.startswith(b'{"blob":'))
    swapped = [*lines]
    swapped[-3], swapped[-2] = swapped[-2], swapped[-3]

    def line(number, old, new):
        assert old in lines[number]
        return [*lines[:number], lines[number].replace(old, new, 1), *lines[number + 1 :]]

    return {
        "the end is missing": lines[:-1],
        "half is missing": lines[:half],
        "half a line is missing": [*lines[:half], lines[half][:10]],
        "a line is missing": lines[:-3] + lines[-2:],
        "a blob is missing": lines[:blob] + lines[blob + 1 :],
        "a line stands twice": [*lines[:-1], *lines[-2:]],
        "two lines are swapped": swapped,
        "a body was changed": line(first, b'"body":{', b'"body":{ '),
        "a time was changed": line(first, b'"at":1', b'"at":2'),
        "a kind was changed": line(first, b'"kind":"system"', b'"kind":"task"'),
        "a blob was changed": line(blob, b'"data":"', b'"data":"AAAA'),
        "a digest was changed": line(len(lines) - 2, b'"digest":"s2:', b'"digest":"s2:0'),
        "the session was changed": line(0, b'"session":"', b'"session":"x'),
        "the count was changed": line(len(lines) - 1, b'"entries":', b'"entries":1'),
        "something was added": [*lines, b"\n"],
        "a line is no line of ours": [*lines[:half], b'{"a":1}\n', *lines[half:]],
        "a line is no JSON": [*lines[:half], b'{"position":\xff}\n', *lines[half:]],
        "a line is deep": [*lines[:half], b'{"position":' + b"[" * 100_000 + b"\n", *lines[half:]],
        "a field was added": line(first, b'"body":', b'"more":1,"body":'),
        "it is empty": [],
        "it is something else": [b"SQLite format 3\0"],
        "it is other JSON": [b'[{"role": "user"}]\n'],
    }


@pytest.mark.slow
def test_what_was_tampered_with_or_cut_off_is_refused_and_nothing_is_written(tmp_path):
    export_session(filled(InMemoryLog()), tmp_path / "good.jsonl")
    ways = tampered((tmp_path / "good.jsonl").read_bytes().splitlines(keepends=True))
    for way, lines in ways.items():
        (tmp_path / "bad.jsonl").write_bytes(b"".join(lines))
        target = InMemoryLog()
        with pytest.raises(LogUnreadable, match=r"bad\.jsonl") as refused:
            import_session(tmp_path / "bad.jsonl", target)
        assert "Nothing was written" in str(refused.value), way
        assert target.head() == 0, way
        assert main(["import", str(tmp_path / "bad.jsonl"), str(tmp_path / "new.db")]) == 1
        assert not (tmp_path / "new.db").exists(), way


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_refused_import_leaves_a_store_as_it_was(stores, tmp_path, kind):
    export_session(filled(InMemoryLog()), tmp_path / "good.jsonl")
    lines = (tmp_path / "good.jsonl").read_bytes().splitlines(keepends=True)
    log = stores(kind)
    for bad in (lines[:-1], [*lines[:-2], lines[-1]], [line.replace(b"last", b"lost") for line in lines]):
        (tmp_path / "bad.jsonl").write_bytes(b"".join(bad))
        with pytest.raises(LogUnreadable, match="Nothing was written"):
            import_session(tmp_path / "bad.jsonl", log)
        assert (log.head(), log.store.sessions()) == (0, ())
    assert import_session(tmp_path / "good.jsonl", log).entries == log.head()


def test_every_cut_is_noticed(tmp_path):
    log = InMemoryLog()
    log.append([TaskStep("a"), Pin("b")], after=0, at=NOON)
    export_session(log, tmp_path / "run.jsonl")
    whole = (tmp_path / "run.jsonl").read_bytes()
    for size in range(len(whole)):
        (tmp_path / "cut.jsonl").write_bytes(whole[:size])
        with pytest.raises(LogUnreadable):
            read_session(tmp_path / "cut.jsonl")


def test_a_later_release_is_named(tmp_path):
    log = InMemoryLog()
    log.append([TaskStep("a")], after=0, at=NOON)
    export_session(log, tmp_path / "run.jsonl")
    whole = (tmp_path / "run.jsonl").read_text()
    for old, new in (
        ('"format":1', '"format":2,"new":[]'),
        ('"kind":"task","version":1', '"kind":"task","version":99'),
    ):
        (tmp_path / "new.jsonl").write_text(whole.replace(old, new))
        with pytest.raises(LogTooNew, match="upgrade pagein"):
            read_session(tmp_path / "new.jsonl")


def test_an_import_goes_into_an_empty_session_only(stores, tmp_path):
    export_session(filled(InMemoryLog()), tmp_path / "run.jsonl")
    for kind in ("memory", "sqlite", "postgres"):
        log = stores(kind)
        log.append([Pin("mine")], after=0, at=NOON)
        with pytest.raises(LogError, match="1 entries already"):
            import_session(tmp_path / "run.jsonl", log)
        with pytest.raises(LogError):
            log.import_rows(read_session(tmp_path / "run.jsonl").rows, {})
        assert [each.body for each in log.read()] == [Pin("mine")]


def test_a_log_without_rows_is_told(tmp_path):
    class Plain:
        head = read = append = verify = close = None

    for move in (export_session, lambda log, path: import_session(path, log)):
        with pytest.raises(ConfigurationError, match="does not give its rows"):
            move(Plain(), tmp_path / "run.jsonl")


def test_an_export_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("before")
    log = filled(InMemoryLog())
    del log._blobs[next(iter(log._blobs))]
    with pytest.raises(LogUnreadable):
        export_session(log, path)
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["run.jsonl"]
    with pytest.raises(LogError, match="Nothing was written"):
        export_session(InMemoryLog(), tmp_path / "no" / "run.jsonl")
    with pytest.raises(LogUnreadable):
        read_session(tmp_path)


# Plain messages


def test_a_transcript_is_every_step_and_legal(tmp_path):
    log = InMemoryLog()
    with AgentMemory(log, budget=700) as memory:
        memory.record(TaskStep("Count \ud83d"))
        for number in range(30):
            memory.record(ActionStep(f"Look {number}", (ToolCall(f"c{number}", "ls", "{}"),)))
            memory.record(Observation(f"c{number}", f"file {number}\n" * 30))
            memory.view()
        memory.pin("not a part of it")
        assert memory.report().out
        for name in ("openai", "anthropic"):
            done = export_messages(log, tmp_path / "run.json", name)
            request = json.loads((tmp_path / "run.json").read_bytes())
            validate(request, name)
            assert request == transcript(log, name)
            assert done.entries == len(request["messages"]) == 61
            told = json.dumps(request)
            assert all(f"file {number}\\n" * 30 in told for number in range(30))
            assert "not a part of it" not in told
    assert transcript(InMemoryLog()) == {"messages": []}


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_a_transcript_has_what_was_said_and_no_more_in_every_format(tmp_path, name):
    log = InMemoryLog()
    log.append([TaskStep((Text("What is this?"), Image(PICTURE, "image/png"))), ActionStep("A dot.")], after=0, at=NOON)
    done = export_messages(log, tmp_path / "run.json", name)
    with AgentMemory.open(":memory:", budget=9_000) as copy:
        copy.record_messages(json.loads((tmp_path / "run.json").read_bytes()), name)
        assert [type(step) for step in copy.steps] == [TaskStep, ActionStep]
    assert done.entries == 2


# The command line


def test_the_commands_move_a_session(tmp_path, capsys, postgres):
    db, file, copy = (str(tmp_path / name) for name in ("run.db", "run.jsonl", "copy.db"))
    with AgentMemory.open(db, session="web", tenant="", checkpoints=AutoCheckpoint(close=False)) as memory:
        memory.record(TaskStep("Hi"))
    assert main(["export", db, file]) == 0
    assert "1 entry" in capsys.readouterr().out
    assert main(["import", file, copy]) == 0
    assert main(["import", file, copy]) == 1
    assert "already" in capsys.readouterr().err
    assert main(["import", file, copy, "--session", "other", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entries"] == 1
    assert main(["export", copy, file]) == 1
    assert "--session" in capsys.readouterr().err
    assert main(["export", copy, file, "--session", "none"]) == 1
    assert main(["export", copy, file, "--session", "web", "--format", "anthropic"]) == 0
    assert json.loads(Path(file).read_text())["messages"][0]["role"] == "user"
    assert main(["export", copy, file, "--session", "web", "--format", "gopher"]) == 1
    assert main(["export", str(tmp_path / "none.db"), file]) == 1
    with AgentMemory.open(copy, session="web") as memory:
        assert memory.steps == (TaskStep("Hi"),)
    capsys.readouterr()
    assert main(["export", copy, file, "--session", "web"]) == 0
    assert main(["import", file, postgres.url, "--tenant", "moved"]) == 0
    assert main(["export", postgres.url, file, "--tenant", "moved"]) == 0
    assert main(["export", "postgresql://ann:sesame@127.0.0.1:1/db", file]) == 1
    assert "sesame" not in "".join(capsys.readouterr())


# What earlier releases wrote


def test_a_session_that_version_1_exported_is_read_whole(tmp_path):
    with contextlib.closing(
        SQLiteLog(shutil.copy(FORMATS / "v1" / "log.db", tmp_path / "log.db"), tenant="acme", session="web")
    ) as stored:
        entries = list(stored.read())
    back = InMemoryLog(tenant="acme", session="web")
    done = import_session(FORMATS / "v1" / "session.jsonl", back)
    assert list(back.read()) == entries
    assert done.digest == entries[-1].digest == (
        "s2:17ff0f6b928fa6df8c9e25b6d533af0569e4da7a1983848527f2ef059f95b1fb"
    )  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_and_no_file_takes_its_place(tmp_path):
    pipe, log = tmp_path / "pipe", InMemoryLog(session="run")
    log.append([TaskStep("Hello")], after=0, at=NOON)
    os.mkfifo(pipe)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(pipe.read_bytes().splitlines()), daemon=True)
    reader.start()
    export_session(log, pipe)
    reader.join(5)
    assert (pipe.is_fifo(), len(lines)) == (True, 3)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("all_runs", [[], ["--all"]])
def test_an_import_reads_a_pipe(tmp_path, capsys, all_runs):
    db, file, copy, pipe = (str(tmp_path / name) for name in ("run.db", "run.jsonl", "copy.db", "pipe"))
    with AgentMemory.open(db) as memory:
        memory.record(TaskStep("Hi"))
    assert main(["export", db, file, *all_runs]) == 0
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: Path(pipe).write_bytes(Path(file).read_bytes()), daemon=True)
    writer.start()
    assert main(["import", pipe, copy]) == 0, capsys.readouterr().err
    writer.join(5)
    with AgentMemory.open(copy) as memory:
        assert memory.steps == (TaskStep("Hi"),)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_that_ends_early_is_named_and_writes_nothing(tmp_path, capsys):
    log, file, copy, pipe = InMemoryLog(session="run"), tmp_path / "run.jsonl", tmp_path / "copy.db", tmp_path / "pipe"
    log.append([TaskStep("Hi"), TaskStep("Ho")], after=0, at=0.0)
    export_session(log, file)
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(file.read_bytes()[:-9]), daemon=True)
    writer.start()
    assert main(["import", str(pipe), str(copy)]) == 1
    writer.join(5)
    said = capsys.readouterr().err
    assert f"{pipe}, line " in said
    assert "Nothing was written" in said
    assert not copy.exists()


def test_an_export_to_a_link_writes_where_it_leads(tmp_path):
    log, link, target = InMemoryLog(session="run"), tmp_path / "link.jsonl", tmp_path / "there" / "run.jsonl"
    target.parent.mkdir()
    try:
        link.symlink_to(target)
    except OSError:
        pytest.skip("no right to make links")
    for _ in range(2):  # a link to nothing yet, then to a file
        export_session(log, link)
        assert (link.is_symlink(), link.read_bytes()) == (True, target.read_bytes())
