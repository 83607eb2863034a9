"""One question to a server after another: on a connection that is opened again where it was lost, errors in our words."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg

from pagein.backends.postgres.connection import (
    Connection,
    Direct,
    Pool,
    Pooled,
    address_of,
    in_our_words,
    was_lost,
)
from pagein.errors import LogClosed, LogUncertain, LogUnreachable

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


def source_of(
    where: str | Pool, *, timeout: float, synchronous: str = "FULL", readonly: bool = False
) -> Direct | Pooled:
    """Connections to an address, one at a time, or those of a pool. Raises ConfigurationError for an address that is none."""
    if isinstance(where, str):
        return Direct(address_of(where), timeout=timeout, synchronous=synchronous, readonly=readonly)
    return Pooled(where, timeout=timeout)


class Asking:
    """Questions to one server. ``timeout`` is how long, in seconds, to wait for it where it went away."""

    def __init__(self, source: Direct | Pooled, *, timeout: float) -> None:
        self._source, self._timeout = source, timeout
        self._reached = False
        self._process = os.getpid()

    @property
    def path(self) -> str:
        """Where the database is, without the password."""
        return self._source.address.name

    def ask(self, work: Callable[[Connection, bool], T], *, writing: bool = False) -> T:
        """What the work gives; where the connection is lost it is done again on a new one, and told so.

        Work must bear being done twice: what was sent before the connection was lost may have arrived. Raises LogError.
        """
        if os.getpid() != self._process:
            raise LogClosed(f"{self.path}: opened before this process was forked; open it again in here")
        pause, sent, deadline = _FIRST_PAUSE, False, math.inf
        while True:
            leased = False
            try:
                with self._source.lease() as using:
                    leased = self._reached = True
                    return work(using, sent)
            except psycopg.Error as error:
                fault = error
            deadline = min(deadline, time.monotonic() + self._timeout)
            sent = sent or (leased and was_lost(fault))
            if not was_lost(fault) or not self._is_patient(fault) or time.monotonic() + pause > deadline:
                break
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        ours = in_our_words(self._source.address, fault, writing=writing)
        if writing and sent and isinstance(ours, LogUnreachable):
            ours = LogUncertain(
                f"{self.path}: the connection was lost while this call was written, and the server did not come back "
                f"within {self._timeout:g} s. Either all of it was written or none; the next call that gets through "
                "tells, and a memory then folds in what is there. Look before you call again."
            )
        # Out here, so that the driver's error, whose text may hold a password, is not this one's context.
        raise ours

    def _is_patient(self, fault: psycopg.Error) -> bool:
        """Whether to wait for the server: not where it was never reached, as waiting mends no wrong address."""
        return self._reached or bool(fault.sqlstate) or "starting up" in str(fault)

    def close(self) -> None:
        """Let go of the connection; a second call does nothing. A pool stays open."""
        if os.getpid() == self._process:  # else the connection is the parent's
            self._source.close()
