"""How a log proves that it can forget: a subclass of ``ErasingTests`` with the fixture of ``LogTests``.

class TestMyLogForgets(ErasingTests):
@pytest.fixture
def open_log(self, tmp_path):
return lambda session="default", tenant="": MyLog(tmp_path / "log", session=session, tenant=tenant)

def stored(self, log): ...               # every byte that the store holds
def replace(self, log, position, body): ...  # put other bytes in place of a stored body, past the log
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from pagein.errors import Conflict, LogClosed, LogErased, LogError
from pagein.events.entries import Body, Erased, Observed, Pin
from pagein.events.steps import ActionStep, Image, Observation, TaskStep, ToolCall
from pagein.log.erasure import Cut, ErasableLog, Removal
from pagein.log.hash_chain import blob_name
from pagein.log.tombstones import tombstoned
from pagein.testing.log_isolation import NOON, OpenLog, opened

SAID = "xanthippe-4711"
PICTURE = b"\x89PNG xanthippe " * 500
GONE = TaskStep("[erased]")


class ErasingTests:
    """The contract of ``pagein.log.erasure.ErasableLog``: subclass it, and give the fixture ``open_log``."""

    durable: ClassVar[bool] = True
    """Opening a session again finds what was written to it."""

    raw: ClassVar[bool] = True
    """The subclass reaches the store past the log, by ``stored`` and ``replace``."""

    @pytest.fixture
    def open_log(self) -> OpenLog:
        """The one fixture of a subclass."""
        raise NotImplementedError("a subclass of ErasingTests gives the fixture open_log")

    def stored(self, log: Any) -> bytes:
        """Every byte that the store holds, after the log was scrubbed."""
        raise NotImplementedError("give stored, or declare raw = False")

    def replace(self, log: Any, position: int, body: bytes) -> None:
        """Put these bytes in place of the body stored at ``position``, and change nothing else."""
        raise NotImplementedError("give replace, or declare raw = False")

    def test_what_was_said_is_gone_and_the_rest_is_as_it_was(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            before = list(_written(log, 4))
            _cut(log, {1: GONE})
            after = list(log.read())
            assert [each.body for each in after[:4]] == [
                before[0].body,
                GONE,
                *(each.body for each in before[2:]),
            ]
            assert [each.digest for each in after[:4]] == [each.digest for each in before]
            assert [each.erased for each in after] == [None, 4, None, None, None]
            assert after[4].body == Erased(((1, 2),), "asked for")
            if self.raw:
                _erasable(log).scrub()
                assert SAID.encode() not in self.stored(log)

    def test_verify_calls_it_erased_and_not_broken(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            _written(log, 4)
            _cut(log, {0: GONE, 2: TaskStep("[erased]")})
            log.append([Pin("more")], after=5, at=NOON)
            found = log.verify()
            assert (found.problems, found.entries, found.erased) == ((), 6, 2)

    def test_erasing_again_leaves_it_erased(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            _written(log, 3)
            _cut(log, {1: TaskStep("half of it")})
            _cut(log, {1: GONE, 2: GONE})
            found = log.verify()
            assert (found.problems, found.erased) == ((), 2)
            assert next(iter(log.read(1, 2))).body == GONE

    def test_a_tombstone_that_was_changed_is_found(self, open_log: OpenLog) -> None:
        self._needs(raw=True)
        with opened(open_log) as log:
            _written(log, 3)
            _cut(log, {1: GONE})
            row = next(iter(_rows(log, 1)))
            self.replace(log, 1, row.body.replace(b"[erased]", b"[slander]"))
            assert {each.position for each in log.verify().problems} == {1}

    def test_a_tombstone_that_nobody_wrote_down_is_found(self, open_log: OpenLog) -> None:
        self._needs(raw=True)
        with opened(open_log) as log, opened(open_log, session="other") as other:
            for each in (log, other):
                _written(each, 3)
            _cut(log, {1: GONE})
            self.replace(other, 1, next(iter(_rows(log, 1))).body)
            assert {each.position for each in other.verify().problems} == {1}

    def test_a_tombstone_with_a_proof_of_its_own_is_found(self, open_log: OpenLog) -> None:
        self._needs(raw=True)
        with opened(open_log) as log:
            _written(log, 3)
            (before,), (row,) = _rows(log, 0), _rows(log, 1)
            for by in (1, 2, 9):
                self.replace(log, 1, tombstoned(row, before.digest, by, b'{"content":"slander"}'))
                assert {each.position for each in log.verify().problems} == {1}

    def test_a_change_beside_a_tombstone_is_still_found(self, open_log: OpenLog) -> None:
        self._needs(raw=True)
        for position in (0, 2):
            with opened(open_log, session=f"beside {position}") as log:
                _written(log, 4)
                _cut(log, {1: GONE})
                self.replace(log, position, b'{"content":"forged"}')
                assert {each.position for each in log.verify().problems} == {position}

    def test_blobs_go_when_nothing_names_them_any_more(self, open_log: OpenLog) -> None:
        picture = TaskStep((Image(PICTURE, "image/png"),))
        with opened(open_log) as log:
            log.append([picture, Pin("between"), picture], after=0, at=NOON)
            _cut(log, {0: GONE})
            assert next(iter(log.read(2, 3))).body == picture
            assert log.verify().ok
            _cut(log, {2: GONE})
            assert log.verify().ok
            with pytest.raises(LogError):
                _erasable(log).blob(blob_name(PICTURE))

    def test_a_body_of_another_kind_or_place_is_refused(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            before = list(_written(log, 3))
            wrong: list[dict[int, Body]] = [
                {0: GONE, 1: Pin("[erased]")},
                {1: GONE, 3: GONE},
                {1: GONE, 9: GONE},
            ]
            for bodies in wrong:
                with pytest.raises(LogError):
                    _cut(log, bodies)
                assert list(log.read()) == before

    def test_a_stale_eraser_is_refused_and_nothing_is_erased(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            before = list(_written(log, 3))
            for stale in (2, 4):
                with pytest.raises(Conflict) as refused:
                    _erasable(log).erase([Cut("default", stale, Erased(((1, 2),)), {1: GONE})], at=NOON)
                assert (refused.value.expected, refused.value.found) == (stale, 3)
            assert list(log.read()) == before

    def test_cuts_in_several_sessions_are_made_together_or_not_at_all(self, open_log: OpenLog) -> None:
        with opened(open_log) as log, opened(open_log, session="other") as other:
            if not _erasable(log).joint:
                pytest.skip("this log reaches its own session only")
            for each in (log, other):
                _written(each, 3)
            bad = [_of("default", 3, {1: GONE}), _of("other", 7, {1: GONE})]
            with pytest.raises(Conflict):
                _erasable(log).erase(bad, at=NOON)
            assert log.verify().erased == 0
            _erasable(log).erase([_of("default", 3, {1: GONE}), _of("other", 3, {1: GONE})], at=NOON)
            for each in (log, other):
                found = each.verify()
                assert (found.problems, found.erased) == ((), 1)

    def test_a_session_goes_whole_and_leaves_a_trace(self, open_log: OpenLog) -> None:
        with opened(open_log) as log:
            _written(log, 4)
            _erasable(log).erase([Removal("default", "too old")], at=NOON + 1)
            (only,) = log.read()
            assert (only.body, only.at) == (Erased(((0, 4),), "too old", 4), NOON + 1)
            found = log.verify()
            assert (found.problems, found.entries, found.erased) == ((), 1, 4)
            _erasable(log).erase([Removal("default", "again")], at=NOON + 2)
            assert list(log.read()) == [only], "a trace was erased, and told of as one entry"
            log.append([Pin("anew")], after=1, at=NOON)
            assert log.verify().ok

    def test_a_session_goes_without_a_trace(self, open_log: OpenLog) -> None:
        with opened(open_log) as log, opened(open_log, session="other") as other:
            for each in (log, other):
                _written(each, 2)
            _erasable(log).erase([Removal("default", trace=False)], at=NOON)
            assert (log.head(), list(log.read()), log.verify().ok) == (0, [], True)
            assert other.verify().entries == 2
            if self.raw and self.durable:
                assert "default" not in getattr(log, "sessions", tuple)()
            log.append([Pin("anew")], after=0, at=NOON)
            assert log.verify().ok

    def test_a_writer_behind_what_is_gone_is_told_so(self, open_log: OpenLog) -> None:
        self._needs(durable=True)
        with opened(open_log) as log, opened(open_log) as rival:
            _written(log, 3)
            rival.append([Pin("mine")], after=3, at=NOON)
            _erasable(log).erase([Removal("default")], at=NOON)
            with pytest.raises(LogErased):
                rival.append([Pin("behind nothing")], after=4, at=NOON)
            log.append([Pin("b"), Pin("c"), Pin("d")], after=1, at=NOON)
            with pytest.raises(LogErased):
                rival.append([Pin("behind another's")], after=4, at=NOON)
            assert [each.body for each in log.read(1)] == [Pin("b"), Pin("c"), Pin("d")]
            assert log.verify().ok

    def test_what_is_left_of_every_kind_comes_back(self, open_log: OpenLog) -> None:
        said: list[Body] = [
            ActionStep(SAID, (ToolCall("c", "read", f'"{SAID}"'),)),
            Observed(0, 0, Observation("c", SAID * 9_000)),
        ]
        left: list[Body] = [
            ActionStep("[erased]", (ToolCall("c", "read"),)),
            Observed(0, 0, Observation("c", "[erased]")),
        ]
        with opened(open_log) as log:
            log.append(said, after=0, at=NOON)
            _cut(log, dict(enumerate(left)))
            assert [each.body for each in log.read(0, 2)] == left
            assert log.verify().ok
        if self.durable:
            with opened(open_log) as log:
                assert [each.body for each in log.read(0, 2)] == left

    def test_a_closed_log_erases_nothing(self, open_log: OpenLog) -> None:
        log = open_log()
        _written(log, 2)
        log.close()
        with pytest.raises(LogClosed):
            _cut(log, {0: GONE}, after=2)

    def _needs(self, **abilities: bool) -> None:
        for name in abilities:
            if not getattr(self, name):
                pytest.skip(f"{type(self).__name__} declares {name} = False")


def _written(log: Any, count: int) -> Sequence[Any]:
    said = [TaskStep(f"{SAID} and {number}" if number == 1 else str(number)) for number in range(count)]
    entries: Sequence[Any] = log.append(said, after=0, at=NOON)
    return entries


def _cut(log: Any, bodies: dict[int, Body], after: int | None = None) -> None:
    cut = _of(log.session, log.head() if after is None else after, bodies)
    _erasable(log).erase([cut], at=NOON)


def _of(session: str, after: int, bodies: dict[int, Body]) -> Cut:
    return Cut(session, after, Erased(tuple((at, at + 1) for at in sorted(bodies)), "asked for"), bodies)


def _erasable(log: Any) -> ErasableLog:
    assert isinstance(log, ErasableLog), f"a {type(log).__name__} is no ErasableLog"
    return log


def _rows(log: Any, position: int) -> Any:
    return _erasable(log).rows(position, position + 1)
