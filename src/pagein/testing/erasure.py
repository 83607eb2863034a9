"""Conformance suite for logs that erase entries.

A subclass of ``ErasingTests`` has the fixture of ``LogTests``:

    class TestMyLogErases(ErasingTests):
        @pytest.fixture
        def open_log(self, tmp_path):
            return lambda session="default", tenant="": MyLog(tmp_path / "log", session=session, tenant=tenant)

        def stored_content(self, log): ...
        def replace_body(self, log, position, body): ...

The first returns every byte that the store holds; the second replaces a stored body without the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from pagein.errors import Conflict, LogClosed, LogErased, LogError
from pagein.events.entries import Body, Erased, Observed, Pin
from pagein.events.steps import ActionStep, Image, Observation, TaskStep, ToolCall
from pagein.log.base import Entry, StoredLog
from pagein.log.codec import hash_bytes, make_tombstone
from pagein.log.erasure import Cut, Removal
from pagein.testing._threads import require
from pagein.testing.logs import NOON, OpenLog, StoredLogSuite, open_stored

UNIQUE_WORD = "xanthippe-4711"
PICTURE = b"\x89PNG xanthippe " * 500
ERASED_STEP = TaskStep("[erased]")


class ErasingTests(StoredLogSuite):
    """The contract of ``pagein.log.base.StoredLog``: subclass it, and give the fixture ``open_log``."""

    durable: ClassVar[bool] = True
    """True where a session opened again still has its entries."""

    raw: ClassVar[bool] = True
    """True where the subclass defines ``stored_content`` and ``replace_body``."""

    def stored_content(self, log: Any) -> bytes:
        """Return every byte that the store holds, after the log was scrubbed."""
        raise NotImplementedError("define stored_content, or declare raw = False")

    def replace_body(self, log: Any, position: int, body: bytes) -> None:
        """Replace the body stored at ``position``, and change nothing else."""
        raise NotImplementedError("define replace_body, or declare raw = False")

    def test_what_was_said_is_gone_and_the_rest_is_as_it_was(self, log: StoredLog) -> None:
        before = list(_append_steps(log, 4))
        _erase_bodies(log, {1: ERASED_STEP})
        after = list(log.read())
        assert [entry.body for entry in after[:4]] == [
            before[0].body,
            ERASED_STEP,
            *(entry.body for entry in before[2:]),
        ]
        assert [entry.digest for entry in after[:4]] == [entry.digest for entry in before]
        assert [entry.erased for entry in after] == [None, 4, None, None, None]
        assert after[4].body == Erased(((1, 2),), "asked for")
        if self.raw:
            log.store.scrub()
            assert UNIQUE_WORD.encode() not in self.stored_content(log)

    def test_verify_calls_it_erased_and_not_broken(self, log: StoredLog) -> None:
        _append_steps(log, 4)
        _erase_bodies(log, {0: ERASED_STEP, 2: TaskStep("[erased]")})
        log.append([Pin("more")], after=5, at=NOON)
        verification = log.verify()
        assert (verification.problems, verification.entries, verification.erased) == ((), 6, 2)

    def test_erasing_again_leaves_it_erased(self, log: StoredLog) -> None:
        _append_steps(log, 3)
        _erase_bodies(log, {1: TaskStep("half of it")})
        _erase_bodies(log, {1: ERASED_STEP, 2: ERASED_STEP})
        verification = log.verify()
        assert (verification.problems, verification.erased) == ((), 2)
        assert next(iter(log.read(1, 2))).body == ERASED_STEP

    def test_a_tombstone_that_was_changed_is_found(self, log: StoredLog) -> None:
        require(self, "raw")
        _append_steps(log, 3)
        _erase_bodies(log, {1: ERASED_STEP})
        row = next(iter(log.rows(1, 2)))
        self.replace_body(log, 1, row.body.replace(b"[erased]", b"[slander]"))
        assert {problem.position for problem in log.verify().problems} == {1}

    def test_a_tombstone_that_nobody_wrote_down_is_found(self, open_log: OpenLog) -> None:
        require(self, "raw")
        with open_stored(open_log) as log, open_stored(open_log, session="other") as other:
            for session_log in (log, other):
                _append_steps(session_log, 3)
            _erase_bodies(log, {1: ERASED_STEP})
            self.replace_body(other, 1, next(iter(log.rows(1, 2))).body)
            assert {problem.position for problem in other.verify().problems} == {1}

    def test_a_tombstone_with_a_proof_of_its_own_is_found(self, log: StoredLog) -> None:
        require(self, "raw")
        _append_steps(log, 3)
        before, row = log.rows(0, 2)
        for by in (1, 2, 9):
            self.replace_body(log, 1, make_tombstone(row, before.digest, by, b'{"content":"slander"}'))
            assert {problem.position for problem in log.verify().problems} == {1}

    def test_a_change_beside_a_tombstone_is_still_found(self, open_log: OpenLog) -> None:
        require(self, "raw")
        for position in (0, 2):
            with open_stored(open_log, session=f"beside {position}") as log:
                _append_steps(log, 4)
                _erase_bodies(log, {1: ERASED_STEP})
                self.replace_body(log, position, b'{"content":"forged"}')
                assert {problem.position for problem in log.verify().problems} == {position}

    def test_blobs_go_when_nothing_names_them_any_more(self, log: StoredLog) -> None:
        picture = TaskStep((Image(PICTURE, "image/png"),))
        log.append([picture, Pin("between"), picture], after=0, at=NOON)
        _erase_bodies(log, {0: ERASED_STEP})
        assert next(iter(log.read(2, 3))).body == picture
        assert log.verify().ok
        _erase_bodies(log, {2: ERASED_STEP})
        assert log.verify().ok
        with pytest.raises(LogError):
            log.blob(hash_bytes(PICTURE))

    def test_a_body_of_another_kind_or_place_is_refused(self, log: StoredLog) -> None:
        before = list(_append_steps(log, 3))
        wrong: list[dict[int, Body]] = [
            {0: ERASED_STEP, 1: Pin("[erased]")},
            {1: ERASED_STEP, 3: ERASED_STEP},
            {1: ERASED_STEP, 9: ERASED_STEP},
        ]
        for bodies in wrong:
            with pytest.raises(LogError):
                _erase_bodies(log, bodies)
            assert list(log.read()) == before

    def test_a_stale_eraser_is_refused_and_nothing_is_erased(self, log: StoredLog) -> None:
        before = list(_append_steps(log, 3))
        for stale in (2, 4):
            with pytest.raises(Conflict) as refused:
                log.erase([Cut("default", stale, Erased(((1, 2),)), {1: ERASED_STEP})], at=NOON)
            assert (refused.value.expected, refused.value.head) == (stale, 3)
        assert list(log.read()) == before

    def test_cuts_in_several_sessions_are_made_together_or_not_at_all(self, open_log: OpenLog) -> None:
        with open_stored(open_log) as log, open_stored(open_log, session="other") as other:
            for session_log in (log, other):
                _append_steps(session_log, 3)
            bad = [_make_cut("default", 3, {1: ERASED_STEP}), _make_cut("other", 7, {1: ERASED_STEP})]
            with pytest.raises(Conflict):
                log.erase(bad, at=NOON)
            assert log.verify().erased == 0
            log.erase([_make_cut("default", 3, {1: ERASED_STEP}), _make_cut("other", 3, {1: ERASED_STEP})], at=NOON)
            for session_log in (log, other):
                verification = session_log.verify()
                assert (verification.problems, verification.erased) == ((), 1)

    def test_a_session_goes_whole_and_leaves_a_trace(self, log: StoredLog) -> None:
        _append_steps(log, 4)
        log.erase([Removal("default", "too old")], at=NOON + 1)
        (only,) = log.read()
        assert (only.body, only.at) == (Erased(((0, 4),), "too old", 4), NOON + 1)
        verification = log.verify()
        assert (verification.problems, verification.entries, verification.erased) == ((), 1, 4)
        log.erase([Removal("default", "again")], at=NOON + 2)
        assert list(log.read()) == [only], "a trace was erased, and counted as one entry"
        log.append([Pin("anew")], after=1, at=NOON)
        assert log.verify().ok

    def test_a_session_goes_without_a_trace(self, open_log: OpenLog) -> None:
        with open_stored(open_log) as log, open_stored(open_log, session="other") as other:
            for session_log in (log, other):
                _append_steps(session_log, 2)
            log.erase([Removal("default", trace=False)], at=NOON)
            assert (log.head(), list(log.read()), log.verify().ok) == (0, [], True)
            assert other.verify().entries == 2
            if self.raw and self.durable:
                assert "default" not in log.store.sessions()
            log.append([Pin("anew")], after=0, at=NOON)
            assert log.verify().ok

    def test_a_writer_behind_what_is_gone_is_told_so(self, open_log: OpenLog) -> None:
        require(self, "durable")
        with open_stored(open_log) as log, open_stored(open_log) as rival:
            _append_steps(log, 3)
            rival.append([Pin("mine")], after=3, at=NOON)
            log.erase([Removal("default")], at=NOON)
            with pytest.raises(LogErased):
                rival.append([Pin("behind nothing")], after=4, at=NOON)
            log.append([Pin("b"), Pin("c"), Pin("d")], after=1, at=NOON)
            with pytest.raises(LogErased):
                rival.append([Pin("behind another's")], after=4, at=NOON)
            assert [entry.body for entry in log.read(1)] == [Pin("b"), Pin("c"), Pin("d")]
            assert log.verify().ok

    def test_what_is_left_of_every_kind_comes_back(self, open_log: OpenLog) -> None:
        bodies: list[Body] = [
            ActionStep(UNIQUE_WORD, (ToolCall("c", "read", f'"{UNIQUE_WORD}"'),)),
            Observed(0, 0, Observation("c", UNIQUE_WORD * 9_000)),
        ]
        redacted: list[Body] = [
            ActionStep("[erased]", (ToolCall("c", "read"),)),
            Observed(0, 0, Observation("c", "[erased]")),
        ]
        with open_stored(open_log) as log:
            log.append(bodies, after=0, at=NOON)
            _erase_bodies(log, dict(enumerate(redacted)))
            assert [entry.body for entry in log.read(0, 2)] == redacted
            assert log.verify().ok
        if self.durable:
            with open_stored(open_log) as log:
                assert [entry.body for entry in log.read(0, 2)] == redacted

    def test_a_closed_log_erases_nothing(self, open_log: OpenLog) -> None:
        with open_stored(open_log) as log:
            _append_steps(log, 2)
        with pytest.raises(LogClosed):
            _erase_bodies(log, {0: ERASED_STEP}, after=2)


def _append_steps(log: StoredLog, count: int) -> Sequence[Entry]:
    steps = [TaskStep(f"{UNIQUE_WORD} and {number}" if number == 1 else str(number)) for number in range(count)]
    return log.append(steps, after=0, at=NOON)


def _erase_bodies(log: StoredLog, bodies: dict[int, Body], after: int | None = None) -> None:
    cut = _make_cut(log.session, log.head() if after is None else after, bodies)
    log.erase([cut], at=NOON)


def _make_cut(session: str, after: int, bodies: dict[int, Body]) -> Cut:
    return Cut(session, after, Erased(tuple((at, at + 1) for at in sorted(bodies)), "asked for"), bodies)
