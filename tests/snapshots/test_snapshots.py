"""A snapshot makes opening quick and changes nothing: what is missing, damaged or another's is passed over."""

import contextlib
import json
import sqlite3

import pytest

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.backends.sqlite.log import SQLiteLog
from pagein.context.salience.tracker import SalienceTracker
from pagein.errors import LogUnwritable
from pagein.log.base import StoredLog
from pagein.memory._state import SNAPSHOT_MIN_ENTRIES, SNAPSHOT_MIN_NEW_ENTRIES, SnapshotState
from pagein.memory.operations.load import do_nothing
from pagein.memory.snapshots import snapshot_key
from pagein.testing.machine_base import memory_state
from pagein.tokens.encodings import Encoding

TURNS = SNAPSHOT_MIN_NEW_ENTRIES // 2


def played(path, turns=TURNS, **options):
    """A run that compacted, closed: its snapshot is kept."""
    with AgentMemory.open(path, budget=1_500, page_in=0, synchronous="OFF", **options) as memory:
        memory.record(TaskStep("Build the shop."))
        for number in range(turns):
            call = ToolCall(f"c{number}", "bash", f'{{"command": "make shop_{number}"}}')
            lines = "\n".join(f"src/shop_{number}.py:{n}: value_{n * 37} is set" for n in range(6))
            memory.record(ActionStep(f"Turn {number}.", (call,)), Observation(call.id, lines))
            memory.view()
        return memory._runtime.state.fold.head


def opened(path, **options):
    return AgentMemory.open(path, budget=1_500, page_in=0, **options)


def test_opening_reads_what_is_shown_and_nothing_else(tmp_path, monkeypatch):
    head = played(tmp_path / "run.db")
    reads = []
    whole = SQLiteLog.read
    monkeypatch.setattr(SQLiteLog, "read", lambda self, *at: (reads.append(each) or each for each in whole(self, *at)))
    memory = opened(tmp_path / "run.db")
    first = len(reads)
    shown = {each.first for each in memory._runtime.state.fold.view(1).entries}
    assert memory._runtime.state.snapshot.position > head - SNAPSHOT_MIN_NEW_ENTRIES
    assert 0 < first < head / 4
    assert {each.position for each in reads} & shown
    memory.close()


def test_a_ledger_that_was_looked_at_before_anything_left_is_whole_after_reopening(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=100_000) as memory:
        memory.record(TaskStep("Never push to main."), *[ActionStep("Yes.")] * SNAPSHOT_MIN_ENTRIES)
        ledger = memory.ledger()
        assert ledger
    with AgentMemory.open(tmp_path / "run.db", budget=100_000) as memory:
        assert memory._runtime.state.snapshot.position
        assert memory.ledger() == ledger


DAMAGE = {
    "gone": "DELETE FROM snapshots",
    "no table": "DROP TABLE snapshots",
    "a byte changed": "UPDATE snapshots SET body = CAST(substr(body, 1, 50) || x'00' || substr(body, 52) AS BLOB)",
    "another position": "UPDATE snapshots SET position = position - 2",
    "another digest": "UPDATE snapshots SET digest = 's2:' || substr(digest, 5) || '0'",
    "another release": "UPDATE snapshots SET key = '999' || key",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGE)
def test_a_snapshot_that_does_not_fit_is_passed_over(tmp_path, how):
    played(tmp_path / "run.db")
    with opened(tmp_path / "run.db") as memory:
        expected = memory_state(memory)
    with contextlib.closing(sqlite3.connect(tmp_path / "run.db")) as database, database:
        database.execute(DAMAGE[how])
    with opened(tmp_path / "run.db") as memory:
        assert memory_state(memory) == expected
        assert memory.verify().ok


def test_a_snapshot_of_rubbish_under_a_true_check_is_passed_over(tmp_path):
    played(tmp_path / "run.db")
    with opened(tmp_path / "run.db") as memory:
        expected = memory_state(memory)
        log = memory._runtime.log
        kept = log.snapshot_slot().snapshot
        for body in (b"", b"rubbish", kept.body[:-9]):
            log.keep_snapshot(type(kept)(kept.position, kept.digest, kept.key, body), 0)
            with opened(tmp_path / "run.db") as again:
                assert memory_state(again) == expected
            log.keep_snapshot(kept, 0)


def test_what_is_dropped_is_not_kept_again_by_who_opened_before(tmp_path):
    played(tmp_path / "run.db")
    memory = opened(tmp_path / "run.db")
    other = SQLiteLog(tmp_path / "run.db")
    other.drop_snapshots()
    memory.record(*(TaskStep(f"More {n}") for n in range(40)))
    memory.close()
    assert other.snapshot_slot().snapshot is None
    opened(tmp_path / "run.db").close()
    assert other.snapshot_slot().snapshot is not None
    other.close()


def test_erasing_drops_it(tmp_path):
    played(tmp_path / "run.db")
    with opened(tmp_path / "run.db") as memory:
        memory.erase("s1")
    raw = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"make shop_0" not in raw
    log = SQLiteLog(tmp_path / "run.db")
    assert log.snapshot_slot().snapshot is None, "what was erased is kept by its hashes"
    log.close()
    with opened(tmp_path / "run.db") as memory:
        expected = memory_state(memory)
    with opened(tmp_path / "run.db") as memory:
        assert memory._runtime.log.snapshot_slot().snapshot is not None
        assert memory_state(memory) == expected


def test_a_readonly_memory_reads_it_and_keeps_none(tmp_path):
    head = played(tmp_path / "run.db")
    with opened(tmp_path / "run.db") as memory:
        expected = memory_state(memory)
    with opened(tmp_path / "run.db", readonly=True) as memory:
        assert memory._runtime.state.fold.head == head
        assert memory_state(memory) == expected
        assert memory._runtime.state.snapshot.position is None
        with pytest.raises(LogUnwritable):
            memory.record(TaskStep("x"))


def test_an_undo_behind_it_is_seen(tmp_path):
    played(tmp_path / "run.db")
    with opened(tmp_path / "run.db") as memory:
        old = memory._runtime.log.snapshot_slot().snapshot
        memory.undo()
        memory._runtime.take_turn(do_nothing)
        expected = memory_state(memory)
        memory._runtime.log.keep_snapshot(old, 0)
    with opened(tmp_path / "run.db") as memory:
        assert memory_state(memory) == expected


def test_a_branch_is_opened_from_its_parents_where_that_ends_before_the_fork(tmp_path):
    head = played(tmp_path / "run.db")
    with opened(tmp_path / "run.db") as memory:
        late, early = memory.fork(name="late"), memory.fork(head // 2, "early")
        assert (late.at, early.at) == (head, head // 2)
        shelves = {each: memory._runtime.branches.log(each).snapshot_slot().snapshot for each in ("late", "early")}
    assert head - SNAPSHOT_MIN_NEW_ENTRIES < shelves["late"].position <= head
    assert shelves["early"] is None


def test_which_counters_a_snapshot_is_kept_for():
    class Words:
        name, margin = "words", 0.0

        def text(self, text):
            return len(text.split())

        def image(self, image):
            del image
            return 1

    assert snapshot_key(Words()) == ""
    assert snapshot_key(Encoding("o200k_base")) != snapshot_key(Encoding("cl100k_base"))
    assert snapshot_key(Encoding("o200k_base")) == snapshot_key(Encoding("o200k_base"))


def test_when_one_is_due():
    assert not SnapshotState(0).is_due(SNAPSHOT_MIN_ENTRIES - 1, closing=True)
    assert SnapshotState(0).is_due(SNAPSHOT_MIN_ENTRIES, closing=True)
    assert not SnapshotState(0).is_due(SNAPSHOT_MIN_NEW_ENTRIES - 1, closing=False)
    assert not SnapshotState(1_000).is_due(1_000, closing=True)
    assert not SnapshotState(None).is_due(10 * SNAPSHOT_MIN_NEW_ENTRIES, closing=True)
    assert not SnapshotState(1_000 - SNAPSHOT_MIN_NEW_ENTRIES + 1).is_due(1_000, closing=False)
    assert SnapshotState(1_000 - SNAPSHOT_MIN_NEW_ENTRIES).is_due(1_000, closing=False)
    assert SnapshotState(999).is_due(1_000, closing=True)
    assert not SnapshotState(100_000 - 1_000).is_due(100_000, closing=False)


def test_the_log_of_a_file_keeps_snapshots(tmp_path):
    log = SQLiteLog(tmp_path / "run.db")
    assert isinstance(log, StoredLog)
    assert log.snapshot_slot().snapshot is None
    log.close()


def test_a_memo_that_was_kept_is_the_one_that_was_written_down():
    memo = SalienceTracker()
    memo.learn_step(0, TaskStep("Find where user_id is set in src/app/main.py, and decide on a cure."))
    call = ToolCall("c", "bash", '{"command": "grep -rn user_id src"}')
    seen = Observation("c", "src/app/main.py:4: user_id = None\nTypeError: user_id is None", "error")
    memo.learn_step(1, ActionStep("I decided to look for user_id.", (call,), (seen,)))
    kept = memo.to_state()
    again = SalienceTracker.from_state(json.loads(json.dumps(kept)))
    assert again.names == memo.names
    assert again.lines == memo.lines
    assert {line.source for line in again.lines.values()} == {"task", "said", "arguments", "observation"}
    assert again.to_state() == kept
