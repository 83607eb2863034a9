"""The promises hold after any history on a PostgreSQL server, as they do in memory and in a file."""

import pytest
from psycopg_pool import ConnectionPool

from pagein.log.postgres import PostgresLog
from pagein.testing.machine import LOCAL, MemoryMachine, chosen_profile, profile


def check(postgres, how):
    class OnPostgres(MemoryMachine):
        def __init__(self):
            super().__init__()
            self._schema = postgres.schema()
            self.schema = self._schema.__enter__()

        def open_log(self):
            return PostgresLog(pool, schema=self.schema)

        def teardown(self):
            super().teardown()
            self._schema.__exit__(None, None, None)

    case = OnPostgres.TestCase
    case.settings = how
    # The machine drops its logs without closing them: a crash. On a pool they hold nothing.
    with ConnectionPool(postgres.url, min_size=1, max_size=4, open=True) as pool:
        case().runTest()


def test_the_promises_hold_on_postgres(postgres):
    check(postgres, profile(4, 25) if chosen_profile() is LOCAL else chosen_profile())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_promises_hold_on_postgres_after_many_histories(postgres):
    check(postgres, profile(100, 40, seed=False))
