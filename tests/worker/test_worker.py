"""Background work: what is due is found and done, by one worker at a time, and by another where that one dies."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import psycopg
import pytest

from pagein import ActionStep, AgentMemory, TaskStep, ToolCall
from pagein.backends.base import store_of
from pagein.backends.open import open_log
from pagein.backends.sqlite.claims import Claims
from pagein.cli import main
from pagein.errors import ConfigurationError
from pagein.facts.store import Facts
from pagein.search import Query
from pagein.testing.scripted_writer import ScriptedModel
from pagein.testing.search_indexes import CountingEmbedder, FailingEmbedder
from pagein.worker import Job, WorkQueue, work

SESSIONS = ("one", "two", "three")


@pytest.fixture(params=["file", "server"])
def url(request, tmp_path):
    """A store with three sessions of the tenant acme, of which nothing was derived."""
    with contextlib.ExitStack() as stack:
        url = str(tmp_path / "run.db")
        if request.param == "server":
            url = stack.enter_context(database(request.getfixturevalue("postgres"), "work"))
        for name in SESSIONS:
            with AgentMemory.open(url, session=name, tenant="acme", budget=8_000) as memory:
                memory.record(TaskStep(f"I prefer tabs over spaces in {name}."), TaskStep(f"The quay of {name}."))
        yield url


@contextlib.contextmanager
def database(postgres, name):
    if not postgres.mine:
        pytest.skip("PAGEIN_POSTGRES names a server whose databases are not ours to make")
    with psycopg.connect(postgres.url, autocommit=True) as using:
        using.execute(f"CREATE DATABASE {name}")
        try:
            yield postgres.url.replace("@/postgres?", f"@/{name}?")
        finally:
            using.execute(f"DROP DATABASE {name} WITH (FORCE)")


def desk_of(url, **options):
    return WorkQueue(url, tenant="acme", **options)


def drained(desk, **options):
    return list(work(desk, once=True, **options))


def found(url, query, **options):
    with (
        contextlib.closing(open_log(url, tenant="acme")) as log,
        store_of(log).search_index(log.session, **options) as archive,
    ):
        return archive.search(Query(query))


def test_what_is_due_is_done_and_then_nothing_is(url):
    desk = desk_of(url, embedder=CountingEmbedder(), user="ann")
    assert len(desk.due_jobs()) == 6, "nothing was indexed yet, so there is nothing to embed"
    done = drained(desk)
    assert [each.failed for each in done] == [""] * len(done)
    told = {str(each.job): each.count for each in done}
    assert told["index one"] == 2
    assert told["embed"] == 6
    assert {"facts one", "facts two", "facts three"} <= told.keys()
    assert desk.due_jobs() == ()
    assert drained(desk) == []
    assert found(url, "quay", embedder=CountingEmbedder())[0].scores["meaning"] > 0
    with Facts.open(url, user="ann", tenant="acme") as facts:
        assert any("tabs" in each.content for each in facts.list())
    with AgentMemory.open(url, session="one", tenant="acme", budget=8_000) as memory:
        memory.record(TaskStep("And a mole."))
    assert [str(each) for each in desk.due_jobs()] == ["index one", "facts one"]


@pytest.mark.parametrize("model", [None, ScriptedModel()])
def test_a_session_in_which_nothing_is_stated_is_read_once(url, model):
    with AgentMemory.open(url, session="four", tenant="acme", budget=8_000) as memory:
        memory.record(ActionStep("", (ToolCall("c", "ls", "{}"),)))
    desk, job = desk_of(url, user="ann", model=model), Job("facts", "four")
    assert job in desk.due_jobs()
    assert desk.do(job, threading.Event()).failed == ""
    assert job not in desk.due_jobs(), "a worker would never end"


def test_another_tenants_sessions_are_not_touched(url):
    assert drained(WorkQueue(url, tenant="other")) == []
    assert len(desk_of(url).due_jobs()) == 3


def test_a_job_that_fails_is_told_once_and_stays_due(url):
    desk = desk_of(url, embedder=FailingEmbedder())
    done = drained(desk)
    assert [str(each.job) for each in done if each.failed] == ["embed"]
    assert "ConnectionError" in done[-1].failed
    assert [str(each) for each in desk.due_jobs()] == ["embed"]
    assert found(url, "quay"), "the words were indexed all the same"


def test_two_workers_share_the_work(url):
    done = [[], []]
    threads = [
        threading.Thread(target=lambda into=into: into.extend(drained(desk_of(url, embedder=CountingEmbedder()))))
        for into in done
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    counts = {}
    for each in (*done[0], *done[1]):
        assert not each.failed
        counts[str(each.job)] = counts.get(str(each.job), 0) + each.count
    assert {name: counts[f"index {name}"] for name in SESSIONS} == dict.fromkeys(SESSIONS, 2)
    assert counts["embed"] == 6
    drained(desk_of(url, embedder=CountingEmbedder()))
    assert desk_of(url, embedder=CountingEmbedder()).due_jobs() == ()


DYING = """
import os, sys, time
from pagein.worker import WorkQueue, work
from pagein.worker.jobs import WorkQueue
def doing(self, job, stop):
    print("doing", job, flush=True)
    time.sleep(600)
WorkQueue.do = doing
for done in work(WorkQueue(sys.argv[1], tenant="acme"), once=True, lease=1.0):
    pass
"""


@pytest.mark.slow
def test_a_job_survives_the_death_of_its_worker(url):
    dying = subprocess.Popen(
        [sys.executable, "-c", DYING, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert dying.stdout.readline().startswith("doing index")
    others = drained(desk_of(url), lease=1.0)
    assert len(others) == 2, "what the other holds is left to it while it lives"
    dying.kill()
    dying.communicate()
    until = time.monotonic() + 300
    while desk_of(url).due_jobs() and time.monotonic() < until:
        drained(desk_of(url), lease=1.0)
        time.sleep(0.2)
    assert desk_of(url).due_jobs() == ()


@pytest.mark.parametrize("url", [pytest.param("file", marks=pytest.mark.slow), "server"], indirect=True)
def test_a_signal_ends_it_when_what_is_under_way_is_at_an_end(url):
    running = subprocess.Popen(
        [sys.executable, "-m", "pagein", "worker", url, "--tenant", "acme", "--json", "--every", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    told = [json.loads(running.stdout.readline()) for _ in SESSIONS]
    assert sorted(each["session"] for each in told) == sorted(SESSIONS)
    os.kill(running.pid, signal.SIGTERM if "://" in url else signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert (running.returncode, err) == (0, ""), out
    assert desk_of(url).due_jobs() == ()


@pytest.mark.parametrize("url", ["file", pytest.param("server", marks=pytest.mark.slow)], indirect=True)
def test_the_command_drains_and_says_what_it_did(url, capsys):
    assert main(["worker", url, "--tenant", "acme", "--once", "--user", "ann"]) == 0
    said = capsys.readouterr().out
    assert "index one: 2 entries" in said
    assert "no more jobs are due" in said
    assert main(["worker", url, "--tenant", "acme", "--once", "--json"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["no-such.db"], "no-such.db"),
        (["."], "folder"),
        ([":memory:"], "memory"),
        (["postgresql://ann:sesame@127.0.0.1:1/db"], "127.0.0.1:1"),
        (["run.db", "--lease", "0"], "--lease"),
    ],
)
def test_what_cannot_be_worked_on_is_told(tmp_path, monkeypatch, capsys, arguments, told):
    monkeypatch.chdir(tmp_path)
    assert main(["worker", *arguments, "--once"]) == 1
    said = capsys.readouterr().err
    assert told in said
    assert "sesame" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_memory_has_nobody_to_share_it():
    with pytest.raises(ConfigurationError, match="others can reach"):
        list(work(WorkQueue(":memory:"), once=True))


# Claims in a file


def test_a_claim_keeps_others_out_until_its_lease_is_over(tmp_path):
    now = [100.0]
    path, job = str(tmp_path / "run.db"), Job("index", "one")
    with (
        contextlib.closing(Claims(path, "a", lease=30.0, clock=lambda: now[0])) as mine,
        contextlib.closing(Claims(path, "b", lease=30.0, clock=lambda: now[0])) as yours,
        contextlib.closing(Claims(path, "b", tenant="t", clock=lambda: now[0])) as theirs,
        mine.claim(job.session, job.kind) as held,
    ):
        assert held
        with (
            yours.claim(job.session, job.kind) as too,
            yours.claim("two", "index") as other,
            theirs.claim(job.session, job.kind) as elsewhere,
        ):
            assert (too, other, elsewhere) == (False, True, True)
        now[0] = 131.0
        with yours.claim(job.session, job.kind) as after:
            assert after


def test_a_claim_is_renewed_while_its_worker_lives(tmp_path):
    path, job = str(tmp_path / "run.db"), Job("embed")
    with (
        contextlib.closing(Claims(path, "a", lease=0.3)) as mine,
        contextlib.closing(Claims(path, "b", lease=0.3)) as yours,
        mine.claim(job.session, job.kind),
    ):
        time.sleep(1.0)
        with yours.claim(job.session, job.kind) as too:
            assert not too
