"""Summaries by a worker: of runs that others have open, landed where they still fit, seen at the host's next verb."""

import contextlib
import threading
import time

import pytest
from test_worker import database

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.backends.sqlite.claims import Claims
from pagein.cli import main
from pagein.errors import ConfigurationError
from pagein.models import ModelUnavailable
from pagein.testing.scripted_writer import ScriptedModel
from pagein.worker import Job, WorkQueue, work

pytestmark = pytest.mark.slow

BUDGET = 2_000


def turn(number):
    call = ToolCall(f"c{number}", "bash", f'{{"command": "pytest tests/test_{number}.py"}}')
    seen = "\n".join(f"tests/test_{number}.py:{line}: item_{number}_{line} failed" for line in range(6))
    return ActionStep(f"I run the tests of part {number}.", (call,)), Observation(call.id, seen)


@pytest.fixture(params=["file", "server"])
def url(request, tmp_path):
    with contextlib.ExitStack() as stack:
        url = str(tmp_path / "run.db")
        if request.param == "server":
            url = stack.enter_context(database(request.getfixturevalue("postgres"), "summaries"))
        yield url


@pytest.fixture
def host(url):
    """A host that has a run open, without a model, beyond its soft mark."""
    with AgentMemory.open(url, budget=BUDGET, page_in=0, policy="tiers") as memory:
        memory.record(TaskStep("Mend the tests."))
        grown(memory)
        yield memory


def grown(memory, number=0):
    """Steps until the view is beyond the soft mark; the next turn's number."""
    while memory.view().tokens < BUDGET * memory.budget.soft_share:
        memory.record(*turn(number))
        number += 1
    return number


def desk_of(url, model, **options):
    return WorkQueue(url, summaries={"budget": BUDGET, "policy": "tiers", "summarizer": model}, **options)


def records(memory):
    found = [each.body for each in memory._runtime.log.read()]
    return [by for each in found for by in getattr(each, "replacements", ()) if by.record]


def done_by(desk):
    return [each for each in work(desk, once=True) if each.job.kind == "summary"]


def test_a_run_beyond_its_soft_mark_is_summarised_and_its_host_goes_on(url, host):
    model = ScriptedModel()
    desk = desk_of(url, model)
    assert Job("summary", "default") in desk.due_jobs()
    before = host.view().tokens
    (done,) = done_by(desk)
    assert not done.failed
    assert done.count > 0
    host.record(*turn(90))  # no Conflict: nothing was said by another
    assert records(host)
    assert records(host)[0].author == "scripted"
    assert host.view().tokens < before
    assert host.verify().ok
    asked = len(model.requests)
    assert done_by(desk) == []
    assert len(model.requests) == asked


@pytest.fixture
def blocked(url, host):
    """A worker whose model is at work on the host's run."""
    gate = threading.Event()
    model = ScriptedModel(gate=gate, timeout=300.0)
    desk, done, stop = desk_of(url, model), [], threading.Event()
    working = threading.Thread(target=lambda: done.append(desk.do(Job("summary", "default"), stop)))
    working.start()
    until = time.monotonic() + 300
    while not model.requests and time.monotonic() < until:
        time.sleep(0.02)
    yield gate, working, done, stop
    gate.set()
    working.join(300)


def test_what_the_host_records_meanwhile_is_kept_and_what_was_written_still_stands(host, blocked):
    gate, working, done, _ = blocked
    host.record(*turn(80))
    host.record(*turn(81))
    gate.set()
    working.join(300)
    assert (done[0].failed, done[0].count > 0) == ("", True)
    assert records(host)
    host.record(*turn(82))
    assert "item_82_3" in str(host.to_messages())
    assert host.verify().ok


@pytest.mark.parametrize("verb", ["compact", "erase", "rewind"])
def test_what_does_not_fit_any_more_is_dropped(host, blocked, verb):
    gate, working, done, _ = blocked
    given = {"compact": (), "erase": ("s1",), "rewind": (3,)}[verb]
    getattr(host, verb)(*given)
    gate.set()
    working.join(300)
    assert done[0].count == 0
    assert not records(host)
    host.record(*turn(83))
    assert host.verify().ok


def test_told_to_stop_it_ends_while_the_model_blocks(host, blocked):
    gate, working, _, stop = blocked
    stop.set()
    working.join(300)
    assert not working.is_alive()
    assert not gate.is_set()
    assert not records(host)


def test_a_model_that_fails_changes_nothing_and_is_told(url, host):
    head = host._runtime.log.head()
    (done,) = done_by(desk_of(url, ScriptedModel([ModelUnavailable("down", status=400)] * 9)))
    assert "down" in done.failed
    assert host._runtime.log.head() == head


@pytest.mark.parametrize("url", ["file"], indirect=True)
def test_one_worker_has_it_and_another_where_that_one_dies(url, host):
    model, now = ScriptedModel(), [time.time()]
    with contextlib.closing(Claims(url, "dead", lease=30.0, clock=lambda: now[0] - 1_000_000)) as claims:
        with contextlib.closing(Claims(url, "alive", lease=30.0)) as other, other.claim("default", "summary"):
            assert done_by(desk_of(url, model)) == []
            assert not model.requests
        # The claim of a worker that died long ago.
        claims._execute("INSERT INTO worker_claims VALUES ('', 'default', 'summary', 'dead', ?)", now[0] - 100)
        assert len(done_by(desk_of(url, model))) == 1
    assert records(host)


@pytest.mark.parametrize("url", ["file"], indirect=True)
def test_a_run_at_rest_or_within_its_marks_is_left_alone(url, host):
    assert desk_of(url, ScriptedModel(), clock=lambda: time.time() + 100_000).due_jobs() == (Job("index", "default"),)
    wide = {"budget": 100 * BUDGET, "summarizer": ScriptedModel()}
    assert WorkQueue(url, summaries=wide).due_jobs() == (Job("index", "default"),)
    with pytest.raises(ConfigurationError, match="budgte"):
        WorkQueue(url, summaries={"budgte": 3, "summarizer": ScriptedModel()})


@pytest.mark.parametrize("url", ["file"], indirect=True)
@pytest.mark.parametrize("told", ["options", "file"])
def test_the_command_writes_summaries_where_it_or_the_configuration_says_so(
    url, host, tmp_path, monkeypatch, capsys, told
):
    monkeypatch.chdir(tmp_path)
    given = ["--budget", str(BUDGET), "--policy", "tiers"]
    if told == "file":
        settings = f'[budget]\nwindow = {BUDGET}\n[policy]\nname = "tiers"\n'
        (tmp_path / "pagein.toml").write_text(settings)
        given = []
    assert main(["worker", url, "--once", "--summarizer", "scripted", *given]) == 0
    assert "summary default:" in capsys.readouterr().out
    assert records(host)
