"""The fuzzer of erasing, at a size for every run of the tests; and that it sees what is left."""

import contextlib
import sqlite3

import pytest

from benchmarks.fuzz.__main__ import fuzz_erasing
from pagein import ActionStep, AgentMemory, TaskStep, ToolCall
from pagein.backends.sqlite.connection import has_residue
from pagein.log.base import Entry
from pagein.memory.erasure import plan
from pagein.memory.erasure.plan import entry_texts
from pagein.memory.erasure.repetitions import Repetitions

pytestmark = pytest.mark.slow


@pytest.mark.slow
def test_what_was_erased_is_nowhere():
    assert fuzz_erasing(seed=23, count=2).failures == []


def test_the_fuzzer_sees_extracts_that_stay(monkeypatch):
    monkeypatch.setattr(plan, "redact_compaction", lambda body, erased, quotes: body)
    assert fuzz_erasing(seed=24, count=1).failures


def test_pieces_of_words_phrases_and_keys_are_known_again():
    quotes = Repetitions(["see xanthippe-4711/kleinschmidt", "the cat sat upon the old blue mat"], ["an old mat"])
    for text in ("> read(xanthi", "…schmidt", "said: cat sat upon the [... 30 characters left out: s3 ...]"):
        assert quotes(text), text
    for text in ("an old mat", "[... 3,100 characters left out: s3 ...]", "Out of view: s3-18."):
        assert not quotes(text), text
    step = ActionStep("", (ToolCall("c", "read", '{"customer-xanthippe": {"caf\\u00e9": 1}}'),))
    texts = "\n".join(text for _, _, text in entry_texts(Entry(0, 0.0, step, "")))
    assert "customer-xanthippe" in texts
    assert "café" in texts


def test_a_file_that_holds_a_word_of_what_was_erased_is_not_called_scrubbed(tmp_path, monkeypatch):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=2_000) as memory:
        memory.record(TaskStep("My name is Xanthippe Kleinschmidt."), TaskStep("Go on."))
        monkeypatch.setattr(plan, "redact", lambda body: body)
        memory.record(TaskStep("I said Xanthippe Kleinschmidt."))
        with (tmp_path / "run.db-journal").open("wb") as file:
            file.write(b"\0" * 3_000 + b"xx Kleinschmidt")
        monkeypatch.undo()
        assert memory.erase("s0").scrubbed, "another step says it in its own right"
        assert not memory.erase("s2").scrubbed, "a file beside the store has it"


def test_residue_is_what_no_entry_accounts_for(tmp_path):
    path = str(tmp_path / "run.db")
    with AgentMemory.open(path, budget=2_000) as memory:
        memory.record(TaskStep("The quadrangle is ours."))
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        assert not has_residue(database, path, ["quadrangle"])
        database.execute("CREATE TABLE other (words TEXT)")
        database.execute("INSERT INTO other VALUES ('xanthippekleinschmidt')")
        database.commit()
        assert has_residue(database, path, ["xanthippekleinschmidt"])


def test_a_fact_that_goes_leaves_the_blocks_of_other_runs(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=2_000, user="ann", session="one") as memory:
        memory.record(TaskStep("Remember: I prefer the editor xanthippedit over all others."))
        memory.wait()
        with AgentMemory.open(path, budget=2_000, user="ann", session="two") as other:
            other.record(TaskStep("Which editor do I prefer?"))
            assert "xanthippedit" in str(other.to_messages())
            memory.erase("s0")
            other.record(TaskStep("And now?"))
            assert "xanthippedit" not in str(other.to_messages())
            assert "xanthippedit" not in str([entry.body for entry in other._runtime.log.read()])


def test_facts_of_a_branch_go_with_its_steps():
    """On a branch the facts of the run are shown, and each has the branch's own step as its source."""
    assert fuzz_erasing(seed=661_057, count=1).failures == []
