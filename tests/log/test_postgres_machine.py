"""The promises hold after any history on a PostgreSQL server, as they do in memory and in a file."""

from hypothesis.stateful import invariant
from psycopg_pool import ConnectionPool

from pagein.backends.postgres.log import PostgresLog
from pagein.memory.branches import MAIN
from pagein.memory.search_runtime import SearchRuntime
from pagein.search.base import Query
from pagein.search.passages import passages
from pagein.search.tokenizer import query_terms
from pagein.testing.machine import LOCAL, MemoryMachine, chosen_profile, profile


class OnPostgres(MemoryMachine):
    pool = server = None

    def __init__(self):
        super().__init__()
        self._schema = self.server.schema()
        self.schema = self._schema.__enter__()

    def open_log(self, name="default"):
        return PostgresLog(self.pool, session=name, schema=self.schema)

    def teardown(self):
        super().teardown()
        self._schema.__exit__(None, None, None)


class Recalling(OnPostgres):
    """With the search index and the facts on the server, too; and whatever was recorded is recalled by its own words."""

    recalled = 0

    def options(self):
        return {"user": "ann"}

    def _open(self):
        memory = super()._open()
        # The machine's log fails when it is told to; the index lies with what it stands for: the run, not a branch.
        if not any(each.is_current and each.name != MAIN for each in memory.branches()):
            memory._runtime.search = SearchRuntime(self.open_log(), None)
        memory._runtime.facts._store = self.open_log().store
        return memory

    @invariant()
    def what_was_recorded_is_recalled(self):
        # The index that is put in here is of the run as it began, not of its branches.
        if not hasattr(self, "memory") or self.oracle.head % 5 or self.other_branches:
            return
        for entry in self.log.read(max(0, self.oracle.head - 3)):
            if entry.erased is not None:
                continue
            for each in passages(entry):
                if not query_terms(each.text, 8):
                    continue
                hits = self.memory._runtime.search.recall(Query(each.text, limit=50), across=False)
                # One hit may stand for another passage of the step, or for a step that says the same.
                assert hits, each.text
                type(self).recalled += 1


def check(postgres, how, machine=OnPostgres):
    class Chosen(machine):
        server = postgres

    case = Chosen.TestCase
    case.settings = how
    # The machine drops its logs without closing them: a crash. On a pool they hold nothing.
    with ConnectionPool(postgres.url, min_size=1, max_size=4, open=True) as pool:
        Chosen.pool = pool
        case().runTest()
    return Chosen


def test_the_promises_hold_on_postgres(postgres):
    check(postgres, profile(2, 20) if chosen_profile() is LOCAL else chosen_profile())


def test_the_promises_hold_on_postgres_with_recall_and_facts(postgres):
    made = check(postgres, profile(3, 20) if chosen_profile() is LOCAL else chosen_profile(), Recalling)
    assert made.recalled > 2, "nothing was recalled: the machine watches nothing"
