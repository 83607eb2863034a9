"""The log in memory keeps the contract of the durable ones."""

from dataclasses import replace

import pytest

from pagein.backends.base import BareLog
from pagein.backends.memory import InMemoryLog
from pagein.testing.logs import LogTests, OpenLog


class TestInMemoryLog(LogTests):
    durable = False

    @pytest.fixture
    def open_log(self) -> OpenLog:
        return lambda session="default", tenant="": InMemoryLog(session=session, tenant=tenant)

    def stored_bytes(self, log):
        return sum(len(row.body) for row in log._rows) + sum(map(len, log._blobs.values()))

    def tamper(self, log, position):
        row = log._rows[position]
        log._rows[position] = replace(row, body=row.body.replace(b'content":"', b'content":" '))


class TestBareLog(LogTests):
    """The adapter of a log with five methods keeps the contract, too."""

    durable = raw = False

    @pytest.fixture
    def open_log(self) -> OpenLog:
        return lambda session="default", tenant="": BareLog(InMemoryLog(session=session, tenant=tenant))
