"""bench crash: hosts that are killed lose nothing; and what was lost, run twice or damaged would be told."""

import contextlib
import json
import multiprocessing
import sqlite3

import pytest

from benchmarks.crash import Crashes, _Inspection, _RunState, bench_crash
from benchmarks.crash_child import BUDGET, Place, call_numbers
from pagein.backends.sqlite.log import SQLiteLog
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.memory.agent_memory import AgentMemory

pytestmark = pytest.mark.skipif(
    "forkserver" not in multiprocessing.get_all_start_methods(), reason="needs SIGKILL and fork"
)


def main(arguments):
    from benchmarks import __main__ as benchmarks

    return benchmarks.main(arguments)


def test_a_few_kills_lose_nothing(tmp_path):
    found = bench_crash(str(tmp_path / "run.db"), tmp_path, 3, seed=1)
    assert found.faults == []
    assert (found.kills, found.ok) == (3, True)
    assert found.entries >= found.acknowledged > 0


# The inspection is under test


@pytest.fixture
def crashed(tmp_path):
    """A record as a host leaves it, and a look at it."""
    path, effects = tmp_path / "run.db", tmp_path / "effects.txt"
    life = _RunState(Place(str(path), "run", str(effects)))
    log = SQLiteLog(path, session="run")
    with AgentMemory(log, budget=BUDGET) as memory:
        memory.record(TaskStep("Go on with 0."))
        for number in range(3):
            memory.record(ActionStep("I run.", (ToolCall(str(number), "run", "{}"),)))
            effects.write_text("".join(f"{each}\n" for each in range(number + 1)))
            memory.record(Observation(str(number), "done"))
        memory.recall("done")
        told = {row.position: row.digest for row in log.rows()}
        assert call_numbers(memory.steps) == [0, 1, 2]

    def look(change=""):
        if change:
            with contextlib.closing(sqlite3.connect(path)) as database, database:
                assert database.execute(change).rowcount == 1
        return list(_Inspection(life, told, Crashes()).faults())

    look.effects = effects
    return look


def test_a_sound_record_has_no_faults_at_any_look(crashed):
    assert crashed() == []
    assert crashed() == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("DELETE FROM entries WHERE position = 6", "entry 6 was acknowledged and is gone"),
        ("UPDATE entries SET digest = 's2:0' WHERE position = 6", "entry 6 was acknowledged and was replaced"),
        ("UPDATE entries SET body = replace(body, 'done', 'gone') WHERE position = 4", "verify: 4"),
        ("DELETE FROM entries WHERE position = 3", "LogUnreadable"),
    ],
)
def test_what_is_lost_or_damaged_is_told(crashed, change, fault):
    assert crashed() == []
    assert any(fault in each for each in crashed(change))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE archive_sessions SET position = 8, digest = ''", "the index has 8 entries, the record 7"),
        ("DELETE FROM archive_passages WHERE position = 0", "other passages"),
        ("UPDATE archive_passages SET text = 'gone' WHERE position = 0", "other texts"),
        (
            """INSERT INTO archive_words (archive_words, rowid, terms)
                SELECT 'delete', id, terms || ' =' || role FROM archive_passages WHERE position = 0""",
            "other words",
        ),
        (
            """UPDATE archive_sizes SET size = size + 1
                WHERE role = 'user' AND session IN (SELECT id >> 24 FROM archive_passages)""",
            "other totals",
        ),
    ],
)
def test_an_index_that_is_not_the_records_is_told(crashed, change, fault):
    assert crashed() == []
    assert any(fault in each for each in crashed(change))


@pytest.mark.parametrize(
    ("effects", "fault"), [("0\n1\n2\n1\n", "run 2 times"), ("0\n1\n2\n3\n", "call 3 was run and not recorded")]
)
def test_a_call_that_was_run_twice_or_unrecorded_is_told(crashed, effects, fault):
    crashed.effects.write_text(effects)
    assert [each for each in crashed() if fault in each]


def test_a_process_that_dies_by_itself_is_told(tmp_path, monkeypatch):
    (tmp_path / "run.db").write_bytes(b"no database" * 100)
    found = bench_crash(str(tmp_path / "run.db"), tmp_path, 6)  # on a busy machine a kill may come before the end
    assert [each for each in found.faults if "ended by itself" in each]
    assert [each for each in found.faults if "LogUnreadable" in each]


def test_the_command_counts_what_it_did(capsys):
    assert main(["crash", "--kills", "1", "--seed", "4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kills"], told["ok"], told["faults"]) == (1, True, [])
    assert main(["crash", "--kills", "0"]) == 1
    assert main(["crash", "--store", "paper"]) == 2
