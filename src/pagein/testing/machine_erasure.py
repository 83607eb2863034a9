"""Moves by which something is erased: it is nowhere after that, and all else is where it was."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from pagein.events.entries import Checkpoint, Compaction, Erased, FactsShown
from pagein.events.steps import ActionStep, PlanningStep, Step, TaskStep
from pagein.log.base import Log
from pagein.testing import promises
from pagein.testing.machine_branches import Returning
from pagein.testing.oracle import Oracle

OURS = (Compaction, Checkpoint, FactsShown)
"""What the library wrote, and may write anew without what was erased."""


class Forgetting(Returning):
    """A run of which something is erased, on every branch; ``gone`` are the words that no one else said."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets = 0
        self.gone: list[str] = []

    @rule(kind=st.sampled_from((TaskStep, PlanningStep, ActionStep)), lines=st.integers(1, 12))
    def says_a_secret(self, kind: type[TaskStep | PlanningStep | ActionStep], lines: int) -> None:
        self._found()
        self.secrets += 1
        text = "\n".join(f"look at line {each} of zq{self.secrets}xw" for each in range(lines))
        step = kind(text)
        self.oracle = self.oracle.after([step])
        self.memory.record(step)
        self.transcript = None

    @rule(data=st.data())
    def erases(self, data: st.DataObject) -> None:
        if not any(map(_secret, self.oracle.rows)):
            self.says_a_secret(PlanningStep, 3)
        self._found()
        self._rests()
        at = data.draw(st.sampled_from([at for at, row in enumerate(self.oracle.rows) if _secret(row)]))
        word = _secret(self.oracle.rows[at])
        other = self._another()  # has it open meanwhile
        assert word in repr(other.steps)
        done = self.memory.erase(at, reason="asked for")
        assert done.entries, f"s{at} was erased, and nothing is told of"
        self.gone.append(word)
        promises.forgotten(other, (word,))
        grove = self.memory._branches  # noqa: SLF001 - what is watched
        self.oracle = self._without(word, self.oracle, self.log)
        self.left = {name: self._without(word, each, grove.log(name)) for name, each in self.left.items()}
        self.transcript, self._sent = None, None
        found = self.memory.verify()
        assert found.ok, found.problems
        assert found.erased, "verify() knows nothing of what was erased"
        self._opens_alike()

    def _without(self, word: str, oracle: Oracle, log: Log) -> Oracle:
        """What a branch holds after a word was erased: what said it is told of as erased, all else stands as it stood."""
        entries = list(log.read())
        rows = [entry.body for entry in entries]
        for entry, said in zip(entries, oracle.rows, strict=False):
            if entry.body != said:
                assert isinstance(said, OURS) or word in repr(said), f"entry {entry.position} was {said!r}"
                assert type(entry.body) is type(said)
                assert entry.erased is not None, f"entry {entry.position} changed, and nothing says so"
        assert all(isinstance(each, Erased) for each in rows[oracle.head :])
        return Oracle.of(rows)

    def _record_holds(self) -> None:
        super()._record_holds()
        promises.forgotten(self.memory, self.gone)


def _secret(row: object) -> str:
    """The word that only this step says; "" for any other."""
    text = str(getattr(row, "content", "")) if isinstance(row, Step) else ""
    return text.rpartition(" ")[2] if text.endswith("xw") and " zq" in text else ""
