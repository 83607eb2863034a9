"""Moves by which a run goes on elsewhere: from a snapshot, from an earlier place, on another branch."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from pagein.memory._state import Held
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.operations import load as flows
from pagein.memory.snapshots import packed, unpacked
from pagein.testing.machine_checks import Watched
from pagein.testing.oracle import Oracle


class Returning(Watched):
    """A run that is opened again, forked, and taken back."""

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, Oracle] = {}
        """What the branches hold that the run is not on."""

    @rule(data=st.data(), how=st.sampled_from(("snapshot", "back", "branch")))
    def goes_on_elsewhere(self, data: st.DataObject, how: str) -> None:
        self._found()
        self._rests()
        if how == "snapshot" or (how == "branch" and not self.left):
            self.memory._run(flows.keep_now(self.memory._session))  # noqa: SLF001 - due or not
        elif how == "back":
            self._goes_back(data.draw(st.integers(0, self.oracle.head)))
        else:
            self._takes(data.draw(st.sampled_from(sorted(self.left))))
        self._opens_alike()

    def _rests(self) -> None:
        """What is at work beside the run comes to an end: who goes on elsewhere waits for it."""

    def _goes_back(self, at: int) -> None:
        self.left[self._branch()] = self.oracle
        self.memory.rewind(at)
        self.oracle = Oracle.of(self.oracle.rows[:at])
        self.transcript, self._sent = None, None

    def _takes(self, name: str) -> None:
        self.left[self._branch()] = self.oracle
        self.memory.switch(name)
        self.oracle = self.left.pop(name)
        self.transcript, self._sent = None, None

    def _branch(self) -> str:
        return next(each.name for each in self.memory.branches() if each.is_current)

    def _opens_alike(self) -> None:
        """What is opened from a snapshot is what the whole log gives."""
        quick, whole = (state(self._another(quick=each)) for each in (True, False))
        for what, value in whole.items():
            assert quick[what] == value, f"{what} is {quick[what]} from a snapshot, and {value} from the log"


def state(memory: AgentMemory) -> dict[str, object]:
    """All that a memory holds of its log, part by part."""
    held = memory._session  # noqa: SLF001 - what is watched
    value = dict(unpacked(packed(Held(held.fold, held.heard, held.heard_at, held.recorded))))
    del value["ends"]  # what happened to be counted
    fold = value.pop("fold")
    return {**fold, **value, "view": memory._session.fold.view(1), "steps": memory.steps}  # noqa: SLF001
