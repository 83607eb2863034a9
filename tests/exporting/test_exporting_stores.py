"""A whole store as a file: runs, branches, checkpoints, facts and requests come back as they were, in any store."""

import contextlib
import json
import shutil

import pytest

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.backends.open import open_store
from pagein.backends.postgres.log import PostgresStore
from pagein.backends.sqlite.log import SQLiteLog
from pagein.cli import main
from pagein.errors import Conflict, LogError, LogTooNew, LogUnreadable
from pagein.memory import export
from pagein.memory.export import export_store, import_store

RUNS = ("web/app", "..", "-h", "talk \N{SNOWMAN}")


def work(memory, number):
    call = ToolCall(f"c{number}", "read", f'{{"part": {number}}}')
    memory.record(ActionStep(f"I read {number}.", (call,)), Observation(call.id, f"heron {number} " * 120))
    memory.to_messages()


def fill(path, **options):
    for run in RUNS:
        with AgentMemory.open(path, session=run, user="ann", budget=1_500, **options) as memory:
            memory.record(TaskStep("Count the herons. Never touch setup.cfg."))
            memory.facts.add("Likes herons")
            memory.facts.add(f"Works at {run}", scope="session")
            for number in range(12):
                work(memory, number)
            memory.checkpoint("counted")
            memory.pin("Keep the list.")
            memory.fork(name="other")
            memory.switch("other")
            work(memory, 20)
            memory.switch("main")
            work(memory, 30)


def contents(store):
    """Everything of a store that a user can see, by its rows and by what a memory says of them."""
    rows, told = {}, {}
    for name in store.sessions():
        with contextlib.closing(store.log(name)) as log:
            rows[name] = tuple(log.rows())
            assert log.verify().ok
    for run in RUNS:
        table = store.request_table(run).rows()
        with AgentMemory(store.log(run), user="ann", budget=1_500) as memory:
            rendered = [memory.request(row.number) for row in table]
            assert not [each.problem for each in rendered if each.problem]
            told[run] = (
                table,
                [each.request for each in rendered],
                memory.branches(),
                memory.checkpoints(),
                memory.ledger(),
                [fact.content for fact in memory.facts.list()],
            )
    return rows, told


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("filled") / "from.db"
    fill(path)
    return path


@pytest.fixture
def source(filled, tmp_path):
    shutil.copy(filled, tmp_path)
    with contextlib.closing(open_store(tmp_path / "from.db")) as store:
        yield store


@pytest.fixture
def file(source, tmp_path):
    export_store(source, tmp_path / "store.jsonl")
    return tmp_path / "store.jsonl"


@pytest.mark.parametrize("kind", ["sqlite", "encrypted", "postgres and back"])
def test_everything_comes_back_as_it_was(source, file, tmp_path, postgres, schema, kind):
    targets = {
        "sqlite": lambda: open_store(tmp_path / "to.db"),
        "encrypted": lambda: open_store(tmp_path / "to.db", key=b"k" * 32),
        "postgres and back": lambda: PostgresStore(postgres.url, schema=schema),
    }
    told = []
    with contextlib.closing(targets[kind]()) as target:
        result = import_store(file, target, tell=lambda *progress: told.append(progress))
        assert (result.runs, result.present, result.skipped) == (len(RUNS), 0, ())
        assert told[-1] == (2 * len(source.sessions()),) * 2
        assert contents(target) == contents(source)
        if kind == "postgres and back":
            export_store(target, tmp_path / "again.jsonl")
    if kind == "postgres and back":
        with contextlib.closing(open_store(tmp_path / "back.db")) as back:
            import_store(tmp_path / "again.jsonl", back)
            assert contents(back) == contents(source)


@pytest.mark.parametrize("at_once", [1, export.BATCH_BYTES])
def test_an_import_that_was_interrupted_goes_on(source, file, tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(export, "BATCH_BYTES", at_once)
    with contextlib.closing(open_store(tmp_path / "to.db")) as target:

        def stop(done, total):
            if done == total // 2 + 7:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            import_store(file, target, tell=stop)
        assert import_store(file, target).present == (7 if at_once == 1 else len(source.sessions()))
        assert contents(target) == contents(source)
        again = import_store(file, target)
        assert (again.runs, again.requests, again.present) == (0, 0, len(source.sessions()))


def test_small_runs_wait_for_the_disk_together(source, file, tmp_path, monkeypatch):
    begun, begin = [], SQLiteLog._begin
    monkeypatch.setattr(SQLiteLog, "_begin", lambda *of: begun.append(of) or begin(*of))
    with contextlib.closing(open_store(tmp_path / "to.db")) as target:
        import_store(file, target)
        assert len(source.sessions()) > 10
        assert len(begun) == 1


def test_sessions_that_are_imported_together_are_written_together_or_not(source, tmp_path):
    name, *others = source.sessions()
    with contextlib.closing(source.log(name)) as log:
        rows = tuple(log.rows())
    with contextlib.closing(open_store(tmp_path / "to.db")) as target:
        target.import_sessions({name: (rows, {})})
        with pytest.raises(Conflict):
            target.import_sessions({others[0]: (rows, {}), name: (rows, {})})
        assert target.sessions() == (name,)


def test_two_stores_become_one_and_what_differs_stays(source, file, tmp_path):
    with AgentMemory.open(tmp_path / "to.db", session="..", user="bob") as memory:
        memory.record(TaskStep("Of this machine."))
    with contextlib.closing(open_store(tmp_path / "to.db")) as target:
        before = target.sessions()
        with pytest.raises(LogError, match=r"'\.\.': there already, with other entries\. Nothing was written"):
            import_store(file, target)
        assert target.sessions() == before
        result = import_store(file, target, skip=True)
        assert result.runs == len(RUNS) - 1
        assert len(result.skipped) == 4
        assert all(name.endswith("..") for name in result.skipped)
        with AgentMemory(target.log("..")) as memory:
            assert [branch.name for branch in memory.branches()] == ["main"]
            assert memory.steps == (TaskStep("Of this machine."),)


def test_a_run_that_went_on_stays_as_it_is(file, tmp_path):
    with contextlib.closing(open_store(tmp_path / "to.db")) as target:
        import_store(file, target)
        with AgentMemory(target.log(".."), user="ann", budget=1_500) as memory:
            work(memory, 40)
            requests = memory.requests()
        assert import_store(file, target).present == len(target.sessions())
        with AgentMemory(target.log("..")) as memory:
            assert memory.requests() == requests


@pytest.mark.parametrize("how", ["cut off", "a line less", "another number", "a line more", "too new"])
def test_a_file_that_was_changed_is_refused_and_nothing_is_written(file, tmp_path, how):
    lines = file.read_bytes().splitlines(keepends=True)
    request = next(at for at, line in enumerate(lines) if line.startswith(b'{"request":'))
    changed = {
        "cut off": lines[:-1],
        "a line less": [*lines[:request], *lines[request + 1 :]],
        "another number": [*lines[:request], lines[request].replace(b'"head":', b'"head":1'), *lines[request + 1 :]],
        "a line more": [*lines, lines[-1]],
        "too new": [lines[0].replace(b'"format":1', b'"format":2'), *lines[1:]],
    }
    file.write_bytes(b"".join(changed[how]))
    with contextlib.closing(open_store(tmp_path / "to.db")) as target:
        with pytest.raises(LogTooNew if how == "too new" else LogUnreadable):
            import_store(file, target)
        assert not (tmp_path / "to.db").exists()


def test_the_commands_move_a_store_and_say_what_one_session_lacks(source, tmp_path, capsys):
    path, file, other = (str(tmp_path / name) for name in ("from.db", "all.jsonl", "other.db"))
    assert main(["export", path, file, "--all"]) == 0
    assert main(["import", file, other, "--json"]) == 0
    out = capsys.readouterr().out
    assert "4 runs" in out
    assert json.loads(out[out.index("{") :])["runs"] == 4
    with contextlib.closing(open_store(other)) as target:
        assert contents(target) == contents(source)
    assert main(["import", file, other, "--session", "x"]) == 1
    assert "keeps its names" in capsys.readouterr().err
    assert main(["export", path, str(tmp_path / "one.jsonl"), "--session", ".."]) == 0
    assert "the branch main alone: --all" in capsys.readouterr().out
    assert main(["import", str(tmp_path / "one.jsonl"), other, "--skip"]) == 1
    assert main(["export", path, file, "--all", "--format", "openai"]) == 1
