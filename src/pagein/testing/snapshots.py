"""Conformance suite for logs that keep snapshots.

A subclass of ``SnapshotTests`` has the fixture of ``LogTests``:

    class TestMyLogKeepsSnapshots(SnapshotTests):
        @pytest.fixture
        def open_log(self, tmp_path):
            return lambda session="default", tenant="": MyLog(tmp_path / "log", session=session, tenant=tenant)

        def damage(self, log): ...  # change a byte of the stored snapshot's body without the log
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from pagein.errors import LogClosed, LogErased
from pagein.events.entries import Erased, Pin
from pagein.log.base import StoredLog
from pagein.log.branch_log import OWN
from pagein.log.erasure import Cut, Removal
from pagein.log.snapshots import Snapshot
from pagein.testing._threads import require
from pagein.testing.logs import NOON, LogTests, OpenLog, StoredLogSuite, open_stored

BODY = bytes(range(256)) * 40


class SnapshotTests(StoredLogSuite):
    """The contract of ``pagein.log.base.StoredLog``: subclass it, and give the fixture ``open_log``."""

    raw: ClassVar[bool] = True
    """True where the subclass defines ``damage``."""

    def damage(self, log: Any) -> None:
        """Change one byte or more of the stored snapshot's body, and nothing else."""
        raise NotImplementedError("define damage, or declare raw = False")

    def test_where_none_was_kept_none_is_found(self, log: StoredLog) -> None:
        slot = log.snapshot_slot()
        assert (slot.snapshot, slot.dropped, slot.is_open) == (None, 0, True)

    def test_what_is_kept_is_found_as_it_was_by_every_handle(self, open_log: OpenLog) -> None:
        with open_stored(open_log) as log, open_stored(open_log) as other:
            snapshot = _keep_sample(log)
            assert log.snapshot_slot().snapshot == snapshot
            assert other.snapshot_slot().snapshot == snapshot
        with open_stored(open_log) as again:
            assert again.snapshot_slot().snapshot == snapshot

    def test_the_next_takes_the_place_of_the_one_before(self, log: StoredLog) -> None:
        _keep_sample(log)
        later = Snapshot(2, "s2:ff", "another key", b"")
        log.keep_snapshot(later, 0)
        assert log.snapshot_slot().snapshot == later

    def test_past_ones_stay_beside_the_next_until_all_are_dropped(self, open_log: OpenLog) -> None:
        with open_stored(open_log) as log, open_stored(open_log, "2") as other:
            last, _ = _keep_sample(log), _keep_sample(other)
            past = [Snapshot(position, f"s2:{position:02}", "key", b"%d" % position) for position in (1, 2)]
            for snapshot in past:
                log.keep_snapshot(snapshot, 0, is_past=True)
            assert log.snapshot_slot().snapshot == last
            expected = (None, past[0], past[1], past[1])
            assert tuple(log.snapshot_slot(before).snapshot for before in (0, 1, 2, 9)) == expected
            assert other.snapshot_slot(9).snapshot is None
            log.drop_snapshots()
            assert log.snapshot_slot(9).snapshot is None
            log.keep_snapshot(past[0], 0, is_past=True)
            assert log.snapshot_slot(9).snapshot is None

    def test_a_damaged_one_is_none(self, log: StoredLog) -> None:
        require(self, "raw")
        _keep_sample(log)
        self.damage(log)
        assert log.snapshot_slot().snapshot is None
        assert log.verify().ok, "a snapshot is no part of the record"

    def test_sessions_and_tenants_have_their_own(self, open_log: OpenLog) -> None:
        owners = [{"session": name} for name in LogTests.names] + [{"tenant": "a"}]
        snapshots = []
        for number, owner in enumerate(owners):
            with open_stored(open_log, **owner) as log:
                snapshots.append(_keep_sample(log, body=b"%d" % number))
        for owner, expected in zip(owners, snapshots, strict=True):
            with open_stored(open_log, **owner) as log:
                assert log.snapshot_slot().snapshot == expected
        with open_stored(open_log) as log:
            log.drop_snapshots()
        slots = []
        for owner in owners:
            with open_stored(open_log, **owner) as log:
                slots.append(log.snapshot_slot())
        assert [slot.snapshot for slot in slots] == [None, *snapshots[1:]]
        assert [slot.dropped for slot in slots] == [1, *(0 for _ in snapshots[1:])]

    def test_of_a_session_without_entries_none_is_kept(self, log: StoredLog) -> None:
        log.keep_snapshot(Snapshot(1, "s2:00", "key", BODY), 0)
        assert log.snapshot_slot().snapshot is None

    def test_dropping_takes_those_of_all_branches_and_is_counted(self, open_log: OpenLog) -> None:
        with open_stored(open_log) as log, open_stored(open_log, f"{OWN}1:default") as branch:
            _keep_sample(log), _keep_sample(branch)
            branch.drop_snapshots()
            for session_log in (log, branch):
                assert (session_log.snapshot_slot().snapshot, session_log.snapshot_slot().dropped) == (None, 1)
            log.drop_snapshots()
            assert branch.snapshot_slot().dropped == 2

    def test_who_looked_before_they_were_dropped_keeps_none(self, log: StoredLog) -> None:
        snapshot = _keep_sample(log)
        log.drop_snapshots()
        log.keep_snapshot(snapshot, 0)
        assert log.snapshot_slot().snapshot is None
        log.keep_snapshot(snapshot, 1)
        assert log.snapshot_slot().snapshot == snapshot

    def test_erasing_drops_them(self, open_log: OpenLog) -> None:
        with open_stored(open_log) as log, open_stored(open_log, f"{OWN}1:default") as branch:
            _keep_sample(log), _keep_sample(branch)
            log.erase([Cut("default", 3, Erased(((1, 2),), "asked"), {1: Pin("")})], at=NOON)
            for session_log in (log, branch):
                assert (session_log.snapshot_slot().snapshot, session_log.snapshot_slot().dropped) == (None, 1)

    def test_an_erasing_that_fails_drops_nothing(self, log: StoredLog) -> None:
        snapshot = _keep_sample(log)
        with pytest.raises(Exception, match="7"):
            log.erase([Cut("default", 7, Erased(((1, 2),), "asked"))], at=NOON)
        assert (log.snapshot_slot().snapshot, log.snapshot_slot().dropped) == (snapshot, 0)

    def test_a_session_that_goes_takes_its_own_along(self, open_log: OpenLog) -> None:
        for trace, dropped in ((True, 1), (False, 0)):
            with open_stored(open_log, f"trace {trace}") as log:
                snapshot = _keep_sample(log)
                with open_stored(open_log) as eraser:
                    eraser.erase([Removal(f"trace {trace}", "asked", trace)], at=NOON)
                assert (log.snapshot_slot().snapshot, log.snapshot_slot().dropped) == (None, dropped)
                with pytest.raises(LogErased):
                    log.keep_snapshot(snapshot, dropped)
                assert log.snapshot_slot().snapshot is None

    def test_a_closed_log_says_so(self, open_log: OpenLog) -> None:
        with open_stored(open_log) as log:
            snapshot = _keep_sample(log)
        calls: tuple[Callable[[], object], ...] = (
            log.snapshot_slot,
            lambda: log.keep_snapshot(snapshot, 0),
            log.drop_snapshots,
        )
        for call in calls:
            with pytest.raises(LogClosed):
                call()


def _keep_sample(log: StoredLog, body: bytes = BODY) -> Snapshot:
    """Append three entries, and keep a snapshot of them."""
    entries = log.append([Pin("a"), Pin("b"), Pin("c")], after=0, at=NOON)
    snapshot = Snapshot(3, entries[-1].digest, "2 0.1.0 'k'", body)
    log.keep_snapshot(snapshot, 0)
    return snapshot
