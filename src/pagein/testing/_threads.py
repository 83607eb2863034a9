"""Helpers that several suites share."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest


def run_in_threads(*functions: Callable[[], object], timeout: float | None = None) -> None:
    """Run each function in a thread of its own, and wait for all; ``timeout`` in seconds for each."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)


def require(suite: object, ability: str) -> None:
    """Skip the test of a suite that declares ``ability = False``."""
    if not getattr(suite, ability):
        pytest.skip(f"{type(suite).__name__} declares {ability} = False")
