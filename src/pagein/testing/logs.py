"""How a log proves itself: a subclass of ``LogTests`` with one fixture, and half of its tests are failures.

    class TestMyLog(LogTests):
        @pytest.fixture
        def open_log(self, tmp_path):
            return lambda session="default", tenant="": MyLog(tmp_path / "log", session=session, tenant=tenant)

        def stored_bytes(self, log): ...      # what the store holds, past the log
        def tamper(self, log, position): ...  # change a stored body, past the log

What a log cannot do it declares (``durable = False``), and the report shows the tests skipped for it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.errors import Conflict, LogClosed, LogError
from pagein.events.entries import Body, Observed, Pin
from pagein.events.steps import (
    ActionStep,
    Image,
    Observation,
    TaskStep,
    Text,
    ToolCall,
)
from pagein.log.base import Entry, Log
from pagein.log.codec import encode
from pagein.log.hash_chain import link, origin
from pagein.testing.log_isolation import NOON, ApartTests, OpenLog, opened
from pagein.testing.strategies import HAZARDS, ONE_OF_EACH, PICTURE, bodies, everywhere


class LogTests(ApartTests):
    """The contract of ``pagein.log.base.Log``: subclass it, and give the fixture ``open_log``."""

    durable: ClassVar[bool] = True
    """Opening a session again finds what was written to it."""

    raw: ClassVar[bool] = True
    """The subclass reaches the store past the log, by ``stored_bytes`` and ``tamper``."""

    generated: ClassVar[settings] = settings(max_examples=60, deadline=None, database=None)
    """How many histories hypothesis makes up, and how."""

    @pytest.fixture
    def open_log(self) -> OpenLog:
        """The one fixture of a subclass."""
        raise NotImplementedError("a subclass of LogTests gives the fixture open_log")

    def stored_bytes(self, log: Log) -> int:
        """Bytes that the store holds for this session, bodies and blobs."""
        raise NotImplementedError("give stored_bytes, or declare raw = False")

    def tamper(self, log: Log, position: int) -> None:
        """Change one byte or more of the body stored at ``position``, and nothing else."""
        raise NotImplementedError("give tamper, or declare raw = False")

    # What is written is what is read

    def test_a_new_log_is_empty(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            assert log.head() == 0
            assert list(log.read()) == []
            checked = log.verify()
            assert checked.ok
            assert checked.entries == 0

    def test_append_returns_the_entries_that_reading_gives(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            first = log.append(_tasks(3), after=0, at=NOON)
            second = log.append(_tasks(2), after=3, at=NOON + 1)
            assert (*first, *second) == tuple(log.read())
            assert _bodies(log) == [*_tasks(3), *_tasks(2)]

    def test_positions_count_from_zero_and_head_is_the_next(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            for position in range(4):
                assert log.head() == position
                log.append([TaskStep(str(position))], after=position, at=NOON)
            assert [(each.position, each.body) for each in log.read()] == list(enumerate(_tasks(4)))

    def test_every_kind_of_body_comes_back_equal(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            log.append(ONE_OF_EACH, after=0, at=NOON)
            for written, read in zip(ONE_OF_EACH, _bodies(log), strict=True):
                assert (type(read), read) == (type(written), written)

    def test_any_body_comes_back_equal(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:

            @self.generated
            @given(st.lists(bodies(), min_size=1, max_size=4))
            def check(batch: list[Body]) -> None:
                head = log.head()
                appended = log.append(batch, after=head, at=NOON)
                assert [each.body for each in appended] == batch
                assert [each.body for each in log.read(head)] == batch

            check()
            assert log.verify().ok

    def test_hazardous_text_is_not_changed(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            for hazard in HAZARDS:
                batch, head = everywhere(hazard), log.head()
                log.append(batch, after=head, at=NOON)
                assert _bodies(log, head) == batch, f"{hazard[:20]!r} was changed"

    def test_plain_text_parts_and_nothing_stay_apart(self, open_log: OpenLog) -> None:
        batch: list[Body] = [ActionStep(each) for each in (None, "", (), (Text(""),), "a", (Text("a"),))]
        with opened(open_log) as log:
            log.append(batch, after=0, at=NOON)
            assert _bodies(log) == batch

    def test_equal_bodies_are_entries_of_their_own(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            log.append([Pin("a"), Pin("a")], after=0, at=NOON)
            log.append([Pin("a")], after=2, at=NOON)
            assert _bodies(log) == [Pin("a")] * 3

    def test_a_long_batch_is_written_whole(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            log.append(_tasks(555), after=0, at=NOON)
            assert _bodies(log) == _tasks(555)

    # Ranges

    def test_a_range_is_all_positions_inside_it(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            log.append(_tasks(5), after=0, at=NOON)
            for start in range(-2, 7):
                for stop in (*range(-2, 8), None, 2**70):
                    positions = [each.position for each in log.read(start, stop)]
                    inside = [each for each in range(5) if start <= each and (stop is None or each < stop)]
                    assert positions == inside, f"[{start}, {stop})"
            assert list(log.read(2**70)) == []

    def test_a_long_log_can_be_read_from_any_position(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            log.append(_tasks(305), after=0, at=NOON)
            for start, stop in ((0, 305), (99, 201), (100, 300), (101, 102), (204, None)):
                assert _bodies(log, start, stop) == _tasks(305)[start:stop]

    def test_a_reading_ends_where_the_log_ended_when_it_began(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            log.append(_tasks(150), after=0, at=NOON)
            reading = log.read()
            seen = [next(reading)]
            log.append(_tasks(150), after=150, at=NOON)
            for entry in reading:
                seen.append(entry)
                assert len(seen) <= 150, "the reading runs after the writer"
            assert [each.body for each in seen] == _tasks(150)

    # Refusals

    def test_a_stale_writer_is_refused_and_nothing_is_written(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            log.append(_tasks(3), after=0, at=NOON)
            before = list(log.read())
            for stale in (0, 2):
                with pytest.raises(Conflict) as refused:
                    log.append([Pin("late")], after=stale, at=NOON)
                assert (refused.value.expected, refused.value.found) == (stale, 3)
            assert list(log.read()) == before
            assert log.head() == 3

    def test_a_writer_ahead_of_the_log_is_refused(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            log.append(_tasks(1), after=0, at=NOON)
            for ahead in (2, 100, -1):
                with pytest.raises(Conflict):
                    log.append([Pin("early")], after=ahead, at=NOON)
            assert _bodies(log) == _tasks(1)

    def test_a_batch_with_one_bad_body_leaves_nothing(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            log.append(_tasks(1), after=0, at=NOON)
            for place in range(3):
                batch: list[Any] = [TaskStep((Image(PICTURE),)), Pin("b"), Pin("c")]
                batch[place] = object()
                with pytest.raises(LogError):
                    log.append(batch, after=1, at=NOON)
                assert log.head() == 1
                assert _bodies(log) == _tasks(1)

    def test_a_body_that_would_not_come_back_is_refused(self, open_log: OpenLog) -> None:
        anything: Any = TaskStep
        wrong: tuple[Any, ...] = (
            anything(["a", "list"]),
            anything([Text("a list of parts")]),
            anything(7),
            anything(b"bytes"),
            ActionStep(tool_calls=(ToolCall("c", "n", {"parsed": "arguments"}),)),  # type: ignore[arg-type]
            ActionStep(observations=(), tool_calls=[ToolCall("c", "n")]),  # type: ignore[arg-type]
            Observed(0, 0, Observation("c", "", "fine")),  # type: ignore[arg-type]
            Pin(None),  # type: ignore[arg-type]
            "text",
            None,
        )
        with opened(open_log) as log:
            for each in wrong:
                with pytest.raises(LogError):
                    log.append([Pin("a"), each], after=0, at=NOON)
                assert log.head() == 0, f"{each!r} was accepted"

    def test_a_time_that_is_none_is_refused(self, open_log: OpenLog) -> None:
        times: tuple[Any, ...] = (float("nan"), float("inf"), None, "noon")
        with opened(open_log) as log:
            for at in times:
                with pytest.raises(LogError):
                    log.append([Pin("a")], after=0, at=at)
            assert log.head() == 0

    def test_an_empty_batch_writes_nothing_and_a_stale_one_is_told(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            assert log.append([], after=0, at=NOON) == ()
            log.append(_tasks(1), after=0, at=NOON)
            with pytest.raises(Conflict):
                log.append([], after=0, at=NOON)
            assert _bodies(log) == _tasks(1)

    def test_the_log_can_be_used_after_a_failure(self, open_log: OpenLog) -> None:
        bad: Any = object()
        with opened(open_log) as log:
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
        for use in (
            log.head,
            lambda: list(log.read()),
            log.verify,
            lambda: log.append([Pin("a")], after=2, at=NOON),
        ):
            with pytest.raises(LogClosed):
                use()

    # Nobody reaches in

    def test_a_reader_cannot_reach_into_the_log(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            (appended,) = log.append([TaskStep("as it was")], after=0, at=NOON)
            for entry in (appended, *log.read()):
                object.__setattr__(entry.body, "content", "changed")
                object.__setattr__(entry, "position", 7)
            assert [(each.position, each.body) for each in log.read()] == [(0, TaskStep("as it was"))]
            assert log.verify().ok

    def test_a_writer_cannot_reach_into_the_log(self, open_log: OpenLog) -> None:
        body, batch = TaskStep("as it was"), [Pin("a")]
        with opened(open_log) as log:
            log.append([body], after=0, at=NOON)
            log.append(batch, after=1, at=NOON)
            object.__setattr__(body, "content", "changed")
            batch.append(Pin("b"))
            assert _bodies(log) == [TaskStep("as it was"), Pin("a")]

    # Proof

    def test_verify_looks_at_every_entry(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            log.append(ONE_OF_EACH, after=0, at=NOON)
            log.append(_tasks(250), after=len(ONE_OF_EACH), at=NOON)
            checked = log.verify()
            assert (checked.problems, checked.entries) == ((), len(ONE_OF_EACH) + 250)

    def test_verify_names_the_entry_that_was_changed(self, open_log: OpenLog) -> None:
        self._needs(raw=True)
        for position in (0, 1, 2):
            with opened(open_log, session=f"tampered {position}") as log:
                log.append(_tasks(3), after=0, at=NOON)
                self.tamper(log, position)
                checked = log.verify()
                assert not checked.ok, "the change went unnoticed"
                assert {each.position for each in checked.problems} == {position}

    def test_digests_are_the_chain_that_every_store_derives(self, open_log: OpenLog) -> None:
        batch: list[Body] = [Pin("same"), Pin("same"), *ONE_OF_EACH]
        for owner in ({}, {"session": "other"}, {"tenant": "other"}):
            with opened(open_log, **owner) as log:
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

    def test_images_and_large_texts_come_back_byte_for_byte(self, open_log: OpenLog) -> None:
        batch: list[Body] = [
            TaskStep((Image(PICTURE, "image/png"), Text("between"), Image(PICTURE[::-1]), Image(b"\0"))),
            Observed(0, 0, Observation("c", (Image(PICTURE),))),
            ActionStep(
                "e\u0301" * 30_000,
                (ToolCall("c", "write", "{" + "\0" * 40_000),),
                (Observation("c", "x" * 2**20),),
            ),
        ]
        with opened(open_log) as log:
            log.append(batch, after=0, at=NOON)
            assert _bodies(log) == batch
            assert log.verify().ok

    def test_an_image_or_a_large_text_is_stored_once(self, open_log: OpenLog) -> None:
        self._needs(raw=True)
        large: list[Body] = [
            TaskStep((Image(PICTURE * 4, "image/png"),)),
            Observed(0, 0, Observation("c", "x" * 200_000)),
        ]
        with opened(open_log) as log:
            log.append(large, after=0, at=NOON)
            once = self.stored_bytes(log)
            for again in range(10):
                log.append(large, after=2 + 2 * again, at=NOON)
            assert self.stored_bytes(log) < 1.5 * once
            assert _bodies(log) == large * 11

    # Two at once

    def test_threads_never_share_a_position(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            failures: list[BaseException] = []

            def write(name: str) -> None:
                try:
                    for number in range(10):
                        _append_at_head(log, Pin(f"{name}{number}"))
                except BaseException as error:  # noqa: BLE001 - told to the test's own thread
                    failures.append(error)

            _in_threads(write, "abcd")
            assert failures == []
            texts = [each.text for each in _bodies(log) if isinstance(each, Pin)]
            assert sorted(texts) == sorted(f"{name}{number}" for name in "abcd" for number in range(10))
            assert all(
                [t for t in texts if t[0] == name] == [f"{name}{n}" for n in range(10)] for name in "abcd"
            )
            assert log.verify().ok

    def test_a_log_opened_again_is_the_same(self, open_log: OpenLog) -> None:
        self._needs(durable=True)
        with opened(open_log) as log:
            before: list[Entry] = [*log.append(ONE_OF_EACH, after=0, at=NOON)]
        with opened(open_log) as log:
            assert log.head() == len(before)
            assert list(log.read()) == before
            log.append([Pin("more")], after=len(before), at=NOON)
            assert log.verify().ok

    def test_a_second_handle_sees_what_the_first_wrote(self, open_log: OpenLog) -> None:
        self._needs(durable=True)
        with opened(open_log) as first, opened(open_log) as second:
            assert (first.head(), second.head()) == (0, 0)
            first.append(_tasks(2), after=0, at=NOON)
            assert second.head() == 2
            assert _bodies(second) == _tasks(2)
            second.append([Pin("b")], after=2, at=NOON)
            assert _bodies(first) == [*_tasks(2), Pin("b")]

    def test_of_two_handles_the_slower_is_refused(self, open_log: OpenLog) -> None:
        self._needs(durable=True)
        with opened(open_log) as first, opened(open_log) as second:
            second.append([Pin("a")], after=second.head(), at=NOON)
            first.append([Pin("winner")], after=first.head(), at=NOON)
            with pytest.raises(Conflict) as refused:
                second.append([Pin("loser"), Pin("loser")], after=1, at=NOON)
            assert (refused.value.expected, refused.value.found) == (1, 2)
            for log in (first, second):
                assert _bodies(log) == [Pin("a"), Pin("winner")]
                assert log.verify().ok

    def _needs(self, **abilities: bool) -> None:
        for name in abilities:
            if not getattr(self, name):
                pytest.skip(f"{type(self).__name__} declares {name} = False")


def _tasks(count: int) -> list[Body]:
    return [TaskStep(str(number)) for number in range(count)]


def _bodies(log: Log, start: int = 0, stop: int | None = None) -> list[Body]:
    return [each.body for each in log.read(start, stop)]


def _append_at_head(log: Log, body: Body) -> None:
    for _ in range(10_000):
        head = log.head()
        with contextlib.suppress(Conflict):
            (entry,) = log.append([body], after=head, at=NOON)
            assert entry.position == head, "written behind an entry that its writer had not seen"
            return
    raise AssertionError("this writer was refused ten thousand times")


def _in_threads(work: Callable[[str], None], names: str) -> None:
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads meet in the middle of a call
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
