"""Texts and results that a run's ledger has not learned from yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pagein.events.entries import Observed
from pagein.events.steps import Content, Observation, ToolCall, as_text, own_text

if TYPE_CHECKING:
    from pagein.context.ledger.items import Speaker
    from pagein.context.ledger.run_ledger import RunLedger


@dataclass(frozen=True, slots=True)
class HeardText:
    """A text of the user or the model, and the position of its step; ``content`` has what the application put beside it, too."""

    position: int
    content: Content | None
    speaker: Speaker

    def teach(self, ledger: RunLedger) -> None:
        """Have the ledger learn from it."""
        text = own_text(self.content)
        ledger.learn(self.position, text, self.speaker)
        ledger.learn_work(self.position, text, as_text(self.content), is_own=self.speaker == "assistant")

    def to_state(self) -> list[Any]:
        """Return it as JSON-safe values, behind the positions of the entries that have its text."""
        return [self.position, self.speaker]


@dataclass(frozen=True, slots=True)
class HeardResult:
    """A result and the position of its entry; the call that it answers, and the position of its step.

    A late one stands in a view at its own position, another one with its step.
    """

    position: int
    action: int
    index: int
    call: ToolCall
    observation: Observation
    is_late: bool = False

    def teach(self, ledger: RunLedger) -> None:
        """Have the ledger learn from it."""
        place = (self.position, 0) if self.is_late else (self.action, self.index)
        if not self.is_late:
            ledger.answers.end_last(self.action)
        ledger.learn_result(place, self.call, self.observation)

    def to_state(self) -> list[Any]:
        """Return it as JSON-safe values, behind the positions of the entries that have its text and its call."""
        return [self.position, self.action, self.index]


def restore_heard(recorded: Mapping[int, Any], position: int, *about: Any) -> HeardText | HeardResult:
    """Restore a text or a result from ``to_state``; ``recorded`` has the bodies of the entries at its positions."""
    body = recorded[position]
    if len(about) == 1:
        return HeardText(position, body.content, *about)
    action, index = about
    call = recorded[action].tool_calls[index]
    if isinstance(body, Observed):
        return HeardResult(position, action, index, call, body.observation, body.late)
    return HeardResult(position, action, index, call, body.observations[index])
