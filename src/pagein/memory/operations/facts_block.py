"""What is known, where it stands in a view: in blocks in the run, or in one at its head, which the log keeps.

At the head it is chosen once, and anew only where a compaction breaks the prefix anyway: it is an entry of the run's log,
so that every process and every branch lays out the same bytes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pagein.context.view.fold import show
from pagein.context.view.layout import Aside
from pagein.context.view.view import Shown, View
from pagein.events.entries import FactsShown
from pagein.memory._effects import Append, Flow, Known
from pagein.memory._state import Asides, Session

if TYPE_CHECKING:
    from pagein.facts.placement import Laid

FACTS, FRAME = 0.125, 24
"""Share of the limit that facts may have, and tokens that a block of them costs beside its text."""


def blocks(session: Session, current: View, tokens: int) -> Flow[tuple[Shown, ...]]:
    """What is known and matters now, where it stands in the run: as it stood, while nothing left and it is true."""
    if not session.has_facts or session.placement != "tail" or tokens <= 0:
        return ()
    compactions = len(session.fold.compactions)
    held = session.asides if session.asides.compactions == compactions else Asides(compactions)
    with session.telling("no facts are shown"):
        laid = yield from Known(_context(current), tokens, current.head, held.laid)
        if laid is not held.laid:
            stood = dict(zip(held.laid, held.shown, strict=True))
            shown = tuple(stood.get(each) or _aside(each, current) for each in laid)
            held = Asides(compactions, laid, shown)
        session.asides = held
    return held.shown


def _context(current: View) -> str:
    from pagein.facts.ranking import context_of  # noqa: PLC0415 - loads where facts are wanted

    return context_of(each.item for each in current.run)


def _aside(laid: Laid, current: View) -> Shown:
    return show(
        Aside("facts", laid.inner), laid.position, laid.position, current.counter, tier="facts",
        why="known, and likely to matter",
    )  # fmt: skip


def headed(session: Session, limit: int) -> Flow[None]:
    """See that the head says what it is to say: chosen once, anew where its share got smaller, nothing where that is wanted."""
    fold, tokens = session.fold, int(limit * FACTS)
    if session.has_facts and session.placement == "head":
        if fold.known is None or fold.known_tokens > tokens:
            text = yield from _chosen(session, fold.view(limit), tokens - FRAME)
            if text is not None:
                yield from say(session, text)
    elif fold.known_tokens and (session.has_facts or session.placement is None):
        yield from say(session, "")


def _chosen(session: Session, current: View, tokens: int) -> Flow[str | None]:
    """What is known and matters now, as the head says it; None where it cannot be told."""
    with session.telling("no facts are shown"):
        said = "" if session.fold.known is None else session.fold.known.text
        laid = yield from Known(_context(current), max(0, tokens), current.head, head=said)
        return laid[0].inner if laid else ""
    return None


def say(session: Session, text: str) -> Flow[None]:
    """Have the head say this from here on; "" for nothing."""
    session.take((yield from Append((FactsShown(text),), session.fold.head)))


def without(current: View) -> View:
    """The view without what its head says is known; the same view where that is nothing."""
    kept = tuple(each for each in current.kept if each.tier != "facts")
    if len(kept) == len(current.kept):
        return current
    return replace(current, kept=kept).with_tail(())


def renewed(session: Session, before: View, after: View) -> Flow[tuple[FactsShown, ...]]:
    """What the head says from a compaction on, where that is something else, has room, and leaves the view smaller."""
    if not session.has_facts or session.placement != "head":
        return ()
    rest = after.tokens - session.fold.known_tokens
    room = min(int(after.limit * FACTS), min(after.limit, before.tokens - 1) - rest)
    text = yield from _chosen(session, after, room - FRAME)
    if text is None or (session.fold.known is not None and text == session.fold.known.text):
        return ()
    made = show(Aside("facts", text), 0, 0, after.counter, tier="facts", why="")
    return () if text and made.tokens > room else (FactsShown(text),)
