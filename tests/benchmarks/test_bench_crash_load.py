"""bench load: writers at once lose nothing; and what was lost or there twice would be told."""

import contextlib
import json

import pytest

from benchmarks.__main__ import main
from benchmarks.load import Job, _find_lost, _WriterReport, bench_load
from pagein.backends.sqlite.log import SQLiteLog
from pagein.events.steps import TaskStep

pytestmark = pytest.mark.slow


def test_writers_at_once_lose_nothing(tmp_path):
    found = bench_load(str(tmp_path / "run.db"), 0.3, writers=3, shared=True, tick=lambda what, done: None)
    assert found.faults == []
    assert [each.what for each in found.rates] == ["bare INSERT", "own sessions", "one session"]
    for each in found.rates:
        assert each.writers == 3
        assert each.writes > 0
        assert 0 < each.p50 <= each.p95 <= each.longest


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_sessions_at_once_lose_nothing_on_postgres(postgres):
    found = bench_load(postgres.url, 0.5, writers=8, shared=True, tick=lambda what, done: None)
    assert found.faults == []
    assert all(each.writes > 0 for each in found.rates)


def test_what_is_lost_there_twice_or_out_of_order_is_told(tmp_path):
    jobs = [Job(str(tmp_path / "run.db"), "w0", "s", 1.0, False)]
    with contextlib.closing(SQLiteLog(tmp_path / "run.db", session="s")) as log:
        log.append([TaskStep(f"w0 {number}\n") for number in (1, 0, 0)], after=0, at=0.0)
    faults = list(_find_lost(jobs[0].url, jobs, [_WriterReport(3, (1.0,) * 3)]))
    assert "w0 2 was acknowledged and is not there" in faults
    assert "w0 0 is there 2 times" in faults
    assert "s: what w0 wrote is out of order" in faults


def test_a_writer_that_fails_is_told(tmp_path):
    found = bench_load(str(tmp_path), 0.1, writers=1, shared=False, tick=lambda what, done: None)
    assert not found.ok


def test_the_command_shows_the_rates(capsys):
    assert main(["load", "--seconds", "0.1", "--writers", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], len(told["rates"])) == (True, 3)
    assert main(["load", "--seconds", "0.05", "--writers", "1"]) == 0
    assert "none." in capsys.readouterr().out
    assert main(["load", "--seconds", "0"]) == 1
