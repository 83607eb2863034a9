"""The promises hold after any history, on every log and under every policy."""

from __future__ import annotations

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
