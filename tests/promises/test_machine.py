"""The promises hold after any history, on every log and under every policy."""

from __future__ import annotations

import pytest
from hypothesis import settings

from pagein.compaction.named import POLICIES
from pagein.log.sqlite import SQLiteLog
from pagein.testing.machine import MemoryMachine, chosen_profile


class OnSQLite(MemoryMachine):
    def open_log(self):
        return SQLiteLog(self.folder / "run.db", synchronous="OFF")


def test_the_promises_hold_in_memory():
    case = MemoryMachine.TestCase
    case.settings = chosen_profile()
    case().runTest()


def test_the_promises_hold_on_sqlite():
    case = OnSQLite.TestCase
    case.settings = chosen_profile()
    case().runTest()


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"ladder"}))
def test_the_promises_hold_under_every_policy(name):
    class Named(MemoryMachine):
        def policy(self):
            return name

    case = Named.TestCase
    case.settings = settings(chosen_profile(), max_examples=max(8, chosen_profile().max_examples // 8))
    case().runTest()
