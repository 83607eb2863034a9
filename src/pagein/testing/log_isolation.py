"""What a log's conformance suite says of names and times: sessions stay apart whatever they are called, and any clock will do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

from pagein.events.entries import Pin
from pagein.events.steps import Image, TaskStep, Text
from pagein.log.base import Log
from pagein.testing.strategies import PICTURE

NOON = 1_700_000_000.123456

_LONG = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(3_333))
"""A name of 10,000 bytes that no compression makes short."""


class OpenLog(Protocol):
    """Opens a session of one and the same store, again each time it is called."""

    def __call__(self, session: str = "default", tenant: str = "") -> Log: ...


@contextlib.contextmanager
def opened(open_log: OpenLog, session: str = "default", tenant: str = "") -> Iterator[Log]:
    """The log, closed at the end."""
    log = open_log(session=session, tenant=tenant)
    try:
        yield log
    finally:
        log.close()


class ApartTests:
    """The part of ``LogTests`` about names and times."""

    names: ClassVar[Sequence[str]] = (
        "default", "Default", "e\u0301", "\u00e9", "", " ", "a%", "a_", "a/../b", "a\\b", "it's", '"quoted"', "a`b",
        "'; DROP TABLE entries; --", "%s {0} $1 :a ?", "line\nbreak", "\t", "\U0001f469\u200d\U0001f4bb",
        "\U0001f469", _LONG, _LONG + "a", _LONG + "b",
    )  # fmt: skip
    """Names that a session, or a tenant, may have: each is its own."""

    def test_sessions_do_not_see_each_other(self, open_log: OpenLog) -> None:
        self._check_apart([{"session": name} for name in self.names], open_log)

    def test_tenants_do_not_see_each_other(self, open_log: OpenLog) -> None:
        self._check_apart([{}, {"tenant": "a"}, {"tenant": "b"}, {"tenant": "a", "session": "b"}], open_log)
        odd = [each for each in self.names if each not in ("", "default")]
        self._check_apart([{"tenant": name} for name in odd], open_log)

    def test_times_are_kept_exactly(self, open_log: OpenLog) -> None:
        times = [0.0, 0.1, NOON, -1.5, 2.0**53 + 2]
        with opened(open_log) as log:
            for position, at in enumerate(times):
                log.append([Pin("")], after=position, at=at)
            assert [each.at for each in log.read()] == times

    def test_a_clock_that_goes_backwards_changes_no_order(self, open_log: OpenLog) -> None:
        times = [NOON, NOON - 3_600, NOON, 0.0, NOON + 1]
        with opened(open_log) as log:
            for position, at in enumerate(times):
                (entry,) = log.append([Pin(str(position))], after=position, at=at)
                assert (entry.position, entry.at) == (position, at)
            assert [(each.position, each.at, each.body) for each in log.read()] == [
                (position, at, Pin(str(position))) for position, at in enumerate(times)
            ]
            assert log.head() == len(times)
            assert log.verify().ok

    def _check_apart(self, owners: Sequence[dict[str, str]], open_log: OpenLog) -> None:
        with contextlib.ExitStack() as stack:
            logs = [stack.enter_context(opened(open_log, **owner)) for owner in owners]
            for number, log in enumerate(logs):
                assert log.head() == 0, f"{owners[number]} sees another's entries"
                log.append([TaskStep((Text(str(number)), Image(PICTURE)))], after=0, at=NOON)
            for number, log in enumerate(logs):
                assert [each.body for each in log.read()] == [TaskStep((Text(str(number)), Image(PICTURE)))]
                assert log.verify().ok
            assert len({next(log.read()).digest for log in logs}) == len(logs)
