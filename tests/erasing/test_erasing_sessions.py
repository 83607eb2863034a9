"""Whole sessions by name or by age, and what is known of a user; from Python and from the command line."""

import contextlib
import json

import pytest

from pagein import ActionStep, AgentMemory, ConfigurationError, Observation, TaskStep, ToolCall
from pagein.backends.open import open_log
from pagein.cli import main
from pagein.memory.erasure import sessions
from pagein.memory.erasure.sessions import erase_session, erase_user, retain

SECRET = "xanthippe-4711"
NOW = 1_800_000_000.0
DAY_SECONDS = 86_400.0


def on_disk(path):
    return b"".join(each.read_bytes() for each in path.parent.glob(path.name + "*"))


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "run.db"
    for session, at in (("old", NOW - 100 * DAY_SECONDS), ("new", NOW - DAY_SECONDS)):
        with AgentMemory.open(path, session=session, user="alice", clock=lambda at=at: at) as memory:
            memory.record(TaskStep(f"{session} {SECRET if session == 'old' else 'words'}"))
            memory.facts.add(f"Heard in {session}.", sources=["s0"])
            memory.recall(session)
    with AgentMemory.open(path, session="new", user="bob") as memory:
        memory.facts.add("Bob likes tea.")
    return path


def sound(path):
    for name in open_log(path).store.sessions():
        with contextlib.closing(open_log(path, session=name)) as log:
            assert log.verify().ok, name


def test_old_sessions_go_and_new_ones_stay(store):
    planned = retain(store, 90 * DAY_SECONDS, dry_run=True, now=NOW)
    assert [name for name, _ in planned.sessions] == ["old"]
    assert SECRET.encode() in on_disk(store)
    done = retain(store, 90 * DAY_SECONDS, now=NOW)
    assert done.sessions == planned.sessions
    assert (done.erasure.entries, done.erasure.facts) == (1, 1)
    assert SECRET.encode() not in on_disk(store)
    assert retain(store, 90 * DAY_SECONDS, now=NOW).sessions == ()
    with AgentMemory.open(store, session="new", user="alice") as memory:
        assert [each.content for each in memory.facts.list()] == ["Heard in new."]
        assert memory.recall(SECRET, across=True) == ()
        assert memory.steps == (TaskStep("new words"),)
    with contextlib.closing(open_log(store, session="old")) as log:
        assert (log.head(), log.verify().erased) == (1, 1)
    sound(store)


def test_a_run_whose_clock_went_back_is_as_old_as_its_newest_entry(tmp_path):
    times = iter([NOW - DAY_SECONDS, *[0.0] * 50])
    with AgentMemory.open(tmp_path / "run.db", clock=lambda: next(times)) as memory:
        memory.record(TaskStep("today"))
        for number in range(4):
            memory.record(TaskStep(f"by a clock that was set back {number}"))
    assert retain(tmp_path / "run.db", 90 * DAY_SECONDS, dry_run=True, now=NOW).sessions == ()
    assert retain(tmp_path / "run.db", 90 * DAY_SECONDS, dry_run=True, now=NOW + 90 * DAY_SECONDS).sessions != ()


def live(path, session, word, **options):
    """A run with everything that a store can have of one, each with the word in it."""
    with AgentMemory.open(path, session=session, user="alice", task=f"{word}task", budget=1_500, **options) as memory:
        memory.record(TaskStep(f"Find the {word}heron. Never touch {word}.cfg. I live in {word}town."))
        memory.facts.add(f"Works at {word}corp", scope="session")
        memory.facts.add(f"Is at {word}step", scope="task")
        for number in range(14):
            call = ToolCall(f"{word}{number}", f"{word}read", f'{{"p": "{word}arg"}}')
            memory.record(ActionStep(f"Look {word}.", (call,)), Observation(call.id, f"{word}result{number} " * 150))
            memory.to_messages()
        memory.recall(f"{word}result3")
        memory.checkpoint(f"{word}checkpoint")
        memory.pin(f"{word}pin")
        memory.fork(name=f"{word}branch")
        memory.switch(f"{word}branch")
        memory.record(TaskStep(f"{word}last"))
        memory.to_messages()


@pytest.mark.parametrize("trace", [True, False])
def test_nothing_of_a_run_that_was_too_old_is_left_in_the_file(tmp_path, trace):
    path = tmp_path / "run.db"
    live(path, "oldname", "canary", clock=lambda: NOW - 100 * DAY_SECONDS)
    live(path, "new", "fresh", clock=lambda: NOW)
    assert [name for name, _ in retain(path, 90 * DAY_SECONDS, now=NOW, trace=trace).sessions] == ["oldname"]
    assert b"canary" not in on_disk(path).lower()
    assert (b"oldname" in on_disk(path)) == trace
    assert b"freshresult3" in on_disk(path)
    sound(path)


def test_a_session_goes_without_a_trace(store):
    done = erase_session(store, "old", trace=False)
    assert done.entries == 1
    assert "old" not in open_log(store).store.sessions()
    sound(store)


def test_a_session_that_goes_takes_its_branches_along(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, session="a:b") as memory:
        memory.record(TaskStep(SECRET))
        memory.fork(name="other")
        memory.switch("other")
        memory.record(TaskStep(SECRET))
    with AgentMemory.open(path, session="b") as memory:
        memory.record(TaskStep("stays"))
        memory.fork(name="stays")
    erase_session(path, "a:b")
    assert SECRET.encode() not in on_disk(path)
    with AgentMemory.open(path, session="b") as memory:
        assert len(memory.branches()) == 2
    sound(path)


def test_what_is_known_of_a_user_goes(store):
    done = erase_user(store, "alice", reason="asked for")
    assert done.facts == 2
    assert b"Heard in" not in on_disk(store)
    assert b"Bob likes tea." in on_disk(store)
    assert erase_user(store, "alice").facts == 0
    sound(store)


@pytest.mark.parametrize(
    "call",
    [
        lambda path: erase_session(path, "nobody"),
        lambda path: erase_session(path, "pagein:facts:user:alice"),
        lambda path: erase_user(path, "nobody"),
        lambda path: erase_user(path, " "),
        lambda path: retain(path, 0),
        lambda path: retain(path, "90d"),
        lambda _: retain(":memory:", DAY_SECONDS),
    ],
)
def test_what_is_not_there_erases_nothing(store, call):
    before = on_disk(store)
    with pytest.raises(ConfigurationError):
        call(store)
    assert SECRET.encode() in before
    assert SECRET.encode() in on_disk(store)


def test_the_commands(store, capsys):
    def run(*arguments):
        return main([str(argument) for argument in arguments]), capsys.readouterr()

    code, printed = run("erase", store, "s0", "--session", "old")
    assert (code, printed.out) == (1, "")
    assert "--yes" in printed.err
    assert SECRET.encode() in on_disk(store)
    code, printed = run("erase", store, "s0", "--session", "old", "--yes", "--json")
    assert code == 0, printed.err
    assert json.loads(printed.out)["entries"] == 1
    assert SECRET.encode() not in on_disk(store)
    assert "(1 erased), ok" in run("verify", store, "--session", "old")[1].out
    code, printed = run("retain", store, "--older-than", "1s", "--dry-run")
    assert (code, "would be erased" in printed.out) == (0, True)
    assert run("retain", store, "--older-than", "1s", "--yes")[0] == 0
    assert run("erase", store, "--user", "bob", "--yes")[0] == 0
    for wrong in (
        ("erase", store, "--yes"),
        ("erase", store, "s9", "--session", "old", "--yes"),
        ("retain", store, "--older-than", "soon"),
    ):
        assert run(*wrong)[0] == 1
    sound(store)


@pytest.fixture(params=["sqlite", "postgres"])
def many_old_runs(request, tmp_path):
    """The address and the tenant of a store with twelve old runs, each with a branch."""
    tenant = f"retained {tmp_path.name}"
    url = tmp_path / "run.db" if request.param == "sqlite" else request.getfixturevalue("postgres").url
    for number in range(12):
        with AgentMemory.open(url, session=f"run {number}", tenant=tenant, clock=lambda: NOW) as memory:
            memory.record(TaskStep(f"task {number}"), TaskStep("and more"))
            memory.fork(name="other")
            memory.switch("other")
            memory.record(TaskStep(f"elsewhere {number}"))
    return url, tenant


def test_many_sessions_are_erased_in_several_transactions(many_old_runs, monkeypatch):
    url, tenant = many_old_runs
    monkeypatch.setattr(sessions, "ENTRIES_AT_ONCE", 6)
    done = retain(url, DAY_SECONDS, now=NOW + 2 * DAY_SECONDS, tenant=tenant, trace=False)
    assert sorted(name for name, _ in done.sessions) == sorted(f"run {number}" for number in range(12))
    assert done.erasure.entries == 24
    with contextlib.closing(open_log(url, tenant=tenant)) as log:
        assert log.store.sessions() == ()


def test_a_run_that_goes_on_while_others_are_erased_stays(many_old_runs, monkeypatch):
    url, tenant = many_old_runs
    erase = sessions.erase_sessions

    def go_on_and_erase(root, store, sizes, *rest, **options):
        if "run 7" in sizes:
            with AgentMemory.open(url, session="run 7", tenant=tenant, branch="main") as memory:
                memory.record(TaskStep("I am back"))
        return erase(root, store, sizes, *rest, **options)

    monkeypatch.setattr(sessions, "erase_sessions", go_on_and_erase)
    done = retain(url, DAY_SECONDS, now=NOW + 2 * DAY_SECONDS, tenant=tenant)
    assert sorted(name for name, _ in done.sessions) == sorted(f"run {number}" for number in range(12) if number != 7)
    assert done.erasure.entries == 22
    with AgentMemory.open(url, session="run 7", tenant=tenant, branch="main") as memory:
        assert [step.content for step in memory.steps] == ["task 7", "and more", "I am back"]
        assert memory.verify().ok
