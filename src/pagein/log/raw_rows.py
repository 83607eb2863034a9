"""Rows as stores keep them, and the options that every database takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from pagein.errors import ConfigurationError

SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")


@dataclass(frozen=True, slots=True)
class Row:
    """One entry as it is stored."""

    position: int
    at: float
    kind: str
    version: int
    body: bytes
    digest: str


class Tip(NamedTuple):
    """The head of a session, and the digest of the entry before it."""

    head: int
    digest: str


def check_waits(timeout: float, synchronous: str) -> str:
    """``synchronous`` in capitals. Raises ConfigurationError for an unknown value, or an invalid timeout."""
    if not isinstance(synchronous, str) or synchronous.upper() not in SYNCHRONOUS:
        raise ConfigurationError(f"synchronous is one of {', '.join(SYNCHRONOUS)}, not {synchronous!r}")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout < math.inf:
        raise ConfigurationError(f"timeout is in seconds, 0 or more, not {timeout!r}")
    return synchronous.upper()
