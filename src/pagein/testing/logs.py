"""Conformance suite for logs: a subclass of ``LogTests`` with one fixture.

    class TestMyLog(LogTests):
        @pytest.fixture
        def open_log(self, tmp_path):
            return lambda session="default", tenant="": MyLog(tmp_path / "log", session=session, tenant=tenant)

        def stored_bytes(self, log): ...      # bytes that the store holds for the session
        def tamper(self, log, position): ...  # change a stored body without the log

A log declares what it cannot do (``durable = False``), and the report shows the skipped tests.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from pagein.errors import Conflict, LogClosed, LogError
from pagein.events.entries import Body, Observed, Pin
from pagein.events.steps import ActionStep, Image, Observation, TaskStep, Text, ToolCall
from pagein.log.base import Entry, Log, StoredLog
from pagein.log.codec import encode
from pagein.log.hash_chain import link, origin
from pagein.testing._threads import require, run_in_threads
from pagein.testing.strategies import HAZARDS, ONE_OF_EACH, PICTURE, bodies, bodies_with_text_everywhere

NOON = 1_700_000_000.123456

_LONG = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(3_333))
"""A name of 10,000 bytes that does not compress."""


class OpenLog(Protocol):
    """Opens a session of one store; each call opens it again."""

    def __call__(self, session: str = "default", tenant: str = "") -> Log: ...


def open_and_close(open_log: OpenLog, session: str = "default", tenant: str = "") -> contextlib.closing[Log]:
    """Open a log; close it at the end."""
    return contextlib.closing(open_log(session=session, tenant=tenant))


@contextlib.contextmanager
def open_stored(open_log: OpenLog, session: str = "default", tenant: str = "") -> Iterator[StoredLog]:
    """Open a log that keeps snapshots and erases entries; close it at the end."""
    with open_and_close(open_log, session, tenant) as log:
        assert isinstance(log, StoredLog), f"a {type(log).__name__} is no StoredLog"
        yield log


class StoredLogSuite:
    """The base of a suite for a ``StoredLog``: its fixtures."""

    @pytest.fixture
    def open_log(self) -> OpenLog:
        """Open a session of the log; a subclass overrides this fixture."""
        raise NotImplementedError(f"{type(self).__name__} gives no fixture open_log")

    @pytest.fixture
    def log(self, open_log: OpenLog) -> Iterator[StoredLog]:
        with open_stored(open_log) as log:
            yield log


class LogTests:
    """The contract of ``pagein.log.base.Log``: subclass it, and give the fixture ``open_log``."""

    durable: ClassVar[bool] = True
    """True where a session opened again still has its entries."""

    raw: ClassVar[bool] = True
    """True where the subclass defines ``stored_bytes`` and ``tamper``."""

    names: ClassVar[Sequence[str]] = (
        "default", "Default", "e\u0301", "\u00e9", "", " ", "a%", "a_", "a/../b", "a\\b", "it's", '"quoted"', "a`b",
        "'; DROP TABLE entries; --", "%s {0} $1 :a ?", "line\nbreak", "\t", "\U0001f469\u200d\U0001f4bb",
        "\U0001f469", _LONG, _LONG + "a", _LONG + "b",
    )  # fmt: skip
    """Names of sessions and tenants that a store must keep apart."""

    generated: ClassVar[settings] = settings(
        max_examples=min(60, settings().max_examples), deadline=None, database=None
    )
    """The settings of the generated tests."""

    @pytest.fixture
    def open_log(self) -> OpenLog:
        """Open a session of the log; a subclass overrides this fixture."""
        raise NotImplementedError("a subclass of LogTests gives the fixture open_log")

    @pytest.fixture
    def log(self, open_log: OpenLog) -> Iterator[Log]:
        with open_and_close(open_log) as log:
            yield log

    def stored_bytes(self, log: Log) -> int:
        """Return the bytes that the store holds for this session, bodies and blobs."""
        raise NotImplementedError("define stored_bytes, or declare raw = False")

    def tamper(self, log: Log, position: int) -> None:
        """Change one byte or more of the body stored at ``position``, and nothing else."""
        raise NotImplementedError("define tamper, or declare raw = False")

    # Round trips

    def test_a_new_log_is_empty(self, log: Log) -> None:
        assert log.head() == 0
        assert list(log.read()) == []
        checked = log.verify()
        assert checked.ok
        assert checked.entries == 0

    def test_append_returns_the_entries_that_reading_gives(self, log: Log) -> None:
        first = log.append(_tasks(3), after=0, at=NOON)
        second = log.append(_tasks(2), after=3, at=NOON + 1)
        assert (*first, *second) == tuple(log.read())
        assert _bodies(log) == [*_tasks(3), *_tasks(2)]

    def test_positions_count_from_zero_and_head_is_the_next(self, log: Log) -> None:
        for position in range(4):
            assert log.head() == position
            log.append([TaskStep(str(position))], after=position, at=NOON)
        assert [(entry.position, entry.body) for entry in log.read()] == list(enumerate(_tasks(4)))

    def test_every_kind_of_body_comes_back_equal(self, log: Log) -> None:
        log.append(ONE_OF_EACH, after=0, at=NOON)
        for expected, read in zip(ONE_OF_EACH, _bodies(log), strict=True):
            assert (type(read), read) == (type(expected), expected)

    def test_any_body_comes_back_equal(self, log: Log) -> None:
        @self.generated
        @hypothesis.given(st.lists(bodies(), min_size=1, max_size=4))
        def check(batch: list[Body]) -> None:
            head = log.head()
            appended = log.append(batch, after=head, at=NOON)
            assert [entry.body for entry in appended] == batch
            assert [entry.body for entry in log.read(head)] == batch

        check()
        assert log.verify().ok

    def test_hazardous_text_is_not_changed(self, log: Log) -> None:
        for hazard in HAZARDS:
            batch, head = bodies_with_text_everywhere(hazard), log.head()
            log.append(batch, after=head, at=NOON)
            assert _bodies(log, head) == batch, f"{hazard[:20]!r} was changed"

    def test_plain_text_parts_and_nothing_stay_apart(self, log: Log) -> None:
        batch: list[Body] = [ActionStep(content) for content in (None, "", (), (Text(""),), "a", (Text("a"),))]
        log.append(batch, after=0, at=NOON)
        assert _bodies(log) == batch

    def test_equal_bodies_are_entries_of_their_own(self, log: Log) -> None:
        log.append([Pin("a"), Pin("a")], after=0, at=NOON)
        log.append([Pin("a")], after=2, at=NOON)
        assert _bodies(log) == [Pin("a")] * 3

    def test_a_long_batch_is_written_whole(self, log: Log) -> None:
        log.append(_tasks(555), after=0, at=NOON)
        assert _bodies(log) == _tasks(555)

    # Ranges

    def test_a_range_is_all_positions_inside_it(self, log: Log) -> None:
        log.append(_tasks(5), after=0, at=NOON)
        for start in range(-2, 7):
            for stop in (*range(-2, 8), None, 2**70):
                positions = [entry.position for entry in log.read(start, stop)]
                inside = [number for number in range(5) if start <= number and (stop is None or number < stop)]
                assert positions == inside, f"[{start}, {stop})"
        assert list(log.read(2**70)) == []

    def test_a_long_log_can_be_read_from_any_position(self, log: Log) -> None:
        log.append(_tasks(305), after=0, at=NOON)
        for start, stop in ((0, 305), (99, 201), (100, 300), (101, 102), (204, None)):
            assert _bodies(log, start, stop) == _tasks(305)[start:stop]

    def test_a_reading_ends_where_the_log_ended_when_it_began(self, log: Log) -> None:
        log.append(_tasks(150), after=0, at=NOON)
        reading = log.read()
        entries = [next(reading)]
        log.append(_tasks(150), after=150, at=NOON)
        for entry in reading:
            entries.append(entry)
            assert len(entries) <= 150, "the reader follows the writer"
        assert [item.body for item in entries] == _tasks(150)

    # Conflicts and bad input

    def test_a_stale_writer_is_refused_and_nothing_is_written(self, log: Log) -> None:
        log.append(_tasks(3), after=0, at=NOON)
        before = list(log.read())
        for stale in (0, 2):
            with pytest.raises(Conflict) as refused:
                log.append([Pin("late")], after=stale, at=NOON)
            assert (refused.value.expected, refused.value.head) == (stale, 3)
        assert list(log.read()) == before
        assert log.head() == 3

    def test_a_writer_ahead_of_the_log_is_refused(self, log: Log) -> None:
        log.append(_tasks(1), after=0, at=NOON)
        for ahead in (2, 100, -1):
            with pytest.raises(Conflict):
                log.append([Pin("early")], after=ahead, at=NOON)
        assert _bodies(log) == _tasks(1)

    def test_a_batch_with_one_bad_body_leaves_nothing(self, log: Log) -> None:
        log.append(_tasks(1), after=0, at=NOON)
        for place in range(3):
            batch: list[Any] = [TaskStep((Image(PICTURE),)), Pin("b"), Pin("c")]
            batch[place] = object()
            with pytest.raises(LogError):
                log.append(batch, after=1, at=NOON)
            assert log.head() == 1
            assert _bodies(log) == _tasks(1)

    def test_a_body_that_would_not_come_back_is_refused(self, log: Log) -> None:
        anything: Any = TaskStep
        wrong: tuple[Any, ...] = (
            anything(["a", "list"]),
            anything([Text("a list of parts")]),
            anything(7),
            anything(b"bytes"),
            ActionStep(tool_calls=(ToolCall("c", "n", {"parsed": "arguments"}),)),  # type: ignore[arg-type]
            Observed(0, 0, Observation("c", "", "fine")),  # type: ignore[arg-type]
            Pin(None),  # type: ignore[arg-type]
            "text",
            None,
        )
        for body in wrong:
            with pytest.raises(LogError):
                log.append([Pin("a"), body], after=0, at=NOON)
            assert log.head() == 0, f"{body!r} was accepted"

    def test_a_time_that_is_none_is_refused(self, log: Log) -> None:
        times: tuple[Any, ...] = (float("nan"), float("inf"), None, "noon")
        for at in times:
            with pytest.raises(LogError):
                log.append([Pin("a")], after=0, at=at)
        assert log.head() == 0

    def test_an_empty_batch_writes_nothing_and_a_stale_one_is_told(self, log: Log) -> None:
        assert log.append([], after=0, at=NOON) == ()
        log.append(_tasks(1), after=0, at=NOON)
        with pytest.raises(Conflict):
            log.append([], after=0, at=NOON)
        assert _bodies(log) == _tasks(1)

    def test_the_log_can_be_used_after_a_failure(self, log: Log) -> None:
        bad: Any = object()
        for after, batch in ((5, [Pin("a")]), (0, [Pin("a"), bad])):
            with pytest.raises(LogError):
                log.append(batch, after=after, at=NOON)
        log.append(_tasks(2), after=0, at=NOON)
        assert _bodies(log) == _tasks(2)
        assert log.verify().ok

    def test_a_closed_log_says_so(self, open_log: OpenLog) -> None:
        log = open_log()
        log.append(_tasks(2), after=0, at=NOON)
        log.close()
        log.close()
        for use in (log.head, lambda: list(log.read()), log.verify, lambda: log.append([Pin("a")], after=2, at=NOON)):
            with pytest.raises(LogClosed):
                use()

    # Nobody reaches in

    def test_a_reader_cannot_reach_into_the_log(self, log: Log) -> None:
        (appended,) = log.append([TaskStep("as it was")], after=0, at=NOON)
        for entry in (appended, *log.read()):
            object.__setattr__(entry.body, "content", "changed")
            object.__setattr__(entry, "position", 7)
        assert [(entry.position, entry.body) for entry in log.read()] == [(0, TaskStep("as it was"))]
        assert log.verify().ok

    def test_a_writer_cannot_reach_into_the_log(self, log: Log) -> None:
        body, batch = TaskStep("as it was"), [Pin("a")]
        log.append([body], after=0, at=NOON)
        log.append(batch, after=1, at=NOON)
        object.__setattr__(body, "content", "changed")
        batch.append(Pin("b"))
        assert _bodies(log) == [TaskStep("as it was"), Pin("a")]

    # Verification

    def test_verify_looks_at_every_entry(self, log: Log) -> None:
        log.append(ONE_OF_EACH, after=0, at=NOON)
        log.append(_tasks(250), after=len(ONE_OF_EACH), at=NOON)
        checked = log.verify()
        assert (checked.problems, checked.entries) == ((), len(ONE_OF_EACH) + 250)

    def test_verify_names_the_entry_that_was_changed(self, open_log: OpenLog) -> None:
        require(self, "raw")
        for position in (0, 1, 2):
            with open_and_close(open_log, session=f"tampered {position}") as log:
                log.append(_tasks(3), after=0, at=NOON)
                self.tamper(log, position)
                checked = log.verify()
                assert not checked.ok, "the change went unnoticed"
                assert {problem.position for problem in checked.problems} == {position}

    def test_digests_are_the_chain_that_every_store_derives(self, open_log: OpenLog) -> None:
        batch: list[Body] = [Pin("same"), Pin("same"), *ONE_OF_EACH]
        for owner in ({}, {"session": "other"}, {"tenant": "other"}):
            with open_and_close(open_log, **owner) as log:
                log.append(batch[:2], after=0, at=NOON)
                log.append(batch[2:], after=2, at=NOON + 1)
                previous = origin(owner.get("tenant", ""), owner.get("session", "default"))
                for entry, record in zip(log.read(), map(encode, batch), strict=True):
                    previous = link(
                        previous,
                        position=entry.position,
                        at=NOON + (entry.position >= 2),
                        kind=record.kind,
                        version=record.version,
                        body=record.body,
                    )
                    assert entry.digest == previous

    # Large things

    def test_images_and_large_texts_come_back_byte_for_byte(self, log: Log) -> None:
        batch: list[Body] = [
            TaskStep((Image(PICTURE, "image/png"), Text("between"), Image(PICTURE[::-1]), Image(b"\0"))),
            Observed(0, 0, Observation("c", (Image(PICTURE),))),
            ActionStep(
                "e\u0301" * 30_000, (ToolCall("c", "write", "{" + "\0" * 40_000),), (Observation("c", "x" * 2**20),)
            ),
        ]
        log.append(batch, after=0, at=NOON)
        assert _bodies(log) == batch
        assert log.verify().ok

    def test_an_image_or_a_large_text_is_stored_once(self, log: Log) -> None:
        require(self, "raw")
        large: list[Body] = [
            TaskStep((Image(PICTURE * 4, "image/png"),)),
            Observed(0, 0, Observation("c", "x" * 200_000)),
        ]
        log.append(large, after=0, at=NOON)
        once = self.stored_bytes(log)
        for again in range(10):
            log.append(large, after=2 + 2 * again, at=NOON)
        assert self.stored_bytes(log) < 1.5 * once
        assert _bodies(log) == large * 11

    # Threads and several handles

    def test_threads_never_share_a_position(self, log: Log) -> None:
        failures: list[BaseException] = []

        def write(name: str) -> None:
            try:
                for number in range(10):
                    _append_at_head(log, Pin(f"{name}{number}"))
            except BaseException as error:  # noqa: BLE001 - raised in the test's own thread
                failures.append(error)

        _in_threads(write, "abcd")
        assert failures == []
        texts = [body.text for body in _bodies(log) if isinstance(body, Pin)]
        assert sorted(texts) == sorted(f"{name}{number}" for name in "abcd" for number in range(10))
        assert all([t for t in texts if t[0] == name] == [f"{name}{n}" for n in range(10)] for name in "abcd")
        assert log.verify().ok

    def test_a_log_opened_again_is_the_same(self, open_log: OpenLog) -> None:
        require(self, "durable")
        with open_and_close(open_log) as log:
            before: list[Entry] = [*log.append(ONE_OF_EACH, after=0, at=NOON)]
        with open_and_close(open_log) as log:
            assert log.head() == len(before)
            assert list(log.read()) == before
            log.append([Pin("more")], after=len(before), at=NOON)
            assert log.verify().ok

    def test_a_second_handle_sees_what_the_first_wrote(self, open_log: OpenLog) -> None:
        require(self, "durable")
        with open_and_close(open_log) as first, open_and_close(open_log) as second:
            assert (first.head(), second.head()) == (0, 0)
            first.append(_tasks(2), after=0, at=NOON)
            assert second.head() == 2
            assert _bodies(second) == _tasks(2)
            second.append([Pin("b")], after=2, at=NOON)
            assert _bodies(first) == [*_tasks(2), Pin("b")]

    def test_of_two_handles_the_slower_is_refused(self, open_log: OpenLog) -> None:
        require(self, "durable")
        with open_and_close(open_log) as first, open_and_close(open_log) as second:
            second.append([Pin("a")], after=second.head(), at=NOON)
            first.append([Pin("winner")], after=first.head(), at=NOON)
            with pytest.raises(Conflict) as refused:
                second.append([Pin("loser"), Pin("loser")], after=1, at=NOON)
            assert (refused.value.expected, refused.value.head) == (1, 2)
            for log in (first, second):
                assert _bodies(log) == [Pin("a"), Pin("winner")]
                assert log.verify().ok

    # Names and times

    def test_sessions_do_not_see_each_other(self, open_log: OpenLog) -> None:
        self._check_apart([{"session": name} for name in self.names], open_log)

    def test_tenants_do_not_see_each_other(self, open_log: OpenLog) -> None:
        self._check_apart([{}, {"tenant": "a"}, {"tenant": "b"}, {"tenant": "a", "session": "b"}], open_log)
        odd = [name for name in self.names if name not in ("", "default")]
        self._check_apart([{"tenant": name} for name in odd], open_log)

    def test_times_are_kept_exactly(self, log: Log) -> None:
        times = [0.0, 0.1, NOON, -1.5, 2.0**53 + 2]
        for position, at in enumerate(times):
            log.append([Pin("")], after=position, at=at)
        assert [entry.at for entry in log.read()] == times

    def test_a_clock_that_goes_backwards_changes_no_order(self, log: Log) -> None:
        times = [NOON, NOON - 3_600, NOON, 0.0, NOON + 1]
        for position, at in enumerate(times):
            (entry,) = log.append([Pin(str(position))], after=position, at=at)
            assert (entry.position, entry.at) == (position, at)
        assert [(entry.position, entry.at, entry.body) for entry in log.read()] == [
            (position, at, Pin(str(position))) for position, at in enumerate(times)
        ]
        assert log.head() == len(times)
        assert log.verify().ok

    def _check_apart(self, owners: Sequence[dict[str, str]], open_log: OpenLog) -> None:
        with contextlib.ExitStack() as stack:
            logs = [stack.enter_context(open_and_close(open_log, **owner)) for owner in owners]
            for number, log in enumerate(logs):
                assert log.head() == 0, f"{owners[number]} sees another's entries"
                log.append([TaskStep((Text(str(number)), Image(PICTURE)))], after=0, at=NOON)
            for number, log in enumerate(logs):
                assert [entry.body for entry in log.read()] == [TaskStep((Text(str(number)), Image(PICTURE)))]
                assert log.verify().ok
            assert len({next(log.read()).digest for log in logs}) == len(logs)


def _tasks(count: int) -> list[Body]:
    return [TaskStep(str(number)) for number in range(count)]


def _bodies(log: Log, start: int = 0, stop: int | None = None) -> list[Body]:
    return [entry.body for entry in log.read(start, stop)]


def _append_at_head(log: Log, body: Body) -> None:
    for _ in range(10_000):
        head = log.head()
        with contextlib.suppress(Conflict):
            (entry,) = log.append([body], after=head, at=NOON)
            assert entry.position == head, "appended behind an entry that its writer had not read"
            return
    raise AssertionError("this writer was refused ten thousand times")


def _in_threads(work: Callable[[str], None], names: str) -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads meet in the middle of a call
    try:
        run_in_threads(*(partial(work, name) for name in names))
    finally:
        sys.setswitchinterval(usual)
