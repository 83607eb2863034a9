"""How a log proves that it keeps snapshots: a subclass of ``SnapshotTests`` with the fixture of ``LogTests``.

class TestMyLogKeepsSnapshots(SnapshotTests):
@pytest.fixture
def open_log(self, tmp_path):
return lambda session="default", tenant="": MyLog(tmp_path / "log", session=session, tenant=tenant)

def damage(self, log): ...  # change a byte of the stored snapshot's body, past the log
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from pagein.errors import LogClosed, LogErased
from pagein.events.entries import Erased, Pin
from pagein.log.base import Log
from pagein.log.branch_log import OWN
from pagein.log.erasure import Cut, ErasableLog, Removal
from pagein.log.snapshots import Snapshot, SnapshotLog
from pagein.testing.log_isolation import NOON, ApartTests, OpenLog, opened

BODY = bytes(range(256)) * 40


class SnapshotTests:
    """The contract of ``pagein.log.snapshots.SnapshotLog``: subclass it, and give the fixture ``open_log``."""

    raw: ClassVar[bool] = True
    """The subclass reaches the store past the log, by ``damage``."""

    @pytest.fixture
    def open_log(self) -> OpenLog:
        """The one fixture of a subclass."""
        raise NotImplementedError("a subclass of SnapshotTests gives the fixture open_log")

    def damage(self, log: Any) -> None:
        """Change one byte or more of the body of the stored snapshot, and nothing else."""
        raise NotImplementedError("give damage, or declare raw = False")

    def test_where_none_was_kept_none_is_found(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            shelf = keeping(log).shelf()
            assert (shelf.snapshot, shelf.dropped, shelf.is_open) == (None, 0, True)

    def test_what_is_kept_is_found_as_it_was_by_every_handle(self, open_log: OpenLog) -> None:
        with opened(open_log) as log, opened(open_log) as other:
            kept = _kept(log)
            assert keeping(log).shelf().snapshot == kept
            assert keeping(other).shelf().snapshot == kept
        with opened(open_log) as again:
            assert keeping(again).shelf().snapshot == kept

    def test_the_next_takes_the_place_of_the_one_before(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            _kept(log)
            later = Snapshot(2, "s2:ff", "another key", b"")
            keeping(log).keep(later, 0)
            assert keeping(log).shelf().snapshot == later

    def test_a_damaged_one_is_none(self, open_log: OpenLog) -> None:
        if not self.raw:
            pytest.skip("declared: the store is not reached past the log")
        with opened(open_log) as log:
            _kept(log)
            self.damage(log)
            assert keeping(log).shelf().snapshot is None
            assert log.verify().ok, "a snapshot is no part of the record"

    def test_sessions_and_tenants_have_their_own(self, open_log: OpenLog) -> None:
        owners = [{"session": name} for name in ApartTests.names] + [{"tenant": "a"}]
        kept = []
        for number, owner in enumerate(owners):
            with opened(open_log, **owner) as log:
                kept.append(_kept(log, body=b"%d" % number))
        for owner, expected in zip(owners, kept, strict=True):
            with opened(open_log, **owner) as log:
                assert keeping(log).shelf().snapshot == expected
        with opened(open_log) as log:
            keeping(log).drop_snapshots()
        found = []
        for owner in owners:
            with opened(open_log, **owner) as log:
                found.append(keeping(log).shelf())
        assert [each.snapshot for each in found] == [None, *kept[1:]]
        assert [each.dropped for each in found] == [1, *(0 for _ in kept[1:])]

    def test_of_a_session_without_entries_none_is_kept(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            keeping(log).keep(Snapshot(1, "s2:00", "key", BODY), 0)
            assert keeping(log).shelf().snapshot is None

    def test_dropping_takes_those_of_all_branches_and_is_counted(self, open_log: OpenLog) -> None:
        with opened(open_log) as log, opened(open_log, f"{OWN}1:default") as branch:
            _kept(log), _kept(branch)
            keeping(branch).drop_snapshots()
            for each in (log, branch):
                assert (keeping(each).shelf().snapshot, keeping(each).shelf().dropped) == (None, 1)
            keeping(log).drop_snapshots()
            assert keeping(branch).shelf().dropped == 2

    def test_who_looked_before_they_were_dropped_keeps_none(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            kept = _kept(log)
            keeping(log).drop_snapshots()
            keeping(log).keep(kept, 0)
            assert keeping(log).shelf().snapshot is None
            keeping(log).keep(kept, 1)
            assert keeping(log).shelf().snapshot == kept

    def test_erasing_drops_them(self, open_log: OpenLog) -> None:
        with opened(open_log) as log, opened(open_log, f"{OWN}1:default") as branch:
            _kept(log), _kept(branch)
            _erasing(log).erase([Cut("default", 3, Erased(((1, 2),), "asked"), {1: Pin("")})], at=NOON)
            for each in (log, branch):
                assert (keeping(each).shelf().snapshot, keeping(each).shelf().dropped) == (None, 1)

    def test_an_erasing_that_fails_drops_nothing(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            kept = _kept(log)
            with pytest.raises(Exception, match="7"):
                _erasing(log).erase([Cut("default", 7, Erased(((1, 2),), "asked"))], at=NOON)
            assert (keeping(log).shelf().snapshot, keeping(log).shelf().dropped) == (kept, 0)

    def test_a_session_that_goes_takes_its_own_along(self, open_log: OpenLog) -> None:
        for trace, dropped in ((True, 1), (False, 0)):
            with opened(open_log, f"trace {trace}") as log:
                kept = _kept(log)
                with opened(open_log) as eraser:
                    _erasing(eraser).erase([Removal(f"trace {trace}", "asked", trace)], at=NOON)
                assert (keeping(log).shelf().snapshot, keeping(log).shelf().dropped) == (None, dropped)
                with pytest.raises(LogErased):
                    keeping(log).keep(kept, dropped)
                assert keeping(log).shelf().snapshot is None

    def test_a_closed_log_says_so(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            kept = _kept(log)
        calls: tuple[Callable[[], object], ...] = (
            keeping(log).shelf,
            lambda: keeping(log).keep(kept, 0),
            keeping(log).drop_snapshots,
        )
        for call in calls:
            with pytest.raises(LogClosed):
                call()


def keeping(log: Log) -> SnapshotLog:
    """The log as one that keeps snapshots."""
    assert isinstance(log, SnapshotLog), f"a {type(log).__name__} keeps no snapshots"
    return log


def _erasing(log: Log) -> ErasableLog:
    assert isinstance(log, ErasableLog)
    return log


def _kept(log: Log, body: bytes = BODY) -> Snapshot:
    """A snapshot of three entries, kept."""
    entries = log.append([Pin("a"), Pin("b"), Pin("c")], after=0, at=NOON)
    made = Snapshot(3, entries[-1].digest, "2 0.1.0 'k'", body)
    keeping(log).keep(made, 0)
    return made
