"""Knowledge of a run that its entries give: the lines and names that it uses, and the ledger of what holds in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pagein.context.ledger.heard import HeardResult, HeardText
from pagein.context.salience.tracker import SalienceTracker
from pagein.context.view.layout import Item, ViewEntry
from pagein.events import entries, steps
from pagein.events.protocol import ends_in_call

if TYPE_CHECKING:
    from pagein.context.ledger.block import Blocks
    from pagein.context.ledger.run_ledger import RunLedger


class LearnedRun:
    """The tracker of a run's lines and names, its ledger, and what the ledger has not learned from yet."""

    def __init__(self) -> None:
        self.tracker = SalienceTracker()
        self.known_ledger: RunLedger | None = None
        """The ledger as it is so far; None before the first text that it learned from."""
        self.heard: list[HeardText | HeardResult] = []
        """What the ledger has not learned from yet: a run that is far from its limit pays nothing."""
        self.blocks: Blocks = {}
        """The last rendered blocks of the ledger."""

    @property
    def ledger(self) -> RunLedger:
        """The ledger of what holds in the run."""
        return self.teach_ledger(len(self.heard))

    def teach_ledger(self, texts: int) -> RunLedger:
        """Have the ledger learn from this many of the texts and results that it has not learned from yet; return it."""
        from pagein.context.ledger.run_ledger import RunLedger  # noqa: PLC0415 - loads where something leaves

        ledger = self.known_ledger = self.known_ledger or RunLedger()
        for text in self.heard[:texts]:
            text.teach(ledger)
        del self.heard[:texts]
        return ledger

    def learn_ahead(self) -> None:
        """Learn from all texts of the run, as the next compaction would."""
        _ = self.ledger, self.tracker.names

    def replaced_texts(self) -> Mapping[int, tuple[str, ...]]:
        """Return the statements that newer ones replaced, by position."""
        return self.ledger.superseded_texts()

    def learn_step(self, position: int, step: Item, before: Item | None = None) -> None:
        """Learn from a step; behind one ``before`` it that calls in its text, the user's words are a result."""
        self.tracker.learn_step(position, step)
        match step:
            case steps.TaskStep(content=content) if not ends_in_call(before):
                self.heard.append(HeardText(position, content, "user"))
            case (
                steps.ActionStep(content=content, tool_calls=(), observations=())
                | steps.FinalAnswerStep(content=content)
            ):
                self.heard.append(HeardText(position, content, "assistant"))
            case steps.ActionStep(tool_calls=calls, observations=observations):
                for index, (call, observation) in enumerate(zip(calls, observations, strict=False)):
                    if observation is not None:
                        self.heard.append(HeardResult(position, position, index, call, observation))

    def learn_result(self, position: int, observed: entries.Observed, call: steps.ToolCall | None) -> None:
        """Learn from a result, of a call that is known."""
        if observed.late:
            self.tracker.learn_step(position, observed)
        else:
            self.tracker.learn_observation(observed.action, observed.observation)
        if call is not None:
            action, index = observed.action, observed.index
            self.heard.append(HeardResult(position, action, index, call, observed.observation, is_late=observed.late))

    def learn_other_result(
        self, position: int, stub: entries.Stub, entry: ViewEntry, call: steps.ToolCall | None
    ) -> None:
        """Learn the words that a list, or an edit, has in the place of a result: what its call did is known."""
        self.tracker.forget(position, position + 1)
        self.tracker.learn_step(position, entry.item)
        if call is not None:
            observation = steps.Observation(call.id, stub.content, index=stub.index)
            self.ledger.failures.learn(position, stub.index, call, observation)

    def forget_slot(self, position: int, stub: entries.Stub, call: steps.ToolCall | None) -> None:
        """Drop what the ledger has of a slot that was changed by hand; learn the tasks in new arguments of its ``call``."""
        self.ledger.remove_slot(position, stub.slot, stub.index)
        if call is not None:
            self.ledger.plans.learn_edited((position, stub.index), replace(call, arguments=stub.text))

    def relearn_step(self, by: entries.Replacement, entry: ViewEntry | None) -> None:
        """Forget a step that was edited or removed, so that no extract and no page-in repeats it; learn its new words."""
        self.tracker.forget(by.first, by.last)
        # It learns from all that came before first, so that a log folded again gives the same ledger.
        ledger = self.ledger
        ledger.remove_step(by.first)
        if not by.stubs:
            ledger.remove_results(by.first)
        if entry is not None and by.stubs:
            self.tracker.learn_step(entry.first, entry.item)
        if entry is None or isinstance(entry.item, steps.TaskStep):  # a list changes words of the user alone
            for stub in by.stubs:
                ledger.learn(by.first, stub.text, "user")

    def drop_entry(self, position: int) -> None:
        """Drop an entry of the ledger."""
        self.ledger.remove_step(position)
        self.ledger.remove_open_work(position)
