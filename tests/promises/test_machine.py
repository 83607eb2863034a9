"""The stateful machine on every log and under every policy."""

from __future__ import annotations

import pytest
from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from pagein.backends.sqlite.log import SQLiteLog
from pagein.context.compaction.registry import POLICIES
from pagein.context.tool_rules import Tools
from pagein.events.entries import Compaction
from pagein.memory.options import Options
from pagein.testing.machine import LOCAL, MemoryMachine, SummarizingMachine, chosen_profile, profile


class OnSQLite(MemoryMachine):
    def open_log(self):
        return SQLiteLog(self.folder / "run.db", synchronous="OFF")


def test_the_promises_hold_in_memory(quick):
    case = MemoryMachine.TestCase
    case.settings = profile(2) if quick else chosen_profile()
    case().runTest()


@pytest.mark.slow
def test_the_promises_hold_on_sqlite():
    case = OnSQLite.TestCase
    case.settings = profile(2) if chosen_profile() is LOCAL else chosen_profile()
    case().runTest()


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"ladder"}))
def test_the_promises_hold_under_every_policy(name, quick):
    class Named(MemoryMachine):
        def policy(self):
            return name

    case = Named.TestCase
    case.settings = settings(chosen_profile(), max_examples=1 if quick else max(2, chosen_profile().max_examples // 8))
    case().runTest()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ladder", "window"])
def test_the_promises_hold_with_rules_for_tools(name):
    class Ruled(MemoryMachine):
        def policy(self):
            return name

        def options(self):
            return super().options() | Options(tool_rules=Tools(keep=("read",), fold=("bash",), clip={"*": 40}))

    case = Ruled.TestCase
    case.settings = settings(chosen_profile(), max_examples=max(3, chosen_profile().max_examples // 8))
    case().runTest()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiers", "rounds"])
def test_the_promises_hold_with_an_author_that_writes_well_badly_or_late(name):
    authors = []

    class Authored(SummarizingMachine):
        limits = (1_200, 1_600, 2_400)

        def policy(self):
            return name

        def teardown(self):
            runs = (self.oracle, *self.other_branches.values())
            rows = [row for run in runs for row in run.rows if isinstance(row, Compaction)]
            authors.extend(replacement.author for row in rows for replacement in row.replacements if replacement.record)
            super().teardown()

    # Long histories: there is something to write only once a run is near its budget. Most of few have none.
    few = (
        profile(2, 60, seed=False) if chosen_profile() is LOCAL else settings(chosen_profile(), stateful_step_count=60)
    )
    for number in range(
        5, 25
    ):  # with 5 both policies show one soon; some of the first four take half a minute to show none
        run_state_machine_as_test(seed(number)(type("Seeded", (Authored,), {})), settings=few)
        if "scripted" in authors:
            break
    assert "scripted" in authors, "nothing that was written was ever shown: the machine watches nothing"
