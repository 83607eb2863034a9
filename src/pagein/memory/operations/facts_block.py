"""Facts in a view: blocks in the run, or one block at its head, which is an entry of the log; and a run's procedure.

The head block is selected once, and again only where a compaction breaks the prefix anyway. As an entry of the log it
has the same bytes in every process and on every branch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pagein.context.view.layout import ContextBlock, ViewEntry, make_entry
from pagein.context.view.view import View
from pagein.events.entries import Body, FactsShown
from pagein.events.steps import ActionStep, FinalAnswerStep
from pagein.memory._facts_state import ShownFacts
from pagein.memory._state import RunState
from pagein.memory.operations.history import read_steps
from pagein.tokens import TokenCounter

if TYPE_CHECKING:
    from pagein.facts.fact import Fact

FACTS_SHARE = 0.125
"""Share of the limit that facts may have."""

FACTS_FRAME_TOKENS = 24
"""Tokens that a block of facts costs beside its text."""


def place_in_tail(run: RunState, view: View, tokens: int) -> tuple[ViewEntry, ...]:
    """Place facts in the run, in at most ``tokens`` tokens; blocks stay in place while nothing leaves and they hold."""
    facts = run.facts_block
    if not facts.is_on or facts.placement != "tail" or tokens <= 0:
        return ()
    compactions = len(run.fold.compactions)
    current = facts.current if facts.current.compactions == compactions else ShownFacts(compactions)
    with run.problems.guard("no facts are shown"):
        blocks = run.runtime.facts.select(view, tokens, current.blocks)
        if blocks is not current.blocks:
            placed = dict(zip(current.blocks, current.entries, strict=True))
            entries = tuple(
                placed.get(block) or facts_entry(block.inner, block.position, view.counter) for block in blocks
            )
            current = ShownFacts(compactions, blocks, entries)
        facts.current = current
    return current.entries


def facts_entry(text: str, position: int, counter: TokenCounter) -> ViewEntry:
    """Return the entry of a block of facts that stands before the steps from a position on."""
    block, why = ContextBlock("facts", text), "known, and likely to matter"
    return make_entry(block, position, position, counter, tier="facts", why=why)


def ensure_head_block(run: RunState, limit: int) -> None:
    """Record a head block if none is in the log or it got too large; an empty one where facts are not to stand there."""
    fold, tokens = run.fold, int(limit * FACTS_SHARE)
    if run.facts_block.is_on and run.facts_block.placement == "head":
        if fold.facts.newest is None or fold.facts.tokens > tokens:
            text = _select_head_text(run, fold.view(limit), tokens - FACTS_FRAME_TOKENS)
            if text is not None:
                record_head_text(run, text)
    elif fold.facts.tokens and (run.facts_block.is_on or run.facts_block.placement is None):
        record_head_text(run, "")


def renew_head_block(run: RunState, before: View, after: View) -> tuple[FactsShown, ...]:
    """Select the head block anew for a compaction; none if it stays the same, or the view would not get smaller."""
    if not run.facts_block.is_on or run.facts_block.placement != "head":
        return ()
    other_tokens = after.tokens - run.fold.facts.tokens
    room = min(int(after.limit * FACTS_SHARE), min(after.limit, before.tokens - 1) - other_tokens)
    text = _select_head_text(run, after, room - FACTS_FRAME_TOKENS)
    if text is None or (run.fold.facts.newest is not None and text == run.fold.facts.newest.text):
        return ()
    return () if text and facts_entry(text, 0, after.counter).tokens > room else (FactsShown(text),)


def _select_head_text(run: RunState, view: View, tokens: int) -> str | None:
    """Select the facts for the head as text; None if the facts failed."""
    with run.problems.guard("no facts are shown"):
        current = "" if run.fold.facts.newest is None else run.fold.facts.newest.text
        blocks = run.runtime.facts.select(view, max(0, tokens), head=current)
        return blocks[0].inner if blocks else ""
    return None


def record_head_text(run: RunState, text: str) -> None:
    """Record the text that stands at the head from here on; "" for none."""
    run.append(FactsShown(text))


def save_procedure(run: RunState, task: str | None = None, author: str = "host") -> Fact:
    """Save how the current task was done, without the steps that an application edited or removed. Raises FactError."""
    by_hand = run.current_view().changed_by_hand
    steps = [(at, step) for at, step in read_steps(run) if at not in by_hand]
    return run.runtime.use_facts().save_procedure(steps, task, author)


def save_final_procedure(run: RunState, bodies: Iterable[Body]) -> None:
    """Save how the task was done if the options say so and its answer is among the bodies; a failure fails no turn."""
    answers = (body for body in bodies if isinstance(body, FinalAnswerStep | ActionStep))
    if run.facts_block.saves_procedures and any(getattr(body, "is_final_answer", True) for body in answers):
        with run.problems.guard("no procedure is saved"):
            save_procedure(run, author="rules")


def without_facts(view: View) -> View:
    """The view without its head block; the same view if it has none."""
    front = tuple(entry for entry in view.front if entry.tier != "facts")
    if len(front) == len(view.front):
        return view
    return replace(view, front=front).with_tail(())
