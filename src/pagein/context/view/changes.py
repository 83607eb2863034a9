"""Changes of an application to steps that were recorded: by hand, or by the list of messages that it hands over."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.events import entries


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The words of an application's list in the place of others: the stub, and the position of the compaction that has it."""

    stub: entries.Stub
    position: int


class StepChanges:
    """The steps that an application removed, edited or worded anew, by their positions."""

    def __init__(self) -> None:
        self.removed: set[int] = set()
        """The steps that an application removed by hand: no search finds them."""
        self.edited: set[int] = set()
        """The steps that an application changed by hand."""
        self.rewritten: dict[tuple[int, str, int], Rewritten] = {}
        """The words that an application's list now has in the place of a message or a result, by position, slot and index."""
        self.wordings: dict[int, list[int]] = {}
        """By step, the compactions that have other words of it, undone ones too: search finds them."""
        self.relisted: dict[int, int] = {}
        """By what a list changed or took back, the newest compaction that says so."""

    def note(self, position: int, body: entries.Compaction, *, is_undone: bool) -> None:
        """Note the steps that a compaction by a list changes, and the words that it has."""
        stubs = [(by.first, stub) for by in body.replacements for stub in by.stubs if body.policy == entries.REWRITTEN]
        for at, stub in stubs:
            self.wordings.setdefault(at, []).append(position)
            if not is_undone:
                self.rewritten[at, stub.slot, stub.index] = Rewritten(stub, position)
        if body.policy in entries.BY_LIST and not is_undone:
            changed = (by for by in body.replacements if by.stubs or by.summary is not None)
            self.relisted |= {by.last - 1: position for by in changed}

    def note_by_hand(self, by: entries.Replacement) -> None:
        """Note the steps that were edited or removed by hand."""
        changed = self.edited if by.stubs else self.removed
        changed.update(range(by.first, by.last))

    def has_unchanged(self, head: int) -> bool:
        """True where no list changed, from this position on, anything before it."""
        return not any(at < head <= changed for at, changed in self.relisted.items())
